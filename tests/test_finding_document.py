"""Findings as documents: every field as the format says."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabricmon.finding_document import finding_document, rfc3339, sample_document
from fabricmon.model import (
    Action,
    Evidence,
    Finding,
    Incident,
    IncidentState,
    Part,
    Severity,
    Subject,
)

FINDING = Finding(
    kind="port_down",
    subject=Subject(device="mlx5_3", port=1, rail=3, netdev="ib3"),
    onset=1_700_000_000.25,
    evidence=(
        Evidence("state", "DOWN", "", "infiniband/mlx5_3/ports/1", "ACTIVE", 12.5),
        Evidence("link_downed", 1, "events", "infiniband/mlx5_3/ports/1/counters"),
    ),
    summary="mlx5_3/1 down since 22:13:20Z",
    severity=Severity.CRITICAL,
    part=Part.CULPRIT,
    action=Action.DRAIN_NOW,
    confidence=0.9,
)
INCIDENT = Incident(
    id="0123456789abcdef",
    seq=42,
    state=IncidentState.UPDATE,
    time=1_700_000_015.0,
    finding=FINDING,
    node="node-1",
    runbook="docs/runbooks/port_down.md",
    dry_run=True,
)


def document(incident: Incident = INCIDENT, t: float | None = None) -> dict[str, Any]:
    """Return the document as another program reads it."""
    raw = msgspec.json.encode(finding_document(incident, t))
    parsed: dict[str, Any] = json.loads(raw)
    return parsed


def test_every_field() -> None:
    """The document of an incident, to the letter."""
    assert document() == {
        "schema": "fabricmon.finding/1",
        "id": "0123456789abcdef",
        "seq": 42,
        "time": "2023-11-14T22:13:35.000Z",
        "onset": "2023-11-14T22:13:20.250Z",
        "state": "update",
        "kind": "port_down",
        "severity": "critical",
        "role": "culprit",
        "action": "drain_now",
        "subject": {
            "node": "node-1",
            "device": "mlx5_3",
            "port": 1,
            "rail": 3,
            "netdev": "ib3",
        },
        "evidence": [
            {
                "signal": "state",
                "value": "DOWN",
                "unit": "",
                "threshold": "ACTIVE",
                "window_seconds": 12.5,
                "source": "infiniband/mlx5_3/ports/1",
            },
            {
                "signal": "link_downed",
                "value": 1,
                "unit": "events",
                "source": "infiniband/mlx5_3/ports/1/counters",
            },
        ],
        "summary": "mlx5_3/1 down since 22:13:20Z",
        "runbook": "docs/runbooks/port_down.md",
        "confidence": 0.9,
        "dry_run": True,
    }


def test_time_of_a_trace() -> None:
    """Only a replay says when in the trace it was."""
    assert document(t=12.5)["t"] == 12.5
    assert document(t=0.0)["t"] == 0.0
    assert "t" not in document()


def test_only_the_node_is_always_there() -> None:
    """What does not apply is left out of the subject."""
    about_node = replace(INCIDENT, finding=replace(FINDING, subject=Subject()))
    assert document(about_node)["subject"] == {"node": "node-1"}


@pytest.mark.parametrize("part", list(Part))
def test_part_is_called_role(part: Part) -> None:
    """The word of the format is `role`."""
    told = document(replace(INCIDENT, finding=replace(FINDING, part=part)))
    assert told["role"] == part.value


def test_absent_value_is_null() -> None:
    """A measurement that could not be taken is null, never 0 and never left out."""
    item = Evidence("phys_state", None, "", "x")
    told = document(replace(INCIDENT, finding=replace(FINDING, evidence=(item,))))
    assert told["evidence"][0]["value"] is None


def test_zero_is_a_threshold() -> None:
    """A threshold of zero is there."""
    item = Evidence("x", 1, "", "x", threshold=0, window_seconds=0.0)
    told = document(replace(INCIDENT, finding=replace(FINDING, evidence=(item,))))
    assert told["evidence"][0]["threshold"] == 0
    assert told["evidence"][0]["window_seconds"] == 0


def test_summary_is_one_short_line() -> None:
    """Line breaks go, and what is too long is cut."""
    text = "a\nb\t" + "c" * 200
    told = document(replace(INCIDENT, finding=replace(FINDING, summary=text)))
    assert told["summary"].startswith("a b ccc")
    assert len(told["summary"]) == 120


def test_sample_has_no_identity() -> None:
    """A finding of one look has null id and seq, and a runbook all the same."""
    raw = msgspec.json.encode(sample_document(FINDING, "node-1", 1_700_000_015.0))
    told = json.loads(raw)
    assert (told["id"], told["seq"], told["state"]) == (None, None, "open")
    assert told["runbook"] == "docs/runbooks/port_down.md"
    assert set(told) == set(document())


def test_names_that_are_no_text() -> None:
    """Bytes that are not UTF-8 are spelt out: JSON cannot hold them."""
    odd = replace(FINDING, subject=Subject(device="mlx5_\udc80"), summary="\udcff")
    told = document(replace(INCIDENT, finding=odd))
    assert told["subject"]["device"] == "mlx5_\\udc80"


@given(st.floats())
def test_any_time_is_rfc3339(seconds: float) -> None:
    """Also from a clock that went mad."""
    text = rfc3339(seconds)
    assert text.endswith("Z")
    assert datetime.fromisoformat(text).year >= 1970
