"""Small fleet folders, made by hand, with and without a truth."""

from __future__ import annotations

from pathlib import Path

import msgspec

from fabricmon.sim.truth import FleetFile, FleetJob, Truth
from tests import stories
from tests.sim.scoring import fault, truth
from tests.stories import FIRST, SECOND, goes_down

NODES = ("node01", "node02")
FLEET = FleetFile(
    nodes=NODES, jobs=(FleetJob(id="train", nodes=NODES, start=0, end=300),)
)
TRUTH = truth(
    fault(node="node01", device=FIRST, onset=30, end=120),
    fault(node="node02", device=SECOND, onset=45),
    duration=300,
)


def folder(path: Path, what: Truth | None = TRUTH) -> Path:
    """Write two nodes, each with a port that goes down, and what is true of them."""
    path.mkdir(parents=True)
    for number, (node, device) in enumerate(zip(NODES, (FIRST, SECOND), strict=True)):
        made = stories.trace(
            path / "made",
            (30 + 15 * number, goes_down(device)),
            end=300,
            header={"node": node},
        )
        made.rename(path / f"{node}.trace.jsonl")
    (path / "fleet.json").write_bytes(msgspec.json.encode(FLEET))
    if what is not None:
        (path / "truth.json").write_bytes(msgspec.json.encode(what))
    return path
