"""Snapshots of recorded trees, made by the pipeline of the agent."""

from pathlib import Path

from fabricmon.model import Snapshot
from fabricmon.replaying import Replay
from tests import traces
from tests.manifest import SYSFS


def of_tree(name: str, folder: Path, seconds: float = 90.0) -> Snapshot:
    """Return the last snapshot of an agent that watched a recorded tree."""
    record = traces.of_manifest(SYSFS / f"{name}.manifest")
    tree = {
        "t": 0, "dir": record.dir, "link": record.link, "err": record.err,
        "set": record.set,
    }  # fmt: skip
    replay = Replay(traces.write(folder, [tree, {"t": seconds}]))
    list(replay.changes())
    return replay.pipeline.snapshot
