"""A fleet's folder played with scrapes: what its nodes found, and what they exported."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from fabricmon.config_load import Loaded
from fabricmon.fleet.engine import Fleet
from fabricmon.fleet.scraping import (
    NodeMetrics,
    Scraper,
    Scraping,
    write_openmetrics,
)
from fabricmon.host.trace_read import TraceReader
from fabricmon.model import PortPlace
from fabricmon.replaying_fleet import (
    NodeResult,
    Progress,
    do_all,
    leaf_places,
    replay_node,
)
from fabricmon.sim.score_files import trace_paths
from fabricmon.sim.truth import FleetFile


@dataclass(frozen=True, slots=True)
class NodeTrace:
    """A node of a fleet: its name, its trace, where its ports are."""

    name: str
    trace: Path
    places: tuple[PortPlace, ...] = ()


@dataclass(frozen=True, slots=True)
class Player:
    """Plays nodes and has them scraped; their metrics are put into ``folder``."""

    folder: Path
    scraping: Scraping
    loaded: Loaded | None = None

    def play(self, node: NodeTrace) -> PlayedNode:
        """Play one node; raises `TraceError` where its header cannot be used."""
        reader = TraceReader(node.trace)
        start = reader.header.start
        reader.close()
        scraper = Scraper(node.name, start, self.scraping)
        result = replay_node(node.trace, self.loaded, node.places, scraper)
        metrics = scraper.write(self.folder / f"{node.name}.metrics")
        return PlayedNode(result, metrics, start, start + result.seconds)


@dataclass(frozen=True, slots=True)
class PlayedNode:
    """What one trace gave; begin and end in Unix seconds by the trace's start."""

    result: NodeResult
    metrics: NodeMetrics
    begin: float
    end: float


def node_traces(folder: Path, fleet: FleetFile) -> tuple[NodeTrace, ...]:
    """Return the nodes of a fleet's folder; raises `ParseError` where one is absent."""
    places = leaf_places(fleet)
    return tuple(
        NodeTrace(node, trace, places.get(node, ()))
        for node, trace in zip(fleet.nodes, trace_paths(folder, fleet), strict=True)
    )


def play_all(
    player: Player,
    nodes: Sequence[NodeTrace],
    *,
    jobs: int = 1,
    progress: Progress = lambda _done, _total: None,
) -> tuple[PlayedNode, ...]:
    """Play nodes on several processors; results in their order."""
    work = [partial(player.play, node) for node in nodes]
    return do_all(work, jobs=jobs, progress=progress)


def join_nodes(played: Sequence[PlayedNode], cluster: str, text: Path) -> Fleet:
    """Write the metrics of a fleet to one file, and remove those of its nodes."""
    write_openmetrics([each.metrics for each in played], text)
    for each in played:
        each.metrics.path.unlink(missing_ok=True)
    return Fleet(
        cluster=cluster,
        samples=text,
        begin=min(each.begin for each in played),
        end=max(each.end for each in played),
    )
