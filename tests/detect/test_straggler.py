"""Rails that pace a job are found, others never blamed; places need local evidence."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabricmon.config import Bursts, Config
from fabricmon.detect.host_pace import HostPace
from fabricmon.detect.local_evidence import LocalEvidence, LocalSign, Nature
from fabricmon.detect.rail_comparison import robust_scores
from fabricmon.detect.rail_drift import cusum
from fabricmon.detect.rail_history import RailHistory
from fabricmon.detect.rail_windows import RailBurst, RailWindow
from fabricmon.detect.straggler import Stragglers
from fabricmon.model import (
    Action,
    Evidence,
    Finding,
    JobUse,
    LogEvent,
    LogSeverity,
    MaintenanceWindow,
    Part,
    PciLink,
    PciStatus,
    PortId,
    PortView,
    Role,
    Severity,
    View,
)
from fabricmon.parse.words import PortState, Rate
from tests.detect.rails import STEP, Rails, healthy, slow
from tests.node import RAILS, pid
from tests.views import START, WALL, port, status

MINUTE = 60.0


def one(found: list[Finding]) -> Finding:
    """Return the only finding."""
    (finding,) = found
    return finding


class TestRailSlow:
    def test_a_rail_that_is_busy_longer_at_a_lower_rate(self) -> None:
        """Six of ten windows agree: the rail is named, its place is not (F54)."""
        rails = Rails()
        rails.play(*healthy(), 10)
        assert rails.play(*slow(3), 5) == []
        finding = one(rails.play(*slow(3)))
        assert (finding.kind, finding.subject.rail) == ("rail_slow", 3)
        assert finding.subject.device is None
        assert (finding.severity, finding.part) == (Severity.WARNING, Part.OBSERVER)
        assert finding.action is Action.NONE

    def test_means_decide_nothing(self) -> None:
        """The slow rail carries the same bytes as the others, and is found."""
        rails = Rails()
        duty, rate = slow(2, busy=12 * STEP, rate=0.425)
        rails.play(duty, rate, 6)
        means = {round(burst.mean) for burst in rails.bursts}
        assert len(means) == 1
        assert one(rails.play(duty, rate)).subject.rail == 2

    def test_it_tells_since_when(self) -> None:
        """The onset is the first window that was odd, also when it was told later."""
        rails = Rails()
        rails.play(*healthy(), 3)
        begins = rails.now + rails.every - 3
        finding = one(rails.play(*slow(1), 12))
        offset = rails.view().onset_offset
        assert finding.onset == pytest.approx(begins + offset)

    def test_the_evidence_has_duty_and_rate(self) -> None:
        """Value, threshold and window of each stand in the finding."""
        rails = Rails()
        finding = one(rails.play(*slow(1), 8))
        by_signal = {each.signal: each for each in finding.evidence}
        duty, rate = by_signal["busy_ratio"], by_signal["p99_rate"]
        assert duty.value == pytest.approx(10 * STEP, abs=1e-3)
        assert rate.value == pytest.approx(0.47 * 400, abs=0.1)
        assert rate.threshold == pytest.approx(0.75 * 0.85 * 400, abs=0.1)
        assert by_signal["windows_slow"].value == 8

    def test_it_ends_when_the_rail_keeps_pace_again(self) -> None:
        """Two odd windows of ten are left: nothing is told any more, no jitter either."""
        rails = Rails()
        assert rails.play(*slow(1), 10)
        assert rails.play(*healthy(), 7)
        assert rails.play(*healthy(), 1) == []

    def test_windows_without_pause_must_span_a_minute(self) -> None:
        """Ten windows in half a minute may all be of one phase of the job."""
        rails = Rails(every=3.2)
        assert rails.play(*slow(1), 15) == []
        assert rails.play(*slow(1), 6)

    def test_calm_windows_before_do_not_stretch_them(self) -> None:
        """It is the odd windows that span a minute, not those before them."""
        rails = Rails()
        rails.play(*healthy(), 10)
        rails.every = 3.2
        assert rails.play(*slow(1), 10) == []

    def test_a_first_odd_window_is_a_suspicion(self) -> None:
        """Windows should follow each other then, until it is told or was nothing."""
        rails = Rails()
        suspicions = []
        for windows, times in ((healthy(), 5), (slow(4), 1), (slow(4), 8)):
            rails.play(*windows, times)
            suspicions.append(rails.detector.suspicious)
        assert suspicions == [False, True, False]

    def test_two_slow_rails_are_two_findings(self) -> None:
        """Independent hops on different rails are told apart."""
        rails = Rails()
        duty, rate = slow(2)
        duty[5], rate[5] = 9 * STEP, 0.5
        found = rails.play(duty, rate, 8)
        assert {each.subject.rail for each in found} == {2, 5}

    def test_a_slow_drift_shows_against_its_own_past(self) -> None:
        """A rail at 80 % of the others is below no limit but its own past (A6)."""
        rails = Rails()
        rails.play(*healthy(), 20)
        finding = one(rails.play(*slow(6, busy=7 * STEP, rate=0.68), 12))
        assert finding.subject.rail == 6
        assert finding.confidence < 0.8

    def test_two_rails_that_drift_are_two_findings(self) -> None:
        """As many may drift as may be slow at once; more are something else."""
        for which, told in (((2, 5), {2, 5}), ((1, 2, 5), set())):
            rails = Rails()
            rails.play(*healthy(), 20)
            duty, rate = healthy()
            for rail in which:
                duty[rail], rate[rail] = 7 * STEP, 0.68
            found = rails.play(duty, rate, 12)
            assert {each.subject.rail for each in found} == told

    def test_a_rail_that_was_always_so_did_not_drift(self) -> None:
        """Its own past is known from the job's first windows."""
        assert Rails().play(*slow(6, busy=7 * STEP, rate=0.72), 60) == []

    def test_jitter_grows_no_worse_by_itself(self) -> None:
        """Moments of one rail stay information, however often they come."""
        rails, found = Rails(), []
        rails.play(*healthy(), 8)
        for _ in range(10):
            rails.play(*slow(4))
            found += rails.play(*healthy(), 3)
        assert {each.severity for each in found} == {Severity.INFO}

    def test_moments_are_jitter(self) -> None:
        """The same rail slow for moments, again and again: information (F55)."""
        rails = Rails()
        rails.play(*healthy(), 8)
        for _ in range(2):
            rails.play(*slow(4))
            found = rails.play(*healthy(), 3)
        finding = one(found)
        assert (finding.kind, finding.severity) == ("rail_slow", Severity.INFO)
        assert finding.subject.rail == 4

    def test_a_rail_that_works_on_alone_is_odd(self) -> None:
        """It still sends, slowly, when all others have ended: the end of its step."""
        rails = Rails()
        rails.play(*healthy(), 8)
        alone = [0.0] * 8, [0.0] * 8
        alone[0][5], alone[1][5] = 5 * STEP, 0.3
        for _ in range(2):
            rails.play(*alone)
            found = rails.play(*healthy(), 3)
        assert one(found).subject.rail == 5


