"""Snapshots of recorded trees, made by the pipeline of the agent."""

from pathlib import Path
from typing import Any

from fabricmon.config_load import build
from fabricmon.model import Snapshot
from fabricmon.replaying import Replay
from tests import traces
from tests.manifest import SYSFS


def of_tree(
    name: str,
    folder: Path,
    seconds: float = 90.0,
    config: dict[str, Any] | None = None,
) -> Snapshot:
    """Return the last snapshot of an agent that watched a recorded tree."""
    record = traces.of_manifest(SYSFS / f"{name}.manifest")
    tree = {
        "t": 0, "dir": record.dir, "link": record.link, "err": record.err,
        "set": record.set,
    }  # fmt: skip
    loaded = None if config is None else build(config, (), ())
    replay = Replay(traces.write(folder, [tree, {"t": seconds}]), loaded)
    list(replay.changes())
    return replay.pipeline.snapshot
