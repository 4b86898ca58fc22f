"""Log lines on standard error: JSON for a service, readable on a terminal.

Event names are ``noun_verb``; keys ``device port source sink rule err duration``. A
line marks a change of state, not a tick: `Changes` tells whether there was one.
"""

from __future__ import annotations

import os
import select
import stat
import sys
import threading
from collections.abc import Callable, Hashable, Iterator, MutableMapping, Sequence
from contextlib import contextmanager
from types import ModuleType
from typing import TYPE_CHECKING, Any, BinaryIO, cast

import msgspec

from fabricmon.config import Lines

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

MOST_CHARACTERS = 2000
"""Length at which one value of a line is cut: names and outputs come from anywhere."""

MOST_KEYS = 10_000
"""Keys whose last value `Changes` remembers; the oldest is forgotten first."""

_LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40}
_SURE_BYTES = select.PIPE_BUF  # what a pipe that takes anything takes without waiting
_LARGEST_INTEGER = 2**63 - 1  # what readers of JSON take
_Event = MutableMapping[str, Any]
_Processor = Callable[[object, str, Any], Any]


def make_logger(
    settings: Lines, stream: BinaryIO | None = None
) -> FilteringBoundLogger:
    """Return a logger that writes to ``stream``, standard error by default.

    Nothing global is configured, so that many agents run in one process.
    """
    # Imported late: it costs 40 ms, which commands that log nothing save.
    with _without("rich"):
        import structlog  # noqa: PLC0415

    output = sys.stderr.buffer if stream is None else stream
    console = settings.format == "console" or (
        settings.format == "auto" and output.isatty()
    )
    processors: list[_Processor] = [
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
        _make_harmless,
        *(_to_console(colors=output.isatty()) if console else (_to_json,)),
    ]
    stream = cast("BinaryIO", _Unbreakable(output, _notice(processors)))
    logger = structlog.wrap_logger(
        structlog.BytesLogger(stream),
        processors=processors,
        wrapper_class=structlog.make_filtering_bound_logger(_LEVELS[settings.level]),
    )
    return cast("FilteringBoundLogger", logger.bind())


@contextmanager
def _without(library: str) -> Iterator[None]:
    """Let imports go as if a library was not installed, if it is not yet loaded.

    structlog takes rich along where it finds it, for tracebacks that we do not print
    like that: 4 MiB.
    """
    if library in sys.modules:
        yield
        return
    modules: dict[str, ModuleType | None] = sys.modules  # type: ignore[assignment]
    modules[library] = None  # which means that it is not there
    try:
        yield
    finally:
        del modules[library]


def printable(text: str) -> str:
    r"""Write what a terminal would obey, or cannot show, as escapes such as ``\x1b``.

    Also text whose direction would change, and bytes that were no UTF-8.
    """
    if text.isprintable():
        return text[:MOST_CHARACTERS]
    shown = text[:MOST_CHARACTERS]
    return "".join(
        character if character.isprintable() else _escape(character)
        for character in shown
    )


def _escape(character: str) -> str:
    return ascii(character)[1:-1]


class Changes:
    """Remembers the last value of each key, to tell what is news."""

    def __init__(self, limit: int = MOST_KEYS) -> None:
        self._limit = limit
        self._last: dict[Hashable, object] = {}

    def note(self, key: Hashable, value: object) -> bool:
        """Tell whether this value differs from the key's last one; the first does."""
        unknown = object()
        before = self._last.pop(key, unknown)
        self._last[key] = value
        if len(self._last) > self._limit:
            del self._last[next(iter(self._last))]
        return before is unknown or before != value


def _notice(processors: Sequence[_Processor]) -> Callable[[int], bytes]:
    """Return what makes the line that tells how many were dropped, as any other."""

    def tell(count: int) -> bytes:
        line: Any = {"event": "lines_dropped", "count": count}
        for process in processors:
            line = process(None, "warning", line)
        return bytes(line) + b"\n"

    return tell


class _Unbreakable:
    """A stream that swallows its own errors: logging must not end or stop the agent.

    A pipe or socket whose reader hangs takes no more at some point: what does not fit
    is dropped, and how many lines that were is said by the line that ``tell`` makes,
    once it takes some again. Threads take turns; none waits for a reader.
    """

    def __init__(self, stream: BinaryIO, tell: Callable[[int], bytes]) -> None:
        self._stream = stream
        self._tell = tell
        self._poll = _poll_of(stream)
        self._dropped = 0
        self._torn = False
        self._turn = threading.Lock()

    def write(self, data: bytes) -> None:
        with self._turn:
            try:
                self._write(data)
            except (OSError, ValueError):  # nobody reads, disk full, closed
                return

    def _write(self, data: bytes) -> None:
        if not self._takes():
            self._dropped += 1
            return
        if self._dropped:
            data = self._tell(self._dropped) + data
            self._dropped = 0
        if self._torn:
            data = b"\n" + data
            self._torn = False
        step = len(data) if self._poll is None else _SURE_BYTES
        for start in range(0, len(data), step):
            if start and not self._takes():
                self._dropped += 1
                self._torn = True
                return
            self._stream.write(data[start : start + step])
            self._stream.flush()

    def _takes(self) -> bool:
        """Tell whether a line can be written without waiting for who reads it."""
        return self._poll is None or bool(self._poll.poll(0))

    def flush(self) -> None:
        """Do nothing: each line is flushed as it is written."""


def _poll_of(stream: BinaryIO) -> select.poll | None:
    """Return what tells whether a pipe or socket has room, None for what always has."""
    try:
        descriptor = stream.fileno()
        kind = os.fstat(descriptor).st_mode
    except (OSError, ValueError):  # in memory, closed
        return None
    if not (stat.S_ISFIFO(kind) or stat.S_ISSOCK(kind)):
        return None
    poll = select.poll()
    poll.register(descriptor, select.POLLOUT)
    return poll


def _make_harmless(_logger: object, _method: str, event: _Event) -> dict[str, Any]:
    return {printable(key): _harmless(value) for key, value in event.items()}


def _harmless(value: object) -> object:
    if isinstance(value, str):
        return printable(value)
    if value is None or isinstance(value, (bool, float)):
        return value
    if isinstance(value, int) and abs(value) <= _LARGEST_INTEGER:
        return value
    if isinstance(value, bytes):
        return printable(value[:MOST_CHARACTERS].decode("utf-8", "backslashreplace"))
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_harmless(item) for item in list(value)[:MOST_CHARACTERS]]
    return printable(str(value))


def _to_console(*, colors: bool) -> tuple[Any, ...]:
    from structlog.dev import ConsoleRenderer, plain_traceback  # noqa: PLC0415

    renderer = ConsoleRenderer(  # keys as they were given: a summary comes first
        colors=colors, sort_keys=False, exception_formatter=plain_traceback
    )
    return renderer, _encode


def _encode(_logger: object, _method: str, line: str) -> bytes:
    return line.encode()


def _to_json(_logger: object, _method: str, event: Any) -> bytes:
    first = {key: event[key] for key in ("timestamp", "level", "event") if key in event}
    return msgspec.json.encode(first | event)
