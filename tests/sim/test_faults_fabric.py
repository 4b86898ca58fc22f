"""The network: congestion, pause, and faults that no node owns."""

import pytest

from fabricmon.sim.effects import (
    Bridged,
    Capacity,
    Counting,
    JobEnds,
    LogLines,
    Mute,
    OnPriority,
    Outage,
    PortText,
    Stall,
    Step,
)
from fabricmon.sim.meters import Meter
from tests.sim.injected import IB, PFC, ROCE, counted, fleet, injected, of, rate

SENT = {Meter.PAUSE_SENT, Meter.PAUSE_SENT_MICROSECONDS}
RECEIVED = {Meter.PAUSE_RECEIVED, Meter.PAUSE_RECEIVED_MICROSECONDS}


def test_incast_notifies_and_never_pauses() -> None:
    """The receiver takes its line rate: the network cannot absorb, the host can."""
    plan = fleet(ROCE)
    port = plan.rail(1, 2)
    made = injected("F30", plan, cnp=3000)
    assert rate(made, port, Meter.CNP_SENT) == 3000
    assert not counted(made, port) & SENT
    assert port not in {e.port for e in of(made, Capacity)}
    others = {e.port for e in of(made, Counting)} - {port}
    handled = sum(rate(made, each, Meter.CNP_HANDLED) for each in others)
    assert handled == pytest.approx(3000)


@pytest.mark.parametrize("profile", [IB, PFC])
def test_incast_has_no_notifications_where_there_are_none(profile: str) -> None:
    """The senders wait or are paused; any of the rail may say so."""
    made = injected("F30", fleet(profile))
    meters = {e.meter for e in of(made, Counting)}
    waits = Meter.TRANSMIT_WAIT if profile == IB else Meter.PAUSE_RECEIVED
    assert waits in meters
    assert not meters & {Meter.CNP_SENT, Meter.CNP_HANDLED}
    (truth,) = made.faults
    assert (truth.node, truth.rail) == (None, 2)


def test_collision_throttles_exactly_the_colliding_senders() -> None:
    """Two flows, two senders, no node at fault."""
    plan = fleet(ROCE)
    made = injected("F31", plan, flows=2)
    slow = {e.port for e in of(made, Capacity)}
    assert len(slow) == 2
    assert all(not e.receive for e in of(made, Capacity))
    throttled = {
        e.port for e in of(made, Counting) if e.meter is Meter.CNP_HANDLED
    }  # fmt: skip
    assert throttled == slow


@pytest.mark.parametrize("what", ["F32", "F33"])
def test_leaf_is_slow_as_a_whole(what: str) -> None:
    """Every port of the leaf, none beyond it."""
    plan = fleet(ROCE, nodes=4, leaf=2)
    leaf = plan.leaf(plan.rail(1, 2))
    made = injected(what, plan)
    assert {e.port for e in of(made, Capacity)} == set(plan.ports_of_leaf(leaf))
    (truth,) = made.faults
    assert (truth.node, truth.leaf, truth.rail) == (None, leaf, 2)


def test_storm_has_one_origin() -> None:
    """Exactly one port sends pause, near the most that can be; others receive it."""
    plan = fleet(ROCE)
    origin = plan.rail(1, 2)
    made = injected("F34", plan, share=1.0, length=60)
    assert {e.port for e in of(made, Counting) if e.meter in SENT} == {origin}
    assert rate(made, origin, Meter.PAUSE_SENT) == pytest.approx(11_921, rel=0.001)
    assert rate(made, origin, Meter.PAUSE_SENT_MICROSECONDS) == pytest.approx(1e6)
    held = {e.port for e in of(made, Counting) if e.meter in RECEIVED}
    assert held == {plan.rail(node, 2) for node in (0, 2, 3)}


def test_storm_spreads_from_the_leaf_outwards() -> None:
    """Ports of the leaf are held within half a second, those beyond it later."""
    plan = fleet(ROCE, nodes=4, leaf=2)
    made = injected("F34", plan, length=60)
    begins = {
        e.port.node: e.begin for e in of(made, Counting)
        if e.meter is Meter.PAUSE_RECEIVED
    }  # fmt: skip
    assert 300.01 <= begins[0] <= 300.5
    assert all(300.5 <= begins[node] <= 302 for node in (2, 3))


