"""Read on in one log file: rotated, cut, rewritten, copied or run away."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from fabricmon.host.protocol import Host, LogFile, ReadError
from fabricmon.parse.nccl import RuleTable
from fabricmon.parse.nccl_log import NEW_LOG, LogBatch, LogState, read_log
from fabricmon.sources.jobs import RIGHTS
from fabricmon.sources.log_cursors import CHECK_BYTES, Cursor, Parked, state_at
from fabricmon.sources.log_discovery import FoundLog
from fabricmon.sources.log_repeats import Repeats

FIRST_BYTES = 64 << 10
"""Read at once of a content that is new, whatever its share was."""

PIECE_BYTES = 64 << 10
"""Understood at once; after each, repeats of events are counted: a storm takes as much
memory as one piece of it."""

_DENIED = frozenset({"EACCES", "EPERM"})
_GONE = frozenset({"ENOENT", "ESTALE", "ENXIO", "ENODEV"})


@dataclass(slots=True)
class LogReading:
    """One poll's reads; the numbers are of this poll alone.

    ``table`` makes the rule table, once there is something to read. ``former`` are
    contents that were cut away, for a copy of them to be known by.
    """

    host: Host
    table: Callable[[], RuleTable]
    now: float
    backlog_bytes: int
    found: Repeats = field(default_factory=Repeats)
    former: list[Parked] = field(default_factory=list)
    problems: dict[str, None] = field(default_factory=dict)
    read_bytes: int = 0
    lines: int = 0
    skipped_bytes: int = 0
    skipped_lines: int = 0
    rotations: int = 0
    lost_files: int = 0

    def begin(self, found: FoundLog, mark: Parked | None, start: int) -> Cursor | None:
        """Open a file at a mark, or where ``start`` says; None if it cannot be read.

        The mark counts only if the content before it is what it was.
        """
        file = found.file
        offset = max(start - 1, 0) if mark is None else mark.offset
        before = min(offset, CHECK_BYTES)
        check = self.host.read_log(file.path, file.serial, offset - before, before)
        if isinstance(check, ReadError):
            self._say(file.path, check)
            return None
        if mark is not None and not check.endswith(mark.check):
            return self.begin(found, None, 0)
        lines = 0 if mark is None else mark.lines
        return Cursor(
            path=file.path,
            serial=file.serial,
            place=found.place,
            offset=offset,
            size=file.size,
            state=state_at(offset, lines),
            check=check,
            current_at=self.now,
            grew_at=self.now,
            modified=file.modified,
            torn=mark is None and start > 0,
        )

    def is_copy(self, file: LogFile, mark: Parked) -> bool:
        """Tell whether a file is a copy of what was read up to this mark."""
        size = len(mark.check)
        if not size or file.size < mark.offset or not file.path.startswith(mark.path):
            return False
        start = mark.offset - size
        return self.host.read_log(file.path, file.serial, start, size) == mark.check

    def read(self, log: Cursor, quota: int) -> Cursor | None:
        """Read on, at most ``quota`` bytes; None if the file is lost."""
        if log.size < log.offset and not log.is_gone:
            log, quota = self._restart(log), max(quota, FIRST_BYTES)
        log = self._skip_ahead(log)
        data = self._bytes(log, quota)
        if isinstance(data, bytes) and not data.startswith(log.check):
            log, quota = self._restart(log), max(quota, FIRST_BYTES)
            data = self._bytes(log, quota)
        if isinstance(data, ReadError):
            return self._failed(log, data)
        return self._take(log, data[len(log.check) :])

    def flush(self, log: Cursor) -> Cursor:
        """Take what waits for more as whole: the file is still."""
        batch = read_log(b"", log.state, log.path, self.table(), final=True)
        self._keep(log, batch)
        return replace(log, state=batch.state)

    def finish(self, log: Cursor) -> None:
        """End a file that is not followed any more: its last line is whole now."""
        self.flush(log)

    def _bytes(self, log: Cursor, quota: int) -> bytes | ReadError:
        before = len(log.check)
        start = log.offset - before
        return self.host.read_log(log.path, log.serial, start, before + quota)

    def _take(self, log: Cursor, data: bytes) -> Cursor:
        offset = log.offset + len(data)
        self.read_bytes += len(data)
        check = (log.check + data[-CHECK_BYTES:])[-CHECK_BYTES:]
        taken = self._untorn(log, data)
        state = self._understand(taken, data[taken.offset - log.offset :])
        size = max(log.size, offset)
        return replace(
            taken,
            offset=offset,
            size=size,
            touched=False,
            state=state,
            check=check,
            grew_at=self.now if data else log.grew_at,
            current_at=self.now if offset >= size else log.current_at,
        )

    def _understand(self, log: Cursor, data: bytes) -> LogState:
        """Keep the events of what was read on; return what is left for the next time."""
        state = log.state
        for start in range(0, max(len(data), 1), PIECE_BYTES):
            piece = data[start : start + PIECE_BYTES]
            batch = read_log(piece, state, log.path, self.table())
            self._keep(log, batch)
            state = batch.state
        return state

    def _untorn(self, log: Cursor, data: bytes) -> Cursor:
        """Pass over the rest of a line that was cut, and over a hole.

        Where a file is cut to zero under a writer that does not append, the kernel
        fills up to its place with zero bytes.
        """
        passed = 0
        torn = log.torn
        if torn and data:
            passed = data.find(b"\n") + 1
            torn = not passed
            passed = passed or len(data)
            self.skipped_bytes += passed
        if not log.state.carry.tail and data[passed : passed + 1] == b"\0":
            passed = len(data) - len(data[passed:].lstrip(b"\0"))
        if not passed:
            return log
        offset = log.offset + passed
        state = state_at(offset, log.state.carry.lines, log.state)
        return replace(log, offset=offset, state=state, torn=torn)

    def _skip_ahead(self, log: Cursor) -> Cursor:
        """Leave out what is too much to be read; the newest tells of the failure."""
        if log.unread <= self.backlog_bytes:
            return log
        offset = log.size - self.backlog_bytes - 1
        self.skipped_bytes += offset - log.offset
        state = state_at(offset, log.state.carry.lines, log.state)
        return replace(log, offset=offset, state=state, check=b"", torn=True)

    def _restart(self, log: Cursor) -> Cursor:
        """Begin anew: the content was cut away, or is another one."""
        self.rotations += 1
        self.former.append(log.parked())
        return replace(log, offset=0, state=NEW_LOG, check=b"", torn=False)

    def _failed(self, log: Cursor, error: ReadError) -> Cursor | None:
        if error.errno in _GONE:
            self.lost_files += 1
            self.finish(log)
            return None
        self._say(log.path, error)
        return log

    def _say(self, path: str, error: ReadError) -> None:
        if error.errno in _DENIED:
            self.problems[f"{path}: no right to read this log: {RIGHTS}"] = None
        elif error.errno not in _GONE:
            self.problems[f"{path}: {error.errno}: this log cannot be read"] = None

    def _keep(self, log: Cursor, batch: LogBatch) -> None:
        self.lines += batch.lines
        self.skipped_bytes += batch.skipped_bytes
        self.skipped_lines += batch.skipped_lines
        self.found.add(log, batch.events)


def shares(wanted: Sequence[int], budget: int) -> list[int]:
    """Part a budget fairly: whoever wants less than an even share leaves the rest."""
    given = [0] * len(wanted)
    order = sorted(range(len(wanted)), key=wanted.__getitem__)
    for number, index in enumerate(order):
        given[index] = min(wanted[index], budget // (len(order) - number))
        budget -= given[index]
    return given


def marks_by_serial(marks: Iterable[Parked]) -> dict[str, Parked]:
    """Return marks by the file that they are of; a later one counts."""
    return {mark.serial: mark for mark in marks}
