"""Runs polls at once, at the virtual time of a trace, lane by lane.

A poll whose reads take time (``slow``, ``hang``, a command) holds its lane for so
long. It is run when it starts, to learn what it costs, and again whole when that time
has passed: it gives the values of that moment.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from fabricmon.errors import FabricmonError
from fabricmon.host.replay import ReplayHost
from fabricmon.lanes import InFlight
from fabricmon.model import Job, Outcome, Record

Poll = Callable[[Job], tuple[Record, ...]]


@dataclass(slots=True)
class _Lane:
    """Jobs of one lane, the first of them in flight from ``since`` to ``until``."""

    since: float
    until: float
    jobs: deque[Job] = field(default_factory=deque)


class InlineReader:
    """The `Reader` of a replay: same trace, same outcomes, in the same order.

    Args:
        host: The host that the polls read.
        poll: Runs a job on that host and returns its records.
    """

    def __init__(self, host: ReplayHost, poll: Poll) -> None:
        self._host = host
        self._poll = poll
        self._lanes: dict[str, _Lane] = {}  # only those that something holds
        self._ended: dict[Job, Outcome] = {}

    def submit(self, job: Job) -> bool:
        """Take a job; False if the same job waits or runs: its outcome is to come."""
        lane = self._lanes.get(job.lane)
        if job in self._ended:
            return False
        if lane is None:
            self._start(deque([job]), self._host.monotonic())
        elif job in lane.jobs:
            return False
        else:
            lane.jobs.append(job)
        return True

    def collect(self, now: float) -> tuple[Outcome, ...]:
        """Return what has ended by ``now`` and was not yet returned, in that order."""
        while self._lanes:
            name, lane = min(self._lanes.items(), key=lambda item: item[1].until)
            if lane.until > now:
                break
            del self._lanes[name]
            job = lane.jobs.popleft()
            self._ended[job] = self._run(job, lane.since, now)
            self._start(lane.jobs, now)
        ended = tuple(self._ended.values())
        self._ended.clear()
        return ended

    def in_flight(self) -> tuple[InFlight, ...]:
        """Return the polls that run now, longest first."""
        lanes = sorted(self._lanes.values(), key=lambda lane: lane.since)
        return tuple(InFlight(lane.jobs[0], lane.since) for lane in lanes)

    def next_event(self) -> float | None:
        """Return when the next poll ends that is in flight, None if none is."""
        return min((lane.until for lane in self._lanes.values()), default=None)

    def abandon(self) -> None:
        """Forget what runs, waits or has ended: the agent starts anew."""
        self._lanes.clear()
        self._ended.clear()

    def _start(self, jobs: deque[Job], now: float) -> None:
        """Run jobs of one lane until one of them takes time."""
        while jobs:
            self._host.begin_charging()
            outcome = self._run(jobs[0], now, now)
            seconds = self._host.end_charging()
            if seconds:
                self._lanes[jobs[0].lane] = _Lane(now, now + seconds, jobs)
                return
            self._ended[jobs.popleft()] = outcome

    def _run(self, job: Job, started: float, ended: float) -> Outcome:
        try:
            records = self._poll(job)
        except FabricmonError as error:
            return Outcome(job, started, ended, error=str(error))
        except Exception as error:  # noqa: BLE001 -- every job has an outcome
            text = f"{type(error).__name__}: {error}"
            return Outcome(job, started, ended, error=text)
        return Outcome(job, started, ended, records)
