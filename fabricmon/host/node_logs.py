"""Log files of a traced node: appended to, cut, renamed, followed by offset."""

from __future__ import annotations

from fabricmon.host.log_patterns import find_logs
from fabricmon.host.protocol import LogFile, LogListing, ReadError
from fabricmon.host.trace import TraceRecord
from fabricmon.host.tree import File, ImpossibleError, Tree, as_bytes, attempt

MOST_HELD = 256
"""Files that can be read on although no path leads to them any more."""

_ABSENT = ReadError("ENOENT")


class _Log:
    """Content that grows without being copied."""

    __slots__ = ("data", "written")

    def __init__(self, data: bytes, at: float) -> None:
        self.data = bytearray(data)
        self.written = at

    def text(self, _now: float) -> bytes:
        return bytes(self.data)


class Logs:
    """Every file that was appended to is a log from then on."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._paths: dict[str, None] = {}
        self._held: dict[str, File] = {}  # by serial, as open descriptors would

    def apply(self, record: TraceRecord) -> list[str]:
        """Rename, then cut, then append: so no line is lost; return what failed."""
        appended = ((path, text, record.t) for path, text in record.append.items())
        cut = ((path, record.t) for path in record.truncate)
        return [
            *attempt(self._tree.rename, record.rotate.items()),
            *attempt(self._truncate, cut),
            *attempt(self._append, appended),
        ]

    def known(self, start: float) -> tuple[LogFile, ...]:
        """Return the logs that exist, in the order in which they were first named.

        ``start`` is the Unix time at which the trace begins.
        """
        looks = (self.look(path, start) for path in self._paths)
        return tuple(file for file in looks if isinstance(file, LogFile))

    def find(self, pattern: str, limit: int, start: float) -> LogListing:
        """Return the files that match a pattern, the newest first."""
        return find_logs(
            pattern, limit, self._tree.names, lambda path: self.look(path, start)
        )

    def look(self, path: str, start: float) -> LogFile | ReadError:
        """Return what the log file at a path is."""
        file = self._tree.file(path)
        if file is None or self._tree.is_link(path):
            return ReadError("EINVAL") if self._tree.has(path) else _ABSENT
        if isinstance(file.content, ReadError):
            return file.content
        log = file.motion
        if isinstance(log, _Log):
            return LogFile(path, str(file.serial), len(log.data), start + log.written)
        size = len(file.content or b"")
        return LogFile(path, str(file.serial), size, start)

    def read(self, path: str, serial: str, offset: int, size: int) -> bytes | ReadError:
        """Read at most ``size`` bytes of a log from ``offset`` on."""
        file = self._held.get(serial)
        if file is None:
            file = self._tree.file(path)
            if file is None:
                return _ABSENT
            if str(file.serial) != serial:
                return ReadError("ESTALE")
            while len(self._held) >= MOST_HELD:
                del self._held[next(iter(self._held))]
            self._held[serial] = file
        content = file.content
        if isinstance(content, ReadError):
            return content
        log = file.motion
        data = log.data if isinstance(log, _Log) else content or b""
        return bytes(data[offset : offset + size])

    def _append(self, path: str, text: str, at: float) -> None:
        data = as_bytes(text)
        log = _log(self._tree.writable(path), at)
        log.data += data
        log.written = at
        self._paths[path] = None

    def _truncate(self, path: str, at: float) -> None:
        file = self._tree.file(path)
        if file is None:
            raise ImpossibleError("no such file")
        log = _log(file, at)
        log.data.clear()
        log.written = at


def _log(file: File, at: float) -> _Log:
    """Make a log of a file; one that fails goes on to fail."""
    log = file.motion
    if not isinstance(log, _Log):
        content = file.content
        held = file.read(at)
        log = _Log(held if isinstance(held, bytes) else b"", at)
        file.move(log)
        file.content = content if isinstance(content, ReadError) else None
    return log
