"""What a node of eight ports costs its devices, in firmware commands a second."""

from pathlib import Path

import pytest

from fabricmon.config import Config
from fabricmon.model import Target
from fabricmon.registry import SOURCES
from fabricmon.replaying import Replay
from fabricmon.sources.protocol import Scope
from tests import traces
from tests.sources.mlx5_node import mlx5_node
from tests.sources.polls import hca_of

HCAS = 8
BUDGET = 40.0
HOUR = 3600


def reads_per_second(*, netdevs: bool) -> dict[str, float]:
    """Poll each source once on every device and divide by its period."""
    host = mlx5_node(HCAS, netdevs=netdevs)
    config = Config()
    hcas = [hca_of(host, f"mlx5_{number}") for number in range(HCAS)]
    found = {}
    for source in SOURCES:
        before = host.firmware_reads
        on_each = [Target(hca.name, hca) for hca in hcas]
        for target in [Target()] if source.scope is Scope.NODE else on_each:
            source.poll(host, target, config)
        period = source.period(config.periods)
        if source.name == "outages" and netdevs:
            period = config.periods.errors_seconds
        if source.name == "burst":
            period = config.bursts.every_seconds  # an idle port is looked at once
        found[source.name] = (host.firmware_reads - before) / period
    return found


def test_at_rest_within_the_budget() -> None:
    """With network devices up, defaults stay below 40 commands a second."""
    cost = sum(reads_per_second(netdevs=True).values())
    assert cost == pytest.approx(33.2, abs=0.01)
    assert cost <= BUDGET


def test_where_nothing_tells_of_link_changes() -> None:
    """Without network devices only the counter of outages is read every second."""
    cost = reads_per_second(netdevs=False)
    assert cost["outages"] == HCAS
    assert sum(cost.values()) == pytest.approx(39.6, abs=0.01)
    assert sum(cost.values()) <= BUDGET


@pytest.mark.parametrize(
    ("netdevs", "tells_links"), [(True, True), (True, False), (False, True)]
)
def test_an_hour(tmp_path: Path, *, netdevs: bool, tells_links: bool) -> None:
    """The agent itself keeps to it, its first look at the node included."""
    beginning = mlx5_node(HCAS, netdevs=netdevs).record()
    header = traces.HEADER | {"tells_links": tells_links}
    run = Replay(traces.write(tmp_path, [beginning, {"t": HOUR}], header))
    kinds = {change.incident.finding.kind for change in run.changes()}
    assert kinds == {"counter_saturated"}
    assert 30 * HOUR < run.host.firmware_reads <= BUDGET * HOUR


def test_free_sources_are_free() -> None:
    """Identity, network devices, PCIe and the node never reach firmware."""
    cost = reads_per_second(netdevs=True)
    dear = {"state", "link_detail", "outages", "errors", "traffic", "hardware"}
    dear.add("burst")
    assert {name for name, reads in cost.items() if reads} == dear
