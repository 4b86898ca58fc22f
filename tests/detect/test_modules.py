"""Transceivers: heat and light."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from fabricmon.detect.modules import TransceiverHealth
from fabricmon.model import Action, Health, HostSide, Part, Role, Severity
from tests.detect.machines import Machine, cards, driver

ALARM = "Port module event[error]: module 0, Cable error, High Temperature"
SENSOR = "temp_warn:201:(pid 0): High temperature on sensors with bit set 0x0 0x1"


def machine(**options: Any) -> Machine:
    """Return a node whose transceivers are at 54 degrees."""
    made = Machine(TransceiverHealth, **options)
    warm(made, 54.0)
    return made


def warm(made: Machine, degrees: float, polls: int = 2, **others: float) -> None:
    """Read every transceiver so often; ``rN`` is another temperature of rail N."""
    for _ in range(polls):
        for rail in range(len(made.ids)):
            made.module(rail, temperature_c=others.get(f"r{rail}", degrees))
        made.run(30)


class TestHeat:
    def test_above_the_limit(self) -> None:
        """F12: warns at 70 degrees, and says that the others are cool."""
        made = machine()
        warm(made, 54.0, r3=71.0)
        finding = made.open_of("module_hot").finding
        assert (finding.severity, finding.action) == (Severity.WARNING, Action.INSPECT)
        assert (finding.subject.device, finding.subject.port) == ("mlx5_3", 1)
        (item,) = finding.evidence
        assert (item.signal, item.value, item.threshold) == ("temperature_c", 71.0, 70)
        assert finding.summary.startswith("mlx5_3/1 module at 71 °C since ")

    def test_one_sample_is_none(self) -> None:
        """A sensor errs now and then."""
        made = machine()
        warm(made, 54.0, polls=1, r3=90.0)
        warm(made, 54.0)
        assert made.opened == []

    def test_the_vendors_own_alarm(self) -> None:
        """Critical, at whatever temperature the vendor set it."""
        made = machine()
        for _ in range(2):
            made.module(3, temperature_c=66.0, alarm_c=65.0)
            made.run(30)
        finding = made.open_of("module_hot").finding
        assert finding.severity is Severity.CRITICAL
        assert finding.action is Action.DRAIN_AFTER_JOB
        assert finding.evidence[0].threshold == 65.0

    def test_healthy_heat(self) -> None:
        """A warm module below the limit is silent (45 to 65 degrees are usual)."""
        made = machine()
        warm(made, 65.0, polls=10, r3=69.9)
        assert made.opened == []

    def test_warm_room(self) -> None:
        """N41: all together are the room; nobody is blamed, nothing alarms."""
        made = machine()
        warm(made, 72.0, polls=4)
        found = [incident.finding for incident in made.incidents.open()]
        assert {finding.severity for finding in found} == {Severity.INFO}
        assert {finding.action for finding in found} == {Action.NONE}
        assert {finding.part for finding in found} == {Part.OBSERVER}

    def test_hot_module_in_a_warm_room(self) -> None:
        """F12 during N41: the one that is hotter than the room is found."""
        made = machine()
        warm(made, 66.0, polls=3, r3=76.0)
        finding = made.open_of("module_hot").finding
        assert finding.subject.device == "mlx5_3"
        assert finding.action is Action.INSPECT

    def test_too_few_to_compare(self) -> None:
        """Two hot modules of two are no room."""
        made = machine(infos=cards(2))
        warm(made, 72.0, polls=2)
        assert {i.finding.severity for i in made.incidents.open()} == {Severity.WARNING}

    def test_management_never_drains(self) -> None:
        """Its module is no part of the fabric."""
        made = machine(infos=cards(1, role=Role.MANAGEMENT))
        for _ in range(2):
            made.module(0, temperature_c=80.0, alarm_c=75.0)
            made.run(30)
        finding = made.open_of("module_hot").finding
        assert (finding.severity, finding.action) == (Severity.WARNING, Action.INSPECT)

    def test_cool_again(self) -> None:
        """It ends some minutes after it cooled down."""
        made = machine()
        warm(made, 54.0, r3=71.0)
        warm(made, 54.0, polls=2)
        assert made.kinds == ["module_hot"]
        warm(made, 54.0, polls=11)
        assert made.kinds == []


class TestAlarms:
    def test_module_event_of_the_kernel(self) -> None:
        """Where no sensor can be read, the kernel's word is enough."""
        made = Machine(TransceiverHealth)
        made.says(driver(3, ALARM))
        made.run(5)
        finding = made.open_of("module_hot").finding
        assert finding.severity is Severity.CRITICAL
        assert finding.subject.device == "mlx5_3"
        assert finding.evidence[0].signal == "kmsg"

    def test_sensor_of_the_card(self) -> None:
        """It may be that of the chip: a warning."""
        made = Machine(TransceiverHealth)
        made.says(driver(3, SENSOR))
        made.run(5)
        assert made.open_of("module_hot").finding.severity is Severity.WARNING

    def test_the_chip_is_no_module(self) -> None:
        """The second word is the chip's sensor: it is the card that is looked at."""
        made = Machine(TransceiverHealth)
        made.says(driver(3, SENSOR))
        made.run(5)
        summary = made.open_of("module_hot").finding.summary
        assert summary.startswith("mlx5_3/1 chip said to be too hot at ")
        assert summary.endswith(": this card or its cooling, not its module")

    def test_sensor_of_the_transceiver(self) -> None:
        """The first word are the sensors from 64 on, those of transceivers."""
        made = Machine(TransceiverHealth)
        made.says(driver(3, SENSOR.replace("0x0 0x1", "0x1 0x0")))
        made.run(5)
        finding = made.open_of("module_hot").finding
        assert finding.severity is Severity.WARNING
        assert "module said to be too hot" in finding.summary

    def test_all_of_them_are_the_room(self) -> None:
        """N41 where no sensor can be read: nobody is blamed, nobody drained."""
        made = Machine(TransceiverHealth)
        made.says(*(driver(rail, ALARM) for rail in range(8)))
        made.run(5)
        found = [incident.finding for incident in made.incidents.open()]
        assert {finding.severity for finding in found} == {Severity.WARNING}
        assert {finding.action for finding in found} == {Action.NONE}
        assert {finding.part for finding in found} == {Part.OBSERVER}
        assert all("the room" in finding.summary for finding in found)

    def test_the_first_of_the_room(self) -> None:
        """What looked like one bad module is let go minutes after most are too hot."""
        made = Machine(TransceiverHealth)
        made.says(driver(3, ALARM))
        made.run(10)
        made.says(*(driver(rail, ALARM) for rail in (0, 1, 2, 4, 5)))
        made.run(400)
        found = [incident.finding for incident in made.incidents.open()]
        assert {finding.action for finding in found} == {Action.NONE}
        assert {finding.part for finding in found} == {Part.OBSERVER}

    def test_two_of_eight_are_no_room(self) -> None:
        """Most must be hot, not a few."""
        made = Machine(TransceiverHealth)
        made.says(driver(3, ALARM), driver(4, ALARM))
        made.run(5)
        found = [incident.finding for incident in made.incidents.open()]
        assert {finding.severity for finding in found} == {Severity.CRITICAL}

    def test_alarms_of_two_cards_are_no_room(self) -> None:
        """Too few to compare, as with temperatures."""
        made = Machine(TransceiverHealth, infos=cards(2))
        made.says(driver(0, ALARM), driver(1, ALARM))
        made.run(5)
        found = [incident.finding for incident in made.incidents.open()]
        assert {finding.severity for finding in found} == {Severity.CRITICAL}

    def test_counter_of_the_driver(self) -> None:
        """mlx5 counts the alarms of a transceiver."""
        made = Machine(TransceiverHealth, files=("module_high_temp",))
        made.grow(made.rail(3), module_high_temp=1)
        made.run(5)
        evidence = made.open_of("module_hot").finding.evidence
        assert evidence[0].signal == "module_high_temp"

    def test_beside_a_temperature(self) -> None:
        """One finding: the alarm makes it as bad as it is."""
        made = machine()
        warm(made, 54.0, r3=71.0)
        made.says(driver(3, ALARM))
        made.run(5)
        finding = made.open_of("module_hot").finding
        assert finding.severity is Severity.CRITICAL
        assert [e.signal for e in finding.evidence] == ["temperature_c", "kmsg"]

    def test_it_is_said_once_and_holds(self) -> None:
        """Ten minutes, and the time to clear."""
        made = Machine(TransceiverHealth)
        made.says(driver(3, ALARM))
        made.run(590)
        assert made.kinds == ["module_hot"]
        made.run(330)
        assert made.kinds == []

    def test_lines_about_nothing_here(self) -> None:
        """A forged or foreign address names no port."""
        made = Machine(TransceiverHealth)
        made.says(f"mlx5_core 0000:ff:1f.7: {ALARM}")
        made.run(30)
        assert made.opened == []


