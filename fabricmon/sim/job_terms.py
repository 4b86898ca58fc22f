"""What a job of a scenario is like, once its magnitudes are drawn."""

from __future__ import annotations

from dataclasses import dataclass

from fabricmon.sim.draw import magnitude, source
from fabricmon.sim.scenario import JobPlan

QUEUE_PAIRS = (8, 16, 32)
"""Queue pairs of a connection between two ports: channels by QPs for each."""

PROCESSES = 8
"""Ranks on a node: one for each GPU."""

ACK_UNIT = 4.096e-6
"""Seconds of the local ACK timer at timeout 0; it doubles with each step (IBTA)."""


@dataclass(frozen=True, slots=True)
class JobTerms:
    """A job as it will be; ``nodes`` and ``rails`` are all that it may use."""

    plan: JobPlan
    nodes: tuple[int, ...]
    rails: tuple[int, ...]
    init: float
    step: float
    communication: float
    load: float
    checkpoint_every: float | None
    pauses_every: float | None
    queue_pairs: int

    @property
    def id(self) -> str:
        """Id of the job."""
        return self.plan.id

    @property
    def first_step(self) -> float:
        """When its first step begins."""
        return self.plan.start + self.init

    @property
    def end(self) -> float:
        """When it ends by itself, infinite if it outlives the scenario."""
        return float("inf") if self.plan.end is None else self.plan.end

    @property
    def bytes_share_seconds(self) -> float:
        """What a rail carries in a step: share of the line rate times seconds."""
        return self.step * self.communication * self.load

    @property
    def ack_timeout(self) -> float:
        """Seconds until an unanswered request is sent again."""
        return ACK_UNIT * 2.0**self.plan.timeout


def job_terms(
    plan: JobPlan, key: tuple[object, ...], nodes: int, rails: int
) -> JobTerms:
    """Draw the magnitudes of a job; ``key`` are seed and scenario."""
    random = source(*key, "job", plan.id)
    every, pauses = plan.checkpoint_every, plan.pauses_every
    return JobTerms(
        plan=plan,
        nodes=plan.nodes if plan.nodes is not None else tuple(range(nodes)),
        rails=plan.rails if plan.rails is not None else tuple(range(rails)),
        init=magnitude(random, plan.init),
        step=magnitude(random, plan.step),
        communication=magnitude(random, plan.communication),
        load=magnitude(random, plan.load),
        checkpoint_every=None if every is None else magnitude(random, every),
        pauses_every=None if pauses is None else magnitude(random, pauses),
        queue_pairs=random.choice(QUEUE_PAIRS),
    )
