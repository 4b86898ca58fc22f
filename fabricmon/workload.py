"""What is known of the jobs of the node: their logs, processes, settings, rates. Pure."""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from typing import TypeAlias, get_args

from fabricmon.job_hearsay import Hearsay, with_rails
from fabricmon.model import (
    CollectiveRate,
    CollectiveRates,
    GidTable,
    HostPath,
    JobList,
    JobUse,
    JobView,
    LogEvent,
    LogNews,
    LogSeverity,
    LogTally,
    PortId,
    PortInfo,
)
from fabricmon.model.view import NO_JOB

MAX_EVENTS = 10_000
"""Log events kept between two judgements; an error storm stops here."""

MAX_TALLIES = 256
"""Kinds of log events counted; operators add kinds, a bad table could add many."""


AboutJobs: TypeAlias = LogNews | JobList | GidTable | HostPath | CollectiveRates
"""Records that are kept here."""

ABOUT_JOBS: tuple[type, ...] = get_args(AboutJobs)


class Workload:
    """Takes in what the sources of jobs find; the newest of each is what holds."""

    def __init__(self) -> None:
        """Start knowing nothing."""
        self.view: JobView = NO_JOB
        self.saved_logs = b""
        self.layout = 0
        self.dropped = 0
        """Log events that came faster than they were judged."""
        self.job_starts = 0
        """Times that a job appeared beside those that were there at first."""
        self._names: frozenset[str] | None = None
        self._events: deque[LogEvent] = deque()
        self._tallies: dict[tuple[str, LogSeverity], LogTally] = {}
        self._gids: dict[PortId, GidTable] = {}
        self._problems: dict[str, tuple[str, ...]] = {}
        self._hearsay = Hearsay()
        self._listed: tuple[JobUse, ...] = ()
        self._ports: tuple[PortInfo, ...] = ()

    @property
    def tallies(self) -> tuple[LogTally, ...]:
        """Events so far by kind and severity, in the order of their first."""
        return tuple(self._tallies.values())

    def take_events(self) -> tuple[LogEvent, ...]:
        """Return the events that are new and forget that they were."""
        events = tuple(self._events)
        self._events.clear()
        return events

    def take(self, record: AboutJobs) -> object:
        """Take in a record; return what its source's next poll goes on from, if any."""
        match record:
            case LogNews():
                self._take_news(record)
                return record.cursors
            case CollectiveRates():
                self._take_rates(record)
                return record.cursors
            case JobList():
                self._take_jobs(record)
            case GidTable():
                self._take_gids(record)
            case HostPath():
                self._set(host_path=record)
        return None

    def _take_news(self, news: LogNews) -> None:
        for event in news.events:
            if len(self._events) == MAX_EVENTS:
                self._events.popleft()
                self.dropped += 1
            self._events.append(event)
            self._count(event, news.wall)
            self._hearsay.take(event, news.at)
        self.saved_logs = news.saved
        counts = news.counts
        if self.dropped:
            counts = replace(counts, dropped_events=self.dropped)
        if bool(news.logs) != bool(self.view.logs):
            self.layout += 1
        self._set(logs=news.logs, counts=counts)
        self._note("logs", news.problems)
        if news.events:
            self._tell_jobs()

    def _take_jobs(self, found: JobList) -> None:
        self._listed = found.jobs
        self._hearsay.forget(found.jobs, found.at)
        self._set(processes=found.processes)
        self._note("jobs", found.problems)
        self._tell_jobs()
        if self._names is None:
            self._names = frozenset()

    def place(self, ports: tuple[PortInfo, ...]) -> None:
        """Take over which ports there are, and which rails they are."""
        if ports is not self._ports:
            self._ports = ports
            self._tell_jobs()

    def _tell_jobs(self) -> None:
        """Put together what lists, logs and ports say of the jobs."""
        uses = with_rails(self._hearsay.add_to(self._listed), self._ports)
        transports = self._hearsay.transports()
        if uses != self.view.jobs or transports != self.view.transports:
            self.layout += 1
            self._set(jobs=uses, transports=transports)
            self._note_starts(frozenset(use.job for use in uses))

    def _note_starts(self, names: frozenset[str]) -> None:
        """Count when a name is new; a job that is not told for a moment is none."""
        if self._names is not None and names - self._names:
            self.job_starts += 1
        self._names = names or self._names

    def _take_gids(self, table: GidTable) -> None:
        if self._gids.get(table.port) != table:
            self._gids[table.port] = table
            self._set(gids=tuple(self._gids.values()))

    def _take_rates(self, rates: CollectiveRates) -> None:
        if _series(rates.rates) != _series(self.view.rates):
            self.layout += 1
        self._set(rates=rates.rates)
        self._note("inspector", rates.problems)

    def forget(self, device: str) -> None:
        """Forget the ports of a device that is gone."""
        for port in [port for port in self._gids if port.device == device]:
            del self._gids[port]
        self._set(gids=tuple(self._gids.values()))

    def inherit(self, previous: Workload) -> None:
        """Go on with what was counted under another configuration."""
        self._tallies = previous._tallies
        self._hearsay = previous._hearsay
        self.dropped = previous.dropped

    def _set(self, **found: object) -> None:
        self.view = replace(self.view, **found)  # type: ignore[arg-type]

    def _note(self, part: str, problems: tuple[str, ...]) -> None:
        if self._problems.get(part, ()) != problems:
            self._problems[part] = problems
            every = tuple(item for kept in self._problems.values() for item in kept)
            self._set(problems=every)

    def _count(self, event: LogEvent, wall: float) -> None:
        key = (event.kind, event.severity)
        known = self._tallies.get(key)
        if known is None:
            if len(self._tallies) >= MAX_TALLIES:
                return
            known = LogTally(event.kind, event.severity, 0, wall)
            self.layout += 1
        number = known.events + max(event.count, 1)
        self._tallies[key] = LogTally(event.kind, event.severity, number, wall)


def _series(rates: tuple[CollectiveRate, ...]) -> list[tuple[object, ...]]:
    """Return what tells the series of these rates apart."""
    return [(r.comm, r.rank, r.collective, r.size_class, r.peer) for r in rates]
