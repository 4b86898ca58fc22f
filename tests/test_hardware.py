"""What is kept of the host's side."""

from fabricmon.hardware import MAX_EVENTS, SILENT_SECONDS, Hardware, refusals
from fabricmon.model import (
    ClockStatus,
    DeviceHealth,
    HealthReporter,
    Job,
    KernelEvent,
    KernelEvents,
    KernelKind,
    KernelTally,
    ModuleStatus,
    NodeAddresses,
    Outcome,
    PortId,
)
from fabricmon.parse.log_event import LogSeverity

PORT = PortId("mlx5_0", 1)


def event(kind: KernelKind = KernelKind.LINK_DOWN) -> KernelEvent:
    """Return an event of this kind."""
    return KernelEvent(5.0, "rule", kind, LogSeverity.WARNING, "text")


class TestKernelEvents:
    def test_each_is_given_once(self) -> None:
        """Detectors see an event in one view, and count it for ever."""
        kept = Hardware()
        kept.take(KernelEvents(5.0, (event(), event(KernelKind.LINK_UP), event())))
        assert len(kept.take_events()) == 3
        assert kept.take_events() == ()
        assert kept.view.tallies == (
            KernelTally("link_down", 2),
            KernelTally("link_up", 1),
        )

    def test_history_is_judged_and_not_counted(self) -> None:
        """Each agent reads the log from its beginning; a counter must not jump."""
        kept = Hardware()
        kept.take(KernelEvents(500.0, (event(),)))
        assert kept.take_events() == (event(),)
        assert kept.view.tallies == ()

    def test_a_storm_keeps_the_newest(self) -> None:
        """Memory is bounded, the count is not cut."""
        kept = Hardware()
        kept.take(KernelEvents(5.0, (event(),) * (MAX_EVENTS + 5)))
        assert len(kept.take_events()) == MAX_EVENTS
        assert kept.view.tallies[0].events == MAX_EVENTS + 5

    def test_new_kind_changes_the_layout(self) -> None:
        """A series appears; the second event of a kind adds none."""
        kept = Hardware()
        before = kept.layout
        kept.take(KernelEvents(5.0, (event(),)))
        after = kept.layout
        kept.take(KernelEvents(6.0, (event(),)))
        assert (after > before, kept.layout) == (True, after)

    def test_problem_lasts_until_it_ends(self) -> None:
        """Lost lines add up; what the next poll needs goes back to it."""
        kept = Hardware()
        assert kept.take(KernelEvents(5.0, lost=2, problem="why", carried="why")) == (
            "why"
        )
        seen = [kept.view]
        kept.take(KernelEvents(6.0, lost=3))
        seen.append(kept.view)
        assert [each.kernel_problem for each in seen] == ["why", None]
        assert [each.kernel_lost for each in seen] == [2, 5]

    def test_another_configuration_counts_on(self) -> None:
        """A reload is no reset."""
        old, new = Hardware(), Hardware()
        old.take(KernelEvents(5.0, (event(),), lost=1))
        new.inherit(old)
        assert new.view.tallies == (KernelTally("link_down", 1),)
        assert new.view.kernel_lost == 1


class TestDevices:
    def test_the_newest_holds(self) -> None:
        """One status a port, one a device."""
        kept = Hardware()
        for degrees in (50.0, 51.0):
            kept.take(ModuleStatus(PORT, degrees, temperature_c=degrees))
        health = DeviceHealth("mlx5_0", 5.0, (HealthReporter("fw", "healthy"),))
        kept.take(health)
        assert [each.temperature_c for each in kept.view.modules] == [51.0]
        assert kept.view.health == (health,)

    def test_gone_devices_are_forgotten(self) -> None:
        """Their last values must not be judged."""
        kept = Hardware()
        kept.take(ModuleStatus(PORT, 5.0, temperature_c=80.0))
        kept.take(DeviceHealth("mlx5_0", 5.0, (HealthReporter("fw", "error"),)))
        kept.forget("mlx5_1")
        assert kept.view.modules
        kept.forget("mlx5_0")
        assert (kept.view.modules, kept.view.health) == ((), ())

    def test_transceivers_that_were_taken_out(self) -> None:
        """One that is asked and silent for long keeps no temperature; others do."""
        kept, other = Hardware(), PortId("mlx5_1", 1)
        kept.take(ModuleStatus(PORT, 0.0, 85.0))
        kept.take(ModuleStatus(other, 0.0, 54.0))
        asked, late = Job("modules", "mlx5_0", "device:mlx5_0"), SILENT_SECONDS + 1
        for silent in (
            Outcome(asked, 1.0, SILENT_SECONDS),
            Outcome(asked, late, late, error="it hangs"),
            Outcome(Job("errors", "mlx5_0", "device:mlx5_0"), late, late),
        ):
            kept.keep_answers(silent)
            assert len(kept.view.modules) == 2
        layout = kept.layout
        kept.keep_answers(Outcome(asked, late, late))
        assert [module.port for module in kept.view.modules] == [other]
        assert kept.layout == layout + 1


class TestNode:
    def test_newest_holds(self) -> None:
        """Clock and addresses are as they were last read."""
        kept = Hardware()
        kept.take(ClockStatus(1.0, 0.5))
        kept.take(ClockStatus(2.0, 0.1))
        kept.take(NodeAddresses(2.0, ("10.0.0.7",)))
        assert kept.view.clock == ClockStatus(2.0, 0.1)
        assert kept.view.addresses == NodeAddresses(2.0, ("10.0.0.7",))

    def test_refusals_are_counted(self) -> None:
        """A sandbox that forbids to read the clock is seen as an error that counts."""
        assert tuple(refusals(ClockStatus(1.0, problem="EPERM"))) == ("EPERM",)
        assert tuple(refusals(ClockStatus(1.0))) == ()
        assert tuple(refusals(DeviceHealth("mlx5_0", 1.0))) == ()
