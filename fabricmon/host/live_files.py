"""Read small files of the live node once, bounded, with errors as values."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from functools import cache
from pathlib import Path

from fabricmon.host.protocol import ReadError
from fabricmon.value import Value

PAGE_BYTES = 4096
"""A sysfs attribute is at most a page, so one read gets it whole."""

LIMIT_BYTES = 64 * 1024
"""Larger files are no measurement: they are the error EFBIG."""

VALUE_BYTES = 256
"""More than a counter takes; room for so few costs a sixth less to read."""

DOUBT_BYTES = 2048
"""A shorter read is the whole file.

A longer one may not be: /proc hands out whole records and stops short of a page when
the next one does not fit; no record of a file that is read here is so long.
"""

_OPEN = "/proc/self/fd"
_GONE = " (deleted)"  # what the kernel adds to the name of what went meanwhile
_NONE_FREE = frozenset({errno.EMFILE, errno.ENFILE})
_FLAGS = os.O_RDONLY | os.O_CLOEXEC
_FLAGS_AT_ONCE = _FLAGS | os.O_NONBLOCK | os.O_NOCTTY
_KERNEL_TYPES = frozenset({"proc", "sysfs"})


class Opened(Value, frozen=True):
    """A file's content and, where it may be read again, its descriptor."""

    content: bytes | ReadError
    descriptor: int | None = None


@cache
def failure(number: int | None) -> ReadError:
    """Return the error value of an errno number, by the kernel's name for it."""
    if number == errno.EOPNOTSUPP:  # which Python calls ENOTSUP
        return ReadError("EOPNOTSUPP")
    return ReadError(errno.errorcode.get(number or 0, f"errno {number}"))


def read_once(path: str, *, written: bool = False) -> bytes | ReadError:
    """Open, read and close a file; blocks as long as the file does.

    One that is ``written`` by others must be a regular file (else EINVAL): a pipe in its
    place would block for ever.
    """
    try:
        descriptor = os.open(path, _FLAGS_AT_ONCE if written else _FLAGS)
    except OSError as error:
        return failure(error.errno)
    except ValueError:  # a zero byte or a character that no file name can hold
        return failure(errno.EINVAL)
    try:
        if written and not _is_plain(descriptor):
            return failure(errno.EINVAL)
        return read_whole(descriptor)
    except OSError as error:
        return failure(error.errno)
    finally:
        os.close(descriptor)


def _is_plain(descriptor: int) -> bool:
    """Tell a regular file, or a folder, which says itself that it cannot be read."""
    mode = os.fstat(descriptor).st_mode
    return stat.S_ISREG(mode) or stat.S_ISDIR(mode)


def open_and_read(path: str, keep: Callable[[], bool]) -> Opened:
    """Read a file and leave it open if ``keep`` says so and it can be read again.

    A file that is a link itself is never kept: its target may be exchanged unseen.
    """
    try:
        descriptor, is_link = _open(path)
    except OSError as error:
        return Opened(failure(error.errno))
    except ValueError:
        return Opened(failure(errno.EINVAL))
    kept = False
    try:
        content = read_whole(descriptor)
        regular = stat.S_ISREG(os.fstat(descriptor).st_mode)
        kept = regular and not is_link and keep()
    except OSError as error:
        content = failure(error.errno)
    finally:
        if not kept:
            os.close(descriptor)
    return Opened(content, descriptor if kept else None)


def _open(path: str) -> tuple[int, bool]:
    try:
        return os.open(path, _FLAGS | os.O_NOFOLLOW), False
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
    return os.open(path, _FLAGS), True


def read_whole(descriptor: int) -> bytes | ReadError:
    """Read from the start of a file; OSError as the kernel gives it."""
    try:
        content = os.pread(descriptor, PAGE_BYTES, 0)
    except OSError as error:
        if error.errno != errno.ESPIPE:
            raise
        return _read_stream(descriptor)
    return content if len(content) < DOUBT_BYTES else read_rest(descriptor, content)


def read_rest(descriptor: int, content: bytes) -> bytes | ReadError:
    """Return ``content`` and what follows it, EFBIG if that is too much."""
    while more := os.pread(descriptor, LIMIT_BYTES + 1 - len(content), len(content)):
        content += more
        if len(content) > LIMIT_BYTES:
            return failure(errno.EFBIG)
    return content


def _read_stream(descriptor: int) -> bytes | ReadError:
    content = b""
    while more := os.read(descriptor, LIMIT_BYTES + 1 - len(content)):
        content += more
        if len(content) > LIMIT_BYTES:
            return failure(errno.EFBIG)
    return content


def real_path(path: str) -> str:
    """Return a path with every link followed; OSError where it leads nowhere.

    The kernel knows it of what is open, at a third of the cost of asking for each part.
    """
    found = _open_path(path)
    if found is None or found.endswith(_GONE):
        return os.path.realpath(path, strict=True)
    return found


def _open_path(path: str) -> str | None:
    """Return what the kernel calls a path; None without /proc or a free descriptor."""
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError as error:
        if error.errno in _NONE_FREE:
            return None
        raise
    try:
        return os.readlink(f"{_OPEN}/{descriptor}")  # noqa: PTH115 -- hot path
    except OSError:
        return None
    finally:
        os.close(descriptor)


class Kernel:
    """Tells files of the kernel (/sys, /proc) from files that someone wrote."""

    def __init__(self) -> None:
        self._known: dict[int, bool] = {}

    def owns(self, device: int) -> bool:
        """Tell whether a device number (``st_dev``) is a file system of the kernel."""
        known = self._known.get(device)
        if known is None:
            known = self._known[device] = device in _kernel_devices()
        return known

    def owns_path(self, path: str) -> bool:
        """Tell whether a path leads into a file system of the kernel."""
        try:
            return self.owns(Path(path).stat().st_dev)
        except OSError:
            return False


def _kernel_devices() -> frozenset[int]:
    """Read the mount table: ``ID PARENT MAJOR:MINOR ... - TYPE ...`` a line (proc(5))."""
    try:
        text = Path("/proc/thread-self/mountinfo").read_text("utf-8", "surrogateescape")
    except OSError:
        return frozenset()  # then no file counts as the kernel's: slower, not wrong
    return frozenset(_device(line) for line in text.split("\n") if _is_kernel(line))


def _is_kernel(mount: str) -> bool:
    return mount.partition(" - ")[2].partition(" ")[0] in _KERNEL_TYPES


def _device(mount: str) -> int:
    major, _, minor = mount.split(" ")[2].partition(":")
    return os.makedev(int(major), int(minor))
