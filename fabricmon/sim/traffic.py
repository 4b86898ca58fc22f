"""What a job does over time: a coupled model of steps, rails and their slowest hops.

A step computes, then communicates. Each rail carries the same bytes in every step, at
the pace of the slowest port of its ring; the step ends with its slowest rail. A port
that is down holds its rail, and with it the job: who talks to it resends every ACK
timeout, and the job dies when the retries are used up.

All times are whole milliseconds, so that what is written adds up to what was sent.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil, inf

from fabricmon.sim.draw import magnitude, source
from fabricmon.sim.effects import JobEnds, SimPort
from fabricmon.sim.fabric import Fabric
from fabricmon.sim.happenings import (
    AckTimeouts,
    Activity,
    Ended,
    Flow,
    Happening,
    Limit,
    RetriesExceeded,
    Started,
)
from fabricmon.sim.job_terms import JobTerms
from fabricmon.sim.plan import FleetPlan, neighbours

TICK = 0.001
"""Nothing lasts less, in seconds."""
STEP_NOISE = 0.02
"""Relative spread of the computing part of a step (estimate)."""
RIPPLE = 0.05
"""Rails differ by so much from step to step: 5 to 10 % (fault catalogue, 3)."""
MOST = 0.99
"""No port carries more: gaps between packets remain."""
INIT_SHARE = (0.0005, 0.004)
"""Share of the line rate while connections are made (estimate)."""
RESTART_SECONDS = (60.0, 120.0)
"""A scheduler needs so long to start a job again (fault catalogue, 5)."""
BURSTS = (3, 6)
"""Parts of an all-to-all phase."""
BURST_GAP = (0.02, 0.1)
"""Seconds between them."""
RAIL_CHECKPOINT_SHARE = (0.1, 0.4)
"""Share of the line rate of a checkpoint that goes over the rails."""


@dataclass(slots=True)
class _Lane:
    """One rail within one phase of communication."""

    rail: int
    left: float
    wanted: float
    pace: float = 0.0
    end: float = inf
    limit: Limit | None = None
    down: SimPort | None = None
    since: float = 0.0
    tries: int = 0


class _OverError(Exception):
    """The run ends: told to, or done (no cause)."""

    def __init__(self, cause: JobEnds | None) -> None:
        self.cause = cause


class _DeadError(Exception):
    """The run ends by itself: retries are used up."""


class JobPlay:
    """Plays one job; `happenings` does so once, lazily, in order of time."""

    def __init__(
        self,
        plan: FleetPlan,
        terms: JobTerms,
        fabric: Fabric,
        ends: tuple[JobEnds, ...] = (),
    ) -> None:
        self._plan = plan
        self._terms = terms
        self._fabric = fabric
        self._ends = tuple(sorted(ends, key=lambda end: end.at))
        self._t = whole(terms.plan.start)
        self._members = terms.nodes
        self._random = source(*plan.key, "run", terms.id, 0)
        self._ring: dict[int, tuple[SimPort, ...]] = {}
        self._shown: Flow | None = None
        self._noise = min(plan.scenario.noise, 1.0)

    def happenings(self) -> Iterator[Happening]:
        """Yield all that happens to the job until the scenario ends."""
        run = 0
        while self._t < self._plan.duration and self._t < self._terms.end:
            run += 1
            self._begin(run)
            yield Started(self._t, run, self._members)
            failed = again = False
            crashed: int | None = None
            try:
                yield from self._run()
            except _DeadError:
                failed = again = True
            except _OverError as over:
                if over.cause is not None:
                    again = over.cause.restart
                    crashed = over.cause.crash_node
                    if crashed is not None:
                        failed = True
                        yield from self._wait_for_dead(crashed)
            if self._t >= self._plan.duration:
                return  # it outlives the scenario
            yield Flow(self._t, Activity.IDLE, self._members, self._even(0.0))
            yield Ended(self._t, run, self._members, failed, crashed)
            if not (again and self._terms.plan.restarts):
                return
            self._t = whole(self._t + self._random.uniform(*RESTART_SECONDS))

    def _begin(self, run: int) -> None:
        self._random = source(*self._plan.key, "run", self._terms.id, run)
        self._shown = None
        if run > 1:
            sound = tuple(node for node in self._terms.nodes if self._is_sound(node))
            self._members = sound or self._terms.nodes
        self._ring = {
            rail: self._fabric.limited(self._plan.rail(n, rail) for n in self._members)
            for rail in self._terms.rails
        }

    def _is_sound(self, node: int) -> bool:
        """Tell whether a scheduler would take a node: all its rails are up."""
        ports = (self._plan.rail(node, rail) for rail in self._terms.rails)
        crashed = any(
            end.crash_node == node and end.at <= self._t for end in self._ends
        )
        return not crashed and all(
            self._fabric.ability(port, self._t).up for port in ports
        )

    def _run(self) -> Iterator[Happening]:
        terms, random = self._terms, self._random
        share = random.uniform(*INIT_SHARE) if len(self._ring) else 0.0
        yield self._flow(Activity.INIT, self._even(share))
        self._go(self._t + terms.init)
        checkpoint = self._t + (terms.checkpoint_every or inf)
        pause = self._t + (terms.pauses_every or inf)
        while True:
            yield from self._compute()
            yield from self._communicate()
            if self._t >= checkpoint:
                yield from self._save()
                checkpoint = self._t + (terms.checkpoint_every or inf)
            if self._t >= pause:
                yield self._flow(Activity.PAUSE, self._even(0.0))
                self._go(self._t + magnitude(random, terms.plan.pause))
                pause = self._t + (terms.pauses_every or inf)

    def _save(self) -> Iterator[Happening]:
        plan = self._terms.plan
        on_rails = plan.checkpoint_on_rails
        share = self._random.uniform(*RAIL_CHECKPOINT_SHARE) if on_rails else 0.0
        yield self._flow(Activity.CHECKPOINT, self._even(share))
        self._go(self._t + magnitude(self._random, plan.checkpoint))

    def _compute(self) -> Iterator[Happening]:
        yield self._flow(Activity.COMPUTE, self._even(0.0))
        usual = self._terms.step * (1 - self._terms.communication)
        left = max(usual * self._random.gauss(1.0, STEP_NOISE * self._noise), 0.001)
        while left > 0:
            stretch = self._stretch()
            change = self._fabric.next_change(self._t)
            end = self._t + left * stretch if stretch < inf else inf
            if end <= change:
                self._go(end)
                return
            left -= (change - self._t) / stretch
            self._go(change)

    def _communicate(self) -> Iterator[Happening]:
        every = self._terms.bytes_share_seconds
        if self._terms.plan.pattern == "ring":
            yield from self._exchange(every)
            return
        bursts = self._random.randint(*BURSTS)
        for _ in range(bursts):
            yield from self._exchange(every / bursts)
            yield self._flow(Activity.COMMUNICATE, self._even(0.0))
            self._go(self._t + self._random.uniform(*BURST_GAP))

    def _exchange(self, amount: float) -> Iterator[Happening]:
        """Carry so much (share of the line rate times seconds) over every rail."""
        lanes = [_Lane(rail, amount, self._wanted()) for rail in self._terms.rails]
        change = self._t
        while busy := [lane for lane in lanes if lane.left > 0]:
            if self._t >= change:
                change = self._fabric.next_change(self._t)
                for lane in busy:
                    self._pace(lane)
                self._spread(lanes)
            yield from self._show(lanes)
            events = [min(lane.end, self._next_try(lane)) for lane in busy]
            begun = self._t
            self._go(min(change, *events))
            for lane in busy:
                done = self._t >= lane.end
                lane.left = 0.0 if done else lane.left - lane.pace * (self._t - begun)
                if self._t >= self._next_try(lane):
                    yield from self._resend(lane)

    def _wanted(self) -> float:
        ripple = self._random.uniform(-RIPPLE, RIPPLE) * self._noise
        return min(self._terms.load * (1 + ripple), MOST)

    def _show(self, lanes: list[_Lane]) -> Iterator[Flow]:
        shares = tuple(lane.pace if lane.left > 0 else 0.0 for lane in lanes)
        limits = tuple(lane.limit if lane.left > 0 else None for lane in lanes)
        flow = Flow(self._t, Activity.COMMUNICATE, self._members, shares, limits)
        if self._shown is None or (shares, limits) != (
            self._shown.shares, self._shown.limits,
        ):  # fmt: skip
            self._shown = flow
            yield flow

    def _pace(self, lane: _Lane) -> None:
        """Let a rail run at the pace of its slowest port."""
        lane.limit, slowest = None, lane.wanted
        down = None
        for port in self._ring[lane.rail]:
            ability = self._fabric.ability(port, self._t)
            if not ability.up:
                down = down or port
            share = min(ability.receive, ability.transmit)
            if share < slowest:
                slowest = share
                lane.limit = Limit(
                    port, share, ability.receive == share, ability.transmit == share
                )
        if down is not None and lane.down is None:
            lane.since, lane.tries = self._t, 0
        lane.down = down
        if down is not None or self._stretch() == inf:
            lane.pace, lane.end, lane.limit = 0.0, inf, None
            return
        if slowest > 0:
            lane.end = max(whole(self._t + lane.left / slowest), self._t + TICK)
            lane.pace = lane.left / (lane.end - self._t)
        else:
            lane.pace, lane.end = 0.0, inf

    def _spread(self, lanes: list[_Lane]) -> None:
        """Let the other planes of the devices carry what one that is down cannot."""
        for lane in lanes:
            if lane.down is None or not lane.left:
                continue
            others = [
                other
                for other in lanes
                if other.down is None and self._plan.are_planes(lane.rail, other.rail)
            ]
            if not others:
                continue
            for other in others:
                other.left += lane.left / len(others)
                self._pace(other)
            lane.left, lane.down = 0.0, None

    def _next_try(self, lane: _Lane) -> float:
        if lane.down is None:
            return inf
        return whole(lane.since + (lane.tries + 1) * self._terms.ack_timeout)

    def _resend(self, lane: _Lane) -> Iterator[Happening]:
        silent = lane.down
        if silent is None:
            return
        lane.tries += 1
        talkers = self._talkers(silent.node, lane.rail)
        ports = (*talkers, silent)
        yield AckTimeouts(self._t, lane.rail, ports, silent)
        if lane.tries >= self._terms.plan.retries:
            yield RetriesExceeded(self._t, lane.rail, ports, silent)
            raise _DeadError

    def _talkers(self, node: int, rail: int) -> tuple[SimPort, ...]:
        if node not in self._members:
            return ()
        nodes = dict.fromkeys(neighbours(self._terms, self._members, node))
        return tuple(self._plan.rail(each, rail) for each in nodes)

    def _wait_for_dead(self, node: int) -> Iterator[Happening]:
        """Let those who talk to a crashed node resend until they give up."""
        yield self._flow(Activity.IDLE, self._even(0.0))
        for number in range(1, self._terms.plan.retries + 1):
            self._t = whole(self._t + self._terms.ack_timeout)
            for rail in self._terms.rails:
                silent = self._plan.rail(node, rail)
                talkers = self._talkers(node, rail)
                yield AckTimeouts(self._t, rail, talkers, silent)
                if number == self._terms.plan.retries:
                    yield RetriesExceeded(self._t, rail, talkers, silent)

    def _stretch(self) -> float:
        return self._fabric.stretch(self._terms.id, self._members, self._t)

    def _flow(self, activity: Activity, shares: tuple[float, ...]) -> Flow:
        self._shown = Flow(self._t, activity, self._members, shares)
        return self._shown

    def _even(self, share: float) -> tuple[float, ...]:
        return (share,) * len(self._terms.rails)

    def _go(self, to: float) -> None:
        """Let time pass, to the end of the run at most."""
        cause = next((end for end in self._ends if end.at > self._t), None)
        stop = min(
            inf if cause is None else cause.at, self._terms.end, self._plan.duration
        )
        if to >= stop:
            self._t = whole(stop)
            told = cause is not None and cause.at <= stop
            raise _OverError(cause if told else None)
        self._t = whole(to)


def whole(t: float) -> float:
    """Round a time up to whole milliseconds."""
    return ceil(round(t * 1000, 6)) / 1000
