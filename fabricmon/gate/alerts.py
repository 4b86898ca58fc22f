"""Notifications of Alertmanager, version 4 of its webhook, as reports. Pure.

https://prometheus.io/docs/alerting/latest/configuration/#webhook_config
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct

from fabricmon.errors import ParseError
from fabricmon.finding_document import (
    SUMMARY_LENGTH,
    EvidenceDocument,
    FindingDocument,
    SubjectDocument,
)
from fabricmon.gate.report import Batch, Report, optional_word, word
from fabricmon.gate.settings import Alerts

MOST_ALERTS = 10_000
"""Alerts of one notification; more are left out, and that is known."""

CONFIDENCE = 0.9
"""An alert does not carry the finding's own."""

_MOST_PORT_DIGITS = 4
_Fingerprint = Annotated[str, Meta(pattern="^[0-9a-f]{1,32}$")]


class _Alert(Struct, frozen=True, rename="camel"):
    status: Literal["firing", "resolved"]
    labels: dict[str, str]
    starts_at: str
    fingerprint: _Fingerprint
    annotations: dict[str, str] = {}


class _Notification(Struct, frozen=True, rename="camel"):
    version: Literal["4"]
    alerts: list[_Alert]
    truncated_alerts: Annotated[int, Meta(ge=0)] = 0


def read_notification(body: bytes, labels: Alerts) -> Batch:
    """Read a notification; raises `ParseError` for what is none.

    Alerts that are not about findings are counted and left out.
    """
    try:
        told = msgspec.json.decode(body, type=_Notification)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise ParseError(f"no notification of Alertmanager: {word(error)}") from None
    taken = told.alerts[:MOST_ALERTS]
    found = [_report(each, labels) for each in taken]
    reports = tuple(each for each in found if each is not None)
    cut = told.truncated_alerts > 0 or len(taken) < len(told.alerts)
    return Batch(reports, cut, len(found) - len(reports))


def _report(alert: _Alert, names: Alerts) -> Report | None:
    labels = alert.labels
    kind = labels.get("kind")
    if not kind:
        return None
    origin = labels.get("origin")
    return Report(
        id=f"alert:{alert.fingerprint}",
        source="alertmanager",
        cluster=word(labels.get(names.cluster_label, "")),
        node=optional_word(labels.get(names.node_label)),
        finding=_finding(alert, kind, names),
        origin="node" if origin == "node" else "fleet",
        rack=optional_word(labels.get("rack")),
        noticed=labels.get("notice") in {"page", "ticket"},
    )


def _finding(alert: _Alert, kind: str, names: Alerts) -> FindingDocument:
    labels = alert.labels
    name = word(labels.get("alertname", ""))
    summary = " ".join(word(alert.annotations.get("summary", name)).split())
    return FindingDocument(
        id=alert.fingerprint,
        seq=None,
        time=word(alert.starts_at),
        onset=word(alert.starts_at),
        state="open" if alert.status == "firing" else "resolved",
        kind=word(kind),
        severity=word(labels.get("severity", "")),
        role=word(labels.get("role", "")),
        action=word(labels.get("action", "none")),
        subject=_subject(labels, names),
        evidence=(EvidenceDocument(name, None, "", "alert"),),
        summary=summary[:SUMMARY_LENGTH],
        runbook=word(alert.annotations.get("runbook_url", "")),
        confidence=CONFIDENCE,
        dry_run=False,
    )


def _subject(labels: Mapping[str, str], names: Alerts) -> SubjectDocument:
    port, rail = labels.get("port", ""), labels.get("rail", "")
    return SubjectDocument(
        node=optional_word(labels.get(names.node_label)),
        device=optional_word(labels.get("device")),
        port=_number(port),
        rail=optional_word(rail) if _number(rail) is None else _number(rail),
        netdev=optional_word(labels.get("netdev")),
        peer=optional_word(labels.get("peer")),
        leaf=optional_word(labels.get("leaf")),
        job=optional_word(labels.get("training")),
    )


def _number(text: str) -> int | None:
    is_number = text.isascii() and text.isdecimal() and len(text) <= _MOST_PORT_DIGITS
    return int(text) if is_number else None
