"""Congestion as each fabric tells of it: credits, ECN and notices, or pause alone."""

import pytest

from fabricmon.host.protocol import ReadError
from fabricmon.sim.effects import Capacity
from fabricmon.sim.host import simulated_host
from tests.sim import fleets

DCQCN, PFC = "H100-RoCE-8x400-DCQCN", "RoCE-8x400-PFC-only"
SLOW, UPSTREAM, DOWNSTREAM, FAR = 2, 1, 3, 0
RAIL = 3
T = 120.0


def counted(profile: str, node: int, *, noise: float = 0.0) -> dict[str, int]:
    """Return what a port of the rail has counted whose third node receives slowly."""
    plan = fleets.stage(profile=profile).plan
    slow = Capacity(plan.rail(SLOW, RAIL), 0.0, 1e9, 0.5, transmit=False)
    made = fleets.stage(
        *((slow,) if not noise else ()),
        profile=profile,
        noise=noise,
        jobs=(fleets.steady_job(),),
    )
    host = simulated_host(made, node)
    host.advance(T)
    port = plan.rail(node, RAIL)
    statistics = host.statistics(plan.netdev(port))
    assert not isinstance(statistics, ReadError)
    found = {each.name: each.value for each in statistics}
    for name in ("np_cnp_sent", "rp_cnp_handled", "np_ecn_marked_roce_packets"):
        found[name] = fleets.number(host, fleets.path(port, f"hw_counters/{name}"))
    return found


def test_dcqcn_notifies_the_sender() -> None:
    """The slow receiver sends notices, its upstream handles them and pauses little."""
    slow, upstream = counted(DCQCN, SLOW), counted(DCQCN, UPSTREAM)
    assert slow["np_cnp_sent"] > 10_000
    assert slow["np_ecn_marked_roce_packets"] > slow["np_cnp_sent"]
    assert upstream["rp_cnp_handled"] > 10_000
    assert 0 < upstream["rx_prio3_pause_duration"] < 0.05 * T * 1e6
    assert upstream["np_cnp_sent"] == slow["rp_cnp_handled"] == 0


def test_pfc_alone_pauses_the_sender() -> None:
    """Half of the time while it sends, and no notice anywhere."""
    slow, upstream = counted(PFC, SLOW), counted(PFC, UPSTREAM)
    # It sends for half of each step, and half of that it is held.
    share = upstream["rx_prio3_pause_duration"] / (T * 1e6)
    assert share == pytest.approx(0.25, abs=0.04)
    assert upstream["rx_prio3_pause"] > 100_000
    assert slow["np_cnp_sent"] == upstream["rp_cnp_handled"] == 0


@pytest.mark.parametrize("profile", [DCQCN, PFC])
@pytest.mark.parametrize("node", [DOWNSTREAM, FAR])
def test_nobody_else_is_held_up(profile: str, node: int) -> None:
    """The others of the ring have nothing to send meanwhile."""
    other = counted(profile, node)
    assert other["rx_prio3_pause"] == other["rp_cnp_handled"] == 0
    assert other["np_cnp_sent"] == other["tx_prio3_pause"] == 0


def test_healthy_life_is_as_its_fabric_has_it() -> None:
    """Notices in bursts with DCQCN; without it none, but more pause."""
    quick, plain = counted(DCQCN, 0, noise=1.0), counted(PFC, 0, noise=1.0)
    assert quick["np_cnp_sent"] > 0
    assert plain["np_cnp_sent"] == 0
    assert plain["rx_prio3_pause"] > 1000
    for found in (quick, plain):
        assert found["rx_prio3_pause_duration"] < 0.05 * T * 1e6
        assert found["tx_prio3_pause"] == 0
