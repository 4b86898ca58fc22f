"""PCIe between device and host: width, speed, errors, stalls."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from fabricmon.config import Config
from fabricmon.config import Pcie as Limits
from fabricmon.detect.pcie import Pcie
from fabricmon.detect.pcie_load import raw_gbps
from fabricmon.model import Action, HostSide, Part, PciLink, PortId, Role, Severity
from fabricmon.parse.words import PhysState, PortState, Rate
from tests.detect.machines import GEN5, TRAFFIC, Machine, cards, driver
from tests.views import make_view

HALF = PciLink(32.0, 8, 32.0, 16)
TRAINING = Rate(10.0, 4, "SDR")
SLOW = PciLink(8.0, 16, 32.0, 16)
CORRECTED = "PCIe Bus Error: severity=Correctable, type=Physical Layer, (Receiver ID)"
FATAL = (
    "PCIe Bus Error: severity=Uncorrectable (Fatal), type=Transaction Layer, "
    "(Requester ID)"
)
FIRMWARE_FIRST = "AER: aer_status: 0x00000001, aer_mask: 0x00002000"
AER = ("aer_dev_correctable", "aer_dev_nonfatal", "aer_dev_fatal")
STALLED = "outbound_pci_stalled_wr_events"
LIMITED = (
    "252.048 Gb/s available PCIe bandwidth, limited by 32.0 GT/s PCIe x8 link at "
    "0000:30:01.0 (capable of 504.112 Gb/s with 32.0 GT/s PCIe x16 link)"
)


def machine(**options: Any) -> Machine:
    """Return a node whose links were full for a while."""
    made = Machine(Pcie, **options)
    made.sample(2)
    return made


def lose_lanes(made: Machine, rail: int = 3, link: PciLink = HALF) -> None:
    """Let a link train badly and be read twice."""
    made.pci(rail, link)
    made.sample(2)


class TestWidth:
    def test_fewer_lanes_than_the_slot(self) -> None:
        """F20: told with what there is, what there could be, and what it feeds."""
        made = machine()
        lose_lanes(made)
        finding = made.open_of("pcie_degraded").finding
        assert finding.severity is Severity.CRITICAL
        assert finding.action is Action.DRAIN_AFTER_JOB
        assert (finding.subject.device, finding.subject.rail) == ("mlx5_3", 3)
        evidence = {item.signal: item for item in finding.evidence}
        width = evidence["current_link_width"]
        assert (width.value, width.threshold) == (8, 16)
        assert width.source == "pci/0000:4a:00.0"
        assert evidence["usable_gbps"].threshold == 400
        assert finding.summary.startswith("mlx5_3 PCIe x8 32 GT/s of x16 32 GT/s since")

    def test_one_sample_is_none(self) -> None:
        """A link that trains shows fewer lanes for a moment."""
        made = machine()
        made.pci(3, HALF)
        made.run(25)
        made.pci(3, GEN5)
        made.sample(2)
        assert made.opened == []

    def test_it_ends_with_a_good_sample(self) -> None:
        """A link that is full again is no finding."""
        made = machine()
        lose_lanes(made)
        made.pci(3, GEN5)
        made.run(10)
        assert made.kinds == []

    def test_a_link_that_still_feeds_the_port(self) -> None:
        """A fault of the hardware, but no brake: a ticket, no page."""
        made = machine()
        made.pci(3, PciLink(64.0, 8, 64.0, 16), PciLink(64.0, 16, 64.0, 16))
        made.sample(2)
        finding = made.open_of("pcie_degraded").finding
        assert (finding.severity, finding.action) == (Severity.WARNING, Action.INSPECT)

    @pytest.mark.parametrize("rate", [TRAINING, Rate(100.0, 1, "NDR")])
    def test_a_port_that_falls_takes_no_fault_away(self, rate: Rate) -> None:
        """Half of the lanes feed a slow port well: not the one that it was and is to be."""
        made = machine()
        lose_lanes(made)
        made.link(PortState.DOWN, PhysState.POLLING, rate, where=made.rail(3))
        made.sample(2)
        finding = made.open_of("pcie_degraded").finding
        assert finding.severity is Severity.CRITICAL
        usable = next(e for e in finding.evidence if e.signal == "usable_gbps")
        assert usable.threshold == 400

    def test_a_port_that_is_down_at_the_start_has_peers(self) -> None:
        """An agent that starts while it is down knows what it should run at."""
        made = Machine(Pcie, infos=cards(expected_rate_gbps=400.0))
        made.link(PortState.DOWN, PhysState.POLLING, TRAINING, where=made.rail(3))
        lose_lanes(made)
        assert made.open_of("pcie_degraded").finding.severity is Severity.CRITICAL

    @pytest.mark.parametrize(
        ("lost", "told"),
        [
            ((0,), "card or slot, not the fabric; feeds the line rate"),
            (range(8), "as all of its model here, not a fault of this card"),
        ],
    )
    def test_a_long_name_cuts_nothing_off(self, lost: Iterable[int], told: str) -> None:
        """What it is not stands at the end, whole."""
        infos = tuple(
            replace(info, id=PortId(f"rdmaP2380{rail}p0s0", 1))
            for rail, info in enumerate(cards())
        )
        made = Machine(Pcie, infos=infos, link=None)
        for rail in range(8):
            width = 8 if rail in lost else 16
            link = PciLink(64.0, width, 64.0, 16)
            made.pci(rail, link, PciLink(64.0, 16, 64.0, 16))
        made.sample(2)
        summaries = [i.finding.summary for i in made.incidents.open()]
        assert summaries
        assert all(summary.endswith(told) for summary in summaries)

    def test_management_is_no_part_of_the_fabric(self) -> None:
        """It never drains a node."""
        made = machine(infos=cards(1, role=Role.MANAGEMENT))
        lose_lanes(made, 0)
        finding = made.open_of("pcie_degraded").finding
        assert (finding.severity, finding.action) == (Severity.WARNING, Action.INSPECT)

    def test_the_kernel_said_so_too(self) -> None:
        """Its line of the bandwidth is evidence, and alone is none."""
        made = machine()
        made.says(driver(3, LIMITED))
        made.run(120)
        assert made.opened == []
        lose_lanes(made)
        signals = [e.signal for e in made.open_of("pcie_degraded").finding.evidence]
        assert "kmsg" in signals

    def test_survives_a_restart(self) -> None:
        """The next agent goes on with the same onset, and tells nothing twice."""
        made = machine()
        lose_lanes(made)
        before = made.open_of("pcie_degraded")
        made.restart()
        made.run(30)
        assert made.open_of("pcie_degraded").id == before.id
        assert made.opened == ["pcie_degraded"]

    def test_unreadable_sample_changes_nothing(self) -> None:
        """A device that answers nonsense once is neither better nor worse."""
        made = machine()
        lose_lanes(made)
        made.pci(3, PciLink())
        made.sample(2)
        assert made.kinds == ["pcie_degraded"]


class TestSlot:
    def test_narrow_slot_is_no_fault(self) -> None:
        """N43: a card with 16 lanes in a slot with 8."""
        made = Machine(Pcie)
        for rail in range(8):
            made.pci(rail, HALF, PciLink(32.0, 8, 32.0, 8))
        made.sample(4)
        assert made.opened == []

    def test_alike_on_all_is_how_it_was_built(self) -> None:
        """N43: a riser with 8 lanes in slots that claim 16, on the whole node."""
        made = Machine(Pcie, link=HALF)
        made.sample(4)
        assert {i.finding.severity for i in made.incidents.open()} == {Severity.INFO}
        assert {i.finding.action for i in made.incidents.open()} == {Action.NONE}
        assert {i.finding.part for i in made.incidents.open()} == {Part.OBSERVER}

    def test_all_that_were_better_are_faults(self) -> None:
        """A new firmware of the host that halves every slot is no design."""
        made = machine()
        for rail in range(8):
            made.pci(rail, HALF)
        made.sample(3)
        assert {i.finding.severity for i in made.incidents.open()} == {
            Severity.CRITICAL
        }

    def test_slow_from_the_start_beside_its_peers(self) -> None:
        """One of eight that never was full is a fault."""
        made = Machine(Pcie)
        lose_lanes(made)
        assert made.open_of("pcie_degraded").finding.severity is Severity.CRITICAL


class TestSpeed:
    def test_under_load(self) -> None:
        """F21: a device at work on slow lanes."""
        made = machine()
        made.work(*range(8))
        made.run(60)
        lose_lanes(made, link=SLOW)
        evidence = made.open_of("pcie_degraded").finding.evidence
        speed = next(e for e in evidence if e.signal == "current_link_speed")
        assert (speed.value, speed.threshold) == (8.0, 32.0)

    def test_power_saving_is_no_fault(self) -> None:
        """N42: all links go slow while idle and come back with the job."""
        made = machine()
        for rail in range(8):
            made.pci(rail, PciLink(2.5, 16, 32.0, 16))
        made.sample(10)
        for rail in range(8):
            made.pci(rail, GEN5)
        made.work(*range(8))
        made.sample(4)
        assert made.opened == []

    def test_idle_while_others_work(self) -> None:
        """N42: half of the rails have a job, the others save power."""
        made = machine()
        made.work(0, 1, 2, 3)
        for rail in range(4, 8):
            made.pci(rail, SLOW)
        made.sample(6)
        assert made.opened == []

    def test_idle_beside_idle_ones_at_full_speed(self) -> None:
        """Where idle links do not save power, a slow one is a fault without load."""
        made = machine()
        lose_lanes(made, link=SLOW)
        assert made.kinds == ["pcie_degraded"]

    def test_what_a_link_carries(self) -> None:
        """As the kernel reckons."""
        assert round(raw_gbps(16, 32.0), 1) == 504.1
        assert raw_gbps(4, 5.0) == 16.0
        assert raw_gbps(16, 64.0) == 1024.0


class TestErrors:
    FILES = (*TRAFFIC, *AER, "rx_pci_signal_integrity")

    def test_storm(self) -> None:
        """F22: corrected errors in every sample are told within two minutes."""
        made = machine(files=self.FILES)
        for _ in range(4):
            made.grow(made.rail(2), aer_dev_correctable=5)
            made.run(30)
        finding = made.open_of("pcie_errors").finding
        assert (finding.severity, finding.action) == (Severity.WARNING, Action.INSPECT)
        assert finding.subject.device == "mlx5_2"
        assert finding.evidence[0].signal == "aer_dev_correctable"
        assert finding.evidence[0].value == 20

    def test_one_burst_is_a_link_that_trains(self) -> None:
        """However many errors it has."""
        made = machine(files=self.FILES)
        made.grow(made.rail(2), aer_dev_correctable=5000)
        made.run(900)
        assert made.opened == []

    def test_a_stray_after_it_does_not_make_it_a_storm(self) -> None:
        """The burst is left out, and one more error is health."""
        made = machine(files=self.FILES)
        made.grow(made.rail(2), aer_dev_correctable=16)
        made.run(60)
        made.grow(made.rail(2), aer_dev_correctable=1)
        made.run(900)
        assert made.opened == []

    def test_a_burst_has_a_line_for_each_error(self) -> None:
        """Lines of one second are one burst in the kernel's log, too."""
        made = machine()
        for _ in range(4):
            made.says(*[driver(2, CORRECTED)] * 4)
            made.run(1, each=1)
        made.run(900)
        assert made.opened == []

    def test_two_a_day_are_health(self) -> None:
        """Some errors are repaired on every link."""
        made = machine(files=self.FILES)
        for _ in range(4):
            made.grow(made.rail(2), aer_dev_correctable=1)
            made.run(21600, each=60)
        assert made.opened == []

    def test_slow_rise(self) -> None:
        """A few in five minutes for a quarter of an hour are no accident."""
        made = machine(files=self.FILES)
        for _ in range(4):
            made.grow(made.rail(2), aer_dev_correctable=2)
            made.run(290)
        assert made.kinds == ["pcie_errors"]

    def test_three_strays_that_meet(self) -> None:
        """Two a day come so close together by chance, once in 1,000 node-days."""
        made = machine(files=self.FILES)
        for _ in range(4):
            made.grow(made.rail(2), aer_dev_correctable=1)
            made.run(290)
        assert made.opened == []

    def test_statistics_of_the_driver(self) -> None:
        """Where AER cannot be read, the device's own count is enough."""
        made = machine(files=(*TRAFFIC, "rx_pci_signal_integrity"))
        for _ in range(4):
            made.grow(made.rail(2), rx_pci_signal_integrity=4)
            made.run(30)
        finding = made.open_of("pcie_errors").finding
        assert finding.evidence[0].source == "ethtool:eth2"

    def test_lines_of_the_kernel(self) -> None:
        """Where nothing else can be read, its log is enough."""
        made = machine()
        for _ in range(12):
            made.says(driver(2, CORRECTED))
            made.run(5)
        finding = made.open_of("pcie_errors").finding
        assert [e.signal for e in finding.evidence] == ["kmsg", "kmsg_line"]

    def test_firmware_that_has_aer_to_itself(self) -> None:
        """What it had repaired is told as a storm once it is one."""
        made = machine()
        for _ in range(12):
            made.says(driver(2, FIRMWARE_FIRST))
            made.run(5)
        finding = made.open_of("pcie_errors").finding
        assert (finding.subject.device, finding.severity) == (
            "mlx5_2",
            Severity.WARNING,
        )
        assert "repaired, but far too many" in finding.summary

    def test_one_repaired_error_of_firmware_is_noise(self) -> None:
        """As one of AER is."""
        made = machine()
        made.says(driver(2, FIRMWARE_FIRST))
        made.run(30)
        assert made.opened == []

    @pytest.mark.parametrize(
        ("severity", "expected"),
        [("0x00062010", Severity.CRITICAL), ("0x00002010", Severity.WARNING)],
    )
    def test_firmware_tells_what_was_not_repaired(
        self, severity: str, expected: Severity
    ) -> None:
        """It is fatal where the device calls an error of this sort fatal."""
        made = machine()
        made.says(
            driver(2, "AER: aer_status: 0x00040000, aer_mask: 0x00000000"),
            driver(2, f"AER: aer_uncor_severity: {severity}"),
        )
        made.run(5)
        finding = made.open_of("pcie_errors").finding
        assert finding.severity is expected
        assert [e.value for e in finding.evidence if e.signal == "kmsg"] == [1]

    def test_a_masked_error_of_firmware_is_not_fatal(self) -> None:
        """A bit that its mask puts aside says nothing of this error."""
        made = machine()
        made.says(
            driver(2, "AER: aer_status: 0x00040010, aer_mask: 0x00040000"),
            driver(2, "AER: aer_uncor_severity: 0x00040000"),
        )
        made.run(5)
        assert made.open_of("pcie_errors").finding.severity is Severity.WARNING

    def test_recovery_that_failed(self) -> None:
        """The port above says that the device below was not brought back."""
        made = machine()
        made.says("pcieport 0000:30:01.0: AER: device recovery failed")
        made.run(5)
        finding = made.open_of("pcie_errors").finding
        assert finding.subject.device == "mlx5_2"
        assert finding.severity is Severity.WARNING

    def test_two_lines_of_one_error(self) -> None:
        """Lines that tell of the same error differently are not added up."""
        made = machine()
        made.says(
            driver(2, FATAL.replace("Fatal", "Non-Fatal")),
            "pcieport 0000:30:01.0: AER: device recovery failed",
        )
        made.run(5)
        evidence = made.open_of("pcie_errors").finding.evidence
        assert [e.value for e in evidence if e.signal == "kmsg"] == [1, 1]

    def test_the_slot_above_reports(self) -> None:
        """An error that the root port saw is that of the device below."""
        made = machine()
        for _ in range(12):
            made.says(f"pcieport 0000:30:01.0: {CORRECTED}")
            made.run(5)
        assert made.open_of("pcie_errors").finding.subject.device == "mlx5_2"

    def test_not_repaired(self) -> None:
        """One packet lost between card and host warns."""
        made = machine(files=self.FILES)
        made.grow(made.rail(2), aer_dev_nonfatal=1)
        made.run(5)
        finding = made.open_of("pcie_errors").finding
        assert (finding.severity, finding.action) == (Severity.WARNING, Action.INSPECT)

    def test_fatal(self) -> None:
        """By counter or by line: the link is lost."""
        made = machine()
        made.says(driver(2, FATAL))
        made.run(5)
        finding = made.open_of("pcie_errors").finding
        assert finding.severity is Severity.CRITICAL
        assert finding.action is Action.DRAIN_AFTER_JOB

    def test_a_slot_that_lets_go(self) -> None:
        """N03: a reset of the firmware takes the card off the bus for a moment."""
        made = machine()
        made.says("pcieport 0000:30:01.0: pciehp: Slot(21): Link Down")
        made.run(30)
        assert made.opened == []

    def test_old_lines_are_history(self) -> None:
        """What the log still has of an hour ago is not told as new."""
        made = machine()
        made.says(driver(2, FATAL))
        made.kernel[:] = [replace(made.kernel[0], at=made.now - 3600)]
        made.run(30)
        assert made.opened == []

    def test_lines_about_other_devices(self) -> None:
        """A disk has errors, too."""
        made = machine()
        made.says(f"nvme 0000:c1:00.0: {FATAL}")
        made.run(30)
        assert made.opened == []

    def test_they_end(self) -> None:
        """Without errors for the hold time they are over."""
        made = machine(files=self.FILES)
        made.grow(made.rail(2), aer_dev_nonfatal=1)
        made.run(600)
        assert made.kinds == ["pcie_errors"]
        made.run(400)
        assert made.kinds == []

    def test_a_count_from_before_is_no_error(self) -> None:
        """What the table holds at first sight was counted since boot."""
        made = machine()
        made.put(made.rail(2), aer_dev_nonfatal=7)
        made.run(30)
        assert made.opened == []
        made.grow(made.rail(2), aer_dev_nonfatal=1)
        made.run(5)
        assert made.opened == ["pcie_errors"]

    def test_survives_a_restart(self) -> None:
        """A fatal error is not forgotten with the agent."""
        made = machine()
        made.says(driver(2, FATAL))
        made.run(30)
        made.restart()
        made.run(300)
        assert made.kinds == ["pcie_errors"]
        assert made.open_of("pcie_errors").finding.severity is Severity.CRITICAL
        assert made.opened == ["pcie_errors"]


