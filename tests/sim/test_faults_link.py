"""Links: what damaged bits, flaps and wrong rates do here and at the peers."""

import pytest

from fabricmon.sim.effects import (
    Capacity,
    Counting,
    KernelLines,
    Made,
    ModuleReading,
    Outage,
    PortText,
    Step,
)
from fabricmon.sim.faults.bit_errors import detection_seconds
from fabricmon.sim.meters import Meter, Per
from fabricmon.sim.scenario import JobPlan
from tests.sim.injected import IB, ROCE, counted, fleet, injected, of, rate

PHYSICAL = {Meter.SYMBOL_ERRORS, Meter.RECEIVE_ERRORS, Meter.CORRECTED_BITS}


def test_inbound_errors_follow_the_line_rate() -> None:
    """400 Gb/s at 1e-11 damage four symbols a second, whatever is carried."""
    plan = fleet()
    port = plan.rail(1, 2)
    made = injected("F01", plan, ber=1e-11)
    (symbols,) = [e for e in of(made, Counting) if e.meter is Meter.SYMBOL_ERRORS]
    assert (symbols.port, symbols.per) == (port, Per.SECOND)
    assert symbols.rate == pytest.approx(4.0)
    lost = rate(made, port, Meter.RECEIVE_ERRORS)
    assert lost == pytest.approx(4096 * 8 * 1e-11)


def test_inbound_losses_are_sent_again_by_the_senders() -> None:
    """What a receiver drops, its senders repeat: the sums agree."""
    plan = fleet()
    port = plan.rail(1, 2)
    made = injected("F01", plan, ber=1e-11)
    senders = plan.peers(port)
    repeated = sum(rate(made, each, Meter.SEQUENCE_ERRORS) for each in senders)
    assert repeated == pytest.approx(rate(made, port, Meter.OUT_OF_SEQUENCE))
    assert not any(counted(made, each) & PHYSICAL for each in senders)


def test_spare_node_has_symbol_errors_and_no_victims() -> None:
    """An idle link damages idle symbols; nobody resends."""
    plan = fleet(jobs=(JobPlan(nodes=(0, 2, 3)),))
    made = injected("F01", plan, ber=1e-13)
    assert {e.meter for e in of(made, Step)} <= {
        Meter.SYMBOL_ERRORS,
        Meter.LOCAL_INTEGRITY_ERRORS,
    }
    assert symbols(made, 300, 3600) > 0
    assert made.victims == ()


def test_outbound_errors_show_nothing_physical() -> None:
    """Only the switch would count the symbols; the peers see gaps."""
    plan = fleet()
    port = plan.rail(1, 2)
    made = injected("F02", plan)
    assert Meter.SEQUENCE_ERRORS in counted(made, port)
    for peer in plan.peers(port):
        assert counted(made, peer) == {Meter.OUT_OF_SEQUENCE}
    assert not {e.meter for e in of(made, Counting)} & PHYSICAL


@pytest.mark.parametrize(
    ("ber", "seconds"), [(1e-13, 1500), (1e-11, 120), (1e-15, 1500), (1e-9, 120)]
)
def test_faint_errors_may_take_longer(ber: float, seconds: float) -> None:
    """25 minutes at 1e-13, 2 at 1e-11, as the catalogue has it."""
    assert detection_seconds(ber) == pytest.approx(seconds)


def test_errors_between_take_something_between() -> None:
    """The time falls steadily with the rate."""
    assert detection_seconds(1e-12) == pytest.approx((1500 * 120) ** 0.5)


def symbols(made: Made, begin: float, end: float) -> float:
    """Return the symbol errors that are to be expected in a time."""
    single = [
        step.amount
        for step in of(made, Step)
        if step.meter is Meter.SYMBOL_ERRORS and begin <= step.at < end
    ]
    many = [
        each.rate * max(min(each.end, end) - max(each.begin, begin), 0)
        for each in of(made, Counting)
        if each.meter is Meter.SYMBOL_ERRORS
    ]
    return sum(single) + sum(many)


def test_ageing_grows_and_fails_after_the_answer_is_due() -> None:
    """The rate only rises, and the deadline is the first outage."""
    made = injected(
        "F03", fleet(duration=20_000), ber=1e-14, doubling=600, fails_at=1e-11
    )
    (truth,) = made.faults
    first = min(outage.begin for outage in of(made, Outage))
    assert truth.onset + truth.deadline <= first
    stages = [symbols(made, t, t + 1200) for t in (300, 2400, 4500)]
    assert stages == sorted(stages)
    assert symbols(made, 6000, 6300) == pytest.approx(300 * 400e9 * 8.7e-12, rel=0.2)


def test_few_errors_come_together() -> None:
    """A lost packet is a damaged symbol here, and a resend at one sender."""
    plan = fleet()
    made = injected("F01", plan, ber=1e-13)
    steps = of(made, Step)
    damaged = {e.at for e in steps if e.meter is Meter.SYMBOL_ERRORS}
    lost = {e.at for e in steps if e.meter is Meter.RECEIVE_ERRORS}
    again = {e.at: e.port for e in steps if e.meter is Meter.SEQUENCE_ERRORS}
    assert len(damaged) == pytest.approx(3300 * 0.04, rel=0.3)
    assert lost
    assert lost < damaged
    assert set(again) == lost
    assert set(again.values()) <= set(plan.peers(plan.rail(1, 2)))
    assert min(lost) > plan.job_start("train")


