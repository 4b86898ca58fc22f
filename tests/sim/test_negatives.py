"""Negatives: what they do, so that they tempt."""

import pytest

from fabricmon.sim.effects import (
    Counting,
    Frozen,
    Gone,
    Inflow,
    JobEnds,
    KernelLines,
    LogLines,
    Maintenance,
    ModuleReading,
    NetdevGone,
    NodeFile,
    Outage,
    PcieLink,
    PortText,
    Preset,
    Reboot,
    Reset,
    Silence,
    Stall,
    Step,
    Unreadable,
    WallStep,
)
from fabricmon.sim.meters import Meter
from fabricmon.sim.scenario import JobPlan
from tests.sim.injected import B300, PFC, ROCE, fleet, injected, of


@pytest.mark.parametrize(("drained", "ends"), [(True, 1), (False, 0)])
def test_planned_reboot_may_drain_first(ends: int, *, drained: bool) -> None:
    """Without it, a running job sees its node go."""
    made = injected("N01", drained=drained, boot=200)
    assert len(of(made, JobEnds)) == ends
    (boot,) = of(made, Reboot)
    assert (boot.at, boot.seconds) == (320, 200)


def test_rack_reboots_within_minutes() -> None:
    """Every node of it, each once."""
    made = injected("N02", fleet(nodes=6), spread=100)
    boots = of(made, Reboot)
    assert sorted(boot.node for boot in boots) == list(range(6))
    assert all(320 <= boot.at <= 420 for boot in boots)


@pytest.mark.parametrize(("scope", "devices"), [("node", 8), ("device", 1)])
def test_driver_reload_takes_devices_away(scope: str, devices: int) -> None:
    """They come back as new instances after the job ended."""
    made = injected("N03", scope=scope, keeps_pma=False)
    gone = of(made, Gone)
    assert len({each.device for each in gone}) == devices
    assert not any(each.keeps_pma for each in gone)
    assert all(each.begin >= 320 for each in gone)


def test_clearing_takes_turns() -> None:
    """All counters of a port at one time, some at another."""
    made = injected("N04", every=100)
    resets = of(made, Reset)
    assert {each.area for each in resets} == {"pma"}
    assert len({each.meters for each in resets}) == 4


def test_saturated_counters_stand_at_their_ceiling() -> None:
    """Whatever their width is."""
    assert {e.value for e in of(injected("N05"), Preset)} == {None}
    assert {e.meter for e in of(injected("N07"), Preset)} == {Meter.TRANSMIT_WAIT}


def test_counter_reaches_its_ceiling_in_time() -> None:
    """It climbs far enough to clamp."""
    made = injected("N06", below=100, rate=1)
    (start,) = of(made, Preset)
    (climb,) = of(made, Counting)
    assert start.value == 65_435
    assert climb.rate * (climb.end - climb.begin) > 100


def test_unused_ports_are_switched_off() -> None:
    """Only those that have no cable."""
    plan = fleet()
    made = injected("N08", plan)
    assert {e.port for e in of(made, PortText)} == set(plan.unused(1))
    assert of(made, PortText)


def test_switched_off_port_is_no_rail() -> None:
    """A storage port, and its physical state says that it was meant."""
    plan = fleet()
    (outage,) = of(injected("N09", plan), Outage)
    assert outage.port in plan.storage(1)
    assert outage.phys == "Disabled"


@pytest.mark.parametrize(("plane", "ports"), [(0, 0), (6, 8)])
def test_plane_goes_down_on_all_devices(plane: float, ports: int) -> None:
    """By itself a multi-plane node has nothing."""
    made = injected("N10", fleet(B300, nodes=2), plane_down=plane)
    assert len(of(made, Outage)) == ports


def test_bond_halves_its_rate() -> None:
    """Its one device stays."""
    plan = fleet(ROCE)
    (text,) = of(injected("N11", plan), PortText)
    assert text.port.device == "mlx5_bond_0"
    assert text.rate == plan.rate_text(text.port, 0.5)


def test_storage_counts_on_storage_ports_only() -> None:
    """No rail moves."""
    plan = fleet(ROCE)
    ports = {e.port for e in of(injected("N12", plan), Counting)}
    assert ports == set(plan.storage(1))


def test_management_link_bounces() -> None:
    """No rail does."""
    plan = fleet()
    assert [e.port for e in of(injected("N13", plan), Outage)] == [plan.management(1)]


