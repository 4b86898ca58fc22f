"""What conditions and events say: only what this node proves, in bounded words."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from fabricmon.config import Kubernetes, Redaction
from fabricmon.finding_document import SubjectDocument
from fabricmon.kinds import KINDS
from fabricmon.model import (
    Action,
    Evidence,
    Incident,
    IncidentState,
    Part,
    Severity,
    Verdict,
)
from fabricmon.redaction import Redactor
from fabricmon.sinks.kubernetes_words import (
    MOST_NOTE,
    Voice,
    bounded,
    camel_case,
    condition_of,
    event_of,
    place_of,
)
from tests.sinks import nodes

KEY = b"0123456789abcdef"


def voice(**settings: Any) -> Voice:
    """Return what may be told by these settings."""
    return Voice(Kubernetes(**settings), Redactor(Redaction(), KEY))


def fault(kind: str = "port_flapping", **changes: Any) -> Incident:
    """Return a finding that advises to drain after the job."""
    made = nodes.incident(kind)
    told = {"action": Action.DRAIN_AFTER_JOB, "summary": f"mlx5_0/1 {kind}"}
    state = {key: changes.pop(key) for key in ("state", "dry_run") if key in changes}
    return replace(made, finding=replace(made.finding, **(told | changes)), **state)


class TestCondition:
    @pytest.mark.parametrize(
        "changes",
        [
            {"part": Part.VICTIM},
            {"part": Part.OBSERVER},
            {"action": Action.NONE},
            {"action": Action.INSPECT},
            {"severity": Severity.INFO},
            {"dry_run": True},
            {"state": IncidentState.RESOLVED},
        ],
    )
    def test_what_is_not_proven_leaves_it_true(self, changes: dict[str, Any]) -> None:
        """Who suffers, who only sees, what is in shadow or over, what is mild."""
        snapshot = nodes.node(nodes.port(), incidents=(fault(**changes),))
        assert condition_of(snapshot, voice()).status == "True"

    @pytest.mark.parametrize(
        ("least", "status"),
        [("inspect", "False"), ("drain_after_job", "False"), ("drain_now", "True")],
    )
    def test_least_advice(self, least: str, status: str) -> None:
        """The site says from which advice on a node counts as ill."""
        snapshot = nodes.node(nodes.port(), incidents=(fault(),))
        assert condition_of(snapshot, voice(condition_from=least)).status == status

    def test_what_should_be_looked_at_is_said(self) -> None:
        """Also while the node is fit for work."""
        incident = fault("module_hot", action=Action.INSPECT)
        snapshot = nodes.node(nodes.port(), incidents=(incident,))
        condition = condition_of(snapshot, voice())
        assert condition.reason == "FabricIsHealthy"
        assert condition.message == "to be looked at: module_hot (mlx5_0/1)"

    def test_worst_is_the_reason(self) -> None:
        """By advice, then severity; of equals the oldest, so that it does not wander."""
        mild = fault("link_errors", severity=Severity.WARNING)
        old = fault("rate_degraded", onset=nodes.WALL - 60)
        new = fault("pcie_degraded")
        now = fault("port_down", action=Action.DRAIN_NOW, severity=Severity.WARNING)
        for worst, others in (
            ("RateDegraded", (mild, new, old)),
            ("PortDown", (mild, now, new, old)),
        ):
            snapshot = nodes.node(nodes.port(), incidents=others)
            assert condition_of(snapshot, voice()).reason == worst

    def test_message_tells_three_and_counts_the_rest(self) -> None:
        """The API's objects are no place for a report."""
        kinds = (
            "port_flapping",
            "link_errors",
            "pcie_errors",
            "port_down",
            "nic_power",
        )
        found = tuple(fault(kind) for kind in kinds)
        message = condition_of(
            nodes.node(nodes.port(), incidents=found), voice()
        ).message
        assert message.count("drain_after_job: ") == 3
        assert message.endswith("and 2 more")

    @pytest.mark.parametrize(
        ("snapshot", "message"),
        [
            (nodes.node(), "no RDMA device on this node"),
            (
                nodes.node(class_error="EACCES"),
                "RDMA devices cannot be listed: EACCES",
            ),
            (
                nodes.node(
                    replace(nodes.port(), verdict=Verdict.UNKNOWN, reasons=("late",)),
                    verdict=Verdict.UNKNOWN,
                ),
                "mlx5_0/1: late",
            ),
        ],
    )
    def test_unknown(self, snapshot: Any, message: str) -> None:
        """Silence is no health; the message says why nothing is known."""
        condition = condition_of(snapshot, voice())
        assert (condition.status, condition.reason) == ("Unknown", "FabricNotSeen")
        assert condition.message == message

    def test_unknown_names_nobody(self) -> None:
        """Why nothing is known may name a peer or a user, which may not be told."""
        port = replace(
            nodes.port(),
            verdict=Verdict.UNKNOWN,
            reasons=("no answer of 10.1.2.3, see /home/alice/x",),
        )
        snapshot = nodes.node(port, verdict=Verdict.UNKNOWN)
        silent = Voice(Kubernetes(), Redactor(Redaction(peers="remove"), KEY))
        message = condition_of(snapshot, silent).message
        assert message == "mlx5_0/1: no answer of (peer), see /home/(user)/x"

    def test_fault_is_told_also_where_others_are_unknown(self) -> None:
        """What is proven counts more than what is not."""
        snapshot = nodes.node(
            nodes.port(), incidents=(fault(),), verdict=Verdict.UNKNOWN
        )
        assert condition_of(snapshot, voice()).status == "False"


