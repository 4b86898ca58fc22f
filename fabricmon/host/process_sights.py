"""What is kept of a process that uses a collective library, out of its raw files.

An environment holds a tenant's secrets: it is filtered here, before anything else sees
it, and only variables of the libraries leave this file.
"""

from __future__ import annotations

from collections.abc import Iterable

from fabricmon.host.protocol import LIBRARY_KEYS, LibraryVariable

MOST_VARIABLES = 256
"""Variables kept of one process; NCCL knows about 150."""

MOST_CHARACTERS = 4096
"""Length of a value that is kept: a list of all HCAs is far shorter."""

_KEYS = tuple(key.encode() for key in LIBRARY_KEYS)
_LIBRARIES = (b"libnccl", b"librccl")
_LOG_NAMES = ("nccl", "rccl")
_DEVICES = ("/dev/", "/proc/", "/sys/", "pipe:", "socket:", "anon_inode:")


def library_variables(environment: bytes) -> tuple[LibraryVariable, ...]:
    """Return the variables of the libraries; nothing else of the bytes is decoded."""
    kept = []
    for entry in environment.split(b"\0"):
        if entry.startswith(_KEYS):
            name, _, value = entry.decode("utf-8", "replace").partition("=")
            kept.append(LibraryVariable(name, value[:MOST_CHARACTERS]))
    return tuple(kept[:MOST_VARIABLES])


def mapped_libraries(maps: bytes) -> tuple[str, ...]:
    """Return the paths of collective libraries in ``/proc/PID/maps``, each once."""
    found: dict[str, None] = {}
    for line in maps.split(b"\n"):
        if any(name in line for name in _LIBRARIES):
            path = line.split(None, 5)[-1]
            if path.startswith(b"/"):
                found[path.decode("utf-8", "replace")] = None
    return tuple(found)


def is_log(descriptor: int, target: str) -> bool:
    """Tell whether an open file may be a log: output, or named after a library."""
    if not target.startswith("/") or target.startswith(_DEVICES):
        return False
    if descriptor in {1, 2}:
        return True
    name = target.rpartition("/")[2].lower()
    return any(word in name for word in _LOG_NAMES) and not name.endswith(".so")


def inner_pid(status: bytes, pid: int) -> int:
    """Return a process's own idea of its id, out of ``/proc/PID/status``."""
    for line in status.split(b"\n"):
        if line.startswith(b"NSpid:"):
            words = line.split()
            return int(words[-1]) if words[-1].isdigit() else pid
    return pid


def environment_of(variables: Iterable[LibraryVariable]) -> str:
    """Return the text of an environment that holds just these."""
    return "".join(f"{each.name}={each.value}\0" for each in variables)
