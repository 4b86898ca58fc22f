"""A pipeline on a fake host: polls run at once, and a test moves the time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from fabricmon.assembly import make_pipeline, make_poll
from fabricmon.config_load import build
from fabricmon.lanes import InFlight
from fabricmon.model import Incident, IncidentState, Job, Outcome, PortSnapshot, Record
from fabricmon.pipeline import Moment, Pipeline
from fabricmon.registry import SOURCES
from fabricmon.sources.protocol import Source
from tests.fake_host import FakeHost

Json = dict[str, Any]


class DirectReader:
    """Runs each poll when it is submitted, except those that a test lets hang.

    ``hanging`` has names of lanes, such as ``device:mlx5_0``, ``held_sources`` names
    of sources; ``seconds`` is what a poll of a source takes; an exception in
    ``crashing`` ends polls of a source.
    """

    def __init__(self, host: FakeHost, sources: Sequence[Source], config: Any) -> None:
        self.hanging: set[str] = set()
        self.held_sources: set[str] = set()
        self.seconds: dict[str, float] = {}
        self.crashing: dict[str, str] = {}
        self.jobs: list[Job] = []
        self._host = host
        self._poll = make_poll(host, config, sources)
        self._held: list[Job] = []
        self._ended: list[Outcome] = []

    def submit(self, job: Job) -> bool:
        """Run a job, or hold it where its lane hangs."""
        self.jobs.append(job)
        if self._hangs(job):
            self._held.append(job)
        else:
            self._ended.append(self._run(job))
        return True

    def collect(self, now: float) -> tuple[Outcome, ...]:
        """Return what has ended."""
        free = [job for job in self._held if not self._hangs(job)]
        self._held = [job for job in self._held if self._hangs(job)]
        ended, self._ended = (*self._ended, *map(self._run, free)), []
        return ended

    def in_flight(self) -> tuple[InFlight, ...]:
        """Return what hangs."""
        return tuple(InFlight(job, self._host.now) for job in self._held)

    def take(self) -> list[str]:
        """Return which sources were polled since the last call, and where."""
        jobs, self.jobs = self.jobs, []
        return [f"{job.source} {job.unit}".strip() for job in jobs]

    def _hangs(self, job: Job) -> bool:
        return job.lane in self.hanging or job.source in self.held_sources

    def _run(self, job: Job) -> Outcome:
        now = self._host.now
        started = now - self.seconds.get(job.source, 0.0)
        if job.source in self.crashing:
            return Outcome(job, started, now, error=self.crashing[job.source])
        records: tuple[Record, ...] = self._poll(job)
        return Outcome(job, started, now, records)


class Running:
    """A node and its pipeline; `step` moves both, ``changes`` is all that was told."""

    def __init__(
        self,
        host: FakeHost,
        config: Json | None = None,
        sources: Sequence[Source] = SOURCES,
    ) -> None:
        self.host = host
        self.loaded = build(config or {}, (), ())
        self.reader = DirectReader(host, sources, self.loaded.config)
        self.pipeline: Pipeline = make_pipeline(
            host, self.reader, self.loaded, "node-1", sources
        )
        self.changes: list[Incident] = []

    @property
    def moment(self) -> Moment:
        """The host's clocks now."""
        return Moment(self.host.now, self.host.wall(), self.host.firmware_reads)

    def step(self, seconds: float = 0.0) -> tuple[Incident, ...]:
        """Let time pass and step once; return what changed."""
        self.host.now += seconds
        changes = self.pipeline.step(self.moment)
        self.changes += changes
        return changes

    def run(self, seconds: float, each: float = 1.0) -> list[Incident]:
        """Step again and again for so long; return what changed."""
        before = len(self.changes)
        for _ in range(round(seconds / each)):
            self.step(each)
        return self.changes[before:]

    def settle(self) -> Running:
        """Step at this moment until nothing new is due: the first look at a node."""
        for _ in range(4):
            self.step()
        return self

    def restart(self, config: Json | None = None) -> Running:
        """Return another agent on the same host, with what this one has saved."""
        following = Running(self.host, config)
        problems = following.pipeline.restore(self.pipeline.save())
        assert problems == ()
        return following

    def port(self, device: str = "mlx5_0") -> PortSnapshot:
        """Return port 1 of a device as it stands."""
        ports = self.pipeline.snapshot.ports
        return next(p for p in ports if p.info.id.device == device)

    def told(self, kind: str) -> list[IncidentState]:
        """Return what became of findings of a kind, in order."""
        return [i.state for i in self.changes if i.finding.kind == kind]

    @property
    def kinds(self) -> set[str]:
        """The kinds that are open."""
        return {i.finding.kind for i in self.pipeline.snapshot.incidents}


def without_times(incident: Incident) -> Incident:
    """Return an incident whose times do not matter."""
    return replace(incident, time=0.0, last_seen=0.0)