@pytest.mark.parametrize(("what", "whole"), [("N14", True), ("N15", False)])
def test_files_cannot_be_read(what: str, *, whole: bool) -> None:
    """For ever by right, or for a moment."""
    made = injected(what)
    spans = {(e.begin, e.end) for e in of(made, Unreadable)}
    assert len(spans) == 1
    assert ((0.0, 3600) in spans) is whole
    if not whole:
        ((begin, end),) = spans
        assert end - begin <= 12


def test_ports_train_again_after_a_boot() -> None:
    """All of it within the first ten minutes."""
    made = injected("N16", boot=100)
    (boot,) = of(made, Reboot)
    first = boot.at + boot.seconds
    when = [o.begin for o in of(made, Outage)] + [s.at for s in of(made, Step)]
    assert when
    assert all(first < t < first + 720 for t in when)


def test_new_pod_settles_and_then_is_quiet() -> None:
    """Flaps end with its first hours."""
    made = injected(
        "N17", fleet(duration=7200, jobs=()), onset=10, length=3600, gap=900
    )
    assert of(made, Outage)
    assert all(outage.end <= 3610 for outage in of(made, Outage))


def test_upgrade_is_announced_before_it_begins() -> None:
    """Every node of the leaf, for the port that it loses."""
    plan = fleet()
    made = injected("N28", plan)
    windows = of(made, Maintenance)
    assert {window.node for window in windows} == set(range(4))
    first = min(outage.begin for outage in of(made, Outage))
    last = max(outage.end for outage in of(made, Outage))
    assert all(w.at < first and w.until > last for w in windows)


def test_window_is_as_long_as_it_is_asked_to_be() -> None:
    """Within it nobody is asked to do anything there."""
    made = injected("N28", down=200, window=100)
    assert {(w.at, w.until) for w in of(made, Maintenance)} == {(240, 600)}
    timed = [rule for rule in made.forbid if rule.begin is not None]
    assert {(rule.begin, rule.end) for rule in timed} == {(240, 600)}
    assert {rule.node for rule in timed} == {place.node for place in made.victims}
    assert all(rule.actionable for rule in timed)


def test_update_goes_from_node_to_node() -> None:
    """Each device resets once and comes back with the new firmware."""
    made = injected("N29", node=None, rail=None, every=100, gone=10)
    files = of(made, NodeFile)
    assert len(files) == 4 * 8
    assert len(of(made, Gone)) == 4 * 8


def test_agent_pauses() -> None:
    """It starts anew once, or is starved again and again."""
    assert [s.restart for s in of(injected("N30"), Silence)] == [True]
    starved = of(injected("N31", gap=20, runs=20), Silence)
    assert len(starved) > 50
    assert not any(silence.restart for silence in starved)


def test_clock_is_set_back() -> None:
    """The jumps cancel out."""
    steps = of(injected("N32"), WallStep)
    assert len(steps) == 2
    assert sum(step.seconds for step in steps) == 0


def test_wide_counters_do_not_fall_to_zero() -> None:
    """A reset to something else."""
    assert {e.to for e in of(injected("N33", left=5000), Reset)} == {5000}


def test_renamed_device_is_blamed_under_no_name() -> None:
    """Neither the old one nor the new."""
    made = injected("N34")
    (gone,) = of(made, Gone)
    assert gone.new_name is not None
    assert {rule.device for rule in made.forbid} == {gone.device, gone.new_name}


def test_added_device_was_not_there() -> None:
    """From the start until it is plugged in."""
    (gone,) = of(injected("N35"), Gone)
    assert (gone.begin, gone.end) == (0.0, 300)


def test_background_stands_still() -> None:
    """Nothing but what was there before."""
    made = injected("N39")
    assert {type(effect) for effect in made.effects} == {Preset}


def test_warm_room_stays_below_the_limit() -> None:
    """All modules of the rack, all below 70 degrees."""
    plan = fleet()
    readings = of(injected("N41", plan), ModuleReading)
    assert {e.port.node for e in readings} == set(range(4))
    assert all((e.temperature_c or 0) < 68 for e in readings)


def test_power_saving_ends_before_the_load() -> None:
    """The link is fast again when the job begins."""
    plan = fleet()
    speeds: dict[float, float] = {}
    for link in of(injected("N42", plan), PcieLink):
        speeds[link.at] = link.speed
    assert speeds[0.0] == 2.5
    assert speeds[max(speeds)] == 32.0
    assert max(speeds) < plan.job_start("train")


