"""What must hold whatever happens: line rate, conservation, coupling, determinism."""

from itertools import pairwise

import pytest

from fabricmon.sim.counter_files import BITS, MLX5, PMA
from fabricmon.sim.effects import Capacity, Counting, SimPort
from fabricmon.sim.happenings import Activity, Flow
from fabricmon.sim.meters import Meter
from fabricmon.sim.node import NodePlay
from fabricmon.sim.profiles import PROFILES
from fabricmon.sim.staging import Stage
from tests.sim import fleets

SLOW_NODE, SLOW_RAIL = 2, 3
HALF = 0.5
BEGIN, END = 20.0, 260.0
FOREVER = float("inf")


@pytest.fixture(scope="module")
def half_rate() -> Stage:
    """Return a fleet in which one port receives at half its rate."""
    port = fleets.stage().plan.rail(SLOW_NODE, SLOW_RAIL)
    slow = Capacity(port, 0.0, 1e9, HALF, transmit=False)
    return fleets.stage(slow, jobs=(fleets.steady_job(),))


@pytest.fixture(scope="module")
def half_rate_rates(half_rate: Stage) -> dict[SimPort, fleets.Rates]:
    """Return what two rails of every node carry."""
    found: dict[SimPort, fleets.Rates] = {}
    for node in range(4):
        ports = [half_rate.plan.rail(node, rail) for rail in (0, SLOW_RAIL)]
        measured = fleets.rates(half_rate, ports, BEGIN, END)
        found |= dict(zip(ports, measured, strict=True))
    return found


def test_means_are_equal_under_a_slow_hop(
    half_rate_rates: dict[SimPort, fleets.Rates],
) -> None:
    """A mean over minutes tells neither the slow rail nor the slow node."""
    means = [rates.mean for rates in half_rate_rates.values()]
    assert max(means) / min(means) < 1.02
    assert means[0] == pytest.approx(100, rel=0.03)


def test_duty_tells_the_slow_rail(
    half_rate_rates: dict[SimPort, fleets.Rates],
) -> None:
    """Healthy rails are busy for a quarter of the step, the slow one for half."""
    for port, rates in half_rate_rates.items():
        wanted = 0.5 if port.device == "mlx5_4" else 0.25
        # Samples that a step only touches count as busy: at most two a step.
        assert wanted - 0.02 < rates.busy < wanted + 0.06


def test_p99_tells_the_slow_rail(
    half_rate_rates: dict[SimPort, fleets.Rates],
) -> None:
    """Every node of the slow rail runs at its pace, the others at line rate."""
    for port, rates in half_rate_rates.items():
        wanted = 200 if port.device == "mlx5_4" else 396
        assert rates.p99 == pytest.approx(wanted, rel=0.02)


def test_only_the_direct_upstream_waits(half_rate: Stage) -> None:
    """The port that sends to the slow receiver is held up; nobody else is."""
    waits = {}
    for node in range(4):
        port = half_rate.plan.rail(node, SLOW_RAIL)
        file = fleets.path(port, "counters/port_xmit_wait")
        [(waits[node],)] = fleets.series(half_rate, node, [file], [20.0])
    assert waits[SLOW_NODE - 1] > 1e8
    assert [waits[node] for node in (0, 2, 3)] == [0, 0, 0]


def test_bytes_of_a_step_are_conserved(half_rate: Stage) -> None:
    """Each rail carries the same in each step, whatever its pace is."""
    rails = half_rate.plan.rails
    carried = [0.0] * rails
    steps = []
    before: Flow | None = None
    for flow in half_rate.play("train"):
        if not isinstance(flow, Flow):
            continue
        if before is not None and before.activity is Activity.COMMUNICATE:
            for rail, share in enumerate(before.shares):
                carried[rail] += share * (flow.t - before.t)
            if flow.activity is Activity.COMPUTE:
                steps.append(carried)
                carried = [0.0] * rails
        before = flow
    assert len(steps) > 50
    wanted = half_rate.plan.jobs["train"].bytes_share_seconds
    for step in steps:
        assert step == pytest.approx([wanted] * rails, rel=1e-9)


