"""Alerts in the form of findings."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import Any

import msgspec
import pytest

from fabricmon.fleet.alert_findings import alert_findings, origin
from fabricmon.fleet.firing import Firing, Heard
from tests.findings import check_stream
from tests.fleet.firings import firing

START = 1767600000.0
LABELS = {
    "kind": "rail_slow",
    "severity": "critical",
    "role": "culprit",
    "action": "inspect",
    "node": "n1",
    "device": "mlx5_3",
    "port": "1",
    "rail": "3",
    "leaf": "leaf7",
    "peer": "n2",
    "training": "train-1",
    "origin": "fleet",
    "job": "fabricmon",
}


def documents(*heard: Heard) -> list[dict[str, Any]]:
    """Return alerts as programs read them."""
    found = alert_findings(heard, START)
    return [json.loads(msgspec.json.encode(each.document)) for each in found]


def document(fired: Firing, told: float = 130) -> dict[str, Any]:
    """Return the finding of one alert that was told."""
    (one,) = documents(Heard(fired, START + told))
    return one


def usual(**changes: str) -> Firing:
    """Return an alert with all labels, its expression true since 40 s."""
    labels = {**LABELS, **changes}
    return firing("F", START + 100, START + 400, hold=60, value=2.5, more=labels)


def test_contract() -> None:
    """What is told and resolved is a valid stream of findings."""
    check_stream(documents(Heard(usual(), START + 130, START + 430)))


def test_fields() -> None:
    """Labels make the finding; the target's job is none."""
    found = document(usual())
    assert found["kind"] == "rail_slow"
    assert found["severity"] == "critical"
    assert found["role"] == "culprit"
    assert found["action"] == "inspect"
    assert found["subject"] == {
        "node": "n1",
        "device": "mlx5_3",
        "port": 1,
        "rail": 3,
        "leaf": "leaf7",
        "peer": "n2",
        "job": "train-1",
    }
    assert found["summary"] == "F fires"
    assert found["dry_run"] is False


def test_times() -> None:
    """Told after the wait; it began when the expression began to hold."""
    found = document(usual())
    assert found["t"] == 130
    assert found["time"] == "2026-01-05T08:02:10.000Z"
    assert found["onset"] == "2026-01-05T08:00:40.000Z"


def test_onset_of_a_nodes_finding() -> None:
    """The value of such an alert is the time that the node gives."""
    alert = firing("F", START + 100, value=START + 33.5, origin="node")
    assert document(alert)["onset"] == "2026-01-05T08:00:33.500Z"
    unknown = firing("F", START + 100, hold=10, value=0, origin="node")
    assert document(unknown)["onset"] == "2026-01-05T08:01:30.000Z"


def test_id() -> None:
    """The hash of agents, over node, kind, identity and onset."""
    text = f"n1|rail_slow|3|{round((START + 40) * 1000)}"
    assert document(usual())["id"] == sha256(text.encode()).hexdigest()[:16]


def test_states_and_numbers() -> None:
    """Opened and resolved under one id, numbered in order of time."""
    other = firing("G", START + 300, kind="common_cause", leaf="leaf7")
    found = documents(
        Heard(usual(), START + 130, START + 430), Heard(other, START + 330)
    )
    assert [each["state"] for each in found] == ["open", "open", "resolved"]
    assert [each["seq"] for each in found] == [1, 2, 3]
    assert found[0]["id"] == found[2]["id"] != found[1]["id"]
    assert found[1]["subject"] == {"node": None, "leaf": "leaf7"}


def test_never_told() -> None:
    """What nobody heard of is no finding."""
    assert not documents(Heard(usual(), None, silenced="x"))


def test_rail_by_name() -> None:
    """A topology may call rails by names."""
    assert document(usual(rail="blue"))["subject"]["rail"] == "blue"


def test_without_labels() -> None:
    """The mildest reading of a rule that says little."""
    found = document(firing("F", START + 100))
    assert found["kind"] == "port_down"
    assert found["severity"] == "warning"
    assert (found["role"], found["action"]) == ("observer", "none")


@pytest.mark.parametrize(
    ("expr", "signal"),
    [
        ("rail:fabricmon_port_busy:z > 3", "rail:fabricmon_port_busy:z"),
        ("fabricmon_port_info * on (node) fabricmon_x_total > 3", "fabricmon_x_total"),
        ("up == 0", "F"),
    ],
)
def test_evidence(expr: str, signal: str) -> None:
    """What was measured, its value, and the bound where the rule tells it."""
    alert = firing("F", 100, value=4.5, expr=expr, threshold="3", unit="ratio")
    (item,) = document(alert)["evidence"]
    assert item == {
        "signal": signal,
        "value": 4.5,
        "unit": "ratio",
        "source": "fleet_rule",
        "threshold": 3.0,
    }


def test_origin() -> None:
    """Said by a label, else by what the expression reads."""
    assert origin(firing("A", expr="x", origin="node")) == "node"
    assert origin(firing("A", expr="fabricmon_finding_open > 0")) == "node"
    assert origin(firing("A", expr="rail:x:z > 3")) == "fleet"
