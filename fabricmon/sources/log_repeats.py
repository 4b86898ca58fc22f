"""Events of one poll, those that say the same of the same process as one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import asdict, replace

from fabricmon.model import LogEvent
from fabricmon.parse.log_shared import Shared
from fabricmon.sources.log_cursors import Cursor
from fabricmon.value import State, Value

SAME_SECONDS = 60.0
"""Lines whose own stamps lie in different minutes are not one: the last of them tells
until when it went on."""


class Repeated(Value, frozen=True):
    """An event with the number of its repeats, and the file that it is from."""

    log: Cursor
    event: LogEvent


class _First(State):
    """What the first of some lines has for itself, and how many there are."""

    line_number: int
    offset: int
    peer_port: int | None
    thread: int | None
    time: float | None
    text: str
    count: int


class Repeats:
    """Counts repeats while pieces are read: a storm is never held line by line."""

    def __init__(self) -> None:
        """Start with none."""
        self._logs: dict[str, Cursor] = {}
        self._found: dict[str, dict[LogEvent, _First]] = {}
        self._shared = Shared()

    def __bool__(self) -> bool:
        """Whether there is any event."""
        return bool(self._found)

    def add(self, log: Cursor, events: Sequence[LogEvent]) -> None:
        """Take in what a piece of a file gave."""
        if not events:
            return
        self._logs.setdefault(log.serial, log)
        found = self._found.setdefault(log.serial, {})
        for event in events:
            known = found.get(_same(event))
            if known is None:
                found[_same(self._shared.event(event))] = _first(event)
            else:
                known.count += event.count

    def take(self) -> Iterator[Repeated]:
        """Yield each with all its repeats, file by file, in order of the first; once."""
        for serial, found in self._found.items():
            waiting = [*reversed(found.items())]
            found.clear()
            while waiting:  # what is handed on need not be held here as well
                same, first = waiting.pop()
                yield Repeated(self._logs[serial], replace(same, **asdict(first)))
        self._found.clear()


def _same(event: LogEvent) -> LogEvent:
    """Return what the lines of a storm have in common.

    It repeats for each channel and thread, and a peer's port is a channel.
    """
    return replace(
        event,
        line_number=0,
        offset=0,
        peer_port=None,
        thread=None,
        time=None if event.time is None else event.time // SAME_SECONDS,
        count=1,
        text="",
    )


def _first(event: LogEvent) -> _First:
    return _First(
        event.line_number,
        event.offset,
        event.peer_port,
        event.thread,
        event.time,
        event.text,
        event.count,
    )
