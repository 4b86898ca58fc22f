"""The monitor about itself: full counters, resets, old values, dead sources."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from fabricmon.config import Config
from fabricmon.detect.telemetry import Telemetry
from fabricmon.kinds import KINDS, About
from fabricmon.model import (
    Action,
    BootInfo,
    ErrnoCount,
    Evidence,
    Finding,
    Health,
    Severity,
    Subject,
)
from fabricmon.summaries import SUMMARY_LENGTH
from tests.views import START, Feed, make_view, port, port_view

HOUR = 3600


class Node(Feed):
    """A feed with its detector: `run` steps it and returns the last findings."""

    def __init__(self, *infos: object, **options: object) -> None:
        super().__init__(*infos, **options)  # type: ignore[arg-type]
        self.detector = Telemetry(self.config)
        self.step()

    def run(self, seconds: float = 5.0, each: float = 5.0) -> list[Finding]:
        """Let time pass; return what the detector says at the end of it."""
        found: list[Finding] = []
        for _ in range(max(round(seconds / each), 1)):
            found = list(self.detector.judge(self.step(each)))
        return found

    def all(self, seconds: float, each: float = 5.0) -> list[Finding]:
        """Let time pass; return everything that the detector says meanwhile."""
        found: list[Finding] = []
        for _ in range(round(seconds / each)):
            found += self.detector.judge(self.step(each))
        return found


# Full counters


def test_full_error_counters_are_one_finding_a_port() -> None:
    """A port with a past (N05) is told once, with every full counter."""
    node = Node()
    node.put(link_downed=255, symbol_error=65_535)
    (finding,) = node.run()
    assert finding.kind == "counter_saturated"
    assert finding.severity is Severity.INFO
    assert finding.action is Action.NONE
    assert [item.signal for item in finding.evidence] == ["symbol_error", "link_downed"]
    assert [item.value for item in finding.evidence] == [65_535, 255]
    assert finding.evidence[0].source == "infiniband/mlx5_0/ports/1/counters"
    assert len(finding.summary) <= SUMMARY_LENGTH


def test_full_counter_names_what_stands_in_for_it() -> None:
    """Flaps of a port whose link_downed is full show in the carrier counter."""
    node = Node()
    node.put(link_downed=255)
    (finding,) = node.run()
    assert "instead: carrier_down_count" in finding.summary


def test_full_counter_without_substitute_says_so() -> None:
    """A blind spot that nothing covers is named as one."""
    node = Node(files=())
    node.put(link_error_recovery=255)
    (finding,) = node.run()
    assert "nothing stands in" in finding.summary


def test_full_transmit_wait_is_ignored() -> None:
    """port_xmit_wait is full for ever on busy ports (N07): not worth a word."""
    node = Node()
    node.put(port_xmit_wait=4_294_967_295)
    assert node.run() == []


def test_full_counter_holds_until_it_is_cleared() -> None:
    """The blind spot is there as long as the counter is full, and no longer."""
    node = Node()
    node.put(symbol_error=65_535)
    onset = node.run()[0].onset
    assert [f.onset for f in node.run(HOUR, 60.0)] == [onset]
    node.put(symbol_error=0)
    assert [f.kind for f in node.all(60)] == ["counter_reset"]


def test_virtual_function_is_not_reported_full() -> None:
    """What a VF shows of the physical port is the PF's story."""
    node = Node(port(is_vf=True))
    node.put(link_downed=255)
    assert node.run() == []


def test_full_counter_keeps_its_onset_over_a_restart() -> None:
    """A restarted agent goes on with the same incident."""
    node = Node()
    node.put(link_downed=255)
    (before,) = node.run()
    after = Node()
    after.now, after.wall = node.now + 60, node.wall + 60
    after.put(link_downed=255)
    after.detector.restore(node.detector.save(), after.wall - after.now)
    assert [finding.onset for finding in after.run()] == [before.onset]


# Resets


def test_cleared_counters_are_told_once_with_both_values() -> None:
    """Someone cleared the port (N04): an event, per port, after every group was read."""
    node = Node()
    node.put(symbol_error=50, port_rcv_errors=14, port_rcv_data=10**12)
    node.run()
    node.put(symbol_error=0, port_rcv_errors=2, port_rcv_data=100)
    (finding,) = node.all(HOUR)
    assert finding.kind == "counter_reset"
    assert finding.severity is Severity.INFO
    assert finding.subject.device == "mlx5_0"
    assert {(item.signal, item.value) for item in finding.evidence} == {
        ("symbol_error", "50 -> 0"),
        ("port_rcv_errors", "14 -> 2"),
        ("port_rcv_data", "1000000000000 -> 100"),
    }
    assert finding.onset == pytest.approx(node.wall - node.now + START + 15)


