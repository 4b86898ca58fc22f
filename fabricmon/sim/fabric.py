"""What ports and jobs can do as time goes on: the effects, seen by those who send.

A port without effects is never asked for: it can do its line rate at all times.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf

from fabricmon.sim.effects import (
    Capacity,
    Effect,
    Frozen,
    Gone,
    Outage,
    PortText,
    Reboot,
    SimPort,
    Stall,
)
from fabricmon.sim.plan import FleetPlan

ACTIVE = "ACTIVE"

_SAME = 2e-6
"""Jobs go by whole milliseconds: a change so shortly after one is at it."""


@dataclass(frozen=True, slots=True)
class Ability:
    """What a port can do now; shares of its line rate."""

    receive: float = 1.0
    transmit: float = 1.0
    up: bool = True


@dataclass(frozen=True, slots=True)
class _Span:
    """Something that limits a port for a time."""

    begin: float
    end: float
    ability: Ability


class _Course:
    """What one port can do over time: constant between its changes."""

    def __init__(self, spans: Sequence[_Span]) -> None:
        self.changes = sorted({t for span in spans for t in (span.begin, span.end)})
        self._abilities = [_both(spans, t) for t in self.changes]

    def at(self, t: float) -> Ability:
        place = bisect_right(self.changes, t + _SAME)
        return self._abilities[place - 1] if place else _FULL


_FULL = Ability()


def _both(spans: Iterable[_Span], t: float) -> Ability:
    held = [span.ability for span in spans if span.begin <= t < span.end]
    return Ability(
        receive=min((each.receive for each in held), default=1.0),
        transmit=min((each.transmit for each in held), default=1.0),
        up=all(each.up for each in held),
    )


class Fabric:
    """The abilities of all ports of a fleet, and what holds its jobs up."""

    def __init__(self, plan: FleetPlan, effects: Iterable[Effect]) -> None:
        self._plan = plan
        spans: dict[SimPort, list[_Span]] = defaultdict(list)
        stalls: list[Stall] = []
        for effect in effects:
            if isinstance(effect, Stall):
                stalls.append(effect)
                continue
            for port, span in _spans(plan, effect):
                spans[port].append(span)
        self._courses = {port: _Course(each) for port, each in spans.items()}
        self._stalls = tuple(stalls)

    @cached_property
    def changes(self) -> tuple[float, ...]:
        """When anything changes for anyone, in order."""
        times = {t for course in self._courses.values() for t in course.changes}
        times.update(t for stall in self._stalls for t in (stall.begin, stall.end))
        return tuple(sorted(times))

    def next_change(self, t: float) -> float:
        """Return when something changes after ``t``, infinite if nothing does."""
        place = bisect_right(self.changes, t + _SAME)
        return self.changes[place] if place < len(self.changes) else inf

    def ability(self, port: SimPort, t: float) -> Ability:
        """Return what a port can do at ``t``."""
        course = self._courses.get(port)
        return _FULL if course is None else course.at(t)

    def limited(self, ports: Iterable[SimPort]) -> tuple[SimPort, ...]:
        """Return those of the ports that are ever limited."""
        return tuple(port for port in ports if port in self._courses)

    def stretch(self, job: str, members: tuple[int, ...], t: float) -> float:
        """Return by how much the computing of a job is stretched at ``t``."""
        worst = 1.0
        for stall in self._stalls:
            if stall.begin <= t + _SAME < stall.end and _concerns(stall, job, members):
                worst = max(worst, stall.stretch)
        return worst


def _concerns(stall: Stall, job: str, members: tuple[int, ...]) -> bool:
    if stall.job is not None and stall.job != job:
        return False
    return stall.node is None or stall.node in members


def _spans(plan: FleetPlan, effect: Effect) -> Iterable[tuple[SimPort, _Span]]:
    """Yield the ports that an effect limits, when and to what."""
    if isinstance(effect, Capacity):
        ability = Ability(
            receive=effect.factor if effect.receive else 1.0,
            transmit=effect.factor if effect.transmit else 1.0,
        )
        yield effect.port, _Span(effect.begin, effect.end, ability)
    elif isinstance(effect, Outage):
        yield effect.port, _down(effect.begin, effect.end + effect.init)
    elif isinstance(effect, PortText):
        if effect.state is not None and not effect.state.endswith(ACTIVE):
            yield effect.port, _down(effect.begin, effect.end)
    elif isinstance(effect, (Gone, Frozen)):
        for port in plan.ports(effect.node):
            if port.device == effect.device:
                yield port, _down(effect.begin, effect.end)
    elif isinstance(effect, Reboot):
        for port in plan.ports(effect.node):
            yield port, _down(effect.at, effect.at + effect.seconds)


def _down(begin: float, end: float) -> _Span:
    return _Span(begin, end, Ability(0.0, 0.0, up=False))
