"""What several share on a node: windows of maintenance, logs of jobs, one bus."""

from __future__ import annotations

import json
from typing import Any

import pytest

from fabricmon.host.replay import ReplayHost
from fabricmon.sim.effects import Effect, LogLines, Maintenance, SimPort, Step
from fabricmon.sim.host import simulated_host
from fabricmon.sim.meters import Meter
from tests.sim import fleets

NODE = 1
PORT = SimPort(NODE, "mlx5_4")
ROCE = "H100-RoCE-8x400-DCQCN"


def host(*effects: Effect, **keys: Any) -> ReplayHost:
    """Return a node of a small fleet with these effects."""
    return simulated_host(fleets.stage(*effects, **keys), NODE)


def test_windows_lie_over_each_other() -> None:
    """The second does not end with the first, nor take its place."""
    other = SimPort(NODE, "mlx5_5")
    played = host(
        Maintenance(NODE, 50.0, 100.0, (PORT,)),
        Maintenance(NODE, 70.0, 150.0, (other,)),
    )

    def ports(t: float) -> list[str]:
        played.advance(t)
        text = fleets.text(played, "/run/fabricmon/maintenance.json")
        return [name for window in json.loads(text) for name in window["ports"]]

    assert ports(60.0) == ["mlx5_4/1"]
    assert ports(80.0) == ["mlx5_4/1", "mlx5_5/1"]
    assert ports(110.0) == ["mlx5_5/1"]
    played.advance(151.0)
    assert fleets.text(played, "/run/fabricmon/maintenance.json") == "ENOENT"


def test_lines_go_to_the_log_of_their_job() -> None:
    """Two jobs share the node by rails; each has its own log."""
    jobs = tuple(
        fleets.steady_job(id=name, rails=rails)
        for name, rails in (("a", (0, 1)), ("b", (2, 3)))
    )
    played = host(LogLines(NODE, 50.0, "hello\n", "b"), jobs=jobs)
    played.advance(60.0)
    assert "hello" not in fleets.text(played, "/var/log/nccl/a.log")
    assert "hello" in fleets.text(played, "/var/log/nccl/b.log")


@pytest.mark.parametrize(("profile", "port"), [(ROCE, 1), ("B300-multiplane", 6)])
def test_a_device_counts_errors_of_its_bus_once(profile: str, port: int) -> None:
    """Whichever of its ports they are put down to, and although the first is unused."""
    plane = SimPort(NODE, "mlx5_4", port)
    played = host(Step(plane, Meter.AER_CORRECTABLE, 50.0, 7), profile=profile, nodes=2)
    played.advance(60.0)
    path = f"/sys/class/infiniband/{plane.device}/device/aer_dev_correctable"
    assert "TOTAL_ERR_COR 7" in fleets.text(played, path)
