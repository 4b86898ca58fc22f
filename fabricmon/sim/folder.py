"""Write a simulated fleet to a folder: who there is, what is true, a trace a node.

Traces are made in several processes where that helps; the bytes are the same whatever
their number, because each node has its own random numbers.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path

import msgspec

from fabricmon.host.trace_write import TraceWriter
from fabricmon.sim.node import NodePlay
from fabricmon.sim.staging import Stage

TRACE_SUFFIX = ".trace.jsonl.gz"
FLEET = "fleet.json"
TRUTH = "truth.json"
BAR = 40
"""Characters of the progress bar."""

_OWN = re.compile(r"node[0-9]{3,}" + re.escape(TRACE_SUFFIX))
"""Names of the traces that a fleet may have, as `FleetPlan.node_name` has them."""


def write_fleet(
    stage: Stage, folder: Path, jobs: int = 1, *, show: bool = True
) -> None:
    """Write a fleet folder; ``jobs`` is the number of processes.

    Traces of nodes that this fleet does not have, left by a larger one, are removed.

    Raises:
        OSError: The folder cannot be written to.
    """
    folder.mkdir(parents=True, exist_ok=True)
    _write_json(folder / FLEET, stage.fleet)
    _write_json(folder / TRUTH, stage.truth)
    _remove_others(stage, folder)
    nodes = range(stage.plan.nodes)
    with _progress(len(nodes), show=show) as done:
        if jobs == 1 or len(nodes) == 1:
            for node in nodes:
                write_node(stage, node, folder)
                done()
            return
        _write_in_processes(stage, folder, jobs, done)


def write_node(stage: Stage, node: int, folder: Path) -> Path:
    """Write the trace of one node and return where it is."""
    play = NodePlay(stage, node)
    path = folder / f"{stage.plan.node_name(node)}{TRACE_SUFFIX}"
    with TraceWriter(path, play.header) as writer:
        for record in play.records():
            writer.write(record)
    return path


def _write_in_processes(
    stage: Stage, folder: Path, jobs: int, done: Callable[[], None]
) -> None:
    nodes = range(stage.plan.nodes)
    workers = min(jobs, len(nodes))
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        work = [pool.submit(write_node, stage, node, folder) for node in nodes]
        try:
            for each in as_completed(work):
                each.result()
                done()
        except BaseException:
            for each in work:
                each.cancel()
            raise


def _remove_others(stage: Stage, folder: Path) -> None:
    names = (stage.plan.node_name(node) for node in range(stage.plan.nodes))
    listed = {f"{name}{TRACE_SUFFIX}" for name in names}
    for path in folder.iterdir():
        if _OWN.fullmatch(path.name) and path.name not in listed:
            path.unlink()


def _write_json(path: Path, document: msgspec.Struct) -> None:
    text = msgspec.json.format(msgspec.json.encode(document), indent=1)
    path.write_bytes(text + b"\n")


@contextmanager
def _progress(nodes: int, *, show: bool) -> Iterator[Callable[[], None]]:
    """Show a bar on the terminal; each call moves it by one node."""
    count = 0
    visible = show and sys.stderr.isatty()

    def draw() -> None:
        full = BAR * count // nodes
        bar = "#" * full + "." * (BAR - full)
        sys.stderr.write(f"\r[{bar}] {count}/{nodes} nodes")
        sys.stderr.flush()

    def done() -> None:
        nonlocal count
        count += 1
        if visible:
            draw()

    if visible:
        draw()
    try:
        yield done
    finally:
        if visible:
            sys.stderr.write("\n")
