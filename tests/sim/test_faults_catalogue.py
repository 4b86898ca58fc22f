"""The catalogue is whole, and every class makes something sound of an injection."""

import re

import pytest

from fabricmon.errors import ConfigError
from fabricmon.sim.draw import InjectionDraw, source
from fabricmon.sim.effects import Capacity, Counting, Made, PortText, SimPort
from fabricmon.sim.faults import FAULTS, FaultClass, class_of, make
from fabricmon.sim.faults.row import Fabric, Parameter, Scaling
from fabricmon.sim.meters import Meter
from fabricmon.sim.plan import FleetPlan
from fabricmon.sim.planning import STATE
from fabricmon.sim.scenario import EVERYTHING, Injection, Magnitude
from tests.sim.injected import IB, PFC, ROCE, fleet, injected, times

FAULT_IDS = [
    f"F{n:02d}"
    for first, last in ((1, 15), (20, 29), (30, 42), (50, 57))
    for n in range(first, last + 1)
]
NEGATIVE_IDS = [f"N{n:02d}" for n in range(1, 51)]

KINDS = frozenset({
    "port_down", "port_not_active", "port_flap", "port_flapping", "link_errors",
    "link_unstable", "rate_degraded", "module_hot", "optics_weak", "pcie_degraded",
    "pcie_errors", "host_path_slow", "device_missing", "device_stuck", "nic_power",
    "receiver_stall", "transport_retries", "retries_exhausted", "peer_suspect",
    "post_flap_degraded", "congestion", "pause_origin", "pause_victim", "rail_slow",
    "straggler_link", "not_network", "fabric_suspect", "fabric_control",
    "common_cause", "config_mismatch", "config_drift", "nccl_error", "nccl_fallback",
    "counter_saturated", "counter_reset", "telemetry_stale", "source_failed",
})  # fmt: skip
"""Every kind of finding that the findings format knows."""

FAULT_ROWS = [row for row in FAULTS if not row.is_negative]
NEGATIVE_ROWS = [row for row in FAULTS if row.is_negative]


def plans(row: FaultClass) -> list[FleetPlan]:
    """Return fleets of every network on which a class can be."""
    profiles = {
        Fabric.BOTH: (IB, ROCE, PFC),
        Fabric.INFINIBAND: (IB,),
        Fabric.ETHERNET: (ROCE, PFC),
    }
    return [fleet(profile, leaf=2) for profile in profiles[row.fabric]]


def made(row: FaultClass, seed: int = 1) -> list[tuple[FleetPlan, Made]]:
    """Return what a class makes on each of those fleets."""
    return [(plan, injected(row.id, plan, seed=seed)) for plan in plans(row)]


def by_id(row: FaultClass) -> str:
    """Name a test after its class."""
    return row.id


def test_every_class_of_the_catalogue_is_there() -> None:
    """None is left out, none is there twice."""
    assert [row.id for row in FAULTS] == FAULT_IDS + NEGATIVE_IDS


def test_class_that_is_none_is_refused() -> None:
    """The message says where to look."""
    with pytest.raises(ConfigError, match=r"no class 'F99'.*docs/scenarios"):
        class_of("F99")


@pytest.mark.parametrize("row", FAULT_ROWS, ids=by_id)
def test_fault_is_answered_by_kinds_that_exist(row: FaultClass) -> None:
    """A truth that no finding can answer would be scored as a miss for ever."""
    assert row.accept
    assert row.deadline > 0
    assert set(row.accept) <= KINDS


@pytest.mark.parametrize("row", FAULTS, ids=by_id)
def test_needs_are_what_a_plan_can_show(row: FaultClass) -> None:
    """A mask names the same sights; the rest is counted, or told by state files."""
    words = {each for group in row.needs for each in group}
    assert words <= {*EVERYTHING, *Meter, STATE}


@pytest.mark.parametrize("row", FAULTS, ids=by_id)
def test_defaults_are_within_their_own_bounds(row: FaultClass) -> None:
    """What is drawn could also have been written."""
    for parameter in row.parameters:
        default = parameter.default
        if isinstance(default, str):
            assert not parameter.words or default in parameter.words
        elif not isinstance(default, bool):
            ends = default if isinstance(default, tuple) else (default, default)
            assert parameter.low <= ends[0] <= ends[1] <= parameter.high


@pytest.mark.parametrize("row", FAULT_ROWS, ids=by_id)
def test_fault_has_whole_truth(row: FaultClass) -> None:
    """Each fault says what, since when, by which evidence, and where."""
    for plan, result in made(row):
        assert result.faults
        for truth in result.faults:
            assert truth.fault == row.id
            assert set(truth.accept) <= KINDS
            assert truth.signals
            assert truth.begin is not None
            assert 0 <= truth.begin <= truth.onset <= plan.duration
            assert truth.deadline > 0
            if row.id != "F42":  # it is everywhere
                place = (truth.node, truth.leaf, truth.rail)
                assert any(part is not None for part in place)


