"""How fast a fleet is simulated, and a simulated node replayed: 64 nodes, 30 minutes.

Wall time with a process for each core, octets of a trace, CPU seconds of a node, and
how much faster than real time the agent replays it.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from fabricmon.replaying import Replay
from fabricmon.sim.folder import write_fleet, write_node
from fabricmon.sim.profiles import PROFILES
from fabricmon.sim.scenario import Scenario
from fabricmon.sim.staging import Stage

NODES = int(os.environ.get("NODES", "64"))
SECONDS = 1800.0
MOST_MEGABYTES = 1.0
"""Octets of a trace of half an hour; devices with planes have four times the ports."""


def main() -> None:
    """Measure and print."""
    cores = os.cpu_count() or 1
    with tempfile.TemporaryDirectory() as folder:
        fleet = Stage(Scenario(name="bench", summary="", nodes=NODES, duration=SECONDS))
        begun = time.perf_counter()
        write_fleet(fleet, Path(folder) / "fleet", cores)
        spent = time.perf_counter() - begun
        print(f"{NODES} nodes, {SECONDS:g} s, {cores} processes: {spent:.1f} s")
        for profile in PROFILES:
            one_node(profile, Path(folder))


def one_node(profile: str, folder: Path) -> None:
    """Simulate and replay one node of a profile."""
    scenario = Scenario(
        name="bench", summary="", profile=profile, nodes=4, duration=SECONDS
    )
    begun = time.process_time()
    path = write_node(Stage(scenario), 1, folder)
    simulated = time.process_time() - begun
    size = path.stat().st_size / 1e6
    begun = time.process_time()
    replay = Replay(path)
    found = sum(1 for _ in replay.changes())
    replayed = time.process_time() - begun
    print(
        f"{profile:22} {simulated:5.2f} s, {size:5.2f} MB, replayed "
        f"{SECONDS / replayed:6.0f} times as fast as it was, {found} changes"
    )
    ports = len(replay.pipeline.snapshot.ports)
    assert size < MOST_MEGABYTES * max(1.0, ports / 24)


if __name__ == "__main__":
    main()
