"""A scenario made ready: the plan, all effects, and the truth about them."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

from fabricmon.errors import ConfigError
from fabricmon.sim.draw import InjectionDraw, source
from fabricmon.sim.effects import Effect, JobEnds, Made
from fabricmon.sim.fabric import Fabric
from fabricmon.sim.faults import make
from fabricmon.sim.happenings import Ended, Happening, Started
from fabricmon.sim.job_terms import JobTerms
from fabricmon.sim.plan import FleetPlan
from fabricmon.sim.scenario import Injection, Scenario
from fabricmon.sim.settling import settle
from fabricmon.sim.traffic import JobPlay
from fabricmon.sim.truth import FleetFile, FleetJob, LeafPort, Truth

START = 1767600000.0
"""Wall time at which every simulated trace begins."""


class Stage:
    """All that is known before a fleet plays. ``more`` are effects beside the file's."""

    def __init__(
        self, scenario: Scenario, seed: int = 1, more: Iterable[Effect] = ()
    ) -> None:
        self.scenario = scenario
        self.seed = seed
        self.plan, self.made = injected(scenario, seed)
        self.effects: tuple[Effect, ...] = (
            *(effect for made in self.made for effect in made.effects),
            *more,
        )
        self.fabric = Fabric(self.plan, self.effects)

    def play(self, job: str) -> Iterable[Happening]:
        """Play a job; each call plays it anew, the same way."""
        ends = tuple(
            effect
            for effect in self.effects
            if isinstance(effect, JobEnds) and effect.job == job
        )
        return JobPlay(self.plan, self.plan.jobs[job], self.fabric, ends).happenings()

    @cached_property
    def runs(self) -> tuple[FleetJob, ...]:
        """Every run of every job: a restarted one is a job of its own."""
        found = []
        for job in self.plan.jobs.values():
            begun: Started | None = None
            for happening in self.play(job.id):
                if isinstance(happening, Started):
                    begun = happening
                elif isinstance(happening, Ended) and begun is not None:
                    found.append(self._run(job, begun, happening.t))
                    begun = None
            if begun is not None:
                found.append(self._run(job, begun, self.plan.duration))
        return tuple(found)

    def _run(self, job: JobTerms, begun: Started, end: float) -> FleetJob:
        nodes = tuple(self.plan.node_name(node) for node in begun.members)
        return FleetJob(id=job.id, nodes=nodes, start=begun.t, end=end)

    @property
    def fleet(self) -> FleetFile:
        """``fleet.json``."""
        names = tuple(self.plan.node_name(node) for node in range(self.plan.nodes))
        leafs = {
            leaf: tuple(
                LeafPort(
                    node=self.plan.node_name(port.node),
                    device=port.device,
                    port=port.port,
                )
                for port in ports
            )
            for leaf, ports in sorted(self.plan.leafs.items())
        }
        return FleetFile(nodes=names, jobs=self.runs, leafs=leafs)

    @property
    def truth(self) -> Truth:
        """``truth.json``."""
        nodes = [self.plan.node_name(node) for node in range(self.plan.nodes)]
        made = settle(self.made, nodes)
        return Truth(
            seed=self.seed,
            scenario=self.scenario.name,
            duration=self.scenario.duration,
            faults=made.faults,
            victims=made.victims,
            forbid=made.forbid,
            negative=self.scenario.negative,
            tags=self.scenario.tags,
        )


def injected(scenario: Scenario, seed: int) -> tuple[FleetPlan, tuple[Made, ...]]:
    """Return the plan of a fleet and what becomes of each of its injections.

    A job that one injection ends for good is none that another could count on: the
    truth is made with that known. Raises `ConfigError`.
    """
    plan = FleetPlan(scenario, seed)
    made = _all(plan)
    ends = _ends(plan, made)
    if ends:
        plan = FleetPlan(scenario, seed, ends)
        made = _all(plan)
    return plan, made


def _all(plan: FleetPlan) -> tuple[Made, ...]:
    numbered = enumerate(plan.scenario.inject)
    return tuple(_make(injection, plan, number) for number, injection in numbered)


def _ends(plan: FleetPlan, made: Iterable[Made]) -> dict[str, float]:
    """Return when jobs end that do not start again, the first end of each."""
    found: dict[str, float] = {}
    for effect in (effect for each in made for effect in each.effects):
        if not isinstance(effect, JobEnds):
            continue
        job = plan.jobs[effect.job].plan
        if effect.at > job.start and not (effect.restart and job.restarts):
            found[job.id] = min(effect.at, found.get(job.id, effect.at))
    return found


def _make(injection: Injection, plan: FleetPlan, number: int) -> Made:
    """Let a class of the catalogue make of an injection what it does."""
    random = source(*plan.key, "inject", number)
    place = f"inject[{number}]"
    try:
        return make(injection, plan, InjectionDraw(random, injection.parameters))
    except ConfigError as error:
        key = (error.key or "inject").replace("inject", place, 1)
        raise ConfigError(error.message, key=key, remedy=error.remedy) from None