def test_bursts_are_over_between() -> None:
    """Errors come in bursts, each with one to three retrainings."""
    made = injected("F04", burst=10, gap=200, errors=1000)
    spans = [(e.begin, e.end) for e in of(made, Counting)
             if e.meter is Meter.SYMBOL_ERRORS]  # fmt: skip
    assert spans[:2] == [(300, 310), (510, 520)]
    recoveries = [e.at for e in of(made, Step) if e.meter is Meter.LINK_RECOVERIES]
    assert len(spans) <= len(recoveries) <= 3 * len(spans)
    assert all(any(b <= at <= e for b, e in spans) for at in recoveries)
    (truth,) = made.faults
    assert truth.onset == 520


def test_third_recovery_completes_the_signature() -> None:
    """Two could be chance."""
    (truth,) = injected("F09", gap=100).faults
    assert truth.onset == 500


def test_flap_is_whole_once_the_link_is_back() -> None:
    """What is down could still be an outage."""
    made = injected("F05", down=8, init=1)
    (outage,) = of(made, Outage)
    assert (outage.begin, outage.end) == (300, 308)
    (truth,) = made.faults
    assert (truth.begin, truth.onset, truth.accept) == (300, 309, ("port_flap",))


def test_third_flap_completes_the_episode() -> None:
    """Repeating is told with the third."""
    made = injected("F06", flaps=4, gap=400, down=5, init=1)
    backs = sorted(outage.end + outage.init for outage in of(made, Outage))
    assert len(backs) == 4
    assert made.faults[0].onset == backs[2]


def test_flaps_fit_the_scenario() -> None:
    """Long gaps are drawn together, so that all flaps happen."""
    made = injected("F06", fleet(duration=900), flaps=5, gap=3600, down=5)
    assert len(of(made, Outage)) == 5


def test_storm_flaps_dozens_of_times() -> None:
    """Every half minute for twenty minutes."""
    made = injected("F07", gap=30, length=1200, down=5)
    assert len(of(made, Outage)) == 40
    assert made.faults[0].end == 1500


def test_alternating_storm_trains_at_half_width() -> None:
    """Every other time the rate says half."""
    plan = fleet()
    made = injected("F07", plan, alternates=True, gap=30, length=600)
    texts = {e.rate for e in of(made, PortText)}
    assert texts == {plan.rate_text(plan.rail(1, 2), 0.5)}


def test_micro_flap_is_shorter_than_any_poll() -> None:
    """Down and in INIT together for less than 1.1 s."""
    for seed in range(20):
        (outage,) = of(injected("F08", seed=seed), Outage)
        assert outage.end + outage.init - outage.begin < 1.11


def test_outage_lasts_and_names_the_cable() -> None:
    """It outlives the scenario, and the module says why."""
    made = injected("F10")
    (outage,) = of(made, Outage)
    assert outage.end == 3600
    assert made.faults[0].end is None
    assert "Cable unplugged" in of(made, KernelLines)[0].lines[0]


@pytest.mark.parametrize(("wanted", "share"), [(0.3, 0.25), (0.45, 0.5), (0.5, 0.5)])
def test_lower_rate_is_a_half_or_a_quarter(wanted: float, share: float) -> None:
    """A link trains with whole lanes."""
    plan = fleet()
    made = injected("F11", plan, share=wanted)
    (text,) = of(made, PortText)
    assert text.rate == plan.rate_text(plan.rail(1, 2), share)
    assert {e.factor for e in of(made, Capacity)} == {share}


def test_lower_rate_at_boot_has_no_flap() -> None:
    """It was so before anybody looked."""
    assert not of(injected("F11", onset=1, flap=False), Outage)


def test_module_heats_up_before_it_shuts_down() -> None:
    """Degrees rise, the warning limit completes the signature, the link goes last."""
    made = injected("F12", ramp=600, peak=80)
    readings = [e.temperature_c for e in of(made, ModuleReading)]
    degrees = [each for each in readings if each is not None]
    assert degrees == sorted(degrees)
    (truth,) = made.faults
    (outage,) = of(made, Outage)
    assert truth.onset + truth.deadline == pytest.approx(outage.begin)
    assert symbols(made, 0, truth.onset) == 0
    assert symbols(made, truth.onset, 3600) > 0


def test_weak_light_falls_and_is_seen_only_in_the_module() -> None:
    """Without module readings to abstain is right."""
    made = injected("F13", loss=8, drift=2)
    lanes = [e.receive_power_dbm for e in of(made, ModuleReading)]
    first, last = lanes[0], lanes[-1]
    assert first is not None
    assert last is not None
    assert max(first) < -8
    assert last[0] < first[0]
    blind = injected("F13", fleet(sights=("sysfs", "kmsg")))
    assert not blind.faults[0].visible


def test_stuck_port_trains_and_stays_in_init() -> None:
    """Down for a moment only, then INIT to the end."""
    (outage,) = of(injected("F14"), Outage)
    assert outage.end - outage.begin == 2
    assert outage.end + outage.init == 3600


def test_stuck_leaf_blames_no_node() -> None:
    """Many ports at once are one finding about the fabric."""
    made = injected("F14", fleet(leaf=4), scope="leaf")
    assert len(of(made, Outage)) == 4
    (truth,) = made.faults
    assert truth.node is None
    assert truth.by_vote
    assert any(rule.node is None and rule.actionable for rule in made.forbid)


def test_wrong_leaf_is_never_visible() -> None:
    """No file of a node names its neighbour."""
    assert not injected("F15").faults[0].visible


@pytest.mark.parametrize(("profile", "visible"), [(IB, True), (ROCE, False)])
def test_sysfs_shows_symbol_errors_on_infiniband_only(
    profile: str, *, visible: bool
) -> None:
    """On RoCE those files read 0 for ever."""
    made = injected("F01", fleet(profile, sights=("sysfs",)))
    assert made.faults[0].visible is visible
