"""Alerts of the fleet as findings, so that whatever reads findings reads them too.

Labels make the subject, the expression's value is the evidence. An alert that stands
for a finding of a node has the label ``origin`` with the value ``node``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import sha256

from msgspec import UNSET

from fabricmon.finding_document import (
    EvidenceDocument,
    FindingDocument,
    SubjectDocument,
    rfc3339,
)
from fabricmon.fleet.firing import Firing, Heard
from fabricmon.fleet.rule import TRAINING
from fabricmon.kinds import BY_SLUG
from fabricmon.summaries import one_line

ORIGIN = "origin"
FROM_NODE, FROM_FLEET = "node", "fleet"
SOURCE = "fleet_rule"
THRESHOLD = "threshold"
UNIT = "unit"
CONFIDENCE = 0.9
"""What several nodes agree on is not proof of the place."""

_FIRST_TIME = 1e9
"""Unix seconds in 2001: no value of a node's alert that is no time is so large."""

_READ = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*(?::[a-zA-Z0-9_]+)+|fabricmon_[a-z0-9_]+")
_IDENTITIES = re.compile(r".*_info")
"""Metrics that are read for their labels: what was measured is another."""


@dataclass(frozen=True, slots=True)
class AlertFinding:
    """A finding made of an alert; ``at`` is Unix seconds by the scraper's clock."""

    at: float
    document: FindingDocument


def origin(firing: Firing) -> str:
    """Return whether a node found it, or only the fleet can: ``node`` or ``fleet``."""
    said = firing.label(ORIGIN)
    if said:
        return said
    return FROM_NODE if "fabricmon_finding_open" in firing.alert.expr else FROM_FLEET


def alert_findings(heard: Iterable[Heard], start: float) -> Iterator[AlertFinding]:
    """Yield what was heard, in order of time; ``start`` is when the traces begin."""
    told = [each for each in heard if each.told is not None]
    events = [(float(each.told or 0), "open", each.firing) for each in told]
    events += [
        (each.resolved, "resolved", each.firing)
        for each in told
        if each.resolved is not None
    ]
    events.sort(key=lambda event: event[0])
    for seq, (at, state, firing) in enumerate(events, 1):
        yield AlertFinding(at, _document(firing, state, at, start, seq))


def _document(
    firing: Firing, state: str, at: float, start: float, seq: int
) -> FindingDocument:
    subject, kind = _subject(firing), kind_of(firing)
    return FindingDocument(
        id=_id(firing, kind, subject),
        seq=seq,
        t=round(at - start, 3),
        time=rfc3339(at),
        onset=rfc3339(_onset(firing)),
        state=state,
        kind=kind,
        severity=firing.label("severity") or "warning",
        role=firing.label("role") or "observer",
        action=firing.label("action") or "none",
        subject=subject,
        evidence=(_evidence(firing),),
        summary=one_line(firing.summary or firing.alert.name),
        runbook=firing.alert.runbook,
        confidence=CONFIDENCE,
        dry_run=False,
    )


def _onset(firing: Firing) -> float:
    """Return when the condition began: the value of alerts that carry a node's onset.

    Of others it is when their expression began to hold.
    """
    value = firing.life.value
    is_time = origin(firing) == FROM_NODE and value > _FIRST_TIME
    return value if is_time else firing.life.active


def kind_of(firing: Firing) -> str:
    """Return what an alert is about: its label, else what its rule says."""
    return firing.label("kind") or firing.alert.kind


def _subject(firing: Firing) -> SubjectDocument:
    port, rail = firing.label("port"), firing.label("rail")
    return SubjectDocument(
        node=firing.label("node") or None,
        device=firing.label("device") or None,
        port=int(port) if port.isdecimal() else None,
        rail=int(rail) if rail.isdecimal() else rail or None,
        peer=firing.label("peer") or None,
        leaf=firing.label("leaf") or None,
        job=firing.label(TRAINING) or None,
        comm=firing.label("comm") or None,
    )


def _id(firing: Firing, kind: str, subject: SubjectDocument) -> str:
    """Return the id as agents make it."""
    row = BY_SLUG.get(kind)
    fields = row.about.fields if row else ("device", "port", "rail", "leaf", "peer")
    values = (getattr(subject, field) for field in fields)
    identity = "/".join("" if value is None else str(value) for value in values)
    onset = round(_onset(firing) * 1000)
    text = f"{subject.node or ''}|{kind}|{identity}|{onset}"
    return sha256(text.encode("utf-8", "backslashreplace")).hexdigest()[:16]


def _evidence(firing: Firing) -> EvidenceDocument:
    names = _READ.findall(firing.alert.expr)
    measured = (name for name in names if not _IDENTITIES.fullmatch(name))
    threshold = firing.label(THRESHOLD)
    return EvidenceDocument(
        signal=next(measured, firing.alert.name),
        value=firing.life.value,
        unit=firing.label(UNIT),
        source=SOURCE,
        threshold=_number(threshold) if threshold else UNSET,
    )


def _number(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text