class TestNobodyIsBlamed:
    def test_a_rail_with_less_traffic(self) -> None:
        """Less rate for the same time is a job that sends less there, no slow hop."""
        duty, rate = healthy()
        rate[3] = 0.4
        assert Rails().play(duty, rate, 30) == []

    def test_a_rail_that_is_less_busy(self) -> None:
        """Duty down is not duty up."""
        duty, rate = healthy()
        duty[3] = 2 * STEP
        assert Rails().play(duty, rate, 30) == []

    def test_two_jobs_that_share_the_node(self) -> None:
        """Rails split 4/4 with paces of their own, jobs not known (N38)."""
        duty = [6 * STEP] * 4 + [12 * STEP] * 4
        rate = [0.9] * 4 + [0.5] * 4
        assert Rails().play(duty, rate, 30) == []

    def test_known_jobs_are_not_compared(self) -> None:
        """One rail of a job of its own is odd among the others, and is not compared."""
        jobs = (
            JobUse("big", "job", rails=tuple(range(7))),
            JobUse("small", "job", rails=(7,)),
        )
        rails = Rails(jobs=jobs)
        assert rails.play(*slow(7), 30) == []

    def test_a_job_of_its_own_that_nobody_knows(self) -> None:
        """A rail that idles while the others work is of another job (N37)."""
        rails, found = Rails(), []
        for _ in range(15):
            rails.play(*slow(7))
            found = rails.play(*slow(7, busy=0.0, rate=0.0))
        assert found == []

    def test_three_of_eight_are_a_job(self) -> None:
        """More than a quarter of the rails at once is no straggler."""
        duty, rate = healthy()
        for which in (1, 2, 3):
            duty[which], rate[which] = 10 * STEP, 0.47
        assert Rails().play(duty, rate, 30) == []

    def test_storage_and_management_never_count(self) -> None:
        """A checkpoint on the storage port is ten times the rails' traffic (N12)."""
        storage = replace(port("mlx5_8", rail=None), role=Role.STORAGE)
        rails = Rails(infos=(*RAILS, storage))
        duty, rate = healthy()
        assert rails.play([*duty, 1.0], [*rate, 0.2], 30) == []

    def test_idle_windows_say_nothing(self) -> None:
        """Checkpoints, pauses and idle nodes have no active windows (N20, N21)."""
        rails = Rails()
        rails.play(*healthy(), 5)
        assert rails.play([0.0] * 8, [0.0] * 8, 30) == []

    def test_the_end_of_a_phase_is_no_pace(self) -> None:
        """One sample more on one rail, and a rate within one sample, are chance."""
        rails = Rails()
        rails.play(*healthy(), 5)
        duty, rate = healthy(busy=1 * STEP, rate=0.3)
        duty[2], rate[2] = 2 * STEP, 0.05
        assert rails.play(duty, rate, 30) == []

    def test_a_port_that_is_down_is_not_compared(self) -> None:
        """It is another story."""
        rails = Rails()
        down = status(RAILS[0], rails.now, PortState.DOWN)
        rails.ports["mlx5_0"] = {"status": down}
        assert rails.play(*slow(0), 20) == []

    def test_a_port_that_is_worked_on(self) -> None:
        """Maintenance of the port here is maintenance of its rail here."""
        rails = Rails()
        rails.parts["maintenance"] = (
            MaintenanceWindow(until=WALL + 1e6, ports=("mlx5_3/1",)),
        )
        assert rails.play(*slow(3), 10) == []
        assert one(rails.play(*slow(5), 10)).subject.rail == 5

    def test_a_new_job_begins_anew(self) -> None:
        """What rails did in another job says nothing of this one."""
        rails = Rails(jobs=(JobUse("a", "job", rails=tuple(range(8))),))
        assert rails.play(*slow(3), 10)
        rails.jobs = (JobUse("b", "job", rails=tuple(range(8))),)
        assert rails.play(*healthy()) == []

    def test_staggered_windows_are_not_compared(self) -> None:
        """A device that is in another window than the rest is left out."""
        rails = Rails()
        rails.play(*healthy(), 5)
        rails.now += 30
        late = [
            replace(b, began=b.began - 1.2, busy=1.0) if b.port == pid(2) else b
            for b in rails._bursts(*healthy())
        ]
        rails.bursts = tuple(late)
        list(rails.detector.judge(rails.view()))
        rails.now += 3
        list(rails.detector.judge(rails.view()))
        histories = rails.detector._histories.values()
        assert {len(h.judged()[-1].rails) for h in histories} == {7}