class TestEvent:
    def test_evidence_with_limits(self) -> None:
        """Value, unit, limit and window: enough to check it."""
        evidence = Evidence("link_downed", 3, "events", "counters", 3, 10800)
        event = event_of(fault(evidence=(evidence,) * 5), voice())
        assert event is not None
        fact = "link_downed=3 events, limit 3 in 10800 s"
        told = ", ".join((fact,) * 3)
        assert event.note == f"mlx5_0/1 port_flapping [{told}]; runbook: docs"

    def test_every_kind_is_a_reason(self) -> None:
        """As Kubernetes writes reasons: words without spaces that begin in capitals."""
        for kind in KINDS:
            event = event_of(fault(kind.slug), voice())
            assert event is not None
            assert event.reason.isalnum()
            assert event.reason[0].isupper()
            assert len(event.reason) < 64

    def test_information_is_normal(self) -> None:
        """Where it is told at all."""
        incident = fault(severity=Severity.INFO)
        assert event_of(incident, voice()) is None
        event = event_of(incident, voice(event_severity="info"))
        assert event is not None
        assert event.kind == "Normal"

    def test_hostile_text_is_made_harmless(self) -> None:
        """Names of devices and text of logs go to terminals of operators."""
        event = event_of(fault(summary="a\x1b[31m\u202eb\nc\udcff"), voice())
        assert event is not None
        assert event.note.isprintable()
        event.note.encode("utf-8")


class TestWords:
    @pytest.mark.parametrize(
        ("subject", "place"),
        [
            (SubjectDocument("n", device="mlx5_0", port=1), "mlx5_0/1"),
            (SubjectDocument("n", device="mlx5_0"), "mlx5_0"),
            (SubjectDocument("n", rail=3), "rail 3"),
            (SubjectDocument("n", peer="gpu-2"), "peer gpu-2"),
            (SubjectDocument("n"), "node"),
        ],
    )
    def test_place(self, subject: SubjectDocument, place: str) -> None:
        """The narrowest that is known."""
        assert place_of(subject) == place

    def test_camel_case(self) -> None:
        """Reasons and actions."""
        assert camel_case("drain_after_job") == "DrainAfterJob"

    @pytest.mark.parametrize("text", ["ä" * 2000, "\udc80" * 2000, "x" * 2000])
    def test_bounded(self, text: str) -> None:
        """In bytes, as the API counts, and never in the middle of a character."""
        assert len(bounded(text, MOST_NOTE).encode()) <= MOST_NOTE
