"""A log of a collective library, read piece by piece: bytes in, events out."""

from __future__ import annotations

from fabricmon.parse.log_event import LogEvent
from fabricmon.parse.log_lines import START, Anchors, Carry, read_lines
from fabricmon.parse.nccl import LogContext, RuleTable, recognise
from fabricmon.value import Value


class LogState(Value, frozen=True):
    """What is left of one file between two pieces of it: text and context."""

    carry: Carry
    context: LogContext


NEW_LOG = LogState(START, LogContext())


class LogBatch(Value, frozen=True):
    """What a piece of a log gave; the counts are of this piece alone."""

    events: tuple[LogEvent, ...]
    state: LogState
    lines: int
    skipped_bytes: int
    skipped_lines: int


def read_log(
    data: bytes,
    state: LogState,
    file: str,
    table: RuleTable,
    *,
    final: bool = False,
    zone_seconds: int | None = None,
) -> LogBatch:
    """Return the events in the next piece of a file.

    ``file`` names it in the events. ``final`` ends a last line without a line feed.
    ``zone_seconds`` (east of UTC) is the zone of stamps that have none.
    """
    following = dict(zip(table.anchors, table.following, strict=True))
    anchors = Anchors.of(table.anchors, following=following)
    batch = read_lines(
        state.carry, data, anchors, final=final, zone_seconds=zone_seconds
    )
    context = state.context
    events: list[LogEvent] = []
    for line in batch.lines:
        found = recognise(line, file, context, table)
        events.extend(found.events)
        context = found.context
    return LogBatch(
        tuple(events),
        LogState(batch.carry, context),
        batch.lines_seen,
        batch.skipped_bytes,
        batch.skipped_lines,
    )