class TestStragglerLink:
    def test_a_low_rate_names_the_port(self) -> None:
        """The rail is slow and this node's port on it runs at half: it is this port."""
        rails = Rails()
        half = status(RAILS[3], rails.now, rate=Rate(200.0, 2, "NDR"))
        rails.ports["mlx5_3"] = {"status": half}
        finding = one(rails.play(*slow(3), 8))
        assert finding.kind == "straggler_link"
        assert (finding.subject.device, finding.subject.rail) == ("mlx5_3", 3)
        assert finding.part is Part.CULPRIT
        assert finding.severity is Severity.CRITICAL
        assert any(each.signal == "rate" for each in finding.evidence)

    def test_a_narrow_pcie_link_names_the_port(self) -> None:
        """The same with the PCIe side."""
        rails = Rails()
        narrow = PciStatus(
            "mlx5_3", rails.now, "0000:1a:00.0", PciLink(32.0, 8, 32.0, 16),
            PciLink(32.0, 8, 32.0, 16),
        )  # fmt: skip
        rails.ports["mlx5_3"] = {"pci": narrow}
        finding = one(rails.play(*slow(3), 8))
        assert finding.kind == "straggler_link"
        assert "pcie" in finding.summary

    def test_evidence_of_another_port_names_nobody(self) -> None:
        """A fault on another rail does not make this one's port the culprit."""
        rails = Rails()
        half = status(RAILS[5], rails.now, rate=Rate(200.0, 2, "NDR"))
        rails.ports["mlx5_5"] = {"status": half}
        assert one(rails.play(*slow(3), 8)).kind == "rail_slow"

    def test_a_repaired_port_is_silent(self) -> None:
        """Its rate is back: the windows of before do not make it a rail's story."""
        rails = Rails()
        half = status(RAILS[3], rails.now, rate=Rate(200.0, 2, "NDR"))
        rails.ports["mlx5_3"] = {"status": half}
        assert rails.play(*slow(3), 8)
        rails.ports.clear()
        assert list(rails.detector.judge(rails.view())) == []
        assert rails.play(*healthy(), 6) == []

    def test_an_outage_that_is_over_names_nobody(self) -> None:
        """All ports of a leaf that rebooted had one; the rail is slow, not the port."""
        rails = Rails()
        rails.parts["statuses"] = (status(RAILS[3], rails.now, PortState.DOWN),)
        rails.play(*healthy())
        rails.parts.clear()
        assert one(rails.play(*slow(3), 8)).kind == "rail_slow"

    @pytest.mark.parametrize(
        ("rate", "busy", "action"),
        [
            (0.4, 12 * STEP, Action.DRAIN_AFTER_JOB),
            (0.6, 9 * STEP, Action.INSPECT),
        ],
    )
    def test_half_the_pace_is_worth_a_drain(
        self, rate: float, busy: float, action: Action
    ) -> None:
        """What costs less is looked at."""
        rails = Rails()
        low = status(RAILS[3], rails.now, rate=Rate(200.0, 2, "NDR"))
        rails.ports["mlx5_3"] = {"status": low}
        finding = one(rails.play(*slow(3, busy=busy, rate=rate), 8))
        assert finding.action is action


