"""Findings, gates and configurations that tests of the gate are made of."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import Any

import msgspec

from fabricmon.finding_document import (
    EvidenceDocument,
    FindingDocument,
    SubjectDocument,
)
from fabricmon.gate.deciding import Gate
from fabricmon.gate.decision import Decision, Reason, Sight, Verdict
from fabricmon.gate.report import Report
from fabricmon.gate.settings import Caution, GateConfig

NOW = 1_800_000_000.0
SEEING = Sight()
CAUTION = Caution(
    settle_seconds=100,
    common_window_seconds=300,
    cooldown_seconds=1000,
    budget_nodes=2,
    budget_window_seconds=10_000,
)
CONFIG = GateConfig(act=True, caution=CAUTION)


def finding(node: str | None = "n1", **changes: Any) -> FindingDocument:
    """Return a port that is down and should be drained, but for the changes."""
    place = {"device": "mlx5_0", "port": 1, "rail": None, "leaf": None}
    subject = {name: changes.pop(name, usual) for name, usual in place.items()}
    usual: dict[str, Any] = {
        "id": "0123456789abcdef",
        "seq": None,
        "time": "2027-01-15T08:00:00.000Z",
        "onset": "2027-01-15T08:00:00.000Z",
        "state": "open",
        "kind": "port_down",
        "severity": "critical",
        "role": "culprit",
        "action": "drain_now",
        "subject": SubjectDocument(node=node, **subject),
        "evidence": (EvidenceDocument("state", "DOWN", "", "sysfs"),),
        "summary": "mlx5_0/1 is down",
        "runbook": "docs/runbooks/port_down.md",
        "confidence": 1.0,
        "dry_run": False,
    }
    return FindingDocument(**(usual | changes))


def report(node: str | None = "n1", **changes: Any) -> Report:
    """Return such a finding as it came in."""
    own = ("cluster", "origin", "rack", "noticed", "source")
    outer: dict[str, Any] = {name: changes.pop(name) for name in own if name in changes}
    key = changes.pop("key", f"alert:{node}")
    outer = {"cluster": "c1", "source": "alertmanager"} | outer
    return Report(id=key, node=node, finding=finding(node, **changes), **outer)


def resolved(told: Report) -> Report:
    """Return the end of a finding."""
    over = msgspec.structs.replace(told.finding, state="resolved")
    return msgspec.structs.replace(told, finding=over)


def gate(config: GateConfig = CONFIG, now: float = NOW, **caution: Any) -> Gate:
    """Return a gate that has settled by ``now``."""
    changed = msgspec.structs.replace(config.caution, **caution)
    return Gate(msgspec.structs.replace(config, caution=changed), now - 1e6)


def verdict(
    judge: Gate, now: float, key: str = "alert:n1", sight: Sight = SEEING
) -> tuple[Verdict, Reason]:
    """Return what is decided of one finding."""
    decision = decision_of(judge, now, key, sight)
    return decision.verdict, decision.reason


def decision_of(
    judge: Gate, now: float, key: str = "alert:n1", sight: Sight = SEEING
) -> Decision:
    """Return the decision about one finding."""
    judge.age(now)
    (found,) = [each for each in judge.judge(now, sight) if each.report.id == key]
    return found


def alert(node: str = "n1", **labels: str) -> dict[str, Any]:
    """Return an alert of Alertmanager's webhook, as the fleet's rules make them."""
    usual = {
        "alertname": "FabricPortDown",
        "cluster": "c1",
        "node": node,
        "device": "mlx5_0",
        "port": "1",
        "kind": "port_down",
        "severity": "critical",
        "role": "culprit",
        "action": "drain_now",
        "origin": "node",
        "notice": "page",
    }
    return {
        "status": "firing",
        "labels": usual | labels,
        "annotations": {"summary": f"{node} mlx5_0/1: port down"},
        "startsAt": "2027-01-15T08:00:00.000Z",
        "endsAt": "0001-01-01T00:00:00Z",
        "generatorURL": "http://prometheus.example/graph",
        "fingerprint": sha256(repr((node, labels)).encode()).hexdigest()[:16],
    }


def notification(*alerts: dict[str, Any], **more: Any) -> bytes:
    """Return a notification of Alertmanager, version 4."""
    content = {
        "version": "4",
        "groupKey": "{}",
        "truncatedAlerts": 0,
        "status": "firing",
        "receiver": "gate",
        "groupLabels": {},
        "commonLabels": {},
        "commonAnnotations": {},
        "externalURL": "http://alertmanager.example",
        "alerts": list(alerts),
    }
    return json.dumps(content | more).encode()
