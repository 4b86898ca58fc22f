"""Several recordings of one node as one life: between two of them nobody looked."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec

from fabricmon.host.node import MAX_DURATION, Node
from fabricmon.host.trace import Header, TraceRecord
from fabricmon.host.trace_read import TraceReader

OPENING_SECONDS = 1.0
"""At the latest by then an agent that starts has read everything once. What it reads meanwhile is
taken together, so that nothing seems gone only because it was not read yet."""

_ROUNDING = 2e-6  # a trace holds microseconds: no gap may end before what follows it
_CHANGED_STEP = 0.001  # seconds; what a trace holds of a clock's steps


@dataclass(frozen=True, slots=True)
class Source:
    """A recording; it ``follows`` the one before it at once, or ``restarts`` the agent.

    If neither, the agent ran on while nobody recorded.
    """

    path: Path
    follows: bool = False
    restarts: bool = False


class JoinedTraces:
    """The records of recordings one after the other, with the header of the first.

    A ``config`` that is given stands there instead of what was in force by then.
    ``recorded`` are the seconds that each of them holds.
    """

    def __init__(
        self, sources: list[Source], config: dict[str, Any] | None = None
    ) -> None:
        """Read the first header; raises `TraceError`."""
        self._sources = sources
        with TraceReader(sources[0].path) as reader:
            self.header = reader.header
        if config is not None:
            self.header = msgspec.structs.replace(self.header, config=config)
        self.recorded: list[float] = []
        self._known = _Known()
        self._end = 0.0
        self._stepped = 0.0  # of the wall clock
        self._boot_id = self.header.boot_id

    def __iter__(self) -> Iterator[TraceRecord]:
        for index, source in enumerate(self._sources):
            with TraceReader(source.path) as reader:
                records: Iterator[TraceRecord] = reader
                begin = 0.0
                if index:
                    begin, records = self._begin(source, reader)
                for record in records:
                    t = max(record.t + begin, self._end)
                    yield self._seen(msgspec.structs.replace(record, t=t))
            self.recorded.append(self._end - begin)

    def _begin(
        self, source: Source, reader: TraceReader
    ) -> tuple[float, Iterator[TraceRecord]]:
        """Return when a recording begins, and its records from then on."""
        by_clock = reader.header.start - self.header.start - self._stepped
        if by_clock - self._end > MAX_DURATION:
            by_clock = self._end  # a clock that stood at 1970: nobody knows how long
        begin = self._end if source.follows else max(by_clock, self._end)
        step = round(by_clock - begin, 3)
        if abs(step) < _CHANGED_STEP:
            step = 0.0
        if source.follows:
            clock = TraceRecord(t=0.0, wall_step=step)
            return begin, chain([clock] if step else [], reader)
        return begin, self._after_gap(source, reader, begin, step)

    def _after_gap(
        self, source: Source, reader: TraceReader, begin: float, step: float
    ) -> Iterator[TraceRecord]:
        """Let the time pass in which nobody looked; then all is as it is then."""
        opening, rest = _opening(reader)
        gap = begin + opening.t - self._end + _ROUNDING
        yield TraceRecord(t=self._end - begin, gap=gap, restart=source.restarts)
        boot_id = reader.header.boot_id
        is_new = boot_id != self._boot_id
        self._boot_id = boot_id
        yield self._known.replaced_by(
            opening, wall_step=step, boot_id=boot_id if is_new else None
        )
        yield from rest

    def _seen(self, record: TraceRecord) -> TraceRecord:
        self._end = record.t
        self._stepped += record.wall_step
        self._known.learn(record)
        return record


class _Known:
    """The names of what records so far have spoken of."""

    def __init__(self) -> None:
        self._tops: dict[str, None] = {}
        self._ethtool: dict[str, None] = {}
        self._module: dict[str, None] = {}
        self._dcb: dict[str, None] = {}
        self._devlink: dict[str, None] = {}

    def learn(self, record: TraceRecord) -> None:
        """Take the names of a record."""
        for paths in (record.dir, record.link, record.set, record.ramp, record.err):
            for path in paths:
                if path.startswith("/"):
                    self._tops["/" + path[1:].partition("/")[0]] = None
        self._ethtool.update(dict.fromkeys(record.ethtool))
        self._module.update(dict.fromkeys(record.module))
        self._dcb.update(dict.fromkeys(record.dcb))
        self._devlink.update(dict.fromkeys(record.devlink))

    def replaced_by(
        self, whole: TraceRecord, *, wall_step: float, boot_id: str | None
    ) -> TraceRecord:
        """Return a whole view that leaves nothing of what was before it."""
        return msgspec.structs.replace(
            whole,
            deleted=list(self._tops),
            ethtool={**self._ethtool, **whole.ethtool},
            module={**self._module, **whole.module},
            dcb={**self._dcb, **whole.dcb},
            devlink={**self._devlink, **whole.devlink},
            wall_step=wall_step,
            boot_id=boot_id,
        )


def _opening(reader: TraceReader) -> tuple[TraceRecord, Iterator[TraceRecord]]:
    """Return what a recording shows at first, and what comes after it.

    That is until a file changes, which is news.
    """
    node = Node(reader.header.boot_id)
    at = 0.0
    seen: set[str] = set()
    for record in reader:
        if record.t > OPENING_SECONDS or not seen.isdisjoint(record.set):
            return _whole(node, at), chain([record], reader)
        node.apply(record)
        at = record.t
        seen.update(record.set)
    return _whole(node, at), iter(())


def _whole(node: Node, at: float) -> TraceRecord:
    lines = [line.text for line in node.kernel_log()]
    return msgspec.structs.replace(node.whole(at, at), kmsg=lines)


def header_of(path: Path) -> Header:
    """Return the header of a recording; raises `TraceError`."""
    with TraceReader(path) as reader:
        return reader.header
