"""Logs of NCCL, RCCL and aws-ofi-nccl: followed by offset, read in bounded pieces.

A poll finds files (rarely), looks how long they are, reads what is new of each, and
hands its cursors to the next poll. What it can promise: a line is read once, however
its file is renamed, cut or copied, unless it was cut away before the next poll, or the
file ran away by more than the backlog, which is counted.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import lru_cache, partial

from fabricmon.config import Config, LogRule
from fabricmon.host.protocol import Host, LogFile
from fabricmon.model import FollowedLog, LogCounts, LogNews, Target
from fabricmon.parse.nccl import RuleTable
from fabricmon.sources.log_cursors import (
    MOST_PARKED,
    Cursor,
    Cursors,
    Parked,
    resume,
    save,
)
from fabricmon.sources.log_discovery import Discovery, FoundLog, discover
from fabricmon.sources.log_owners import Owners
from fabricmon.sources.log_reading import LogReading, marks_by_serial, shares

NAME = "nccl_log"

MOST_GONE = 64
"""Files followed that no path leads to any more."""

PROBE_BYTES = 64 << 10
"""Asked of a file whose length cannot be seen any more."""

SLICE_BYTES = 256 << 10
"""Read at once; after each the clock is looked at."""

MILLISECONDS = 1000.0

MOST_PROBLEMS = 32
"""Different ones that are told; a thousand files may refuse alike."""


@lru_cache(maxsize=4)
def rule_table(rules: tuple[LogRule, ...]) -> RuleTable:
    """Return the whole table with an operator's rows; it takes a while to make."""
    return RuleTable.of(rules)


def poll(host: Host, target: Target, config: Config) -> tuple[LogNews, ...]:
    """Read what is new in the logs of the node; nothing if nothing is."""
    before = resume(target.carried)
    following = _Following(host, config, before)
    wait = config.logs.discovery_seconds - config.periods.nccl_log_seconds / 2
    if before.searched_at is None or following.now - before.searched_at >= wait:
        following.search()
    else:
        following.look()
    following.read()
    return following.news()


