"""Devices that are stuck, and those that lack power."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from fabricmon.detect.device_health import DeviceHealth
from fabricmon.model import (
    Action,
    BootInfo,
    Health,
    HostSide,
    Part,
    Role,
    Severity,
)
from tests.detect.machines import Machine, address, cards, driver

STUCK = "poll_health:825:(pid 0): device's health compromised - reached miss count"
TIMEOUT = (
    "wait_func:1167:(pid 4711): ACCESS_REG(0x805) timeout. Will cause a leak of a "
    "command resource"
)
REFUSED = (
    "mlx5_cmd_out_err:809:(pid 3101): ACCESS_REG(0x805) op_mod(0x1) failed, status bad "
    "parameter(0x3), syndrome (0x305684), err(-22)"
)
RECOVERED = "mlx5_health_try_recover:335:(pid 9): health recovery succeeded"
POWER = "mlx5_pcie_event:301:(pid 1207): Detected insufficient power on the PCIe slot (27W)."
CANCELED = (
    "wait_func:1150:(pid 4711): DESTROY_MKEY(0x202) canceled on out of queue timeout."
)
RECOVERING = "mlx5_health_try_recover:323:(pid 88): starting health recovery flow"
ENOUGH = "mlx5_pcie_event:306:(pid 7): PCIe slot advertised sufficient power (75W)."


def machine(**options: Any) -> Machine:
    """Return a node whose rails are all at work."""
    made = Machine(DeviceHealth, **options)
    made.work(*range(len(made.ids)))
    made.run(120)
    return made


def slow(made: Machine, *rails: int, seconds: float = 20.0) -> None:
    """Let reads of devices take so long from now on."""
    made.health = tuple(
        Health(
            "errors",
            where.device,
            ok=True,
            last_success=made.now,
            duration_seconds=seconds if rail in rails else 0.01,
            due_seconds=5.0,
            in_flight_since=None,
            lane="device",
        )
        for rail, where in enumerate(made.ids)
    )


def healthy(made: Machine) -> tuple[Health, ...]:
    """Return devices whose reads are quick."""
    slow(made)
    return made.health


class TestStuck:
    def test_driver_and_kernel_agree(self) -> None:
        """F25: the firmware's life counter stands, and its reporter is in error."""
        made = machine()
        made.says(driver(4, STUCK))
        made.reporter(4, "fw_fatal", "error")
        made.run(5)
        finding = made.open_of("device_stuck").finding
        assert finding.severity is Severity.CRITICAL
        assert finding.action is Action.DRAIN_NOW
        assert (finding.subject.device, finding.subject.rail) == ("mlx5_4", 4)
        assert [e.signal for e in finding.evidence] == ["fw_fatal", "kmsg"]

    def test_the_driver_alone_warns(self) -> None:
        """A reporter in error, and nothing else is wrong yet."""
        made = machine()
        made.reporter(4, "fw", "error")
        made.run(5)
        finding = made.open_of("device_stuck").finding
        assert (finding.severity, finding.action) == (Severity.WARNING, Action.INSPECT)

    def test_still_counters_and_slow_reads(self) -> None:
        """Where neither log nor devlink can be read, these two are enough."""
        made = machine()
        made.work(4, share=0.0)
        slow(made, 4)
        made.run(50)
        assert made.opened == []
        made.run(30)
        finding = made.open_of("device_stuck").finding
        assert finding.severity is Severity.CRITICAL
        assert [e.signal for e in finding.evidence] == ["frozen", "read_seconds"]

    def test_still_counters_alone(self) -> None:
        """N38: a job on half of the rails ends; they stand still, and are well."""
        made = machine()
        made.work(4, 5, 6, 7, share=0.0)
        made.run(600)
        assert made.opened == []

    def test_one_idle_rail(self) -> None:
        """N37: a rail that no job uses any more."""
        made = machine()
        made.work(4, share=0.0)
        made.run(600)
        assert made.opened == []

    def test_all_stop_together(self) -> None:
        """N19: the job is over; slow reads then are no stuck device."""
        made = machine()
        made.work(*range(8), share=0.0)
        slow(made, 4)
        made.run(600)
        assert made.opened == []

    def test_a_slow_host(self) -> None:
        """Reads that are slow on most devices are the host's doing."""
        made = machine()
        made.work(4, share=0.0)
        slow(made, *range(5))
        made.run(300)
        assert made.opened == []

    def test_never_at_work(self) -> None:
        """N20: a device that was idle all along is not frozen."""
        made = Machine(DeviceHealth)
        made.work(0, 1, 2, 3)
        slow(made, 4)
        made.run(600)
        assert made.opened == []

    def test_what_was_sure_stays_so(self) -> None:
        """The job dies of it, and then nobody moves: that is no recovery."""
        made = machine()
        made.says(driver(4, STUCK))
        made.reporter(4, "fw_fatal", "error")
        made.run(5)
        made.work(*range(8), share=0.0)
        for _ in range(30):
            made.reporter(4, "fw_fatal", "error")
            made.run(30)
        assert made.open_of("device_stuck").finding.severity is Severity.CRITICAL

    def test_recovery(self) -> None:
        """The kernel says that the device works again."""
        made = machine()
        made.says(driver(4, STUCK))
        made.run(5)
        assert made.kinds == ["device_stuck"]
        made.says(driver(4, RECOVERED))
        made.run(90)
        assert made.kinds == []

    def test_transmit_reporters_are_not_the_firmware(self) -> None:
        """A queue that was reset is no stuck device."""
        made = machine()
        made.reporter(4, "tx", "error")
        made.run(60)
        assert made.opened == []

    def test_one_command_without_answer(self) -> None:
        """Alone it is no proof."""
        made = machine()
        made.says(driver(4, TIMEOUT))
        made.run(60)
        assert made.opened == []

    def test_registers_that_are_refused(self) -> None:
        """N14: a function without rights is noise, however loud."""
        made = machine()
        for _ in range(20):
            made.says(driver(4, REFUSED))
            made.run(30)
        assert made.opened == []

    def test_management_never_drains(self) -> None:
        """It is no part of the fabric."""
        made = machine(infos=cards(1, role=Role.MANAGEMENT))
        made.says(driver(0, STUCK))
        made.reporter(0, "fw_fatal", "error")
        made.run(5)
        finding = made.open_of("device_stuck").finding
        assert (finding.severity, finding.action) == (Severity.WARNING, Action.INSPECT)

    def test_forged_lines(self) -> None:
        """N45: a line about no device of this node."""
        made = machine()
        made.says(f"mlx5_core 0000:ff:1f.7: {STUCK}")
        made.run(30)
        assert made.opened == []


