"""What a node of eight ports costs its devices, in firmware commands a second."""

import pytest

from fabricmon.config import Config
from fabricmon.model import Target
from fabricmon.registry import SOURCES
from fabricmon.sources.protocol import Scope
from tests.sources.mlx5_node import mlx5_node
from tests.sources.polls import hca_of

HCAS = 8
BUDGET = 40.0


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
        if source.name == "state" and not netdevs:
            period = config.periods.state_without_netdev_seconds
        found[source.name] = (host.firmware_reads - before) / period
    return found


def test_at_rest_within_the_budget() -> None:
    """With network devices up, defaults stay below 40 commands a second."""
    assert sum(reads_per_second(netdevs=True).values()) == pytest.approx(
        36.93, abs=0.01
    )
    assert sum(reads_per_second(netdevs=True).values()) <= BUDGET


def test_where_nothing_tells_of_link_changes() -> None:
    """Without network devices it is the state, read every second, that costs."""
    cost = reads_per_second(netdevs=False)
    assert cost["state"] == 5 * HCAS
    assert sum(cost.values()) - cost["state"] <= BUDGET


def test_free_sources_are_free() -> None:
    """Identity, network devices, PCIe and the node never reach firmware."""
    cost = reads_per_second(netdevs=True)
    dear = {"state", "link_detail", "errors", "traffic", "hardware"}
    assert {name for name, reads in cost.items() if reads} == dear
