"""Log files of the live node: found, looked at, and read through open descriptors.

What lies in a log folder is made by users: nothing but a regular file is ever opened,
its last name is never followed if it is a link, and no open or read waits (a FIFO
would). A descriptor stays open as long as its file is seen, so the rest of a file that
was renamed is still read; a deleted one is let go of once nobody writes to it, because
an open descriptor keeps its blocks on the disk.
"""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from threading import Lock

from fabricmon.host.live_descriptors import spare_descriptors
from fabricmon.host.live_files import failure
from fabricmon.host.log_patterns import Names, find_logs
from fabricmon.host.protocol import LogFile, LogListing, ReadError

DELETED_SECONDS = 60.0
"""A deleted file that did not grow for so long is closed."""

IDLE_SECONDS = 3600.0
"""A file that nobody asked for in so long is closed."""

LOOK_SECONDS = 15.0
"""How often descriptors are looked through for those two."""

_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NOCTTY | os.O_NONBLOCK | os.O_NOFOLLOW
_FOLDER = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW
_NOT_REGULAR = failure(errno.EINVAL)
_STALE = failure(errno.ESTALE)
_SHARE = 4  # a quarter of the descriptors that may be kept
_MOST_BYTES = 16 << 20  # one read; more is never asked for


@dataclass(slots=True)
class _Open:
    """An open log file; ``grew`` is when it last had something new."""

    descriptor: int
    asked: float
    grew: float
    size: int = 0
    readers: int = 0