def gdr_off() -> LogEvent:
    """Return what NCCL says of a node without GPUDirect."""
    return LogEvent(
        kind="gdr_disabled", rule="gdr_disabled", severity=LogSeverity.WARNING,
        file="job.log", line_number=1, offset=0,
    )  # fmt: skip


class TestHostPath:
    def test_all_rails_slow_from_the_start_and_the_log_says_why(self) -> None:
        """GPUDirect is off: the node is named, no port and no rail (F23)."""
        rails = Rails()
        rails.parts["log_events"] = (gdr_off(),)
        rails.play(*healthy(rate=0.45))
        rails.parts.clear()
        finding = one(rails.play(*healthy(rate=0.45), 5))
        assert finding.kind == "host_path_slow"
        assert finding.subject.device is None
        assert finding.subject.rail is None
        assert finding.action is Action.INSPECT

    def test_without_a_reason_it_is_silent(self) -> None:
        """Peers of such a node run at the same pace and are not to blame."""
        assert Rails().play(*healthy(rate=0.45), 20) == []

    def test_one_fast_window_is_enough_to_clear(self) -> None:
        """The host can do it: what is slow now is something else."""
        rails = Rails()
        rails.parts["log_events"] = (gdr_off(),)
        rails.play(*healthy(rate=0.9))
        rails.parts.clear()
        assert rails.play(*healthy(rate=0.45), 10) == []


STALL = Evidence("outbound_pci_stalled_rd_events", 40, "s", "ethtool/eth0", 5, 600)
BUS = Evidence("aer_dev_correctable", 4000, "errors", "pci/0000:1a:00.0", 100, 600)


class _Shown(LocalEvidence):
    """Local evidence of the rails that a test names."""

    def __init__(self, rails: int, evidence: Evidence) -> None:
        super().__init__(Config())
        self._rails, self._evidence = rails, evidence

    def of(self, port: PortView, view: View) -> tuple[LocalSign, ...]:
        """Return that the first so many rails show it."""
        rail = port.info.rail
        shows = isinstance(rail, int) and rail < self._rails
        return (LocalSign(Nature.PCIE, view.now, self._evidence),) if shows else ()

    def natures(self, port: PortView, view: View) -> frozenset[Nature]:
        """Return of what nature that is."""
        return frozenset(sign.nature for sign in self.of(port, view))


class TestStalls:
    @staticmethod
    def judged(local: LocalEvidence, pace: float = 0.8) -> Finding | None:
        """Return what is said of a node whose rails reach this share of the line."""
        host = HostPace(Config().stragglers)
        for _ in range(4):
            host.take("train", {"mlx5_0": pace, "mlx5_1": pace}, START)
        return host.judge(Rails().view(), local)

    def test_most_rails_wait_and_are_not_slow(self) -> None:
        """So many queue pairs: information, nothing to do (F28)."""
        found = self.judged(_Shown(5, STALL))
        assert found is not None
        assert (found.kind, found.severity) == ("host_path_slow", Severity.INFO)
        assert found.action is Action.NONE
        assert found.evidence[1] == STALL
        assert "5 of 8 rails" in found.summary

    def test_slow_ones_are_a_warning(self) -> None:
        """Then it is what the job waits for (F23)."""
        found = self.judged(_Shown(5, STALL), pace=0.45)
        assert found is not None
        assert found.severity is Severity.WARNING

    @pytest.mark.parametrize("local", [_Shown(3, STALL), _Shown(8, BUS)])
    def test_few_rails_or_the_bus_itself(self, local: LocalEvidence) -> None:
        """One device that stalls, and errors of the bus, are told of the device."""
        assert self.judged(local) is None


