"""When each poll is due: one heap for all sources and targets of a node.

Due times lie on one grid (origin + n x period), so that polls of one period fall
together and nothing drifts; what was missed is not made up for.
"""

from __future__ import annotations

import hashlib
import heapq
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import count, starmap
from math import floor, inf, nextafter

from fabricmon.lanes import Progress
from fabricmon.model import (
    CollectiveRates,
    ErrnoCount,
    Health,
    Job,
    JobList,
    LogNews,
    Outcome,
    ReadFailure,
    Record,
    Repeats,
    Target,
)
from fabricmon.sources.protocol import Lane, Source

MAX_ERRNOS = 16
"""Different error names counted per source and target; the rest is ``other``."""

PHASES_SECONDS = 3600.0
"""Phases lie within this: a whole number of every usual period."""

_MAY_BE_VOID = (LogNews, JobList, CollectiveRates)
_SLACK = 1e-6  # of a period


def phase_of(node: str) -> float:
    """Return by how many seconds the polls of a node lie behind those of others.

    Nodes that were started in the same moment, by a reboot of the cluster or a rollout,
    would otherwise poll in the same moment for ever. It depends on the name alone, so
    that a node keeps its place, and is spread evenly, within every period.
    """
    digest = hashlib.sha256(node.encode(errors="surrogateescape")).digest()
    return int.from_bytes(digest[:6]) / 2**48 * PHASES_SECONDS


@dataclass(slots=True)
class Entry:
    """One source on one target, the job that polls it, and how it fares."""

    source: Source
    target: Target
    period: float
    due: float
    ticket: int
    job: Job = field(init=False)
    in_flight_since: float | None = None
    last_success: float | None = None
    duration: float = 0
    failures: int = 0
    settled: bool = False
    found: bool = False
    quarantined: str | None = None
    errors: Counter[str] = field(default_factory=Counter)
    health: Health | None = None

    def __post_init__(self) -> None:
        """Make the job."""
        self.aim(self.target)

    def aim(self, target: Target) -> None:
        """Poll this target, which has the same name but may be known better."""
        self.target = target
        self.job = Job(self.source.name, target.name, _lane(self), target)

    def carry(self, carried: object) -> None:
        """Hand this over to the next poll."""
        self.aim(replace(self.target, carried=carried))

    def repeat(self, repeats: Repeats | None) -> None:
        """Let the next job be many polls, or one again."""
        if repeats is not self.job.repeats:
            self.job = replace(self.job, repeats=repeats)

    def runs_since(self, begun_before: float) -> bool:
        """Tell whether a poll is in flight that began by then."""
        return self.in_flight_since is not None and self.in_flight_since <= begun_before

    @property
    def failed(self) -> bool:
        """Whether the last poll failed."""
        return self.failures > 0

    def report(self) -> Health:
        """Say how this source fares; the same record until something changes."""
        if self.health is None:
            counted: tuple[ErrnoCount, ...] = ()
            if self.errors:
                counted = tuple(starmap(ErrnoCount, sorted(self.errors.items())))
            self.health = Health(
                source=self.source.name,
                unit=self.target.name,
                ok=not self.failed,
                last_success=self.last_success,
                duration_seconds=self.duration,
                due_seconds=self.period,
                in_flight_since=self.in_flight_since,
                errors=counted,
                quarantined=self.quarantined,
                lane=self.source.lane.value,
                found=self.found,
            )
        return self.health

    def count_errors(self, names: Iterator[str]) -> None:
        """Count failed reads by errno name, bounded."""
        for name in names:
            known = name in self.errors or len(self.errors) < MAX_ERRNOS
            self.errors[name if known else "other"] += 1
            self.health = None


def _lane(entry: Entry) -> str:
    lane = entry.source.lane
    return f"device:{entry.target.name}" if lane is Lane.DEVICE else lane.value


def _tells(record: Record) -> bool:
    """Tell whether a record is more than that there is nothing."""
    return not isinstance(record, _MAY_BE_VOID) or record.tells


def _hanging(entry: Entry) -> ReadFailure:
    return ReadFailure(
        device=entry.target.name or None,
        port=None,
        file=entry.source.name,
        errno="ETIMEDOUT",
        message=f"a read of {entry.source.name} hangs",
    )


