"""An agent's pipeline on live files, without threads, sleep or server.

Time is made up: rounds follow each other as fast as the processor allows, so that
what is measured is the work alone, with warm caches. What a live agent costs beyond
that is waking up, changing threads, asyncio and HTTP.
"""

from __future__ import annotations

from pathlib import Path

from fabricmon.assembly import Poll, make_pipeline, make_poll, moment
from fabricmon.config_load import build
from fabricmon.errors import FabricmonError
from fabricmon.host.live import LiveHost
from fabricmon.lanes import InFlight
from fabricmon.model import Job, Outcome
from fabricmon.registry import SOURCES
from fabricmon.sinks.exposition import Exposition


class HurriedHost(LiveHost):
    """The files below a root, at a time that is told."""

    now = 1000.0
    """Monotonic seconds."""

    def monotonic(self) -> float:
        """Seconds that jump where they are told to."""
        return self.now

    def wall(self) -> float:
        """Unix seconds by the same clock."""
        return 1_767_600_000.0 + self.now


class _AtOnce:
    """Runs each poll when it is submitted."""

    def __init__(self, host: HurriedHost, poll: Poll) -> None:
        self._host = host
        self._poll = poll
        self._ended: list[Outcome] = []

    def submit(self, job: Job) -> bool:
        """Run a job."""
        now = self._host.now
        try:
            self._ended.append(Outcome(job, now, now, self._poll(job)))
        except FabricmonError as error:
            self._ended.append(Outcome(job, now, now, error=str(error)))
        return True

    def collect(self, now: float) -> tuple[Outcome, ...]:
        """Return what has ended."""
        del now
        ended, self._ended = tuple(self._ended), []
        return ended

    def in_flight(self) -> tuple[InFlight, ...]:
        """Return what runs: nothing."""
        return ()


class HurriedAgent:
    """A node's pipeline and exposition."""

    def __init__(self, root: Path, settings: dict[str, object]) -> None:
        """Look at the files below ``root``."""
        loaded = build({"root": str(root), **settings}, (), ())
        self.host = HurriedHost(str(root))
        poll = make_poll(self.host, loaded.config, SOURCES)
        self.pipeline = make_pipeline(
            self.host, _AtOnce(self.host, poll), loaded, "node01"
        )
        self.exposition = Exposition(loaded.config)
        self.steps = 0

    def play(self, seconds: float) -> None:
        """Let so much time pass."""
        end = self.host.now + seconds
        while (due := self.pipeline.next_due) <= end:
            self.host.now = max(due, self.host.now)
            self.pipeline.step(moment(self.host))
            self.exposition.publish(self.pipeline.snapshot)
            self.steps += 1
        self.host.now = end

    def scrape(self) -> bytes:
        """Return what a scrape would be answered."""
        return self.exposition.render().body