def test_groups_that_fall_one_after_the_other_are_one_reset() -> None:
    """Groups are read at different moments: still one finding."""
    node = Node()
    node.put(symbol_error=50, port_rcv_data=10**12, packet_seq_err=9)
    node.run()
    node.put(symbol_error=0)
    node.run()
    node.put(packet_seq_err=0)
    node.run()
    node.put(port_rcv_data=0)
    (finding,) = node.all(600)
    assert len(finding.evidence) == 3


def test_periodic_clearing_does_not_flood() -> None:
    """A manager that clears every four minutes (N04) is told once an hour."""
    node = Node()
    told: list[Finding] = []
    for _ in range(30):
        node.put(symbol_error=50)
        told += node.all(120)
        node.put(symbol_error=0)
        told += node.all(120)
    assert len(told) == 2


def test_reset_of_many_ports_is_told_as_one() -> None:
    """A boot or a fleet-wide clear on eight ports is one finding, not eight."""
    ports = [port(f"mlx5_{number}") for number in range(8)]
    node = Node(*ports)
    for each in ports:
        node.put(each.id, symbol_error=5)
    node.run()
    for each in ports[:5]:
        node.put(each.id, symbol_error=0)
    node.run()
    for each in ports[5:]:
        node.put(each.id, symbol_error=0)
    (finding,) = node.all(HOUR)
    assert finding.subject == Subject()
    assert finding.summary.startswith("Counters of 8 ports fell together")
    assert len(finding.evidence) == 8


def test_two_ports_are_told_one_by_one() -> None:
    """Few ports keep their names."""
    ports = [port("mlx5_0"), port("mlx5_1")]
    node = Node(*ports)
    for each in ports:
        node.put(each.id, symbol_error=5)
    node.run()
    for each in ports:
        node.put(each.id, symbol_error=0)
    assert [f.subject.device for f in node.all(60)] == ["mlx5_0", "mlx5_1"]


def test_reset_by_a_boot_says_so() -> None:
    """Counters that start anew with the node (N01) are explained."""
    node = Node()
    node.put(symbol_error=5)
    node.run()
    node.put(symbol_error=0)
    node.boot = BootInfo(node.now, "boot-2", 2.0)
    node.window.rebaseline("mlx5_0", "the node booted")
    (finding,) = node.all(60)
    assert finding.summary.endswith("the node booted")


def test_driver_reload_that_keeps_counters_is_no_reset() -> None:
    """Where the device keeps its counters (N03 A) nothing fell."""
    node = Node()
    node.put(symbol_error=5)
    node.run()
    node.window.rebaseline("mlx5_0", "driver loaded again")
    node.grow(symbol_error=2)
    assert node.all(60) == []


def test_a_jump_that_cannot_be_is_garbage() -> None:
    """No link falls a million times in five seconds: that is a note, and no flap."""
    node = Node()
    node.run()
    node.put(carrier_down_count=1_000_000)
    (finding,) = node.all(60)
    assert finding.kind == "counter_reset"
    assert finding.summary.startswith("carrier_down_count jumped: more than can be")
    assert [(e.value, e.unit) for e in finding.evidence] == [("0 -> 1000000", "events")]


def test_wrapped_counter_is_no_reset() -> None:
    """A busy 32-bit field that starts over was not cleared."""
    node = Node(files=())
    for value in range((1 << 32) - 52_000, 1 << 32, 5000):
        node.put(packet_seq_err=value)
        node.run()
    node.put(packet_seq_err=1000)
    assert node.all(60) == []


def test_restart_does_not_tell_a_reset_again() -> None:
    """What was told an hour ago at most is not told by the next agent."""
    node = Node()
    node.put(symbol_error=5)
    node.run()
    node.put(symbol_error=0)
    assert len(node.all(60)) == 1
    after = Node()
    after.detector.restore(node.detector.save(), node.wall - node.now)
    after.now, after.wall = node.now, node.wall
    after.put(symbol_error=5)
    after.run()
    after.put(symbol_error=0)
    assert after.all(60) == []


# Old values