class TestStalls:
    def stall(self, made: Machine, *rails: int) -> None:
        """Let the host hold devices up half of the time for two minutes."""
        for _ in range(24):
            for rail in rails:
                made.grow(made.rail(rail), **{STALLED: 2})
            made.run(5)

    def blind_machine(self) -> Machine:
        """Return a node whose PCIe links cannot be read, at work."""
        made = Machine(Pcie, files=(*TRAFFIC, STALLED), link=PciLink())
        made.work(*range(8))
        made.run(60)
        return made

    def test_alone_where_the_width_cannot_be_read(self) -> None:
        """F20: one device is held up, its peers are not."""
        made = self.blind_machine()
        self.stall(made, 5)
        finding = made.open_of("pcie_degraded").finding
        assert finding.subject.device == "mlx5_5"
        assert finding.confidence < 1
        assert finding.evidence[1].signal == STALLED

    def test_all_rails_are_the_host(self) -> None:
        """F23: what every device suffers is no fault of one."""
        made = self.blind_machine()
        self.stall(made, *range(8))
        assert made.opened == []

    def test_a_full_link_is_not_narrow(self) -> None:
        """Stalls behind a full link have another cause."""
        made = machine(files=(*TRAFFIC, STALLED))
        made.work(*range(8))
        made.run(60)
        self.stall(made, 5)
        assert made.opened == []

    def test_peers_without_work_prove_nothing(self) -> None:
        """A lone benchmark stalls alone."""
        made = Machine(Pcie, files=(*TRAFFIC, STALLED), link=PciLink())
        made.work(5)
        made.run(60)
        self.stall(made, 5)
        assert made.opened == []

    def test_evidence_beside_a_narrow_link(self) -> None:
        """Where the width is known, stalls show what it costs."""
        made = machine(files=(*TRAFFIC, STALLED))
        self.stall(made, 3)
        lose_lanes(made)
        self.stall(made, 3)
        evidence = made.open_of("pcie_degraded").finding.evidence
        assert any(item.signal == STALLED for item in evidence)


