"""Processes of the live node that use NCCL or RCCL; asked only where that is opted in.

psutil lists them and tells one process from another that got its number. What psutil
would read dearly or wrongly is read here: it takes memory maps from ``smaps``, which
walks the page tables of a training process, and shows only those open files that also
exist in our own mount namespace. An environment passes as bytes through a filter.
"""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from dataclasses import dataclass, field
from threading import Lock

import psutil

from fabricmon.host.live_files import failure
from fabricmon.host.process_sights import (
    inner_pid,
    is_log,
    library_variables,
    mapped_libraries,
)
from fabricmon.host.protocol import ProcessListing, ProcessSight, ReadError

YOUNG_LOOKS = 6
"""Looks at a process before it is known to use no library: Python loads it late."""

RARE_LOOKS = 30
"""After that every so many looks: an interpreter may live for hours before it."""

MOST_PROCESSES = 512
"""Processes kept; a node with more ranks than that is none of ours."""

_LIMIT = 4 << 20  # bytes of an environment or of a memory map
_DESCRIPTORS = 4096  # looked at per process
_DENIED = frozenset({errno.EACCES, errno.EPERM})


@dataclass(slots=True)
class _Known:
    """A process seen before; ``looks`` counts, ``uses`` is whether it uses a library."""

    created: float
    looks: int = 0
    uses: bool = False
    denied: bool = False


@dataclass(slots=True)
class _Round:
    """One look at all processes."""

    sights: list[ProcessSight] = field(default_factory=list)
    denied: int = 0


class LiveProcesses:
    """Looks at the processes below a root; remembers which are of no interest.

    Args:
        prefix: What stands before ``/proc``, without a slash at its end.
    """

    def __init__(self, prefix: str = "") -> None:
        self._prefix = prefix
        self._lock = Lock()
        self._known: dict[int, _Known] = {}
        self.newest = ProcessListing(())
        """What the last look found."""

    def look(self) -> ProcessListing | ReadError:
        """Return the processes that use a library now."""
        with self._lock:
            # psutil has one place for it; this is the only user in the program.
            psutil.PROCFS_PATH = f"{self._prefix}/proc"
            try:
                pids = psutil.pids()
            except OSError as error:
                return failure(error.errno)
            self._known = {p: k for p, k in self._known.items() if p in set(pids)}
            seen = _Round()
            for pid in pids:
                self._look_at(pid, seen)
        found = ProcessListing(tuple(seen.sights[:MOST_PROCESSES]), seen.denied)
        self.newest = found
        return found

    def _look_at(self, pid: int, seen: _Round) -> None:
        try:
            created = psutil.Process(pid).create_time()
        except psutil.Error:
            return
        known = self._known.get(pid)
        if known is None or known.created != created:
            known = self._known[pid] = _Known(created)
        known.looks += 1
        due = known.looks <= YOUNG_LOOKS or known.looks % RARE_LOOKS == pid % RARE_LOOKS
        if not (known.uses or due):
            seen.denied += known.denied
            return
        try:
            sight = self._sight(pid)
        except OSError as error:
            known.denied = error.errno in _DENIED
            seen.denied += known.denied
            return
        known.denied = False
        known.uses = sight is not None
        if sight is not None:
            seen.sights.append(sight)

    def _sight(self, pid: int) -> ProcessSight | None:
        """Return what is to be known of a process, None if it uses no library."""
        folder = f"/proc/{pid}"
        place = self._prefix + folder
        variables = library_variables(_read(f"{place}/environ"))
        libraries = mapped_libraries(_read(f"{place}/maps"))
        if not (variables or libraries):
            return None
        own = inner_pid(_read(f"{place}/status"), pid)
        cgroup = _read(f"{place}/cgroup").decode("utf-8", "replace")
        root = "" if self._is_node_root(f"{place}/root") else f"{folder}/root"
        logs = tuple(f"{root}{each}" for each in _logs(place))
        return ProcessSight(pid, own, cgroup, variables, libraries, logs, root)

    def _is_node_root(self, root: str) -> bool:
        """Tell whether a process sees the node's own files: paths outlive it then."""
        with suppress(OSError):
            return os.path.samefile(root, self._prefix or "/")  # noqa: PTH121 -- text
        return False


def _logs(place: str) -> list[str]:
    """Return the open logs of a process, as it sees them itself."""
    found: dict[str, None] = {}
    with suppress(OSError):
        for name in os.listdir(f"{place}/fd")[:_DESCRIPTORS]:  # noqa: PTH208 -- names
            with suppress(OSError):
                target = os.readlink(f"{place}/fd/{name}")  # noqa: PTH115 -- text
                if is_log(int(name), target) and not target.endswith(" (deleted)"):
                    found[target] = None
    return list(found)


def _read(path: str) -> bytes:
    """Read a file of /proc whole, up to a limit; raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        pieces = []
        left = _LIMIT
        while left and (piece := os.read(descriptor, min(left, 1 << 16))):
            pieces.append(piece)
            left -= len(piece)
    finally:
        os.close(descriptor)
    return b"".join(pieces)