@pytest.mark.parametrize("row", NEGATIVE_ROWS, ids=by_id)
def test_negative_has_no_fault(row: FaultClass) -> None:
    """Whatever it does, nobody is at fault."""
    for _, result in made(row):
        assert result.faults == ()


@pytest.mark.parametrize("row", FAULTS, ids=by_id)
def test_effects_stay_within_the_scenario(row: FaultClass) -> None:
    """Nothing begins before the start, ends before it began, or is negative."""
    for seed in range(3):
        for plan, result in made(row, seed):
            for effect in result.effects:
                when = times(effect)
                assert when == sorted(when)
                assert all(0 <= t <= plan.duration for t in when)
                if isinstance(effect, Counting):
                    assert effect.rate >= 0
                if isinstance(effect, Capacity):
                    assert 0 < effect.factor <= 1


@pytest.mark.parametrize("row", FAULTS, ids=by_id)
def test_effects_hit_ports_that_are_there(row: FaultClass) -> None:
    """A port that no node has would be an error in the model."""
    for plan, result in made(row):
        known = {port for node in range(plan.nodes) for port in plan.ports(node)}
        ports = {getattr(effect, "port", None) for effect in result.effects} - {None}
        assert all(isinstance(port, SimPort) for port in ports)
        assert ports <= known


@pytest.mark.parametrize("row", FAULTS, ids=by_id)
def test_same_numbers_make_the_same(row: FaultClass) -> None:
    """A scenario and its seed are all that a trace hangs on."""
    assert [result for _, result in made(row)] == [result for _, result in made(row)]


@pytest.mark.parametrize("row", FAULT_ROWS, ids=by_id)
def test_victims_are_not_the_culprit(row: FaultClass) -> None:
    """The place of a fault is never among those who only suffer from it."""
    several = {"F39", "F38", "F31", "F32", "F33", "F35", "F37", "F40", "F41", "F42"}
    if row.id in several:
        return  # of a path or a leaf, every port only suffers
    for _, result in made(row):
        places = {(truth.node, truth.device) for truth in result.faults}
        assert not places & {(each.node, each.device) for each in result.victims}


@pytest.mark.parametrize("row", FAULT_ROWS, ids=by_id)
def test_nothing_is_visible_without_sights(row: FaultClass) -> None:
    """To abstain is right where nothing can be read."""
    for plan in plans(row):
        blind = fleet(plan.profile.name, sights=(), leaf=2)
        result = injected(row.id, blind)
        assert not any(truth.visible for truth in result.faults)


@pytest.mark.parametrize("row", [r for r in FAULTS if r.fabric != Fabric.BOTH],
                         ids=by_id)  # fmt: skip
def test_class_of_another_network_is_refused(row: FaultClass) -> None:
    """InfiniBand has no pause, RoCE no subnet manager."""
    profile = IB if row.fabric is Fabric.ETHERNET else ROCE
    with pytest.raises(ConfigError, match=f"{row.id} can only be on {row.fabric}"):
        injected(row.id, fleet(profile))


def test_onset_after_the_end_is_refused() -> None:
    """A slip in the file does not make a scenario without its fault."""
    with pytest.raises(ConfigError, match="F10 begins at 4000 s"):
        injected("F10", onset=4000)


def test_end_of_the_file_wins() -> None:
    """``end`` is when it is over, whatever the class would have drawn."""
    (truth,) = injected("F05", onset=300, end=350).faults
    assert truth.end == 350


def test_deadline_of_the_file_wins() -> None:
    """A compound may need another time than the class."""
    (truth,) = injected("F10", deadline=900).faults
    assert truth.deadline == 900


def test_rates_are_words_of_the_profile() -> None:
    """A file never says a rate that the kernel would not."""
    for row in FAULT_ROWS:
        for _, result in made(row):
            texts = [e.rate for e in result.effects if isinstance(e, PortText)]
            for text in texts:
                if text is not None:
                    assert re.fullmatch(r"\d+ Gb/sec \(\dX \w+\)", text)


SCALED: list[tuple[str, Parameter, Magnitude]] = [
    (row.id, parameter, parameter.default)
    for row in FAULTS
    for parameter in row.parameters
    if parameter.scaling is not Scaling.NONE
    and not isinstance(parameter.default, (str, bool))
]


@pytest.mark.parametrize(("what", "parameter", "default"), SCALED)
def test_scaled_magnitude_is_used(
    what: str, parameter: Parameter, default: Magnitude
) -> None:
    """A parameter that can be made stronger changes what happens."""
    low, high = default if isinstance(default, tuple) else (default, default)
    row = class_of(what)
    weak, strong = (
        [_with(what, plan, parameter.name, value) for plan in plans(row)]
        for value in (low, min(high * 1.01, parameter.high))
    )
    assert weak != strong


def _with(what: str, plan: FleetPlan, name: str, value: float) -> Made:
    injection = Injection(
        what=what, node=1, rail=2, onset=300, parameters={name: value}
    )
    draw = InjectionDraw(source(1, what), injection.parameters)
    return make(injection, plan, draw)