class TestBlindness:
    def test_nothing_to_read(self) -> None:
        """Neither link nor stalls: it is said."""
        made = Machine(Pcie, link=PciLink())
        made.run(10)
        view = made.step(5)
        (blind,) = made.detectors[0].blind(view)
        assert blind.kind == "pcie_degraded"

    def test_nothing_counts_errors(self) -> None:
        """No AER table, no statistics, no kernel log: it is said."""
        made = machine()
        view = replace(made.step(5), host_side=HostSide(kernel_problem="no log"))
        (blind,) = made.detectors[0].blind(view)
        assert blind.kind == "pcie_errors"
        counted = machine(files=(*TRAFFIC, "rx_pci_signal_integrity"))
        view = replace(counted.step(5), host_side=HostSide(kernel_problem="no log"))
        assert list(counted.detectors[0].blind(view)) == []

    def test_software_devices_have_no_link(self) -> None:
        """A node without hardware is not blind."""
        detector = Pcie(Config())
        assert list(detector.blind(make_view())) == []


def test_limits_are_configured() -> None:
    """The configuration decides, not the code."""
    config = Config(pcie=Limits(samples=4))
    made = Machine(Pcie, config=config)
    made.pci(3, HALF)
    made.sample(3)
    assert made.opened == []
    made.sample(1)
    assert made.opened == ["pcie_degraded"]
