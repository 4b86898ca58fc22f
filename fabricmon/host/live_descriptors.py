"""Files that are read again and again: a descriptor for each, kept open.

A read through a kept descriptor costs a tenth of open, read and close. It shows the
live value as long as the path still leads to that file, so before each burst the
folders are compared with what they were: one stat a folder, for all bursts of a moment.
A device that was removed, replaced or renamed has another folder; files of fake trees
and of /run are exchanged by renaming, which moves their folder's time stamp. What the
kernel has removed says so itself when it is read, so its folders are trusted longer.

Each burst owns its descriptors, and whoever reads it has taken it out of the table.
So nobody closes a descriptor that another thread, perhaps hung, is reading from.
"""

from __future__ import annotations

import errno
import os
import resource
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import repeat
from math import inf
from threading import Lock

from fabricmon.host.live_files import (
    VALUE_BYTES,
    Kernel,
    failure,
    open_and_read,
    read_whole,
)
from fabricmon.host.protocol import ReadError
from fabricmon.value import Value

IDLE_SECONDS = 600.0
"""Descriptors of a burst that was not read for so long are closed."""

LOOK_SECONDS = 60.0
"""How often bursts that are not read any more are looked for."""

MOST_DESCRIPTORS = 8192
"""Descriptors kept at most; 8 HCAs with all their counters have about 1,000."""

KERNEL_TRUST_SECONDS = 1.0
"""A folder of the kernel was looked at so lately: only names may have been exchanged."""

TRUST_SECONDS = 0.1
"""The same of one that others write: shorter than any period, as long as one moment."""

_QUIET_NANOSECONDS = 1_000_000_000  # longer than the steps of any file system's clock
_GONE = frozenset({errno.ENODEV, errno.ENOENT, errno.ESTALE, errno.ESRCH})
_SHORTAGE = frozenset({failure(errno.EMFILE), failure(errno.ENFILE)})
_NOT_OPEN = -1


class _Place(Value, frozen=True):
    """Which folder a path led to, and whether its files may be kept open."""

    device: int
    inode: int
    changed: int | None
    steady: bool

    def is_still(self, now: os.stat_result) -> bool:
        """Tell whether the path leads to the same folder with the same names in it."""
        return (
            self.steady
            and self.inode == now.st_ino
            and self.device == now.st_dev
            and (self.changed is None or self.changed == now.st_mtime_ns)
        )


class _Identity(Value, frozen=True):
    """Which folder a path led to when it last led anywhere."""

    device: int
    inode: int


class Trust(Value, frozen=True):
    """For how long a folder is not looked at again, seconds; 0: each time."""

    kernel: float = 0.0
    others: float = 0.0


NO_TRUST = Trust()
"""A folder is looked at before each burst."""

MOMENTARY = Trust(KERNEL_TRUST_SECONDS, TRUST_SECONDS)
"""What an agent does that reads the same folders for many reasons."""


class _Look(Value, frozen=True):
    """What a path led to, and until when that is believed."""

    place: _Place
    until: float


class _Replaced(Exception):  # noqa: N818 -- no error: a turn in the middle of a burst
    """The files that are being read belong to another device than before."""


@dataclass(slots=True)
class _Burst:
    """Files that are read together; the lists have the order of ``paths``."""

    paths: tuple[str, ...]
    descriptors: list[int]
    folder_of: list[int]
    folders: list[str]
    places: list[_Place | None] = field(default_factory=list)
    known: list[_Identity | None] = field(default_factory=list)
    used: float = 0