def health(
    source: str = "errors",
    unit: str = "mlx5_0",
    *,
    age: float = 0.0,
    now: float = START,
    ok: bool = True,
    due: float = 5.0,
    in_flight: float | None = None,
    errors: tuple[ErrnoCount, ...] = (),
    quarantined: str | None = None,
    lane: str = "",
) -> Health:
    """Return the health of a source that last answered ``age`` seconds ago."""
    return Health(
        source=source,
        unit=unit,
        ok=ok,
        last_success=now - age,
        duration_seconds=0.01,
        due_seconds=due,
        in_flight_since=in_flight,
        errors=errors,
        quarantined=quarantined,
        lane=lane,
    )


def judge(*sources: Health) -> list[Finding]:
    """Return what a new detector says of these sources at one moment."""
    return list(Telemetry(Config()).judge(make_view(health=sources)))


def test_sources_that_answer_are_silent() -> None:
    """A poll or two late is normal life."""
    assert judge(health(age=1), health("traffic", age=40, due=15.0)) == []


def test_hung_read_names_device_and_source() -> None:
    """Three polls missed by a read in flight (F25) are old telemetry."""
    (finding,) = judge(
        health(age=25, in_flight=START - 20), health(unit="mlx5_1", age=1)
    )
    assert finding.kind == "telemetry_stale"
    assert finding.severity is Severity.WARNING
    assert finding.action is Action.NONE
    assert finding.summary.startswith("No values of mlx5_0 errors for 25 s")
    assert finding.evidence == (
        Evidence("errors", 25, "s", "mlx5_0: a read hangs", threshold=20.0),
    )
    assert finding.onset == pytest.approx(make_view().wall - 25)


@pytest.mark.parametrize(
    ("other", "device"), [("mlx5_0", "mlx5_0"), ("mlx5_1", None), ("", None)]
)
def test_one_hung_device_is_the_subject(other: str, device: str | None) -> None:
    """Where all that is late is of one device, its ports carry the story."""
    hung = (health(age=25, in_flight=START - 20), health("traffic", other, age=90))
    view = make_view(health=hung, ports=(port_view(port("mlx5_0")),))
    (finding,) = Telemetry(Config()).judge(view)
    assert finding.subject == Subject(device=device)


def test_a_hung_device_without_ports_is_told_of_the_node() -> None:
    """Hung since before its ports were known: else nobody would be told."""
    (finding,) = judge(health(age=25, in_flight=START - 20))
    assert finding.subject == Subject()


def test_everything_that_hangs_is_one_finding() -> None:
    """One stuck device stops many sources: one finding, the worst first."""
    (finding,) = judge(
        health("traffic", age=60, due=15.0),
        *(health(f"s{n}", age=30, in_flight=START - 28) for n in range(12)),
    )
    assert "and 12 more sources (mlx5_" in finding.summary
    assert len(finding.evidence) == 8
    assert finding.evidence[0].signal == "s0"
    assert len(finding.summary) <= SUMMARY_LENGTH


def test_ten_minutes_without_values_are_critical() -> None:
    """Then nothing is known any more; a hung device is worth a look."""
    (finding,) = judge(health(age=600, in_flight=START - 598))
    assert finding.severity is Severity.CRITICAL
    assert finding.action is Action.INSPECT


def test_rare_source_is_not_critical_at_once() -> None:
    """A source that is polled hourly is late after hours, not after ten minutes."""
    assert judge(health("ibstat", "", age=2 * HOUR, due=HOUR)) == []
    (finding,) = judge(health("ibstat", "", age=3.1 * HOUR, due=HOUR))
    assert finding.severity is Severity.WARNING


def test_tool_that_is_tried_again_does_not_hang() -> None:
    """A tool is ended in any case: while it runs once more it goes on failing."""
    late = health(
        "ibstat", "", age=4 * HOUR, due=HOUR, ok=False, in_flight=START, lane="tool"
    )
    (finding,) = judge(late)
    assert finding.kind == "source_failed"


def test_quarantined_source_is_not_stale() -> None:
    """A group that is left alone on purpose (N14) is not missed."""
    assert judge(health(age=HOUR, quarantined="EINVAL")) == []


@pytest.mark.parametrize("age", [5.0, 10.0])
def test_transient_read_error_is_nothing(age: float) -> None:
    """One or two polls that fail (N15) are neither old nor dead."""
    failing = health(age=age, ok=False, errors=(ErrnoCount("EIO", 2),))
    assert judge(failing) == []


