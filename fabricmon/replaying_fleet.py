"""Every node of a recorded or simulated fleet through the agent, several at a time.

Nodes are played one after the other, each to its end, so that a fleet of a thousand
needs no thousand open files; what they found is put in order of time afterwards.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from functools import partial
from itertools import repeat
from multiprocessing import get_context
from operator import attrgetter
from pathlib import Path
from typing import TypeVar

from fabricmon.config_load import Loaded
from fabricmon.finding_document import FindingDocument, finding_document
from fabricmon.host.trace import TraceProblem
from fabricmon.model import PortPlace
from fabricmon.replaying import Replay, Watcher
from fabricmon.sim.truth import FleetFile

_T = TypeVar("_T")

Progress = Callable[[int, int], None]
"""Is told how many nodes are done, and of how many."""


@dataclass(frozen=True, slots=True)
class Found:
    """A finding of a node; ``at`` is Unix seconds by the clock of the traces."""

    at: float
    document: FindingDocument


@dataclass(frozen=True, slots=True)
class NodeResult:
    """What one trace gave, in order of time, and what in it could not be used."""

    found: tuple[Found, ...]
    problems: tuple[TraceProblem, ...]
    seconds: float


def replay_node(
    trace: Path,
    loaded: Loaded | None = None,
    places: Sequence[PortPlace] = (),
    watcher: Watcher | None = None,
) -> NodeResult:
    """Play one trace; raises `TraceError` where its header cannot be used.

    ``places`` are those of its ports, where the trace has no topology.
    """
    replay = Replay(trace, loaded, places, watcher)
    try:
        found = tuple(
            Found(change.at, finding_document(change.incident, change.t))
            for change in replay.changes()
        )
        return NodeResult(found, replay.problems, replay.host.monotonic())
    finally:
        replay.host.close()


def leaf_places(fleet: FleetFile) -> dict[str, tuple[PortPlace, ...]]:
    """Return the places of ports by node, as the fleet's folder knows its leafs."""
    found: dict[str, list[PortPlace]] = {}
    for leaf, ports in fleet.leafs.items():
        for each in ports:
            place = PortPlace(f"{each.device}/{each.port}", leaf=leaf)
            found.setdefault(each.node, []).append(place)
    return {node: tuple(places) for node, places in found.items()}


def replay_fleet(
    traces: Sequence[Path],
    loaded: Loaded | None = None,
    places: Iterable[Sequence[PortPlace]] = repeat(()),
    *,
    jobs: int = 1,
    progress: Progress = lambda _done, _total: None,
) -> tuple[NodeResult, ...]:
    """Play traces on ``jobs`` processors; results in the order of the traces.

    ``places`` are those of each node's ports. Raises `TraceError` for the first trace
    whose header cannot be used.
    """
    work = [
        partial(replay_node, trace, loaded, known)
        for trace, known in zip(traces, places, strict=False)
    ]
    return do_all(work, jobs=jobs, progress=progress)


def do_all(
    work: Sequence[Callable[[], _T]],
    *,
    jobs: int = 1,
    progress: Progress = lambda _done, _total: None,
) -> tuple[_T, ...]:
    """Do something for each node on ``jobs`` processors; results in that order."""
    if min(jobs, len(work)) <= 1:
        results = []
        for each in work:
            results.append(each())
            progress(len(results), len(work))
        return tuple(results)
    # Not forked: whoever calls may have threads.
    context = get_context("spawn")
    with ProcessPoolExecutor(min(jobs, len(work)), mp_context=context) as pool:
        futures = [pool.submit(each) for each in work]
        try:
            for done, _ in enumerate(as_completed(futures), 1):
                progress(done, len(work))
            return tuple(future.result() for future in futures)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def in_order(results: Sequence[NodeResult]) -> Iterator[FindingDocument]:
    """Merge what several nodes found, in order of time."""
    merged = heapq.merge(*(each.found for each in results), key=attrgetter("at"))
    return (found.document for found in merged)