def test_long_storm_is_told_by_the_device() -> None:
    """A warning, then an error after eight seconds."""
    made = injected("F34", fleet(ROCE), length=60)
    said = {e.meter: e.at for e in of(made, Step)}
    assert said[Meter.PAUSE_STORM_ERRORS] == 308
    assert said[Meter.PAUSE_STORM_WARNINGS] < 308


def test_tree_has_no_sender() -> None:
    """All receive pause, nobody sends it."""
    plan = fleet(ROCE)
    made = injected("F35", plan)
    meters = {e.meter for e in of(made, Counting)}
    assert meters & RECEIVED
    assert not meters & SENT


def test_lossy_priority_drops_and_knows_no_pause() -> None:
    """All rails of the node; peers resend what it drops."""
    plan = fleet(ROCE)
    made = injected("F36", plan)
    assert len(of(made, OnPriority)) == 8
    assert {e.pfc_enabled for e in of(made, Bridged)} == {()}
    assert Meter.PAUSE_RECEIVED in {e.meter for e in of(made, Mute)}
    assert Meter.SEQUENCE_ERRORS in counted(made, plan.rail(2, 2))


def test_unmarked_leaf_has_pause_in_place_of_notifications() -> None:
    """Counters of notifications stand still there."""
    plan = fleet(ROCE, leaf=2)
    made = injected("F37", plan)
    muted = {e.port for e in of(made, Mute) if e.meter is Meter.CNP_SENT}
    assert muted == set(plan.ports_of_leaf(plan.leaf(plan.rail(1, 2))))


def test_spine_hits_several_leafs_and_no_port() -> None:
    """Gaps and resends, nothing physical, at receivers of more than one leaf."""
    plan = fleet(nodes=6, leaf=2)
    made = injected("F38", plan, receivers=3)
    hit = {e.port for e in of(made, Counting) if e.meter is Meter.OUT_OF_SEQUENCE}
    assert len({plan.leaf(port) for port in hit}) == 3
    assert Meter.SYMBOL_ERRORS not in {e.meter for e in of(made, Counting)}
    assert made.faults[0].node is None


def test_spine_needs_a_vote() -> None:
    """One node alone cannot tell."""
    blind = injected("F38", fleet(nodes=6, leaf=2, sights=("sysfs",)))
    assert not blind.faults[0].visible


def test_black_hole_ends_with_the_retries() -> None:
    """Seven timeouts of 4.3 s, then NCCL names the peer and the job ends."""
    plan = fleet()
    made = injected("F39", plan, queue_pairs=8, peer=2)
    steps = [e for e in of(made, Step) if e.meter is Meter.ACK_TIMEOUTS]
    assert [round(e.at - 300, 1) for e in steps] == [
        4.3,
        8.6,
        12.9,
        17.2,
        21.5,
        25.8,
        30.1,
    ]
    assert f"from peer {plan.address(2)}<" in of(made, LogLines)[0].text
    (ends,) = of(made, JobEnds)
    assert ends.restart
    assert of(made, Stall)[0].end == pytest.approx(ends.at)
    assert made.faults[0].peer == "node002"


def test_leaf_goes_down_at_once() -> None:
    """All ports within two seconds; one of them may stay down."""
    plan = fleet(nodes=6)
    made = injected("F40", plan, down=60, spread=2, stay_down=1)
    outages = of(made, Outage)
    begins = [outage.begin for outage in outages]
    assert len(outages) == 6
    assert max(begins) - min(begins) <= 2
    assert [o.end for o in outages].count(plan.duration) == 1
    common, dead = made.faults
    assert common.accept == ("common_cause",)
    assert (dead.accept, dead.by_vote) == (("port_down",), False)


def test_credit_loop_waits_all_the_time() -> None:
    """Ports count 6.25e9 ticks a second and the job stands still."""
    plan = fleet()
    made = injected("F41", plan)
    assert rate(made, plan.rail(1, 2), Meter.TRANSMIT_WAIT) == pytest.approx(6.25e9)
    assert of(made, Stall)[0].stretch == float("inf")


def test_failover_takes_no_link_down() -> None:
    """Ports stand in INIT, nothing else."""
    made = injected("F42")
    assert {e.state for e in of(made, PortText)} == {"2: INIT"}
    assert not of(made, Outage)