class TestEndOfAJob:
    """N38: rails whose job is over while another job works are well."""

    def test_reads_that_are_slow_for_a_moment(self) -> None:
        """A job that ends gives memory back, and its device answers slowly meanwhile."""
        made = machine()
        made.work(4, share=0.0)
        made.run(50)
        slow(made, 4, seconds=1.3)
        made.run(30)
        slow(made)
        made.run(600)
        assert made.opened == []

    def test_one_slow_read_of_what_is_seldom_read(self) -> None:
        """It says nothing of the minutes until it is read again."""
        made = machine()
        made.work(4, share=0.0)
        made.health = tuple(
            replace(each, due_seconds=600.0, duration_seconds=1.3)
            if each.unit == "mlx5_4"
            else each
            for each in healthy(made)
        )
        made.run(600)
        assert made.opened == []

    def test_a_command_that_is_given_up(self) -> None:
        """One command without answer may be one of many at the end of a job."""
        made = machine()
        made.work(4, share=0.0)
        made.run(40)
        made.says(driver(4, CANCELED))
        made.run(600)
        assert made.opened == []

    def test_what_the_driver_said_long_before(self) -> None:
        """Traffic flowed for minutes after it: that it ends is another matter."""
        made = machine()
        for share in (0.5, 0.5, 0.0, 0.0):
            made.work(4, share=share)
            made.reporter(4, "fw", "error")
            made.run(150)
        assert made.opened == ["device_stuck"]
        assert made.open_of("device_stuck").finding.severity is Severity.WARNING

    def test_rails_that_are_slow_together(self) -> None:
        """Several devices do not hang in the same moment: their job gives back much."""
        made = machine()
        made.work(4, 5, 6, share=0.0)
        slow(made, 4, 5, 6)
        made.run(600)
        assert made.opened == []

    def test_stillness_alone_keeps_nothing(self) -> None:
        """What was sure ends once nothing but the stillness is left."""
        made = machine()
        made.work(4, share=0.0)
        slow(made, 4)
        made.run(90)
        assert made.kinds == ["device_stuck"]
        slow(made)
        made.run(90)
        assert made.kinds == []


