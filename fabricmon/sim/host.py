"""A simulated node as a live Host: its records are made while time comes to them."""

from __future__ import annotations

from collections.abc import Iterator

from fabricmon.errors import ConfigError
from fabricmon.host.replay import ReplayHost
from fabricmon.host.trace import Header, TraceProblem, TraceRecord
from fabricmon.sim.load import load
from fabricmon.sim.node import NodePlay
from fabricmon.sim.staging import Stage

MAX_PROBLEMS = 1000
"""Problems that are kept; more are only counted."""


class SimulatedRecords:
    """The records of one node, as `trace_read.TraceReader` gives those of a file."""

    def __init__(self, stage: Stage, node: int) -> None:
        play = NodePlay(stage, node)
        self._records = play.records()
        self._node = stage.plan.node_name(node)
        self._count = 1
        self._problems: list[TraceProblem] = []
        self.header: Header = play.header
        self.problem_count = 0

    @property
    def problems(self) -> tuple[TraceProblem, ...]:
        """What could not be used so far: the first `MAX_PROBLEMS` of it."""
        return tuple(self._problems)

    def complain(self, message: str) -> None:
        """Note that something in the record just given cannot be used."""
        self.problem_count += 1
        if len(self._problems) < MAX_PROBLEMS:
            self._problems.append(TraceProblem(self._node, self._count, message))

    def __iter__(self) -> Iterator[TraceRecord]:
        return self

    def __next__(self) -> TraceRecord:
        record = next(self._records)
        self._count += 1
        return record

    def close(self) -> None:
        """Make no more records."""
        self._records = iter(())


def simulated_host(stage: Stage, node: int) -> ReplayHost:
    """Return a node of a fleet as a Host at t = 0."""
    return ReplayHost(SimulatedRecords(stage, node))


def stage_of(scenario: str, seed: int) -> Stage:
    """Return a scenario made ready; raises `ConfigError`."""
    return Stage(load(scenario), seed)


def node_to_watch(stage: Stage, wanted: int | None) -> int:
    """Return the node that is wanted, else one that has something to show.

    That is where the first visible fault is, else where somebody suffers, else 0.
    Raises `ConfigError` where there is no such node.
    """
    if wanted is None:
        return _eventful(stage)
    if not 0 <= wanted < stage.plan.nodes:
        remedy = f"write 0 to {stage.plan.nodes - 1}"
        raise ConfigError(f"there is no node {wanted}", key="--node", remedy=remedy)
    return wanted


def _eventful(stage: Stage) -> int:
    truth = stage.truth
    faults = sorted(truth.faults, key=lambda each: (not each.visible, each.onset))
    names = {stage.plan.node_name(node): node for node in range(stage.plan.nodes)}
    places = (
        *(each.node for each in faults[:1]),
        *(each.node for each in truth.victims),
    )
    return next((names[name] for name in places if name in names), 0)
