"""What makes a port the culprit: faults of its own in the last minutes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fabricmon.config import Config
from fabricmon.detect.local_evidence import LocalEvidence, Nature
from fabricmon.model import HostSide, ModuleStatus, PciLink, PciStatus, PortView
from fabricmon.parse.kernel_event import KernelEvent, KernelKind
from fabricmon.parse.log_event import LogSeverity
from fabricmon.parse.words import PortState
from tests.node import pid
from tests.rails import Rails
from tests.views import boot

FULL = PciLink(32.0, 16, 32.0, 16)


class _Seen:
    """A node, and what is remembered of its rails."""

    def __init__(self, uptime: float = 1e6) -> None:
        self.node = Rails(uptime=uptime)
        self.local = LocalEvidence(Config())
        self.pass_time(5)

    def pass_time(self, seconds: float, **parts: object) -> None:
        """Let time pass and take it in."""
        self.view = self.node.step(seconds, **parts)
        self.local.note(self.view)

    def rail(self, rail: int) -> PortView:
        """Return a port as the view has it."""
        return next(port for port in self.view.ports if port.info.id == pid(rail))

    def of(self, rail: int) -> frozenset[Nature]:
        """Return what a rail shows now."""
        return self.local.natures(self.rail(rail), self.view)


def test_a_port_without_anything() -> None:
    """Traffic, pause and retries are no fault of a port."""
    seen = _Seen()
    seen.node.grow(seen.node.rail(2), packet_seq_err=10_000, tx_prio3_pause=10_000,
                   out_of_sequence=10_000, np_cnp_sent=9)  # fmt: skip
    seen.pass_time(5)
    assert seen.of(2) == frozenset()


def test_bit_errors_above_chance() -> None:
    """A few in 15 minutes a sound link of 400 Gb/s may have; 500 it may not."""
    seen = _Seen()
    seen.node.grow(seen.node.rail(2), symbol_error=3)
    seen.pass_time(5)
    assert seen.of(2) == frozenset()
    seen.node.grow(seen.node.rail(2), symbol_error=500)
    seen.pass_time(5)
    assert seen.of(2) == {Nature.LINK}
    assert seen.of(3) == frozenset()
    (sign,) = seen.local.of(seen.rail(2), seen.view)
    assert sign.evidence.value == 503


def test_forgotten_after_its_window() -> None:
    """What is older than a quarter of an hour explains nothing."""
    seen = _Seen()
    seen.node.link(PortState.DOWN, where=seen.node.rail(2))
    seen.pass_time(5)
    assert seen.of(2) == {Nature.STATE}
    seen.node.link(PortState.ACTIVE, where=seen.node.rail(2))
    seen.pass_time(890)
    assert seen.of(2) == {Nature.STATE}
    seen.pass_time(20)
    assert seen.of(2) == frozenset()


def test_a_port_in_init_has_no_fault_of_its_own() -> None:
    """Its link is trained: the fabric does not configure it, as others may see too."""
    seen = _Seen()
    seen.node.link(PortState.INIT, where=seen.node.rail(2))
    seen.pass_time(5)
    assert seen.of(2) == frozenset()


def test_a_young_boot_proves_nothing() -> None:
    """Links train: downs and bit errors of the first minutes are no faults."""
    seen = _Seen(uptime=60)
    seen.node.grow(seen.node.rail(2), symbol_error=5000, link_downed=1)
    seen.node.link(PortState.DOWN, where=seen.node.rail(2))
    seen.node.boot = boot(uptime=60)
    seen.pass_time(5)
    assert seen.of(2) == frozenset()


def test_stalls_of_the_host() -> None:
    """One second of it is load, five are not."""
    seen = _Seen()
    seen.node.grow(seen.node.rail(2), outbound_pci_stalled_wr_events=1)
    seen.pass_time(5)
    assert seen.of(2) == frozenset()
    seen.node.grow(seen.node.rail(2), outbound_pci_stalled_wr_events=5)
    seen.pass_time(5)
    assert seen.of(2) == {Nature.PCIE}


@pytest.mark.parametrize(
    ("link", "slot", "narrow"),
    [
        (FULL, FULL, False),
        (replace(FULL, width=8), FULL, True),
        (replace(FULL, width=8), replace(FULL, max_width=8), False),  # by design (N43)
        (replace(FULL, speed_gts=2.5), FULL, False),  # idle, saving power (N42)
        (PciLink(), PciLink(), False),
    ],
)
def test_fewer_lanes_than_both_ends_have(
    link: PciLink, slot: PciLink, *, narrow: bool
) -> None:
    """What the slot cannot do is no fault, nor is a speed that sleeps."""
    seen = _Seen()
    where = seen.node.of(seen.node.rail(2))
    where.pci = PciStatus("mlx5_2", seen.node.now, "0000:1a:00.0", link, slot)
    seen.pass_time(5)
    assert seen.of(2) == (frozenset({Nature.PCIE}) if narrow else frozenset())


def test_a_module_at_its_limit() -> None:
    """The vendor's own alarm decides; without one nothing is said."""
    seen = _Seen()
    hot = ModuleStatus(pid(2), seen.node.now, 76.0, 75.0)
    warm = ModuleStatus(pid(3), seen.node.now, 76.0, None)
    seen.pass_time(5, host_side=HostSide(modules=(hot, warm)))
    assert seen.of(2) == {Nature.MODULE}
    assert seen.of(3) == frozenset()


def test_what_the_kernel_says() -> None:
    """A line about the network device, the function or the device is about the port."""
    seen = _Seen()
    at, error = seen.node.now, LogSeverity.ERROR
    lines = (
        KernelEvent(at, "a", KernelKind.MODULE_UNPLUGGED, error, "text", netdev="eth2"),
        KernelEvent(at, "b", KernelKind.FIRMWARE_FATAL, error, "text", device="mlx5_3"),
        KernelEvent(at, "c", KernelKind.LINK_UP, error, "text", netdev="eth4"),
    )
    seen.pass_time(5, kernel_events=lines)
    assert seen.of(2) == {Nature.MODULE}
    assert seen.of(3) == {Nature.DEVICE}
    assert seen.of(4) == frozenset()