class TestSigns:
    def test_a_hang_that_stops_its_job(self) -> None:
        """The other rails of the job stop with it, and answer at once."""
        made = machine()
        made.work(4, 5, 6, 7, share=0.0)
        slow(made, 4)
        made.run(90)
        finding = made.open_of("device_stuck").finding
        assert (finding.subject.device, finding.severity) == (
            "mlx5_4",
            Severity.CRITICAL,
        )

    def test_the_driver_when_it_stops(self) -> None:
        """The kernel's word and traffic that stopped then are two."""
        made = machine()
        made.work(4, share=0.0)
        made.run(10)
        made.says(driver(4, STUCK))
        made.run(80)
        finding = made.open_of("device_stuck").finding
        assert finding.severity is Severity.CRITICAL
        assert [e.signal for e in finding.evidence] == ["kmsg", "frozen"]

    def test_commands_that_go_unanswered(self) -> None:
        """Again and again, on a device that stopped when it began."""
        made = machine()
        made.work(4, share=0.0)
        for _ in range(3):
            made.says(driver(4, TIMEOUT))
            made.run(40)
        finding = made.open_of("device_stuck").finding
        assert finding.severity is Severity.CRITICAL

    def test_commands_alone(self) -> None:
        """Without any other sign they warn, and name no certainty."""
        made = Machine(DeviceHealth)
        for _ in range(3):
            made.says(driver(4, TIMEOUT))
            made.run(40)
        finding = made.open_of("device_stuck").finding
        assert (finding.severity, finding.action) == (Severity.WARNING, Action.INSPECT)
        assert "may be stuck" in finding.summary
        assert "not the fabric" in finding.summary

    def test_reporter_that_recovers(self) -> None:
        """Devlink saw the error and its end: what the kernel said is over, too."""
        made = machine()
        made.work(4, share=0.0)
        made.says(driver(4, STUCK))
        made.reporter(4, "fw_fatal", "error")
        made.run(30)
        made.reporter(4, "fw_fatal", "healthy")
        made.run(90)
        assert made.kinds == []

    def test_recovery_that_succeeds_in_time(self) -> None:
        """A driver that starts its device anew is not told of at once."""
        made = machine()
        made.says(driver(4, RECOVERING))
        made.run(60)
        made.says(driver(4, RECOVERED))
        made.run(300)
        assert made.opened == []

    def test_recovery_that_does_not_end(self) -> None:
        """It began minutes ago, and nothing flows."""
        made = machine()
        made.says(driver(4, RECOVERING))
        made.work(*range(8), share=0.0)
        made.run(180)
        finding = made.open_of("device_stuck").finding
        assert finding.severity is Severity.WARNING


