"""Devices that fail at once have one cause in the host, told of one of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest

from fabricmon.config import Config
from fabricmon.covers import TOLD_WITH, told_with
from fabricmon.detect.device_health import DeviceHealth
from fabricmon.detect.host_cause import HostCauses
from fabricmon.detect.inventory_check import DevicePresence
from fabricmon.detect.pcie import Pcie
from fabricmon.incidents import Incidents
from fabricmon.model import (
    Action,
    Evidence,
    Finding,
    IncidentState,
    MaintenanceWindow,
    MissingDevice,
    PciLink,
    PortInfo,
    Severity,
    Subject,
    Verdict,
)
from fabricmon.verdicts import by_device, of_port
from tests.detect.machines import GEN5, Machine, cards, driver
from tests.views import WALL, make_view, port_view

HALF = PciLink(32.0, 8, 32.0, 16)
FATAL = (
    "PCIe Bus Error: severity=Uncorrectable (Fatal), type=Transaction Layer, "
    "(Requester ID)"
)


def machine(infos: Iterable[PortInfo] | None = None) -> Machine:
    """Return a node whose links were full for a while."""
    known = None if infos is None else tuple(infos)
    made = Machine(Pcie, DevicePresence, DeviceHealth, infos=known, fused=True)
    made.sample(2)
    return made


def lose_lanes(made: Machine, *rails: int) -> None:
    """Let links train badly, all at once, and be read twice."""
    for rail in rails:
        made.pci(rail, HALF)
    made.sample(2)


def only(made: Machine, kind: str = "pcie_degraded") -> Finding:
    """Return the only thing that was ever told."""
    assert made.opened == [kind]
    return made.open_of(kind).finding


def named(finding: Finding) -> list[str]:
    """Return the devices of which a finding tells."""
    (names,) = (str(e.value) for e in finding.evidence if e.signal == "devices")
    return names.split()


class TestTogether:
    def test_all_links_that_get_narrow_at_once(self) -> None:
        """One story: how bad the worst is, what to do, and who is in it."""
        made = machine()
        lose_lanes(made, *range(8))
        finding = only(made)
        assert (finding.severity, finding.action) == (
            Severity.CRITICAL,
            Action.DRAIN_AFTER_JOB,
        )
        assert named(finding) == [f"mlx5_{rail}" for rail in range(8)]
        assert "8 devices at once: host, not the cards" in finding.summary

    def test_half_of_the_cards_report_a_fatal_error(self) -> None:
        """Four of eight in a second are no four slots."""
        made = machine()
        made.says(*(driver(rail, FATAL) for rail in (1, 3, 4, 6)))
        made.run(10)
        assert len(named(only(made, "pcie_errors"))) == 4

    def test_two_functions_are_one_card(self) -> None:
        """A card with two ports has one link to the host."""
        infos = list(cards())
        infos[1] = replace(infos[1], pci_address="0000:1a:00.1")
        made = machine(infos)
        lose_lanes(made, 0, 1)
        finding = only(made)
        assert named(finding) == ["mlx5_0", "mlx5_1"]
        assert "2 devices of one card: card or slot" in finding.summary

    def test_all_below_one_bridge(self) -> None:
        """What two cards share above their slots is what failed."""
        made = machine()
        above = "/sys/devices/pci0000:10/0000:10:01.0/0000:11:00.0"
        made.hcas = tuple(
            replace(h, pci_path=f"{above}/0000:12:0{i}.0/{h.pci_address}")
            if i < 2
            else h
            for i, h in enumerate(made.hcas)
        )
        made.run(5)
        lose_lanes(made, 0, 1)
        assert "2 devices below one bridge" in only(made).summary

    def test_devices_that_go_one_after_the_other(self) -> None:
        """A driver that is upgraded: one story from the first minute on."""
        infos = cards()
        made = machine(infos)
        for rail in range(8):
            made.missing = (*made.missing, gone(infos[rail], made.now))
            made.run(10)
        made.run(120)
        grave = [
            i for i in made.incidents.open() if i.finding.severity is Severity.CRITICAL
        ]
        (incident,) = grave
        assert incident.finding.action is Action.DRAIN_NOW
        assert len(named(incident.finding)) == 8

    def test_the_device_of_a_job_tells(self) -> None:
        """Of equals the one that a job waits for, and it goes on when the job ends."""
        causes = HostCauses(Config().fusion)
        view = make_view(ports=tuple(port_view(info) for info in cards()))
        idle = [narrow(rail) for rail in range(8)]
        hit = [*idle[:5], narrow(5, "train"), *idle[6:]]
        assert told_by(causes.told_once(hit, view)) == ["mlx5_5"]
        assert told_by(causes.told_once(idle, view)) == ["mlx5_5"]

    def test_the_worst_tells(self) -> None:
        """What is grave for one is grave for the story."""
        causes = HostCauses(Config().fusion)
        view = make_view(ports=tuple(port_view(info) for info in cards()))
        mild = [replace(narrow(rail), severity=Severity.WARNING) for rail in range(7)]
        assert told_by(causes.told_once([*mild, narrow(7)], view)) == ["mlx5_7"]

    def test_it_holds_while_two_are_left(self) -> None:
        """They come back one by one: nothing is told anew."""
        made = machine()
        lose_lanes(made, *range(8))
        for rail in range(2, 8):
            made.pci(rail, GEN5)
            made.run(10)
        assert made.opened == ["pcie_degraded"]
        assert named(made.open_of("pcie_degraded").finding) == ["mlx5_0", "mlx5_1"]

    def test_the_last_one_has_its_own(self) -> None:
        """What does not come back with the others is a fault of its own."""
        made = machine()
        lose_lanes(made, *range(8))
        for rail in range(7):
            made.pci(rail, GEN5)
        made.run(10)
        assert made.open_of("pcie_degraded").finding.subject.device == "mlx5_7"

    def test_the_others_are_not_called_well(self) -> None:
        """A port whose device is told with another is degraded like it."""
        made = machine()
        lose_lanes(made, *range(8))
        port = made.of(made.rail(5)).info
        told = by_device(made.incidents.open())
        verdict, why = of_port(port_view(port), told.get(port.id.device, ()))
        assert verdict is Verdict.DEGRADED
        assert why


class TestApart:
    @pytest.mark.parametrize("rails", [(3, 5), (1, 3, 5)])
    def test_few_of_many(self, rails: tuple[int, ...]) -> None:
        """Two or three narrow links of eight are so many slots."""
        made = machine()
        lose_lanes(made, *rails)
        assert made.opened == ["pcie_degraded"] * len(rails)

    def test_minutes_apart(self) -> None:
        """What comes later has a cause of its own."""
        made = machine()
        for rail in range(4):
            lose_lanes(made, rail)
            made.sample(4)
        assert made.opened == ["pcie_degraded"] * 4

    def test_two_of_three_below_a_bridge(self) -> None:
        """A bridge that fails takes all that is below it."""
        made = machine()
        above = "/sys/devices/pci0000:10/0000:10:01.0/0000:11:00.0"
        made.hcas = tuple(
            replace(h, pci_path=f"{above}/0000:12:0{i}.0/{h.pci_address}")
            if i < 3
            else h
            for i, h in enumerate(made.hcas)
        )
        made.run(5)
        lose_lanes(made, 0, 1)
        assert made.opened == ["pcie_degraded"] * 2

    def test_another_kind_is_another_story(self) -> None:
        """One device has errors, three others are narrow."""
        made = machine()
        made.says(driver(0, FATAL))
        lose_lanes(made, 1, 2, 3)
        assert sorted(made.opened) == ["pcie_degraded"] * 3 + ["pcie_errors"]

    def test_what_was_told_before_goes_on(self) -> None:
        """A fault of an hour is not resolved because others join it."""
        made = machine()
        lose_lanes(made, 0)
        made.run(600)
        lose_lanes(made, *range(1, 8))
        assert made.opened == ["pcie_degraded"] * 2
        assert IncidentState.RESOLVED not in {each.state for each in made.changes}


def narrow(rail: int, job: str | None = None) -> Finding:
    """Return the finding of a link that has lost lanes."""
    return Finding(
        "pcie_degraded",
        Subject(device=f"mlx5_{rail}", job=job),
        onset=WALL + rail,
        evidence=(Evidence("current_link_width", 8, "lanes", "pci"),),
        summary=f"mlx5_{rail} PCIe x8: card or slot",
        severity=Severity.CRITICAL,
        action=Action.DRAIN_AFTER_JOB,
    )


def told_by(findings: Iterable[Finding]) -> list[str | None]:
    """Return the devices whose finding is told by none but itself."""
    return [f.subject.device for f in findings if told_with(f) is None]


def gone(info: PortInfo, since: float) -> MissingDevice:
    """Return a device that is not listed since then."""
    return MissingDevice(info.id.device, since, polls=3, ports=(info,))


class TestWhoTells:
    def test_what_is_worked_on_does_not_tell(self) -> None:
        """Seven others have lost lanes as well: one of those tells, for all of them."""
        made = machine()
        window = MaintenanceWindow(until=WALL + 1e6, ports=("mlx5_0/1",))
        made.maintenance = (window,)
        lose_lanes(made, *range(8))
        assert len(named(only(made))) == 7

    def test_a_device_that_leaves_does_not_take_the_story_along(self) -> None:
        """Fatal errors of the others are told though the first of them is gone."""
        infos = cards()
        made = machine(infos)
        made.says(*(driver(rail, FATAL) for rail in (0, 1, 3, 4)))
        made.missing = (gone(infos[0], made.now),)
        made.run(120)
        assert "pcie_errors" in made.opened

    def test_a_silent_one_tells_for_nobody(self) -> None:
        """What is told with it opens by itself."""
        config = Config()
        first, other = narrow(0), narrow(1)
        shared = Evidence(TOLD_WITH, "mlx5_0", "", "fabricmon")
        other = replace(other, evidence=(*other.evidence, shared))
        window = MaintenanceWindow(until=WALL + 1e6, ports=("mlx5_0/1",))
        told = Incidents(config, "node-1").update(
            1.0, WALL, (other, first), lambda _: False, (window,)
        )
        assert [each.finding.subject.device for each in told] == ["mlx5_1"]
