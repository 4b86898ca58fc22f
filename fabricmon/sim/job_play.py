"""A job as one of its nodes sees it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from fabricmon.sim.draw import magnitude, source
from fabricmon.sim.effects import SimPort
from fabricmon.sim.happenings import (
    AckTimeouts,
    Activity,
    Ended,
    Flow,
    Happening,
    RetriesExceeded,
    Started,
)
from fabricmon.sim.job_log import JobLog
from fabricmon.sim.job_terms import JobTerms
from fabricmon.sim.meters import Meter
from fabricmon.sim.port import Port

if TYPE_CHECKING:
    from fabricmon.sim.node import NodePlay

FLUSHED = (100.0, 10_000.0)
"""Work requests that are flushed on each port when a job ends."""
FLUSH_SECONDS = 2.0
CONNECTS = (200.0, 5000.0)
"""Connections that a port takes at the start of a job."""
REORDERED = 20
"""Packets out of order on RoCE while connections are made."""
ADAPTIVE_PER_TIMEOUT = (4.0, 40.0)
"""Adaptive retransmission tries so often before each ACK timeout, on RoCE."""


class NodeJob:
    """Plays a job on a node: its traffic, its counters, its log and drop file."""

    def __init__(self, play: NodePlay, terms: JobTerms) -> None:
        self._play = play
        self._terms = terms
        self._log = JobLog(play.plan, terms, play.node, play.header.start)
        self._has_log = "nccl_log" in play.plan.sights
        self._happenings: Iterator[Happening] = iter(play.stage.play(terms.id))
        self._random = source(*play.plan.key, "node", play.node, "job", terms.id)
        self._started: Started | None = None
        self._activity = Activity.IDLE
        self._is_connected = False

    def start(self) -> None:
        """Begin to wait for what happens."""
        self._next()

    @property
    def members(self) -> tuple[int, ...]:
        """The nodes of the run that is on, none if none is."""
        return () if self._started is None else self._started.members

    def print_event(self, t: float, port: SimPort, event: str) -> None:
        """Let the processes tell of an event of a port that they use."""
        uses = (self._play.plan.rail(port.node, rail) for rail in self._terms.rails)
        if self._has_log and self._takes_part() and self._is_connected and port in uses:
            self._print(self._log.port_event(t, port, event))

    def _next(self) -> None:
        happening = next(self._happenings, None)
        if happening is not None:
            self._play.at(happening.t, lambda t: self._take(t, happening))

    def _take(self, t: float, happening: Happening) -> None:
        match happening:
            case Flow():
                self._flow(t, happening)
            case Started():
                self._begin(t, happening)
            case AckTimeouts():
                self._time_out(t, happening.ports)
            case RetriesExceeded():
                self._give_up(t, happening)
            case Ended():
                self._end(t, happening)
        self._next()

    def _takes_part(self) -> bool:
        return self._play.node in self.members

    def _own(self, ports: tuple[SimPort, ...]) -> tuple[SimPort, ...]:
        return tuple(port for port in ports if port.node == self._play.node)

    def _rails(self) -> tuple[SimPort, ...]:
        plan, node = self._play.plan, self._play.node
        return tuple(plan.rail(node, rail) for rail in self._terms.rails)

    def _flow(self, t: float, flow: Flow) -> None:
        self._play.traffic.flow(t, self._terms, flow)
        if not self._takes_part():
            return
        before, self._activity = self._activity, flow.activity
        saves = Activity.CHECKPOINT
        turns = before is not flow.activity and saves in {before, flow.activity}
        if turns and not self._terms.plan.checkpoint_on_rails:
            self._play.traffic.storage(t, flow.activity)
        if flow.activity is Activity.COMPUTE and not self._is_connected:
            self._connect(t)

    def _begin(self, t: float, started: Started) -> None:
        self._started, self._is_connected = started, False
        if not self._takes_part():
            return
        ethernet = not self._play.plan.is_infiniband
        for port in self._rails():
            connects = magnitude(self._random, CONNECTS)
            self._play.ports[port].add(t, Meter.CONNECTS, int(connects))
            if ethernet and self._play.plan.scenario.noise:
                late = self._random.randrange(REORDERED)
                self._play.ports[port].add(t, Meter.OUT_OF_SEQUENCE, late)
        self._play.traffic.storage(t, Activity.COMPUTE)
        if self._has_log:
            self._play.page.text(self._log.drop_path, self._log.drop())
            self._print(self._log.begins(started.run, started.members))

    def _connect(self, t: float) -> None:
        del t
        self._is_connected = True
        if self._has_log and self._started is not None:
            self._print(self._log.connected(self._started.run, self._started.members))

    def _time_out(self, t: float, ports: tuple[SimPort, ...]) -> None:
        for which in self._own(ports):
            port = self._play.ports[which]
            port.add(t, Meter.ACK_TIMEOUTS, self._terms.queue_pairs)
            if not self._play.plan.is_infiniband:
                tries = magnitude(self._random, ADAPTIVE_PER_TIMEOUT)
                amount = int(tries * self._terms.queue_pairs)
                port.add(t, Meter.ADAPTIVE_RETRANSMITS, amount)

    def _give_up(self, t: float, end: RetriesExceeded) -> None:
        for which in self._own(end.ports):
            port = self._play.ports[which]
            port.add(t, Meter.RETRIES_EXCEEDED, self._terms.queue_pairs)
            if self._has_log:
                self._print(self._log.gives_up(end, self.members))

    def _end(self, t: float, ended: Ended) -> None:
        took_part = self._takes_part() and ended.crashed != self._play.node
        self._started, self._is_connected = None, False
        self._activity = Activity.IDLE
        if not took_part:
            return
        for which in self._rails():
            self._flush(t, which)
        if not any(job.members for job in self._play.jobs):
            self._play.traffic.storage(t, Activity.IDLE)
        if self._has_log:
            say = self._log.aborts if ended.failed else self._log.ends
            self._print(say(ended.run, ended.members))
            self._play.page.delete(self._log.drop_path)

    def _flush(self, t: float, which: SimPort) -> None:
        """Count the work requests that are flushed, in two goes."""
        port = self._play.ports[which]
        amount = int(magnitude(self._random, FLUSHED))
        for part in (amount // 2, amount - amount // 2):
            later = t + self._random.uniform(0.0, FLUSH_SECONDS)
            self._play.at(later, _adder(port, part))

    def _print(self, text: str) -> None:
        if text and not self._play.is_booting:
            self._play.page.log(self._log.path, text)


def _adder(port: Port, amount: int) -> Callable[[float], None]:
    def add(t: float) -> None:
        port.add(t, Meter.FLUSH_ERRORS, amount)

    return add
