"""One trial: a scenario is simulated, fabricmon and its peers look on, all are scored.

Everything happens in this process and one folder, so that many trials run side by
side and give the same as alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

import msgspec
from msgspec import Struct

from fabricmon.config_load import Loaded
from fabricmon.finding_document import FindingDocument
from fabricmon.model import PortPlace
from fabricmon.replaying_fleet import NodeResult, in_order, leaf_places, replay_node
from fabricmon.sim.baselines import NAMES, NodeVerdicts, fair, verdicts, watch
from fabricmon.sim.folder import write_node
from fabricmon.sim.scenario import Scenario
from fabricmon.sim.score import RunScore, score
from fabricmon.sim.score_stories import Told
from fabricmon.sim.staging import Stage

OWN = "fabricmon"

_T = TypeVar("_T")

Play = Callable[[str, Path, Sequence[PortPlace]], NodeResult]
"""What plays a node, given its name, its trace and the places of its ports."""


class Trial(Struct, frozen=True, kw_only=True):
    """The scores of one run by judge, and the seconds that each part took.

    ``node_seconds`` is the life that was simulated, summed over nodes.
    """

    scores: dict[str, RunScore]
    node_seconds: float
    simulate_seconds: float
    replay_seconds: float
    peer_seconds: float = 0.0


class _Stopwatch:
    """Sums the processor time of what is done again and again."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def time(self, work: Callable[[], _T]) -> _T:
        """Do it."""
        begun = time.process_time()
        try:
            return work()
        finally:
            self.seconds += time.process_time() - begun


def run_trial(
    scenario: Scenario,
    seed: int,
    folder: Path,
    *,
    with_peers: bool = False,
    loaded: Loaded | None = None,
    play: Play | None = None,
) -> Trial:
    """Simulate a scenario, let everybody look on, and score them.

    Traces lie in ``folder`` one at a time. ``play`` is for who wants to see more of
    the nodes than what they find. Raises `ConfigError` where the scenario
    cannot be played, `OSError` where the folder cannot be written to.
    """
    simulating, replaying, watching = _Stopwatch(), _Stopwatch(), _Stopwatch()
    stage = simulating.time(partial(Stage, scenario, seed))
    fleet, truth = simulating.time(lambda: (stage.fleet, stage.truth))
    places = leaf_places(fleet)
    if play is None:
        play = partial(_play, loaded)
    found: list[NodeResult] = []
    seen: list[NodeVerdicts] = []
    for node in range(stage.plan.nodes):
        trace = simulating.time(partial(write_node, stage, node, folder))
        name = stage.plan.node_name(node)
        seen_by_it = partial(play, name, trace, places.get(name, ()))
        found.append(replaying.time(seen_by_it))
        if with_peers:
            seen.append(watching.time(partial(watch, trace)))
        trace.unlink()
    scores = {OWN: score(truth, fleet, told(list(in_order(found))))}
    if with_peers:
        said = verdicts(seen, fleet)
        wider = fair(truth)
        scores |= {name: score(wider, fleet, told(said[name])) for name in NAMES}
    return Trial(
        scores=scores,
        node_seconds=scenario.duration * stage.plan.nodes,
        simulate_seconds=simulating.seconds,
        replay_seconds=replaying.seconds,
        peer_seconds=watching.seconds,
    )


def _play(
    loaded: Loaded | None, _node: str, trace: Path, places: Sequence[PortPlace]
) -> NodeResult:
    return replay_node(trace, loaded, places)


def told(documents: Sequence[FindingDocument]) -> tuple[Told, ...]:
    """Return findings as a scorer reads them: through their written form."""
    return msgspec.json.decode(msgspec.json.encode(documents), type=tuple[Told, ...])
