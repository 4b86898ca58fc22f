"""What a class of the catalogue makes of an injection, for tests."""

from __future__ import annotations

from typing import TypeVar

from fabricmon.sim.draw import InjectionDraw, source
from fabricmon.sim.effects import Counting, Effect, Made, SimPort
from fabricmon.sim.faults import make
from fabricmon.sim.meters import Meter
from fabricmon.sim.plan import FleetPlan
from fabricmon.sim.scenario import (
    EVERYTHING,
    Injection,
    JobPlan,
    Magnitude,
    Scenario,
    Sight,
)

IB = "H100-IB-NDR-8x400"
ROCE = "H100-RoCE-8x400-DCQCN"
PFC = "RoCE-8x400-PFC-only"
B300 = "B300-multiplane"

T = TypeVar("T")


def fleet(
    profile: str = IB,
    nodes: int = 4,
    *,
    sights: tuple[Sight, ...] = EVERYTHING,
    jobs: tuple[JobPlan, ...] = (JobPlan(),),
    duration: float = 3600,
    leaf: int = 32,
) -> FleetPlan:
    """Return a small fleet."""
    scenario = Scenario(
        name="test", summary="", profile=profile, nodes=nodes, sights=sights,
        jobs=jobs, duration=duration, nodes_per_leaf=leaf,
    )  # fmt: skip
    return FleetPlan(scenario, 1)


def injected(
    what: str,
    plan: FleetPlan | None = None,
    *,
    seed: int = 1,
    node: int | None = 1,
    rail: int | None = 2,
    onset: Magnitude = 300,
    end: Magnitude | None = None,
    device: str | None = None,
    peer: int | None = None,
    **parameters: Magnitude | str | bool,
) -> Made:
    """Return what became of an injection, by default at node 1, rail 2, 300 s."""
    injection = Injection(
        what=what, node=node, rail=rail, onset=onset, end=end, device=device,
        peer=peer, parameters=parameters,
    )  # fmt: skip
    draw = InjectionDraw(source(seed, what), parameters)
    return make(injection, plan or fleet(), draw)


def of(made: Made, kind: type[T]) -> list[T]:
    """Return the effects of one kind."""
    return [effect for effect in made.effects if isinstance(effect, kind)]


def counted(made: Made, port: SimPort) -> set[Meter]:
    """Return what moves on a port by a rate."""
    return {each.meter for each in of(made, Counting) if each.port == port}


def rate(made: Made, port: SimPort, meter: Meter) -> float:
    """Return the rate of a counter on a port, the sum of all that move it."""
    return sum(
        each.rate
        for each in of(made, Counting)
        if each.port == port and each.meter is meter
    )


def times(effect: Effect) -> list[float]:
    """Return begin or moment, then end, of an effect."""
    names = ("begin", "at", "end")
    return [getattr(effect, name) for name in names if hasattr(effect, name)]