class LiveLogs:
    """The log files below a root; used from many threads.

    Args:
        prefix: What stands before every path, without a slash at its end.
        real_prefix: The same with every link followed.
        names: Lists a folder.
        limit: Files kept open at most.
        clock: Monotonic seconds, by which idle files are closed.
    """

    def __init__(
        self,
        prefix: str,
        real_prefix: str,
        names: Names,
        limit: int | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._prefix = prefix
        self._real_prefix = real_prefix
        self._names = names
        self._limit = spare_descriptors() // _SHARE if limit is None else limit
        self._clock = clock
        self._lock = Lock()
        self._open: dict[str, _Open] = {}  # by serial, longest unasked first
        self._looked = clock()

    @property
    def kept(self) -> int:
        """Files that are open now."""
        return len(self._open)

    def find(self, pattern: str, limit: int) -> LogListing:
        """Return the regular files that match, the newest first."""
        return find_logs(pattern, limit, self._names, self._look)

    def files(self, paths: Sequence[str]) -> list[LogFile | ReadError]:
        """Return what these files are now."""
        return [self._look(path) for path in paths]

    def read(self, path: str, serial: str, offset: int, size: int) -> bytes | ReadError:
        """Read from an open file, or open it if the path still is that file."""
        size = min(size, _MOST_BYTES)
        with self._lock:
            held = self._open.pop(serial, None)
            if held is not None:
                self._open[serial] = held
                held.asked = self._clock()
                held.readers += 1
        try:
            if held is None:
                held = self._open_file(path, serial)
            return os.pread(held.descriptor, size, offset)
        except OSError as error:
            if error.errno == errno.ESTALE and held is not None:
                self._drop(serial, held)
                held = None
            return failure(error.errno)
        except ValueError:
            return _NOT_REGULAR
        finally:
            if held is not None:
                self._settle(held)

    def close(self) -> None:
        """Close every file that no thread reads from."""
        with self._lock:
            for serial in [s for s, held in self._open.items() if not held.readers]:
                os.close(self._open.pop(serial).descriptor)

    def _look(self, path: str) -> LogFile | ReadError:
        try:
            seen = os.lstat(self._prefix + path)
        except OSError as error:
            return failure(error.errno)
        except ValueError:
            return _NOT_REGULAR
        if not stat.S_ISREG(seen.st_mode):
            return _NOT_REGULAR
        return LogFile(path, _serial(seen), seen.st_size, seen.st_mtime)

    def _open_file(self, path: str, serial: str) -> _Open:
        """Open a file, raise OSError where it is another one or none to be read."""
        descriptor = open_inside(self._prefix + path, self._real_prefix)
        seen = os.fstat(descriptor)
        is_log = stat.S_ISREG(seen.st_mode)
        if not is_log or _serial(seen) != serial:
            os.close(descriptor)
            number = errno.ESTALE if is_log else errno.EINVAL
            raise OSError(number, "another file")
        now = self._clock()
        held = _Open(descriptor, now, now, seen.st_size, readers=1)
        with self._lock:
            other = self._open.get(serial)
            if other is not None:  # another thread was faster
                os.close(descriptor)
                other.readers += 1
                return other
            self._make_room()
            self._open[serial] = held
        return held

    def _make_room(self) -> None:
        """Close the file that was not asked for longest; under the lock."""
        while len(self._open) >= self._limit:
            idle = next((s for s, held in self._open.items() if not held.readers), None)
            if idle is None:
                return
            os.close(self._open.pop(idle).descriptor)

    def _settle(self, held: _Open) -> None:
        with self._lock:
            held.readers -= 1
        if self._clock() - self._looked >= LOOK_SECONDS:
            self._close_idle()

    def _close_idle(self) -> None:
        now = self._looked = self._clock()
        with self._lock:
            for serial, held in tuple(self._open.items()):
                if not held.readers and self._is_over(held, now):
                    os.close(self._open.pop(serial).descriptor)

    def _is_over(self, held: _Open, now: float) -> bool:
        try:
            seen = os.fstat(held.descriptor)
        except OSError:
            return True
        if seen.st_size != held.size:
            held.size, held.grew = seen.st_size, now
        deleted = seen.st_nlink == 0 and now - held.grew >= DELETED_SECONDS
        return deleted or now - held.asked >= IDLE_SECONDS

    def _drop(self, serial: str, held: _Open) -> None:
        with self._lock:
            if self._open.get(serial) is held:
                del self._open[serial]
                with suppress(OSError):
                    os.close(held.descriptor)


def open_inside(path: str, real_prefix: str) -> int:
    """Open a file for reading without waiting, if it lies below the root.

    Through the root or working folder of a process no link is followed on the way:
    those of a container would lead to files of the node. Raises OSError.
    """
    process, magic, inner = _of_process(path)
    if magic:
        return _open_step_by_step(f"{process}/{magic}", inner)
    if not stat.S_ISREG(os.lstat(path).st_mode):  # opening a device may act on it
        raise OSError(errno.EINVAL, "no regular file")
    descriptor = os.open(path, _FLAGS)
    real = os.readlink(f"/proc/self/fd/{descriptor}")  # noqa: PTH115 -- hot path
    if real_prefix and not real.startswith(f"{real_prefix}/"):
        os.close(descriptor)
        raise OSError(errno.EXDEV, "outside the root")
    return descriptor


def _of_process(path: str) -> tuple[str, str, str]:
    """Part ``/proc/PID/root/rest`` or ``cwd``; the second is empty for other paths."""
    before, proc, rest = path.partition("/proc/")
    pid, _, rest = rest.partition("/")
    magic, _, rest = rest.partition("/")
    if pid.isdigit() and magic in {"root", "cwd"}:
        return f"{before}{proc}{pid}", magic, rest
    return "", "", ""


def _open_step_by_step(start: str, rest: str) -> int:
    # The start is a link by nature: the only one that is followed.
    folder = os.open(start, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        *folders, name = [part for part in rest.split("/") if part]
        for part in folders:
            inner = os.open(part, _FOLDER, dir_fd=folder)
            os.close(folder)
            folder = inner
        seen = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if not stat.S_ISREG(seen.st_mode):
            raise OSError(errno.EINVAL, "no regular file")
        return os.open(name, _FLAGS, dir_fd=folder)
    finally:
        os.close(folder)


def _serial(seen: os.stat_result) -> str:
    return f"{seen.st_dev:x}:{seen.st_ino:x}"