def test_source_that_never_answered_is_given_its_time() -> None:
    """At the start nothing has answered yet: age counts from when it was due."""
    detector = Telemetry(Config())
    never = Health("errors", "mlx5_0", True, None, 0.0, 5.0, START)
    assert list(detector.judge(make_view(health=(never,)))) == []
    assert list(detector.judge(make_view(START + 15, health=(never,)))) == []
    (finding,) = detector.judge(make_view(START + 25, health=(never,)))
    assert finding.kind == "telemetry_stale"


def test_stale_ends_when_values_come() -> None:
    """One good poll is enough."""
    detector = Telemetry(Config())
    late = health(age=60)
    assert list(detector.judge(make_view(health=(late,)))) != []
    good = health(now=START + 1)
    assert list(detector.judge(make_view(START + 1, health=(good,)))) == []


def test_gap_of_the_agent_is_no_fault_of_the_sources() -> None:
    """After starvation (N31) everything is old for a moment: information, one story."""
    detector = Telemetry(Config())
    late = health(age=120)
    found = list(detector.judge(make_view(health=(late,), gap_seconds=120.0)))
    assert [f.severity for f in found] == [Severity.INFO]
    assert found[0].kind == "telemetry_stale"
    assert found[0].evidence[0].value == 120.0
    later = make_view(START + 300, health=(health(now=START + 300),))
    assert [f.severity for f in detector.judge(later)] == [Severity.INFO]
    ended = make_view(START + 700, health=(health(now=START + 700),))
    assert list(detector.judge(ended)) == []


# Dead sources


def failing(units: Iterable[str], source: str = "errors") -> tuple[Health, ...]:
    """Return a source that has failed on these units for a minute."""
    errors = (ErrnoCount("EIO", 12),)
    return tuple(
        health(source, unit, age=60, ok=False, errors=errors) for unit in units
    )


def test_source_that_fails_everywhere_has_failed() -> None:
    """When no unit answers it is the source, and it is said what is lost."""
    (finding,) = judge(*failing(["mlx5_0", "mlx5_1"]), health("state", age=1))
    assert finding.kind == "source_failed"
    assert finding.severity is Severity.WARNING
    assert finding.summary.startswith("Cannot read errors on this node for 60 s")
    assert finding.evidence[0].source == "mlx5_0: every read fails (EIO x12)"


def test_source_that_fails_on_one_device_is_old_there() -> None:
    """When the others answer it is that device."""
    (finding,) = judge(*failing(["mlx5_0"]), health(unit="mlx5_1", age=1))
    assert finding.kind == "telemetry_stale"
    assert finding.summary.startswith("No values of mlx5_0 errors for 60 s: every read")


def test_unreadable_class_has_failed_after_three_polls() -> None:
    """The folder of all devices gives EACCES: one blip is nothing, then it is said."""
    detector = Telemetry(Config())
    for at in (0, 5, 10):
        view = make_view(START + at, class_error="EACCES")
        assert list(detector.judge(view)) == []
    (finding,) = detector.judge(make_view(START + 15, class_error="EACCES"))
    assert finding.kind == "source_failed"
    assert finding.evidence[0].value == "EACCES"
    assert list(detector.judge(make_view(START + 20))) == []
    view = make_view(START + 25, class_error="EACCES")
    assert list(detector.judge(view)) == []


def test_node_without_rdma_has_not_failed() -> None:
    """A node without the class is no broken node; it is blind, and says why."""
    detector = Telemetry(Config())
    for at in range(0, 600, 5):
        view = make_view(START + at, class_error="ENOENT")
        assert list(detector.judge(view)) == []
    blind = list(detector.blind(make_view(class_error="ENOENT")))
    assert {item.reason for item in blind} == {"the node has no RDMA driver"}
    ports = {kind.slug for kind in KINDS if kind.about is About.PORT}
    assert {item.kind for item in blind} == ports - set(detector.kinds)


def test_node_that_can_be_seen_is_not_blind() -> None:
    """No reason, no blindness."""
    assert list(Telemetry(Config()).blind(make_view())) == []


@pytest.mark.parametrize("saved", [b"[1]", b"\xff\xff", b"\x01"])
def test_broken_state_is_refused(saved: bytes) -> None:
    """What was not saved by this detector is a ValueError."""
    with pytest.raises(ValueError):
        Telemetry(Config()).restore(saved, 0.0)
