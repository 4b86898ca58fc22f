"""Lanes that a link does not tell, and links above the slot that carry less."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fabricmon.detect.pcie import Pcie
from fabricmon.model import Action, PciLink, Severity
from fabricmon.parse.sysfs import parse_pci_width
from tests.detect.machines import GEN5, Machine, cards, driver

HALF = PciLink(32.0, 8, 32.0, 16)
UNTOLD = PciLink(32.0, parse_pci_width("0\n"), 32.0, 16)
ABOVE, SLOT = "0000:19:01.0", "0000:1b:00.0"


def limited(bridge: str = ABOVE, gbps: str = "126.024") -> str:
    """Return what the kernel says of a card when its driver finds it."""
    return (
        f"{gbps} Gb/s available PCIe bandwidth, limited by 16.0 GT/s PCIe x8 link at "
        f"{bridge} (capable of 504.112 Gb/s with 32.0 GT/s PCIe x16 link)"
    )


def machine(count: int = 8) -> Machine:
    """Return a node below a switch whose links were full for a while."""
    made = Machine(Pcie, infos=cards(count))
    below = f"/sys/devices/pci0000:19/{ABOVE}/0000:1a:00.0/{SLOT}"
    made.hcas = tuple(
        replace(hca, pci_path=f"{below}/{hca.pci_address}") for hca in made.hcas
    )
    made.sample(2)
    return made


class TestNoLanes:
    def test_no_lanes_are_no_narrow_link(self) -> None:
        """A width of 0 is a link that is not there now: nothing is known of it."""
        made = machine()
        made.pci(3, UNTOLD)
        made.sample(3)
        assert made.opened == []

    def test_they_are_no_full_link_either(self) -> None:
        """What was narrow is so until it tells its lanes again."""
        made = machine()
        made.pci(3, HALF)
        made.sample(2)
        made.pci(3, UNTOLD)
        made.sample(3)
        assert made.kinds == ["pcie_degraded"]
        made.pci(3, GEN5)
        made.sample(1)
        assert made.kinds == []


class TestAboveTheSlot:
    def test_a_switch_that_trained_badly(self) -> None:
        """The card's own link is full, the kernel names a bridge far above it."""
        made = machine()
        made.says(driver(3, limited()))
        made.run(30)
        finding = made.open_of("pcie_degraded").finding
        assert (finding.severity, finding.action) == (Severity.WARNING, Action.INSPECT)
        assert finding.subject.device == "mlx5_3"
        assert f"bridge {ABOVE} above its slot" in finding.summary
        assert len(finding.summary) < 120
        evidence = {each.signal: each for each in finding.evidence}
        assert evidence["available_gbps"].value == 126.024
        assert evidence["limited_by"].value == ABOVE

    @pytest.mark.parametrize(
        "line",
        [
            limited(SLOT),
            limited("0000:c0:01.0"),
            limited(gbps="504.112"),
            limited(gbps="480.000"),
        ],
        ids=[
            "its slot",
            "not on its way",
            "no less than its slot",
            "enough for its ports",
        ],
    )
    def test_what_is_no_brake(self, line: str) -> None:
        """The slot is watched where it is read; what feeds the ports slows nothing."""
        made = machine()
        made.says(driver(3, line))
        made.run(60)
        assert made.opened == []

    def test_a_slot_that_can_no_more(self) -> None:
        """N43: a card of a later generation in an older host, down from the root."""
        made = machine()
        for rail in range(8):
            made.pci(rail, PciLink(16.0, 16, 32.0, 16), PciLink(16.0, 16, 16.0, 16))
        made.says(driver(3, limited(gbps="252.048")))
        made.sample(3)
        assert made.opened == []

    def test_half_of_the_cards(self) -> None:
        """N43: a node that is built so has nothing broken."""
        made = machine()
        made.says(*(driver(rail, limited()) for rail in range(4)))
        made.run(60)
        assert made.opened == []

    def test_a_card_without_equals(self) -> None:
        """Nothing tells a fault from how the node is built."""
        made = machine(1)
        made.says(driver(0, limited()))
        made.run(60)
        assert made.opened == []

    def test_it_ends_when_the_driver_finds_it_well(self) -> None:
        """A card that comes back without the line is not narrow any more."""
        made = machine()
        made.says(driver(3, limited()))
        made.run(30)
        ids = made.ids
        view = made.step(5)
        (detector,) = made.detectors
        rest = tuple(port for port in view.ports if port.info.id != ids[3])
        list(detector.judge(replace(view, ports=rest, now=view.now + 10)))
        assert list(detector.judge(replace(view, now=view.now + 20))) == []

    def test_a_link_of_its_own_goes_first(self) -> None:
        """What sysfs shows is told, once."""
        made = machine()
        made.says(driver(3, limited()))
        made.pci(3, HALF)
        made.sample(3)
        assert made.open_of("pcie_degraded").finding.severity is Severity.CRITICAL
