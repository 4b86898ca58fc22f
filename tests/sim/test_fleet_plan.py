"""The fleet as faults see it: names, ports, leafs, peers."""

import pytest

from fabricmon.sim.effects import SimPort
from fabricmon.sim.plan import FleetPlan
from fabricmon.sim.planning import Plan
from fabricmon.sim.profiles import PROFILES
from fabricmon.sim.scenario import JobPlan, Scenario


def plan(**keys: object) -> FleetPlan:
    """Return the plan of a fleet of 40 nodes."""
    usual: dict[str, object] = {"nodes": 40, "nodes_per_leaf": 16}
    return FleetPlan(Scenario(name="x", summary="", **(usual | keys)), 1)  # type: ignore[arg-type]


def test_plan_is_what_faults_ask_for() -> None:
    """It has every part of the protocol."""
    made: Plan = plan()
    assert made.rails == 8
    assert made.line_rate_gbps == 400
    assert made.is_infiniband
    assert not made.has_cnp


@pytest.mark.parametrize(
    ("profile", "rails", "gbps", "infiniband", "cnp"),
    [
        ("H100-IB-NDR-8x400", 8, 400, True, False),
        ("H100-RoCE-8x400-DCQCN", 8, 400, False, True),
        ("RoCE-8x400-PFC-only", 8, 400, False, False),
        ("A100-HDR-8x200", 8, 200, True, False),
        ("B300-multiplane", 32, 200, True, False),
        ("EFA", 16, 200, False, False),
    ],
)
def test_every_profile_is_described(
    profile: str,
    rails: int,
    gbps: float,
    *,
    infiniband: bool,
    cnp: bool,
) -> None:
    """Number and rate of rails, and how its fabric tells of congestion."""
    made = plan(profile=profile)
    found = (made.rails, made.line_rate_gbps, made.is_infiniband, made.has_cnp)
    assert found == (rails, gbps, infiniband, cnp)
    assert set(PROFILES) >= {profile}


def test_planes_use_four_of_twelve_ports() -> None:
    """Ports 3, 6, 9 and 12 carry data; the others never had a cable."""
    made = plan(profile="B300-multiplane")
    ports = [made.rail(0, rail) for rail in range(5)]
    assert ports[:4] == [SimPort(0, "mlx5_0", port) for port in (3, 6, 9, 12)]
    assert ports[4] == SimPort(0, "mlx5_1", 3)
    assert len(made.unused(0)) == 64


def test_rails_have_leafs_of_their_own() -> None:
    """The same rail of a group of nodes goes to one leaf."""
    made = plan()
    leaf = made.leaf(made.rail(17, 3))
    assert made.ports_of_leaf(leaf) == tuple(made.rail(n, 3) for n in range(16, 32))
    assert made.leaf(made.rail(0, 3)) != leaf
    assert made.leaf(made.rail(17, 4)) != leaf
    assert made.ports_of_leaf("nowhere") == ()


def test_peers_are_the_neighbours_in_the_ring() -> None:
    """Of all-to-all, everyone; of a port without a job, nobody."""
    job = JobPlan(nodes=(0, 4, 8, 12))
    made = plan(jobs=(job,))
    assert [port.node for port in made.peers(made.rail(4, 2))] == [0, 8]
    assert [port.node for port in made.peers(made.rail(0, 2))] == [12, 4]
    assert made.peers(made.rail(1, 2)) == ()
    assert made.peers(made.storage(4)[0]) == ()
    spread = plan(jobs=(JobPlan(nodes=(0, 4, 8), pattern="all_to_all"),))
    assert [port.node for port in spread.peers(spread.rail(4, 2))] == [0, 8]


def test_rate_texts_are_those_of_the_kernel() -> None:
    """Half of the lanes, or a slower lane, of the whole rate."""
    made = plan()
    port = made.rail(0, 0)
    assert made.rate_text(port) == "400 Gb/sec (4X NDR)"
    assert made.rate_text(port, 0.5) == "200 Gb/sec (2X NDR)"
    assert made.rate_text(port, 0.25) == "100 Gb/sec (1X NDR)"
    planes = plan(profile="B300-multiplane")
    assert planes.rate_text(planes.rail(0, 0)) == "200 Gb/sec (1X XDR)"
    assert planes.rate_text(planes.rail(0, 0), 0.5) == "100 Gb/sec (1X NDR)"


def test_names_and_addresses_are_unique() -> None:
    """Of nodes, network devices and PCI functions."""
    made = plan()
    ports = made.ports(0)
    netdevs = [made.netdev(port) for port in ports]
    assert len(set(netdevs)) == len(netdevs)
    assert len({made.pci_address(port) for port in ports}) == len(ports)
    assert len({made.address(node) for node in range(40)}) == 40
    assert made.rack(9) == tuple(range(8, 16))