class Descriptors:
    """All bursts of a node, by their paths; used from many threads at once.

    Args:
        prefix: What stands before every path, without a slash at its end.
        limit: Descriptors kept at most; by default what the process may well spare.
        clock: Monotonic seconds, by which idle bursts are closed.
        trust: For how long what was seen of a folder is believed.
    """

    def __init__(
        self,
        prefix: str = "",
        limit: int | None = None,
        clock: Callable[[], float] = time.monotonic,
        trust: Trust = NO_TRUST,
    ) -> None:
        self._trust = trust
        self._looks: dict[str, _Look] = {}
        self._prefix = prefix
        self._limit = spare_descriptors() if limit is None else limit
        self._clock = clock
        self._kernel = Kernel()
        self._lock = Lock()
        self._bursts: dict[tuple[str, ...], _Burst] = {}  # longest idle first
        self._kept = 0
        self._looked = -inf
        self._closed = False
        self._shortages = 0

    @property
    def kept(self) -> int:
        """Descriptors that are open now."""
        return self._kept

    @property
    def shortages(self) -> int:
        """Times that a file was read the slow way for want of a descriptor."""
        return self._shortages

    def read(self, paths: Sequence[str]) -> list[bytes | ReadError]:
        """Read files one after the other, in order.

        All fail with ESTALE, once, where a folder is another one than before: these are
        the files of another device of that name, and no values to go on from.
        """
        key = tuple(paths)
        with self._lock:
            burst = self._bursts.pop(key, None)
        if burst is None:
            burst = _new_burst(self._prefix, key)
        try:
            self._check(burst)
            return self._read_burst(burst)
        except _Replaced:
            return [failure(errno.ESTALE)] * len(burst.paths)
        finally:
            self._give_back(key, burst)

    def forget(self, prefix: str) -> None:
        """Close what is open at or below a path, unless it is being read."""
        below = f"{prefix}/"
        with self._lock:
            gone = [
                self._bursts.pop(key)
                for key in tuple(self._bursts)
                if any(path == prefix or path.startswith(below) for path in key)
            ]
        self._close_all(gone)
        whole = self._prefix + prefix
        for folder in tuple(self._looks):
            if folder == whole or folder.startswith(self._prefix + below):
                self._looks.pop(folder, None)

    def close(self) -> None:
        """Close everything; what is being read is closed when its reader is done."""
        with self._lock:
            self._closed = True
        self._close_idle()

    def _read_burst(self, burst: _Burst) -> list[bytes | ReadError]:
        contents: list[bytes | ReadError] = []
        add = contents.append
        descriptors = burst.descriptors
        while (index := len(contents)) < len(descriptors):
            if descriptors[index] == _NOT_OPEN:
                add(self._open(burst, index))
                continue
            try:  # almost always to the end: no code of ours for each file
                rest = descriptors[index:] if index else descriptors
                for content in map(os.pread, rest, repeat(VALUE_BYTES), repeat(0)):
                    if len(content) == VALUE_BYTES:
                        add(read_whole(descriptors[len(contents)]))
                    else:
                        add(content)
            except OSError as error:
                index = len(contents)
                if descriptors[index] != _NOT_OPEN:
                    add(self._read_failed(burst, index, error.errno))
        return contents

    def _read_failed(
        self, burst: _Burst, index: int, number: int | None
    ) -> bytes | ReadError:
        if number not in _GONE:
            return failure(number)
        self._drop(burst, index)
        for folder in burst.folders:  # what was seen of them holds no longer
            self._looks.pop(folder, None)
        self._check(burst)
        return self._open(burst, index)

    def _check(self, burst: _Burst) -> None:
        """Let go of what is another file now; `_Replaced` if that of another device."""
        if self._compare_folders(burst) and self._is_another(burst):
            raise _Replaced

    def _open(self, burst: _Burst, index: int) -> bytes | ReadError:
        place = burst.places[burst.folder_of[index]]

        def keep() -> bool:
            return place is not None and place.steady and self._reserve()

        opened = open_and_read(burst.paths[index], keep)
        if opened.content in _SHORTAGE:
            with self._lock:
                self._shortages += 1
            self._close_idle()
            opened = open_and_read(burst.paths[index], lambda: False)
        if opened.descriptor is not None:
            burst.descriptors[index] = opened.descriptor
        return opened.content

    def _reserve(self) -> bool:
        with self._lock:
            if self._kept < self._limit:
                self._kept += 1
                return True
            self._shortages += 1
            return False

    def _compare_folders(self, burst: _Burst) -> bool:
        """Let go of descriptors where a path no longer leads to the same folder.

        Tells whether that, or a change within a folder, was seen.
        """
        moved = False
        for index, folder in enumerate(burst.folders):
            before = burst.places[index]
            place = self._look(folder, before)
            if place is not before:
                burst.places[index] = place
                moved = True
        if moved:
            for index, descriptor in enumerate(burst.descriptors):
                if descriptor != _NOT_OPEN:
                    self._drop(burst, index)
        return moved

    def _look(self, folder: str, before: _Place | None) -> _Place | None:
        """Return where a path leads: the same object while that is the same place."""
        seen = self._looks.get(folder)
        if seen is not None and self._clock() < seen.until:
            return seen.place
        try:
            found = os.stat(folder)  # noqa: PTH116 -- hot path
        except (OSError, ValueError):
            self._looks.pop(folder, None)
            return None
        known = before if seen is None else seen.place
        place = known if known and known.is_still(found) else self._place(found)
        trust = self._trust.kernel if place.changed is None else self._trust.others
        if trust and place.steady:
            self._looks[folder] = _Look(place, self._clock() + trust)
        return place

    def _is_another(self, burst: _Burst) -> bool:
        """Tell whether a folder was exchanged, and remember what is there now."""
        now = [
            before if place is None else _Identity(place.device, place.inode)
            for place, before in zip(burst.places, burst.known, strict=True)
        ]
        known, burst.known = burst.known, now
        return any(
            old is not None and old != new for old, new in zip(known, now, strict=True)
        )

    def _place(self, now: os.stat_result) -> _Place:
        if self._kernel.owns(now.st_dev):
            return _Place(now.st_dev, now.st_ino, None, steady=True)
        # A change within one step of the clock leaves the time stamp as it was.
        steady = time.time_ns() - now.st_mtime_ns > _QUIET_NANOSECONDS
        return _Place(now.st_dev, now.st_ino, now.st_mtime_ns, steady)

    def _give_back(self, key: tuple[str, ...], burst: _Burst) -> None:
        burst.used = self._clock()
        with self._lock:
            # Another thread may have read the same files meanwhile.
            unwanted = self._closed or key in self._bursts
            if not unwanted:
                self._bursts[key] = burst
        if unwanted:
            self._close_all([burst])
        if burst.used - self._looked >= LOOK_SECONDS:
            self._looked = burst.used
            self._close_idle(burst.used - IDLE_SECONDS)

    def _close_idle(self, before: float = inf) -> None:
        """Close what was not used since ``before``."""
        idle: list[_Burst] = []
        with self._lock:
            while self._bursts:
                key, burst = next(iter(self._bursts.items()))
                if burst.used >= before:
                    break
                idle.append(self._bursts.pop(key))
        self._close_all(idle)

    def _close_all(self, bursts: Sequence[_Burst]) -> None:
        for burst in bursts:
            for index, descriptor in enumerate(burst.descriptors):
                if descriptor != _NOT_OPEN:
                    self._drop(burst, index)

    def _drop(self, burst: _Burst, index: int) -> None:
        os.close(burst.descriptors[index])
        burst.descriptors[index] = _NOT_OPEN
        with self._lock:
            self._kept -= 1


def spare_descriptors() -> int:
    """Return how many descriptors may be kept: half of what the process may have."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    endless = soft == resource.RLIM_INFINITY
    return MOST_DESCRIPTORS if endless else min(MOST_DESCRIPTORS, soft // 2)


def raise_descriptor_limit(wanted: int = 2 * MOST_DESCRIPTORS) -> None:
    """Let this process open more files, as far as its hard limit allows.

    Services start with 1,024, for programs that use select(); this one does not.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if resource.RLIM_INFINITY in {soft, hard}:
        return
    if soft < min(wanted, hard):
        with suppress(OSError, ValueError):  # some sandboxes forbid it
            resource.setrlimit(resource.RLIMIT_NOFILE, (min(wanted, hard), hard))


def _new_burst(prefix: str, paths: tuple[str, ...]) -> _Burst:
    full = tuple(prefix + path for path in paths)
    names = [path.rpartition("/")[0] for path in full]
    folders = list(dict.fromkeys(names))
    return _Burst(
        paths=full,
        descriptors=[_NOT_OPEN] * len(full),
        folder_of=[folders.index(name) for name in names],
        folders=folders,
        places=[None] * len(folders),
        known=[None] * len(folders),
    )