@dataclass(slots=True)
class _Following:
    """One poll: the cursors as they were, and as they come to be."""

    host: Host
    config: Config
    before: Cursors
    now: float = field(init=False)
    wall: float = field(init=False)
    reading: LogReading = field(init=False)
    files: dict[str, Cursor] = field(init=False)
    parked: dict[str, Parked] = field(init=False)
    former: list[Parked] = field(init=False)
    found: Discovery | None = None

    def __post_init__(self) -> None:
        """Look at the clocks."""
        self.now, self.wall = self.host.monotonic(), self.host.wall()
        self.reading = LogReading(
            self.host,
            partial(rule_table, self.config.logs.rules),
            self.now,
            self.config.logs.backlog_bytes,
        )
        self.files = {log.serial: log for log in self.before.files}
        self.parked = marks_by_serial(m for m in self.before.parked if m.serial)
        self.former = [mark for mark in self.before.parked if not mark.serial]

    def search(self) -> None:
        """Find the files there are: go on with known ones, begin new ones."""
        self.found = discover(self.host, self.config)
        listed = {log.file.serial for log in self.found.logs}
        for found in self.found.logs:
            known = self.files.get(found.file.serial)
            if known is None:
                self._begin(found)
            else:
                seen = _seen(known, found.file)
                path = found.file.path
                self.files[known.serial] = replace(
                    seen, path=path, place=found.place, gone_since=None
                )
        for other in self.found.others:
            self._leave_out(other)
        for log in tuple(self.files.values()):
            if log.serial not in listed and not log.is_gone:
                self.files[log.serial] = replace(log, gone_since=self.now)

    def look(self) -> None:
        """See how long the files are, and whether their paths still lead to them."""
        logs = [log for log in self.files.values() if not log.is_gone]
        seen = self.host.log_files([log.path for log in logs])
        for log, file in zip(logs, seen, strict=True):
            if isinstance(file, LogFile) and file.serial == log.serial:
                self.files[log.serial] = _seen(log, file)
                continue
            self.files[log.serial] = replace(log, gone_since=self.now)
            if isinstance(file, LogFile) and file.serial not in self.files:
                self._begin(FoundLog(file, log.place))

    def read(self) -> None:
        """Read what is new, each file its share, and let go of what is over."""
        logs = [log for log in self.files.values() if self._is_due(log)]
        wanted = [log.unread + PROBE_BYTES * log.is_gone for log in logs]
        quotas = shares(wanted, self.config.logs.bytes_per_poll)
        until = self.now + self.config.logs.poll_milliseconds / MILLISECONDS
        # Small ones first, then whoever waits longest: a storm in one file must not take
        # the time of the others, nor one of two storms that of the other.
        turns = sorted(zip(quotas, logs, strict=True), key=_turn)
        for quota, log in turns:
            self._read_one(log, quota, until)
            if self.host.monotonic() > until:
                break
        self._flush()
        gone = [log for log in self.files.values() if log.is_gone]
        gone.sort(key=lambda log: log.grew_at, reverse=True)
        quiet = self.now - self.config.logs.quiet_seconds
        for number, log in enumerate(gone):
            if number >= MOST_GONE or max(log.grew_at, log.gone_since or 0) < quiet:
                self._let_go(log)

    def _read_one(self, log: Cursor, quota: int, until: float) -> None:
        """Read one file's share, slice by slice, until the time is up."""
        for start in range(0, max(quota, 1), SLICE_BYTES):
            piece = max(min(quota - start, SLICE_BYTES), 1)
            after = self.reading.read(log, piece)
            if after is None:
                del self.files[log.serial]
                return
            log = self.files[log.serial] = after
            if log.size == log.offset or self.host.monotonic() > until:
                return

    def news(self) -> tuple[LogNews, ...]:
        """Return what is new, and what the next poll goes on from; () if nothing is."""
        after = self._cursors()
        is_same = after.files == self.before.files
        if is_same and self.found is None and not self.reading.found:
            return ()
        owners = Owners(
            self.host, self.config, after.host, after.pods, self.before.owners
        )
        found = self.reading.found.take()
        told = [owners.attribute(each.event, each.log) for each in found]
        events = tuple(event for event in told if event is not None)
        foreign = after.counts.foreign_events + told.count(None)
        counts = replace(after.counts, foreign_events=foreign)
        cursors = replace(after, owners=owners.known(), counts=counts)
        return (
            LogNews(
                at=self.now,
                wall=self.wall,
                events=events,
                logs=tuple(map(_followed, cursors.files)),
                counts=cursors.counts,
                cursors=cursors,
                saved=save(cursors, self.wall),
                problems=cursors.problems,
            ),
        )

    # Files that come and go

    def _begin(self, found: FoundLog) -> None:
        file = found.file
        mark = self.parked.get(file.serial)
        if mark is None and self.before.began:
            mark = self._copied(file)
        start = 0 if mark is not None or self.before.began else self._start(file)
        log = self.reading.begin(found, mark, start)
        if log is None:
            return
        self.parked.pop(file.serial, None)
        self.files[file.serial] = log
        paths = (known.path for known in self.before.files)
        self.reading.rotations += file.path in paths

    def _copied(self, file: LogFile) -> Parked | None:
        """Return where to go on in a copy that a rotation made of a known file."""
        known = (log.parked() for log in self.before.files if log.path != file.path)
        for mark in (*known, *self.former):
            if mark.path != file.path and self.reading.is_copy(file, mark):
                return mark
        return None

    def _start(self, file: LogFile) -> int:
        """Return where a file begins that is there when the agent starts."""
        logs = self.config.logs
        since = self.before.since
        if since is not None:  # it came while no agent ran, or is of no interest
            return 0 if file.modified >= since else file.size
        if file.modified < self.wall - logs.start_seconds:
            return file.size
        return max(file.size - logs.start_bytes, 0)

    def _leave_out(self, found: FoundLog) -> None:
        """Remember a file beyond the limit, so that it is not read back later."""
        file = found.file
        known = self.files.pop(file.serial, None)
        if known is not None:
            self.parked[file.serial] = known.parked()
        elif not self.before.began and file.serial not in self.parked:
            mark = Parked(file.path, file.serial, file.size, 0, b"")
            self.parked[file.serial] = mark

    def _let_go(self, log: Cursor) -> None:
        self.reading.finish(log)
        del self.files[log.serial]
        self.parked[log.serial] = log.ended()

    def _flush(self) -> None:
        """Take what waits for more as whole where nothing has come for a while.

        A line without an end waits longer: output through a pipe comes in blocks.
        """
        for log in self.files.values():
            carry = log.state.carry
            if carry.waits and not self._is_due(log):
                logs = self.config.logs
                patience = logs.quiet_seconds if carry.tail else logs.still_seconds
                if self.now - log.grew_at >= patience:
                    self.files[log.serial] = self.reading.flush(log)

    def _is_due(self, log: Cursor) -> bool:
        return log.is_gone or log.touched or log.size != log.offset

    # What is handed on

    def _cursors(self) -> Cursors:
        former = [_former(mark) for mark in self.reading.former]
        parked = (*self.former, *former, *self.parked.values())[-MOST_PARKED:]
        before = self.before
        files = tuple(self.files.values())
        found = self.found
        if found is None:
            return replace(before, files=files, parked=parked, counts=self._counts())
        problems = (*found.problems, *self.reading.problems)
        if not before.began:  # also what was wrong with the saved offsets
            problems = (*before.problems, *problems)
        return Cursors(
            files=files,
            parked=parked,
            counts=self._counts(),
            searched_at=self.now,
            began=True,
            host=found.host,
            pods=found.pods,
            problems=problems[:MOST_PROBLEMS],
        )

    def _counts(self) -> LogCounts:
        before, now = self.before.counts, self.reading
        return LogCounts(
            bytes=before.bytes + now.read_bytes,
            lines=before.lines + now.lines,
            skipped_bytes=before.skipped_bytes + now.skipped_bytes,
            skipped_lines=before.skipped_lines + now.skipped_lines,
            rotations=before.rotations + now.rotations,
            lost_files=before.lost_files + now.lost_files,
            left_out=before.left_out if self.found is None else self.found.more,
            foreign_events=before.foreign_events,
        )


def _turn(each: tuple[int, Cursor]) -> tuple[int, float]:
    """Sort files: those that are done at once, then by when they were last read."""
    quota, log = each
    return min(quota, SLICE_BYTES), log.grew_at


def _former(mark: Parked) -> Parked:
    """Return the mark of a content that its file has no more."""
    return Parked(mark.path, "", mark.offset, mark.lines, mark.check)


def _seen(log: Cursor, file: LogFile) -> Cursor:
    """Return a cursor with what its file looks like now; itself if nothing changed."""
    if (file.size, file.modified) == (log.size, log.modified):
        return log
    touched = log.touched or file.modified != log.modified
    return replace(log, size=file.size, modified=file.modified, touched=touched)


def _followed(log: Cursor) -> FollowedLog:
    return FollowedLog(
        path=log.path,
        serial=log.serial,
        offset=log.offset,
        size=log.size,
        origin=log.place.origin,
        read_at=log.current_at,
        job=log.place.job,
    )
