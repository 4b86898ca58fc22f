"""Log files of a traced node: appended to, cut, renamed, followed by offset."""

from __future__ import annotations

from dataclasses import dataclass

from fabricmon.host.protocol import ReadError
from fabricmon.host.trace import TraceRecord
from fabricmon.host.tree import File, ImpossibleError, Tree, as_bytes, attempt


@dataclass(frozen=True, slots=True)
class LogFile:
    """A log file; another ``serial`` behind the same path means another file."""

    path: str
    serial: int
    size: int


class _Log:
    """Content that grows without being copied."""

    __slots__ = ("data",)

    def __init__(self, data: bytes) -> None:
        self.data = bytearray(data)

    def text(self, _now: float) -> bytes:
        return bytes(self.data)


class Logs:
    """Every file that was appended to is a log from then on."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._paths: dict[str, None] = {}

    def apply(self, record: TraceRecord) -> list[str]:
        """Rename, then cut, then append: so no line is lost; return what failed."""
        appended = ((path, text, record.t) for path, text in record.append.items())
        cut = ((path, record.t) for path in record.truncate)
        return [
            *attempt(self._tree.rename, record.rotate.items()),
            *attempt(self._truncate, cut),
            *attempt(self._append, appended),
        ]

    def files(self) -> tuple[LogFile, ...]:
        """Return the logs that exist, in the order in which they were first named."""
        found = []
        for path in self._paths:
            file = self._tree.file(path)
            if file is not None:
                size = len(file.motion.data) if isinstance(file.motion, _Log) else 0
                found.append(LogFile(path, file.serial, size))
        return tuple(found)

    def read(self, path: str, offset: int, size: int) -> bytes | ReadError:
        """Read at most ``size`` bytes of a log from ``offset`` on."""
        file = self._tree.file(path)
        if file is None:
            return ReadError("ENOENT")
        if isinstance(file.content, ReadError):
            return file.content
        data = file.motion.data if isinstance(file.motion, _Log) else b""
        return bytes(data[offset : offset + size])

    def _append(self, path: str, text: str, at: float) -> None:
        data = as_bytes(text)
        _log(self._tree.writable(path), at).data += data
        self._paths[path] = None

    def _truncate(self, path: str, at: float) -> None:
        file = self._tree.file(path)
        if file is None:
            raise ImpossibleError("no such file")
        _log(file, at).data.clear()


def _log(file: File, at: float) -> _Log:
    """Make a log of a file; one that fails goes on to fail."""
    log = file.motion
    if not isinstance(log, _Log):
        content = file.content
        held = file.read(at)
        log = _Log(held if isinstance(held, bytes) else b"")
        file.move(log)
        file.content = content if isinstance(content, ReadError) else None
    return log
