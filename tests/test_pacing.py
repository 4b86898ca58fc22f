"""How soon outages are told on a node where no network device tells of them."""

from pathlib import Path
from typing import Any

import pytest

from fabricmon.model import IncidentState
from fabricmon.replaying import Replay
from tests import traces
from tests.sources.mlx5_node import mlx5_node
from tests.stories import FIRST, UPTIME, file, goes_down

Json = dict[str, Any]

MOMENTS = (600.0, 600.05, 602.5, 604.99)
"""When it happens: on a poll, right after one, between two, right before one."""

COUNTED: Json = {file(FIRST, "counters/link_downed"): "1\n"}
BACK: Json = {
    file(FIRST, "state"): "4: ACTIVE\n",
    file(FIRST, "phys_state"): "5: LinkUp\n",
}


def told(folder: Path, at: float, *events: tuple[float, Json]) -> dict[str, float]:
    """Return after how many seconds each kind of finding opened, on two HCAs."""
    host = mlx5_node(2, netdevs=False)
    host.put("/proc/uptime", UPTIME)
    changes = [{"t": at + later, "set": files} for later, files in events]
    lines = [host.record(), *changes, {"t": at + 60}]
    run = Replay(traces.write(folder, lines))
    return {
        change.incident.finding.kind: change.t - at
        for change in run.changes()
        if change.t >= at and change.incident.state is IncidentState.OPEN
    }


@pytest.mark.parametrize("at", MOMENTS)
def test_a_flap_of_a_tenth_of_a_second(tmp_path: Path, at: float) -> None:
    """No poll of state sees it; the counter is read once a second."""
    down: Json = goes_down(FIRST)["set"] | COUNTED
    found = told(tmp_path, at, (0, down), (0.1, BACK))
    assert set(found) == {"port_flap"}
    assert found["port_flap"] <= 2


@pytest.mark.parametrize("at", MOMENTS)
@pytest.mark.parametrize("counter", [COUNTED, {}], ids=["counted", "not counted"])
def test_an_outage_that_lasts(tmp_path: Path, at: float, counter: Json) -> None:
    """It is told within 15 s, also where the counter rises only with the next link."""
    found = told(tmp_path, at, (0, goes_down(FIRST)["set"] | counter))
    assert found["port_down"] <= 15