class TestBlindness:
    def test_no_bursts_no_sight(self) -> None:
        """Means cannot show a straggler: a node without bursts says so."""
        config = Config(bursts=Bursts(enabled=False))
        rails = Rails(config=config)
        blind = list(rails.detector.blind(rails.view()))
        assert [item.kind for item in blind] == list(Stragglers.kinds)

    def test_two_rails_cannot_be_compared(self) -> None:
        """With two nobody knows which one is odd."""
        rails = Rails(infos=RAILS[:2])
        assert "2 rails" in next(iter(rails.detector.blind(rails.view()))).reason

    def test_a_job_of_two_rails_cannot_be_compared(self) -> None:
        """The node has eight; the job's are too few, and it is said of how many."""
        jobs = (
            JobUse("big", "job", rails=tuple(range(6))),
            JobUse("small", "job", rails=(6, 7)),
        )
        rails = Rails(jobs=jobs)
        blind = list(rails.detector.blind(rails.view()))
        assert [item.kind for item in blind] == list(Stragglers.kinds)
        assert "2 of 8 rails" in blind[0].reason

    def test_jobs_of_three_rails_are_compared(self) -> None:
        """Nothing is missing there, nor for rails that no job uses."""
        jobs = (
            JobUse("one", "job", rails=(0, 1, 2)),
            JobUse("two", "job", rails=(3, 4, 5)),
        )
        rails = Rails(jobs=jobs)
        assert list(rails.detector.blind(rails.view())) == []

    def test_a_node_with_rails_sees(self) -> None:
        """Nothing is said where all is there."""
        rails = Rails()
        assert list(rails.detector.blind(rails.view())) == []


@pytest.mark.parametrize(
    ("noise", "most_per_day"), [(0.05, 0.1), (0.10, 0.2), (0.15, 1.0)]
)
def test_healthy_rails_with_noise(noise: float, most_per_day: float) -> None:
    """Duty and rate of each rail vary independently: false findings stay rare (A5)."""
    chance = random.Random(f"noise {noise}")
    limits = Config().stragglers
    days, windows = 1, 2880
    ports = [PortId(f"mlx5_{rail}", 1) for rail in range(8)]
    false = 0
    history, told = RailHistory(limits), False
    for number in range(days * windows):
        base = chance.uniform(3, 12)
        rails = tuple(
            RailBurst(
                where, rail,
                min(max(round(base * chance.gauss(1, noise)), 0) * STEP, 1.0),
                max(0.8 * chance.gauss(1, noise), 0.01),
            )
            for rail, where in enumerate(ports)
        )  # fmt: skip
        at = 30.0 * number
        history.take(RailWindow("", "transmitted", at, at + 3, STEP, rails))
        holds = [each for each in history.slow("transmitted") if not each.jitter]
        false += bool(holds) and not told
        told = bool(holds)
    assert false / days <= most_per_day


@given(
    st.lists(st.floats(0, 1e12), min_size=3, max_size=16),
    st.floats(0.01, 1e6),
)
def test_scores_do_not_depend_on_the_unit(values: list[float], factor: float) -> None:
    """Rates in bits or bytes: the same rails are odd."""
    one_way = robust_scores(values, 0.05)
    other = robust_scores([value * factor for value in values], 0.05)
    assert other == pytest.approx(one_way, rel=1e-6, abs=1e-6)


@given(st.floats(1e-3, 1e12), st.integers(3, 16))
def test_equal_rails_are_not_odd(value: float, number: int) -> None:
    """No spread is no reason to divide by it."""
    assert robust_scores([value] * number, 0.05) == [0.0] * number


@given(st.lists(st.floats(-10, 10), max_size=100))
def test_the_sum_never_falls_below_zero(shortfalls: list[float]) -> None:
    """Good windows are no credit for bad ones (Page)."""
    total = 0.0
    for shortfall in shortfalls:
        total = cusum(total, shortfall)
        assert total >= 0.0
