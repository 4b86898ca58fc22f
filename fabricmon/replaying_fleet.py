"""Every node of a recorded or simulated fleet through the agent, several at a time.

Nodes are played one after the other, each to its end, so that a fleet of a thousand
needs no thousand open files; what they found is put in order of time afterwards.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing import get_context
from operator import attrgetter
from pathlib import Path

from fabricmon.config_load import Loaded
from fabricmon.finding_document import FindingDocument, finding_document
from fabricmon.host.trace import TraceProblem
from fabricmon.replaying import Replay

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


def replay_node(trace: Path, loaded: Loaded | None = None) -> NodeResult:
    """Play one trace; raises `TraceError` where its header cannot be used."""
    replay = Replay(trace, loaded)
    try:
        found = tuple(
            Found(change.at, finding_document(change.incident, change.t))
            for change in replay.changes()
        )
        return NodeResult(found, replay.problems, replay.host.monotonic())
    finally:
        replay.host.close()


def replay_fleet(
    traces: Sequence[Path],
    loaded: Loaded | None = None,
    *,
    jobs: int = 1,
    progress: Progress = lambda _done, _total: None,
) -> tuple[NodeResult, ...]:
    """Play traces on ``jobs`` processors; results in the order of the traces.

    Raises `TraceError` for the first whose header cannot be used.
    """
    if min(jobs, len(traces)) <= 1:
        results = []
        for trace in traces:
            results.append(replay_node(trace, loaded))
            progress(len(results), len(traces))
        return tuple(results)
    # Not forked: whoever calls may have threads.
    context = get_context("spawn")
    with ProcessPoolExecutor(min(jobs, len(traces)), mp_context=context) as pool:
        futures = [pool.submit(replay_node, trace, loaded) for trace in traces]
        try:
            for done, _ in enumerate(as_completed(futures), 1):
                progress(done, len(traces))
            return tuple(future.result() for future in futures)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def in_order(results: Sequence[NodeResult]) -> Iterator[FindingDocument]:
    """Merge what several nodes found, in order of time."""
    merged = heapq.merge(*(each.found for each in results), key=attrgetter("at"))
    return (found.document for found in merged)