class TestTraffic:
    """Traffic that flows says that a device works."""

    def test_it_ends_what_the_kernel_said(self) -> None:
        """The driver of bnxt does not say that a reset of its firmware is over."""
        made = machine(infos=cards(driver="bnxt_en"))
        made.says(
            f"bnxt_en {address(4)} eth4: Detected firmware fatal condition, resetting"
        )
        made.run(5)
        assert made.kinds == ["device_stuck"]
        made.run(175)
        assert made.kinds == []

    def test_it_ends_what_was_sure(self) -> None:
        """A reporter that stays in error warns while its device works."""
        made = machine()
        made.says(driver(4, STUCK))
        made.reporter(4, "fw_fatal", "error")
        made.run(30)
        assert made.open_of("device_stuck").finding.severity is Severity.CRITICAL
        made.run(120)
        assert made.open_of("device_stuck").finding.severity is Severity.WARNING

    def test_it_speaks_of_its_own_device_only(self) -> None:
        """The others of the node may work on."""
        made = machine()
        made.work(4, share=0.0)
        made.says(driver(4, STUCK))
        made.run(300)
        assert made.kinds == ["device_stuck"]


def test_a_refused_command_was_answered() -> None:
    """Firmware that says no to a command is alive."""
    made = machine(infos=cards(driver="bnxt_en"))
    made.work(4, share=0.0)
    for _ in range(4):
        made.says(f"bnxt_en {address(4)}: QPLIB: cmdq[0x17]=0x11 status 0x5")
        made.run(40)
    assert made.opened == []


def test_an_irdma_reset_that_fails() -> None:
    """The driver of the network side gives the device up, and says so."""
    made = machine(infos=cards(driver="irdma"))
    made.says(f"ice {address(4)} rocep4: Requesting a reset")
    made.run(5)
    assert made.kinds == []
    made.says(f"ice {address(4)}: Rebuild failed, unload and reload driver (reset)")
    made.run(5)
    assert made.kinds == ["device_stuck"]


class TestPower:
    def test_too_little(self) -> None:
        """F26: a ticket that names the slot, with the kernel's own words."""
        made = machine()
        made.says(driver(6, POWER))
        made.run(5)
        finding = made.open_of("nic_power").finding
        assert (finding.severity, finding.action) == (Severity.WARNING, Action.INSPECT)
        assert (finding.evidence[0].value, finding.evidence[0].unit) == (27, "W")
        assert finding.subject.device == "mlx5_6"

    def test_it_lasts(self) -> None:
        """The kernel says it once a boot; it stays true, over a restart as well."""
        made = machine()
        made.says(driver(6, POWER))
        made.run(3600, each=60)
        before = made.open_of("nic_power").id
        made.restart()
        made.run(3600, each=60)
        assert made.open_of("nic_power").id == before
        assert made.opened == ["nic_power"]

    def test_enough_again(self) -> None:
        """The kernel says so, too."""
        made = machine()
        made.says(driver(6, POWER))
        made.run(30)
        made.says(driver(6, ENOUGH))
        made.run(30)
        assert made.kinds == []

    def test_another_boot(self) -> None:
        """What was said in the last boot is not held against this one."""
        made = machine()
        made.says(driver(6, POWER))
        made.run(30)
        made.boot = BootInfo(made.now, "boot-2", 10.0)
        made.run(30)
        assert made.kinds == []

    def test_all_cards_of_the_model(self) -> None:
        """A platform that never says how much its slots give: nobody's fault."""
        made = machine()
        for rail in range(8):
            made.says(driver(rail, POWER))
        made.run(5)
        found = [incident.finding for incident in made.incidents.open()]
        assert {finding.severity for finding in found} == {Severity.INFO}
        assert {finding.action for finding in found} == {Action.NONE}
        assert {finding.part for finding in found} == {Part.OBSERVER}


def test_blind_without_the_log() -> None:
    """Nothing but the kernel's log tells of power."""
    made = Machine(DeviceHealth)
    problem = "the kernel log cannot be read (EPERM): see kernel-log.conf.example"
    view = replace(made.step(5), host_side=HostSide(kernel_problem=problem))
    (blind,) = made.detectors[0].blind(view)
    assert (blind.kind, blind.reason) == ("nic_power", problem)
    assert list(made.detectors[0].blind(made.step(5))) == []
