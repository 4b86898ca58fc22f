"""Trials whose nodes are scraped, and what the rules of the fleet are worth in them.

Many fleets share an engine: it is started once for a batch, and the cluster label
tells them apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from fabricmon.fleet.concluding import Conclusion, Site, conclude
from fabricmon.fleet.engine import Fleet
from fabricmon.fleet.playing import NodeTrace, PlayedNode, Player, join_nodes
from fabricmon.fleet.programs import Programs, create_blocks
from fabricmon.model import PortPlace
from fabricmon.replaying_fleet import NodeResult
from fabricmon.sim.scenario import Scenario
from fabricmon.sim.score import RunScore, score
from fabricmon.sim.staging import Stage
from fabricmon.sim.truth import FleetFile, Truth
from fabricmon.trial import Trial, run_trial, told

JUDGE = "fabricmon fleet"
STRICT = "fabricmon fleet, no allowance"

SCENE_FILE = "scene.json"
BLOCKS = "blocks"


class Scene(Struct, frozen=True, kw_only=True):
    """A fleet that was played and scraped; begin and end in Unix seconds."""

    cluster: str
    truth: Truth
    fleet: FleetFile
    begin: float
    end: float


class FleetScore(Struct, frozen=True, kw_only=True):
    """What the rules were worth in one run, by judge, and how long a batch took.

    ``seconds`` is the share of this run in the time of its batch.
    """

    scores: dict[str, RunScore]
    seconds: float = 0.0


def allowance_seconds(site: Site) -> float:
    """Return how much later than an agent a person can hear of a fault.

    A node's truth counts from when its signature is complete on the node. It is seen
    at the next scrape, judged at the next evaluation, and told when the group has
    waited: nobody who asks a Prometheus can be faster in the worst case.
    """
    rhythm, wait = site.rhythm, site.grouping.wait_seconds
    return rhythm.scrape_seconds + rhythm.evaluation_seconds + wait


class ScrapedTrial:
    """Runs one trial and keeps what was scraped as blocks in a folder."""

    def __init__(self, site: Site, programs: Programs, folder: Path) -> None:
        """Keep metrics in ``folder``, which is made."""
        self._site = site
        self._programs = programs
        self._folder = folder
        self._played: list[PlayedNode] = []

    def run(
        self, scenario: Scenario, seed: int, work: Path, *, with_peers: bool
    ) -> Trial:
        """Run it, with traces and texts in ``work``; raises what `run_trial` does."""
        cluster = self._folder.name
        player = Player(work, self._site.scraping(cluster))

        def play(node: str, trace: Path, places: Sequence[PortPlace]) -> NodeResult:
            self._played.append(player.play(NodeTrace(node, trace, tuple(places))))
            return self._played[-1].result

        trial = run_trial(scenario, seed, work, with_peers=with_peers, play=play)
        self._keep(scenario, seed, join_nodes(self._played, cluster, work / "om"))
        return trial

    def _keep(self, scenario: Scenario, seed: int, played: Fleet) -> None:
        blocks = self._folder / BLOCKS
        blocks.mkdir(parents=True, exist_ok=True)
        create_blocks(self._programs, played.samples, blocks)
        played.samples.unlink()
        stage = Stage(scenario, seed)
        scene = Scene(
            cluster=played.cluster,
            truth=stage.truth,
            fleet=stage.fleet,
            begin=played.begin,
            end=played.end,
        )
        (self._folder / SCENE_FILE).write_bytes(msgspec.json.encode(scene))


def read_scene(folder: Path) -> Scene:
    """Read what a `ScrapedTrial` kept; raises `OSError`, `msgspec.DecodeError`."""
    return msgspec.json.decode((folder / SCENE_FILE).read_bytes(), type=Scene)


def conclude_scenes(
    site: Site, folders: Sequence[Path], programs: Programs
) -> tuple[Conclusion, ...]:
    """Evaluate the rules over kept trials at once; raises `HostError`, `OSError`."""
    fleets = []
    for folder in folders:
        scene = read_scene(folder)
        fleet = Fleet(scene.cluster, folder / BLOCKS, scene.begin, scene.end)
        fleets.append(fleet)
    return conclude(site, fleets, programs)


def score_scene(site: Site, scene: Scene, conclusion: Conclusion) -> FleetScore:
    """Return what people heard is worth, with the allowance and without."""
    heard = told([each.document for each in conclusion.told])
    later = allowed(scene.truth, allowance_seconds(site))
    return FleetScore(
        scores={
            JUDGE: score(later, scene.fleet, heard),
            STRICT: score(scene.truth, scene.fleet, heard),
        }
    )


def allowed(truth: Truth, seconds: float) -> Truth:
    """Return the truth with so much more time for each answer."""
    faults = (
        msgspec.structs.replace(fault, deadline=fault.deadline + seconds)
        for fault in truth.faults
    )
    return msgspec.structs.replace(truth, faults=tuple(faults))