@pytest.mark.parametrize("profile", sorted(PROFILES))
def test_no_port_is_faster_than_its_line(profile: str) -> None:
    """In no tenth of a second do more octets pass than the line carries."""
    made = fleets.stage(profile=profile, noise=1.0, duration=90.0, nodes=2)
    port = made.plan.rail(1, 1)
    pma = not profile.startswith("EFA")
    files = ("counters/port_rcv_data", "counters/port_xmit_data")
    if not pma:
        files = ("hw_counters/rx_bytes", "hw_counters/tx_bytes")
    octets = fleets.WORD if pma else 1
    times = [60 + fleets.SAMPLE * number for number in range(300)]
    paths = [fleets.path(port, file) for file in files]
    rows = fleets.series(made, 1, paths, times)
    most = made.plan.line_rate_gbps * 1e9 / 8 * fleets.SAMPLE
    steps = [
        (after[place] - before[place]) * octets
        for before, after in pairwise(rows)
        for place in (0, 1)
    ]
    assert max(steps) > most / 2
    assert min(steps) >= 0
    assert max(steps) <= most


@pytest.mark.parametrize("profile", ["H100-IB-NDR-8x400", "A100-HDR-8x200"])
def test_counters_obey_their_width(profile: str) -> None:
    """Whatever storms, they grow to all ones and stay there; queue counters start again."""
    meters = (*BITS, Meter.ACK_TIMEOUTS, Meter.OUT_OF_SEQUENCE)
    port = fleets.stage(profile=profile).plan.rail(0, 2)
    storms = [
        Counting(port, meter, 10.0, FOREVER, 10.0 ** (3 + 5 * (number % 2)))
        for number, meter in enumerate(meters)
    ]
    made = fleets.stage(
        *storms, profile=profile, noise=3.0, jobs=(fleets.steady_job(),)
    )
    files = {
        f"counters/{file}": (1 << bits) - 1
        for meter, bits in BITS.items()
        for file in PMA[meter]
    }
    files |= {
        f"hw_counters/{file}": (1 << 32) - 1
        for meter in (Meter.ACK_TIMEOUTS, Meter.OUT_OF_SEQUENCE)
        for file in MLX5[meter]
        if made.plan.profile.wraps
    }
    paths = [fleets.path(port, file) for file in files]
    rows = fleets.series(made, 0, paths, [0.5 * number for number in range(600)])
    for place, (file, most) in enumerate(files.items()):
        values = [row[place] for row in rows]
        assert max(values) <= most
        assert values[-1] > 0
        if file.startswith("counters/"):
            assert values == sorted(values)
    full = list(zip(*rows, strict=True))
    saturated = [file for file, each in zip(files, full, strict=True)
                 if each[-1] == files[file]]  # fmt: skip
    assert {"counters/symbol_error", "counters/link_downed"} <= set(saturated)
    wraps = any(after < before for each in full for before, after in pairwise(each))
    assert wraps is made.plan.profile.wraps


def test_a_receiver_that_is_slow_for_a_while_slows_nothing_after() -> None:
    """When the limit ends, steps are as short as before."""
    port = SimPort(1, "mlx5_0")
    made = fleets.stage(Capacity(port, 60.0, 120.0, 0.25), jobs=(fleets.steady_job(),))
    begins = [
        flow.t
        for flow in made.play("train")
        if isinstance(flow, Flow) and flow.activity is Activity.COMPUTE
    ]
    lengths = {a: b - a for a, b in pairwise(begins)}
    assert [each for t, each in lengths.items() if t < 55] == pytest.approx(
        [3.0] * 17, abs=0.01
    )
    assert max(lengths.values()) == pytest.approx(2 + 0.99 / 0.25, abs=0.01)
    assert all(each < 3.01 for t, each in lengths.items() if t > 120)


def test_meters_that_a_profile_lacks_are_dropped() -> None:
    """EFA has no symbol errors: nothing counts them."""
    made = fleets.stage(profile="EFA")
    ports = NodePlay(made, 0).ports.values()
    assert all(not port.counters.of(Meter.SYMBOL_ERRORS) for port in ports)
