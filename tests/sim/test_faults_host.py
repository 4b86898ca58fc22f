"""Hosts: PCIe, devices, firmware, and what it costs others."""

import pytest

from fabricmon.sim.effects import (
    Capacity,
    Counting,
    DeviceHealth,
    Frozen,
    Gone,
    KernelLines,
    Level,
    LogLines,
    NodeFile,
    PcieLink,
)
from fabricmon.sim.meters import Meter
from fabricmon.sim.scenario import Sight
from tests.sim.injected import B300, IB, ROCE, counted, fleet, injected, of


@pytest.mark.parametrize(("lanes", "low", "high"), [(8, 214, 233), (4, 107, 117)])
def test_fewer_lanes_cap_the_throughput(lanes: float, low: float, high: float) -> None:
    """Eight lanes of generation 5 leave 215 to 235 Gb/s, four half of it."""
    for seed in range(10):
        made = injected("F20", lanes=lanes, seed=seed)
        (cap,) = of(made, Capacity)
        assert low <= cap.factor * 400 <= high
        (link,) = of(made, PcieLink)
        assert (link.width, link.speed) == (lanes, 32.0)


def test_slow_lanes_cap_the_throughput() -> None:
    """Sixteen lanes of generation 3 leave less than 126 Gb/s."""
    made = injected("F21", speed="8.0")
    assert 107 <= of(made, Capacity)[0].factor * 400 <= 116
    assert of(made, PcieLink)[0].speed == 8.0


@pytest.mark.parametrize("what", ["F20", "N42", "N43"])
@pytest.mark.parametrize(("profile", "speed"), [(IB, 32.0), (B300, 64.0)])
def test_lanes_are_as_fast_as_the_profile_has_them(
    what: str, profile: str, speed: float
) -> None:
    """Also where a device has several ports, each slower than the slot."""
    made = injected(what, fleet(profile, nodes=2))
    assert max(link.speed for link in of(made, PcieLink)) == speed


def test_planes_share_their_lanes() -> None:
    """Eight lanes of generation 6 leave about half of four times 200 Gb/s."""
    plan = fleet(B300, nodes=2)
    made = injected("F20", plan, lanes=8)
    caps = of(made, Capacity)
    assert [cap.port for cap in caps] == [plan.rail(1, rail) for rail in range(4)]
    assert all(0.5 < cap.factor < 0.6 for cap in caps)
    line = of(made, KernelLines)[0].lines[0]
    assert "64.0 GT/s PCIe x8 link" in line
    assert "with 64.0 GT/s PCIe x16 link" in line


def test_slow_host_pauses_the_network_on_roce_only() -> None:
    """InfiniBand has no pause: only PCIe shows it there."""
    for profile, pauses in ((IB, False), (ROCE, True)):
        plan = fleet(profile)
        made = injected("F20", plan)
        meters = counted(made, plan.rail(1, 2))
        assert (Meter.PAUSE_SENT in meters) is pauses
        assert {e.meter for e in of(made, Level)} == {Meter.PCI_STALL_WRITE}


WITHOUT_PCIE: tuple[Sight, ...] = ("sysfs", "ethtool")


def test_width_is_told_sooner_than_stalls() -> None:
    """Two polls where the width can be read, else three minutes of load."""
    wide = injected("F20").faults[0]
    blind = injected("F20", fleet(sights=WITHOUT_PCIE)).faults[0]
    assert (wide.deadline, blind.deadline) == (120, 180)
    assert blind.visible


def test_stalls_are_counted_from_the_first_load() -> None:
    """An idle device does not stall."""
    plan = fleet(sights=WITHOUT_PCIE)
    made = injected("F20", plan, onset=1)
    assert made.faults[0].onset == plan.job_start("train")


def test_corrected_errors_are_in_the_log() -> None:
    """A storm of them is rationed, as the kernel does."""
    made = injected("F22", errors=6000)
    lines = of(made, KernelLines)
    assert 1 <= len(lines) <= 20
    assert "AER: Correctable" in lines[0].lines[0]


def test_host_path_slows_all_rails_from_the_start() -> None:
    """The job's beginning completes the signature; no device is to blame."""
    plan = fleet(ROCE)
    made = injected("F23", plan, onset=1)
    assert {e.port for e in of(made, Capacity)} == {
        plan.rail(1, rail) for rail in range(8)
    }
    (truth,) = made.faults
    assert (truth.node, truth.device) == ("node001", None)
    assert truth.onset == plan.job_start("train")
    assert "GPU Direct RDMA Disabled" in of(made, LogLines)[0].text
    assert any(rule.kind == "pcie_degraded" for rule in made.forbid)


def test_lost_device_is_gone_with_a_fatal_error() -> None:
    """The bus says so first."""
    made = injected("F24")
    (gone,) = of(made, Gone)
    assert (gone.node, gone.begin, gone.end) == (1, 300, 3600)
    assert "Uncorrectable (Fatal)" in of(made, KernelLines)[0].lines[0]


def test_hung_firmware_freezes_and_is_reported() -> None:
    """Counters stand still; the driver's health reporter tells."""
    made = injected("F25", read_seconds=3)
    assert of(made, Frozen)[0].read_seconds == 3
    assert of(made, DeviceHealth)[0].state == "error"


def test_refused_packets_add_up() -> None:
    """What the receiver drops, its senders are refused."""
    plan = fleet(ROCE)
    port = plan.rail(1, 2)
    made = injected("F27", plan, burst=10, gap=3000, naks=1000)
    counts = of(made, Counting)
    dropped = [e.rate for e in counts if e.meter is Meter.OUT_OF_BUFFER]
    refused = [e.rate for e in counts if e.meter is Meter.RNR_NAKS]
    assert sum(dropped) == pytest.approx(sum(refused))
    assert {e.port for e in counts if e.meter is Meter.RNR_NAKS} == set(
        plan.peers(port)
    )


@pytest.mark.parametrize(
    ("scope", "files", "by_vote"), [("node", 8, True), ("device", 1, False)]
)
def test_firmware_differs_by_node_or_by_device(
    scope: str, files: int, *, by_vote: bool
) -> None:
    """A node can compare its devices; nodes are compared by others."""
    made = injected("F29", scope=scope)
    assert len(of(made, NodeFile)) == files
    assert made.faults[0].by_vote is by_vote