class TestLight:
    def shine(self, made: Machine, *lanes: float, polls: int = 2) -> None:
        """Let rail 2 receive so much light."""
        for _ in range(polls):
            made.module(2, receive_power_dbm=lanes)
            made.run(30)

    def test_weak_lane(self) -> None:
        """F13: the weakest lane counts."""
        made = machine()
        self.shine(made, -2.0, -2.5, -7.4, -2.2)
        finding = made.open_of("optics_weak").finding
        assert (finding.severity, finding.action) == (Severity.WARNING, Action.INSPECT)
        assert (finding.evidence[0].signal, finding.evidence[0].value) == (
            "rx_power_dbm", -7.4,
        )  # fmt: skip

    def test_alarm(self) -> None:
        """Below the limit that no link bears."""
        made = machine()
        self.shine(made, -11.2)
        assert made.open_of("optics_weak").finding.severity is Severity.CRITICAL

    def test_lost_light(self) -> None:
        """F13: not yet weak, but far below what this module had."""
        made = machine()
        self.shine(made, -0.7, 0.4)
        self.shine(made, -6.8, -6.5)
        (item, _) = made.open_of("optics_weak").finding.evidence
        assert (item.value, item.threshold) == (-6.8, -5)

    def test_lost_light_that_does_not_matter(self) -> None:
        """Four decibels less is enough light where there was plenty."""
        made = machine()
        self.shine(made, 1.5)
        self.shine(made, -4.0, polls=4)
        assert made.opened == []

    def test_modest_light_all_along(self) -> None:
        """A long fibre has less, and always had."""
        made = machine()
        self.shine(made, -6.5, polls=4)
        assert made.opened == []

    def test_another_module(self) -> None:
        """After the dark, what was before is not compared with."""
        made = machine()
        self.shine(made, 1.0)
        self.shine(made, -40.0)
        self.shine(made, -6.0, polls=4)
        assert made.opened == []

    def test_dark_lanes_are_skipped(self) -> None:
        """Unused lanes, or a far end that is off, are no weak light."""
        made = machine()
        self.shine(made, -40.0, -2.0, -30.0)
        self.shine(made, -40.0, -40.0)
        assert made.opened == []

    def test_one_sample_is_none(self) -> None:
        """A connector that is being moved."""
        made = machine()
        self.shine(made, -9.0, polls=1)
        self.shine(made, -2.0)
        assert made.opened == []


class TestBlindness:
    def polled(self) -> tuple[Health, ...]:
        """Return that the source was asked."""
        return (Health("modules", "mlx5_0", True, 1.0, 0.0, 30.0, None),)

    def blind(self, made: Machine) -> dict[str, str]:
        """Return what cannot be judged."""
        made.health = self.polled()
        view = replace(made.step(5), host_side=made.host_side)
        return {each.kind: each.reason for each in made.detectors[0].blind(view)}

    def test_no_light_to_read(self) -> None:
        """Live, the memory of a transceiver takes a right that is not asked for."""
        made = machine()
        assert list(self.blind(made)) == ["optics_weak"]
        assert "CAP_NET_ADMIN" in self.blind(made)["optics_weak"]

    def test_no_heat_either(self) -> None:
        """Neither a sensor nor the kernel's log."""
        made = Machine(TransceiverHealth)
        made.host_side = HostSide(
            kernel_problem="the kernel log cannot be read (EPERM)"
        )
        assert set(self.blind(made)) == {"module_hot", "optics_weak"}

    def test_the_log_alone_is_a_sight(self) -> None:
        """Alarms of transceivers come by it."""
        made = Machine(TransceiverHealth)
        assert set(self.blind(made)) == {"optics_weak"}