def test_narrow_slot_is_the_slots_width() -> None:
    """The bridge above can do no more."""
    links = of(injected("N43"), PcieLink)
    assert {(link.width, link.slot_width) for link in links} == {(8, 8)}


def test_logs_are_noisy_and_hostile() -> None:
    """Aborts and settings; forged names, bytes that are no text, a long line."""
    noise = "".join(e.text for e in of(injected("N44", every=60), LogLines))
    assert "Abort COMPLETE" in noise
    assert "NCCL_IB_RETRY_CNT" in noise
    hostile = injected("N45", length=1000)
    text = "".join(e.text for e in of(hostile, LogLines))
    assert "\0" in text
    assert "\udcff" in text
    assert max(map(len, text.split("\n"))) > 1000
    assert any("../" in line for e in of(hostile, KernelLines) for line in e.lines)


def test_powered_off_node_is_announced() -> None:
    """Drained, in maintenance, then silent to the end."""
    made = injected("N46")
    assert of(made, JobEnds)
    assert of(made, Maintenance)[0].until == 3600
    assert of(made, Silence)[0].end == 3600


@pytest.mark.parametrize(("what", "profile"), [("N22", PFC), ("N23", ROCE)])
def test_normal_congestion_is_alike_on_all_rails(what: str, profile: str) -> None:
    """No rail stands out for being the only one."""
    plan = fleet(profile)
    made = injected(what, plan)
    ports = {e.port for e in of(made, Counting)}
    assert ports == {plan.rail(1, rail) for rail in range(8)}


def test_reordering_is_no_loss() -> None:
    """Nothing is sent again."""
    meters = {e.meter for e in of(injected("N24", fleet(ROCE)), Counting)}
    assert meters == {Meter.OUT_OF_SEQUENCE}


def test_few_retries_are_few() -> None:
    """A handful of single counts."""
    steps = of(injected("N25", fleet(ROCE)), Step)
    assert 1 < len(steps) <= 6
    assert {step.amount for step in steps} == {1}


def test_observers_of_a_crash_are_spared() -> None:
    """They may not be called culprits."""
    made = injected("N26")
    assert {place.node for place in made.victims} == {"node000", "node002"}
    assert any(rule.role == "culprit" for rule in made.forbid)


def test_slow_gpu_stretches_computing_only() -> None:
    """The network has nothing to do with it."""
    assert {type(effect) for effect in injected("N47").effects} == {Stall}


def test_moved_netdev_leaves_the_device() -> None:
    """Only the network devices go."""
    made = injected("N49", fleet(ROCE))
    assert {type(effect) for effect in made.effects} == {NetdevGone}
    assert len(made.effects) == 8


def test_storage_reads_load_one_rail_of_every_node() -> None:
    """The same rail everywhere, with a few errors that PCIe corrected."""
    made = injected("N50", fleet(nodes=3), node=None, share=0.1, corrected=14)
    flows, steps = of(made, Inflow), of(made, Step)
    assert sorted(flow.port.node for flow in flows) == [0, 1, 2]
    assert len({flow.port.device for flow in flows}) == 1
    assert {flow.share for flow in flows} == {0.1}
    assert {(step.meter, step.amount) for step in steps} == {
        (Meter.AER_CORRECTABLE, 14)
    }


@pytest.mark.parametrize("what", ["N20", "N21", "N37", "N38", "N48"])
def test_plain_life_has_no_effects(what: str) -> None:
    """What is done there, jobs do."""
    assert injected(what).effects == ()


def test_job_that_leaves_a_shared_node_keeps_its_devices_busy() -> None:
    """For a while after its end, on its own rails."""
    jobs = (JobPlan(id="a", rails=(0, 1)), JobPlan(id="b", rails=(2, 3), end=500))
    made = injected("N38", fleet(jobs=jobs), release=30, canceled=1)
    busy = of(made, Frozen)
    assert {(e.device, e.begin, e.end) for e in busy} == {
        ("mlx5_2", 500, 530),
        ("mlx5_4", 500, 530),
    }
    assert all(e.read_seconds > 1 for e in busy)
    assert len(of(made, KernelLines)) == 2


def test_start_ramp_surrounds_the_start() -> None:
    """Connections before the first step, rough steps after it."""
    plan = fleet(ROCE)
    made = injected("N18", plan, length=60)
    start = plan.job_start("train")
    assert all(e.begin <= start <= e.end for e in of(made, Counting))


def test_killed_job_may_start_again() -> None:
    """As the file has it."""
    assert [e.restart for e in of(injected("N19", again=True), JobEnds)] == [True]