class Schedule:
    """Entries by source and target name, and the heap of their due times."""

    def __init__(self, origin: float) -> None:
        """Start empty; ``origin`` is where the grid begins, monotonic seconds."""
        self._origin = origin
        self._entries: dict[tuple[str, str], Entry] = {}
        self._heap: list[tuple[float, int, Entry]] = []
        self._tickets = count()

    @property
    def next_due(self) -> float | None:
        """When the next poll is due; None if there is none."""
        self._drop_stale()
        return self._heap[0][0] if self._heap else None

    def add(self, source: Source, target: Target, period: float, now: float) -> None:
        """Poll ``source`` on ``target`` from now on; a known entry is kept."""
        known = self._entries.get((source.name, target.name))
        if known is not None:
            carried = known.target.carried
            known.aim(target if carried is None else replace(target, carried=carried))
            return
        entry = Entry(source, target, period, now, next(self._tickets))
        self._entries[source.name, target.name] = entry
        heapq.heappush(self._heap, (now, entry.ticket, entry))

    def remove(self, target_name: str) -> None:
        """Stop polling a target; what is in flight is not waited for."""
        for key in [key for key in self._entries if key[1] == target_name]:
            self._entries.pop(key).ticket = -1

    def entry(self, source: str, target: str) -> Entry | None:
        """Return the entry of this source and target, None if it is gone."""
        return self._entries.get((source, target))

    def take_due(self, now: float) -> list[Entry]:
        """Take what is due and free to run, in order; mark it in flight."""
        taken = []
        self._drop_stale()
        while self._heap and self._heap[0][0] <= now:
            entry = heapq.heappop(self._heap)[2]
            repeats = entry.job.repeats
            if repeats is not None and now < repeats.until:
                taken.append(entry)  # in flight only while one of its polls is
                self._push(entry, repeats.until + entry.period)
                continue
            if entry.in_flight_since is None:
                entry.in_flight_since = now
                entry.health = None
                taken.append(entry)
            self._push(entry, self.next_on_grid(entry.period, now))
            self._drop_stale()
        return taken

    def settle(self, outcome: Outcome, *, failed: bool) -> Entry | None:
        """Note that a job has ended; None if its entry is gone."""
        entry = self._entries.get((outcome.job.source, outcome.job.unit))
        if entry is None:
            return None
        entry.in_flight_since = None
        entry.settled = True
        entry.health = None
        entry.duration = outcome.ended - outcome.started
        entry.failures = entry.failures + 1 if failed else 0
        entry.found = entry.found or any(map(_tells, outcome.records))
        if not failed:
            entry.last_success = outcome.ended
        return entry

    def follow(self, progress: Iterable[Progress]) -> None:
        """Note how far the jobs are that repeat, of which no outcome has come yet."""
        for each in progress:
            entry = self._entries.get((each.job.source, each.job.unit))
            if entry is not None and entry.job is each.job:
                entry.in_flight_since = each.since
                if each.ended is not None:
                    entry.last_success = each.ended
                entry.health = None

    def has_settled(self, lanes: frozenset[Lane], begun_before: float) -> bool:
        """Tell whether everything in these lanes was polled at least once.

        A poll that began before ``begun_before`` and still runs is not waited for.
        """
        wanted = [e for e in self._entries.values() if e.source.lane in lanes]
        return bool(wanted) and all(
            entry.settled or entry.runs_since(begun_before) for entry in wanted
        )

    def awaits(self, target_name: str, begun_before: float) -> bool:
        """Tell whether something of a target was never polled, and may soon be.

        A poll that began before ``begun_before`` and still runs is not waited for.
        """
        return any(
            entry.target.name == target_name
            and not entry.settled
            and not entry.runs_since(begun_before)
            for entry in self._entries.values()
        )

    def hung(self, begun_before: float) -> tuple[ReadFailure, ...]:
        """Tell of the longest poll of each lane that began so early and still runs.

        The others of its lane wait for it. Tools are left aside: they are ended.
        """
        longest: dict[str, Entry] = {}
        for entry in self._entries.values():
            if entry.runs_since(begun_before) and entry.source.lane is not Lane.TOOL:
                known = longest.setdefault(_lane(entry), entry)
                if (entry.in_flight_since or 0) < (known.in_flight_since or 0):
                    longest[_lane(entry)] = entry
        return tuple(map(_hanging, longest.values()))

    def start_over(self, lanes: frozenset[Lane], at: float) -> None:
        """Poll everything in these lanes once more, now, and forget that it was."""
        for entry in self._entries.values():
            if entry.source.lane in lanes:
                entry.settled = False
                self._push(entry, at)

    def hasten(self, source: str, target: str, at: float) -> None:
        """Poll at ``at`` if that is sooner than planned."""
        entry = self._entries.get((source, target))
        if entry is not None and at < entry.due:
            self._push(entry, at)

    def set_period(self, entry: Entry, period: float, now: float) -> None:
        """Change the rhythm of an entry, from now on."""
        if period != entry.period:
            entry.period = period
            entry.health = None
            self._push(entry, min(entry.due, now + period))

    def postpone(self, entry: Entry, until: float) -> None:
        """Leave an entry alone until then."""
        self._push(entry, until)

    def health(self) -> tuple[Health, ...]:
        """Say how every source fares, in the order in which they were added."""
        return tuple(entry.report() for entry in self._entries.values())

    def _push(self, entry: Entry, due: float) -> None:
        entry.due = due
        entry.ticket = next(self._tickets)
        heapq.heappush(self._heap, (due, entry.ticket, entry))

    def next_on_grid(self, period: float, now: float) -> float:
        """Return the next moment after ``now`` at which polls of a period fall due."""
        # A moment on the grid is often a little before it in floating point.
        steps = floor((now - self._origin) / period + _SLACK) + 1
        due = self._origin + steps * period
        # A period shorter than a step of floating-point time would be due for ever.
        return due if due > now else max(due + period, nextafter(now, inf))

    def _drop_stale(self) -> None:
        while self._heap and self._heap[0][1] != self._heap[0][2].ticket:
            heapq.heappop(self._heap)
