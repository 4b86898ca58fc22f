"""Evidence of all detectors becomes one verdict: blame and advice only where borne."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabricmon.config import Config, LinkState
from fabricmon.config import Fusion as Limits
from fabricmon.fusion import LOCAL, Fusion
from fabricmon.kinds import KINDS, Kind, Proof
from fabricmon.model import (
    Action,
    Evidence,
    Finding,
    Incident,
    IncidentState,
    Part,
    PciLink,
    PciStatus,
    Severity,
    Subject,
    View,
)
from fabricmon.parse.words import PortState
from tests.node import RAILS
from tests.views import START, WALL, make_view, port_view, status

OTHERS = {
    "config_drift",
    "config_mismatch",
    "counter_reset",
    "counter_saturated",
    "nccl_fallback",
    "source_failed",
    "telemetry_stale",
}


def found(kind: str, device: str | None = "mlx5_3", **parts: object) -> Finding:
    """Return a finding that blames a port and advises something."""
    subject = Subject(device=device, port=None if device is None else 1)
    finding = Finding(
        kind=kind,
        subject=subject,
        onset=WALL,
        evidence=(Evidence("x", 1, "", "test"),),
        summary=kind,
        severity=Severity.CRITICAL,
        part=Part.CULPRIT,
        action=Action.DRAIN_AFTER_JOB,
    )
    return replace(finding, **parts)  # type: ignore[arg-type]


def view(**parts: object) -> View:
    """Return a node with eight healthy rails."""
    parts.setdefault("ports", tuple(port_view(info) for info in RAILS))
    return make_view(START, **parts)


def fuse(
    *findings: Finding, seen: View | None = None, **limits: float
) -> list[Finding]:
    """Return what is left of findings after they were weighed."""
    config = Config(fusion=Limits(**limits))  # type: ignore[arg-type]
    return Fusion(config, ()).judge(findings, seen or view())


class TestAdvice:
    @pytest.mark.parametrize(
        "kind", [kind.slug for kind in KINDS if kind.proof in LOCAL]
    )
    def test_local_evidence_bears_advice(self, kind: str) -> None:
        """One local item of full weight is enough."""
        assert fuse(found(kind)) == [found(kind)]

    @pytest.mark.parametrize(
        "kind", [kind.slug for kind in KINDS if kind.proof not in LOCAL | {Proof.OTHER}]
    )
    def test_nothing_else_does(self, kind: str) -> None:
        """Retries, votes, congestion and logs alone advise nothing."""
        (finding,) = fuse(found(kind))
        assert finding.action is Action.NONE

    def test_who_only_suffers_is_a_victim(self) -> None:
        """Retries name who waits, not who is broken."""
        (finding,) = fuse(found("transport_retries"))
        assert finding.part is Part.VICTIM

    def test_a_log_with_a_fault_beside_it_is_borne(self) -> None:
        """NCCL names this device, and its link has errors."""
        log, link = found("nccl_error"), found("link_errors")
        assert fuse(log, link) == [log, link]

    def test_a_fault_of_another_port_bears_nothing(self) -> None:
        """Evidence counts where it was found."""
        log, link = found("nccl_error"), found("link_errors", "mlx5_5")
        assert fuse(log, link)[0].action is Action.NONE

    def test_a_fault_of_the_device_counts_for_its_ports(self) -> None:
        """PCIe belongs to all ports of the device."""
        device = found("pcie_degraded", subject=Subject(device="mlx5_3"))
        assert fuse(found("nccl_error"), device)[0].action is Action.DRAIN_AFTER_JOB

    def test_what_the_port_showed_lately_counts(self) -> None:
        """Also where it is no finding, or not one any more."""
        narrow = PciStatus(
            "mlx5_3", START, "0000:1a:00.0", PciLink(32.0, 8, 32.0, 16),
            PciLink(32.0, 8, 32.0, 16),
        )  # fmt: skip
        ports = tuple(
            port_view(info, pci=narrow if info.id.device == "mlx5_3" else None)
            for info in RAILS
        )
        log = found("nccl_error")
        assert fuse(log, seen=view(ports=ports)) == [log]

    def test_all_that_is_not_local_together_is_not_enough(self) -> None:
        """The sum alone decides nothing: one item must be local."""
        kinds = ("nccl_error", "transport_retries", "peer_suspect")
        assert {each.action for each in fuse(*map(found, kinds))} == {Action.NONE}

    def test_congestion_explains_what_comes_from_afar(self) -> None:
        """A weak local sign with retries is not enough where the path is congested."""
        link, retries = found("link_errors"), found("transport_retries")
        full = fuse(link, retries, link_weight=0.8)
        assert full[0].action is Action.DRAIN_AFTER_JOB
        jam = found("congestion", action=Action.NONE, part=Part.VICTIM)
        less = fuse(link, retries, jam, link_weight=0.8)
        assert less[0].action is Action.NONE

    def test_congestion_takes_nothing_from_local_evidence(self) -> None:
        """A narrow PCIe link makes congestion: both are true (F20 with F30)."""
        jam = found("congestion", action=Action.NONE, part=Part.VICTIM)
        assert fuse(found("pcie_degraded"), jam)[0].action is Action.DRAIN_AFTER_JOB

    def test_settings_are_not_weighed(self) -> None:
        """What is configured wrongly is no question of a place."""
        finding = found("config_mismatch", action=Action.INSPECT)
        assert fuse(finding) == [finding]

    def test_what_proves_nothing_of_a_place(self) -> None:
        """A new kind must say what it proves, or that it speaks of no place."""
        assert {kind.slug for kind in KINDS if kind.proof is Proof.OTHER} == OTHERS


class TestConfidence:
    def test_another_kind_of_evidence_takes_doubt_away(self) -> None:
        """NCCL names a link that has errors, weight 1 and share 1/2: half is left."""
        log = found("nccl_error", confidence=0.8)
        beside, _ = fuse(log, found("link_errors"))
        assert (fuse(log)[0].confidence, beside.confidence) == (0.8, 0.9)

    def test_the_same_kind_of_evidence_takes_none(self) -> None:
        """Two findings of one link are not two witnesses."""
        first = found("link_unstable", confidence=0.8)
        assert fuse(first, found("link_errors"))[0].confidence == 0.8

    def test_another_port_is_no_witness(self) -> None:
        """What another port shows says nothing of this one."""
        log = found("nccl_error", confidence=0.7)
        assert fuse(log, found("link_errors", "mlx5_5"))[0].confidence == 0.7

    def test_congestion_makes_what_comes_from_afar_less_sure(self) -> None:
        """It explains retries as well: weight 1/2 and share 1/2 take a quarter."""
        retries = found("transport_retries", confidence=0.8)
        assert fuse(retries, found("congestion"))[0].confidence == 0.6

    def test_congestion_does_not_make_damage_less_sure(self) -> None:
        """Bit errors do not come from it."""
        link = found("link_errors", confidence=0.8)
        assert fuse(link, found("congestion"))[0].confidence == 0.8

    @given(st.floats(0, 1), st.floats(0.01, 1), st.sets(st.sampled_from(KINDS)))
    def test_it_stays_a_probability(
        self, sure: float, share: float, beside: set[Kind]
    ) -> None:
        """Whatever else is found."""
        kinds = sorted(each.slug for each in beside)
        others = [found(each) for each in kinds if each != "nccl_error"]
        log = found("nccl_error", confidence=sure)
        for each in fuse(log, *others, corroboration_share=share):
            assert 0 <= each.confidence <= 1


class TestBudget:
    def test_few_ports_are_given_up_at_once(self) -> None:
        """Two of four are to be drained, the oldest; the others are looked at."""
        many = [
            found("port_down", f"mlx5_{rail}", onset=WALL + rail) for rail in range(4)
        ]
        actions = [each.action for each in fuse(*many)]
        assert actions == [Action.DRAIN_AFTER_JOB] * 2 + [Action.INSPECT] * 2

    def test_it_says_so(self) -> None:
        """The budget stands in the evidence."""
        many = [found("port_down", f"mlx5_{rail}") for rail in range(3)]
        spent = fuse(*many)[2].evidence[-1]
        assert (spent.signal, spent.value, spent.threshold) == ("drain_advice", 3, 2)

    def test_two_findings_of_one_port_are_one_port(self) -> None:
        """Ports are counted, not findings."""
        same = [found("port_down"), found("link_errors"), found("rate_degraded")]
        assert fuse(*same, drain_ports=1) == same

    def test_a_device_and_its_port_are_one(self) -> None:
        """A narrow card with a slow port spends one advice: another is left."""
        narrow = found("pcie_degraded", subject=Subject("mlx5_0"), onset=WALL - 60)
        slow = found("rate_degraded", "mlx5_0", onset=WALL - 30)
        fatal = found("pcie_errors", subject=Subject("mlx5_5"))
        assert fuse(narrow, slow, fatal) == [narrow, slow, fatal]

    def test_what_cannot_wait_comes_first(self) -> None:
        """A device that is gone is not looked at only because others are older."""
        old = [found("link_errors", f"mlx5_{rail}", onset=WALL - 9) for rail in (1, 2)]
        gone = found(
            "device_missing", subject=Subject("mlx5_4"), action=Action.DRAIN_NOW
        )
        actions = [each.action for each in fuse(*old, gone)]
        assert actions == [Action.DRAIN_AFTER_JOB, Action.INSPECT, Action.DRAIN_NOW]

    @given(st.lists(st.integers(0, 7), max_size=12), st.integers(1, 8))
    def test_never_more_than_the_bound(self, rails: list[int], bound: int) -> None:
        """Whatever holds, no more ports than configured are advised to be drained."""
        kept = fuse(
            *(found("link_errors", f"mlx5_{rail}") for rail in rails),
            drain_ports=bound,
        )
        drained = {
            each.subject.device for each in kept if each.action is not Action.INSPECT
        }
        assert len(drained) == min(len(set(rails)), bound)
        assert len(kept) == len(rails)


class TestContradiction:
    clean = found(
        "not_network", None, severity=Severity.INFO, action=Action.NONE,
        part=Part.OBSERVER,
    )  # fmt: skip

    def test_a_clean_network_has_no_bad_rail(self) -> None:
        """A finding on a rail silences the claim that it is not the network."""
        kept = fuse(self.clean, found("link_errors"))
        assert [each.kind for each in kept] == ["link_errors"]

    def test_other_places_do_not_contradict(self) -> None:
        """A management port has no part in it."""
        kept = fuse(self.clean, found("port_down", "mlx5_9"))
        assert self.clean in kept

    def test_what_was_in_doubt_is_not_clean_afterwards(self) -> None:
        """Steps that got longer while a rail was slow got longer for that."""
        fusion = Fusion(Config(), ())
        fusion.judge([found("port_flap")], view())
        early = replace(self.clean, onset=WALL - 60)
        late = replace(self.clean, onset=WALL + 60)
        assert fusion.judge([early, late], view()) == [late]

    @pytest.mark.parametrize("rail", [3, 4])
    def test_a_rail_whose_port_is_known_is_told_there(self, rail: int) -> None:
        """A port with stale connections makes its own rail slow, no other."""
        slow = found(
            "rail_slow", subject=Subject(rail=rail), action=Action.NONE,
            part=Part.OBSERVER,
        )  # fmt: skip
        stale = found(
            "post_flap_degraded", subject=Subject("mlx5_3", 1, rail=3),
            action=Action.NONE,
        )  # fmt: skip
        assert (slow in fuse(slow, stale)) is (rail == 4)

    @pytest.mark.parametrize(
        ("other", "severity", "told"),
        [
            (found("rate_degraded"), Severity.CRITICAL, False),
            (found("port_flapping"), Severity.CRITICAL, False),
            (
                found("pcie_degraded", subject=Subject("mlx5_3")),
                Severity.CRITICAL,
                False,
            ),
            (found("pcie_degraded"), Severity.WARNING, True),
            (found("rate_degraded", "mlx5_4"), Severity.CRITICAL, True),
            (found("link_errors"), Severity.CRITICAL, True),
        ],
    )
    def test_a_straggler_whose_reason_is_told_as_gravely(
        self, other: Finding, severity: Severity, *, told: bool
    ) -> None:
        """It is told once; a milder finding does not say what it costs."""
        reason = replace(other, severity=severity)
        straggler = found("straggler_link")
        assert (straggler in fuse(straggler, reason)) is told

    def test_the_host_path_explains_its_pauses(self) -> None:
        """All NICs of a host that stages data stall: one finding, not nine."""
        host = found("host_path_slow", None, action=Action.INSPECT)
        assert fuse(host, found("pause_origin")) == [host]

    def test_stalls_that_slow_nothing_explain_nothing(self) -> None:
        """What is information about all devices hides no fault of one."""
        host = found("host_path_slow", None, severity=Severity.INFO)
        kinds = {each.kind for each in fuse(host, found("pause_origin"))}
        assert kinds == {"host_path_slow", "pause_origin"}


class _Suspecting:
    suspicious = True


def opened(severity: Severity) -> Incident:
    """Return an incident that has just opened."""
    finding = found("link_errors", severity=severity)
    return Incident("id", 1, IncidentState.OPEN, WALL, finding, "node-1", "")


class TestSuspicion:
    def test_a_new_warning_is_one(self) -> None:
        """Rails are looked at closely when something was found."""
        fusion = Fusion(Config(), ())
        assert fusion.suspects([opened(Severity.WARNING)])
        assert not fusion.suspects([opened(Severity.INFO)])

    def test_a_detector_may_have_one(self) -> None:
        """Before it has a finding."""
        fusion = Fusion(Config(), (_Suspecting(),))  # type: ignore[arg-type]
        assert fusion.suspects(())


def test_a_common_cause_is_forgotten() -> None:
    """After its time a flap is told again as one."""
    config = Config(link_state=LinkState(common_cause_seconds=600))
    fusion = Fusion(config, ())
    cause = found(
        "common_cause", None, action=Action.NONE,
        evidence=(Evidence("ports", "mlx5_3/1", "", "test"),),
    )  # fmt: skip
    flap = found("port_flap")
    assert fusion.judge([cause, flap], view()) == [cause]
    late = replace(view(), now=START + 700, wall=WALL + 700)
    fusion.judge([flap], late)
    assert fusion.judge([flap], late) == [flap]


class TestFallenPorts:
    cause = found(
        "common_cause", None, action=Action.NONE,
        evidence=(Evidence("ports", "mlx5_3/1", "", "test"),),
    )  # fmt: skip

    @pytest.mark.parametrize(
        "kind", ["port_down", "port_flap", "transport_retries", "retries_exhausted"]
    )
    def test_what_follows_is_not_told(self, kind: str) -> None:
        """Outage, flap, retries: the common cause tells of them."""
        assert fuse(self.cause, found(kind)) == [self.cause]

    def test_a_job_that_died_of_it_is_no_fault_here(self) -> None:
        """For information: the job ended, this node suffered."""
        _, job = fuse(self.cause, found("nccl_error"))
        assert (job.severity, job.part) == (Severity.INFO, Part.VICTIM)

    def test_what_was_there_before_is_told(self) -> None:
        """A port that had retries an hour ago has them still."""
        old = found("link_errors", onset=WALL - 3600)
        assert old in fuse(self.cause, old)

    def test_other_ports_are_told(self) -> None:
        """A fault beside the event is a fault."""
        other = found("port_down", "mlx5_5")
        assert other in fuse(self.cause, other)

    def test_a_job_error_waits_while_many_ports_are_down(self) -> None:
        """The log is quicker than two samples of the state; then it is told."""
        down = tuple(
            port_view(info, status=status(info, START, PortState.DOWN))
            for info in RAILS
        )
        error = found("nccl_error")
        assert fuse(error, seen=view(ports=down)) == []
        later = replace(view(ports=down), wall=WALL + 30)
        assert [each.kind for each in fuse(error, seen=later)] == ["nccl_error"]


@pytest.mark.parametrize("proof", list(Proof))
def test_only_this_end_is_local(proof: Proof) -> None:
    """Votes, logs, retries and the fabric speak of elsewhere."""
    assert (proof in LOCAL) is (proof.value in ("link", "pcie", "state"))
