"""What a node's condition and the events about it say. Pure.

The condition is positive, as the kubelet's ``Ready``: True is good. Only what this very
node proves makes it false, and only when the advice is strong enough; what it suffers
from others never does.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from msgspec import UNSET

from fabricmon.config import Kubernetes
from fabricmon.finding_document import (
    EvidenceDocument,
    FindingDocument,
    SubjectDocument,
    finding_document,
)
from fabricmon.kinds import BY_SLUG
from fabricmon.model import (
    Action,
    Incident,
    IncidentState,
    Part,
    Severity,
    Snapshot,
    Verdict,
)
from fabricmon.redaction import NO_NAMES, Names, Redactor
from fabricmon.value import Value

CONDITION = "FabricHealthy"
"""Type of the node's condition."""

HEALTHY_REASON = "FabricIsHealthy"
UNKNOWN_REASON = "FabricNotSeen"

MOST_NOTE = 1024
"""Longest note of an event in bytes; the API server refuses a longer one."""

MOST_EVIDENCE = 3
MOST_TOLD = 3  # findings told in one message; the others are counted

Status = Literal["True", "False", "Unknown"]
_ORDER = tuple(Action)


class Condition(Value, frozen=True):
    """What the condition says; when it was told and changed is the sender's matter."""

    status: Status
    reason: str
    message: str


class EventText(Value, frozen=True):
    """An event without its times; equal texts but for the note are repeats of it."""

    reason: str
    kind: Literal["Normal", "Warning"]
    action: str
    note: str
    place: str


class Voice(Value, frozen=True):
    """What may be told: the settings, and what takes names out."""

    settings: Kubernetes
    redactor: Redactor
    names: Names = NO_NAMES

    def document(self, incident: Incident) -> FindingDocument:
        """Return a finding as it may be told."""
        return self.redactor.finding(finding_document(incident), self.names)


def condition_of(snapshot: Snapshot, voice: Voice) -> Condition:
    """Return the node's condition as it stands."""
    least = _ORDER.index(Action(voice.settings.condition_from))
    open_ = [each for each in snapshot.incidents if _is_proven(each)]
    faults = [each for each in open_ if _ORDER.index(each.finding.action) >= least]
    if faults:
        worst = sorted(faults, key=_urgency, reverse=True)
        message = _message(voice.document(each) for each in worst)
        return Condition("False", camel_case(worst[0].finding.kind), message)
    if snapshot.verdict is Verdict.UNKNOWN or snapshot.class_error is not None:
        return Condition("Unknown", UNKNOWN_REASON, _unseen(snapshot, voice))
    if not snapshot.ports:
        return Condition("Unknown", UNKNOWN_REASON, "no RDMA device on this node")
    return Condition("True", HEALTHY_REASON, _healthy(snapshot, open_, voice))


def event_of(incident: Incident, voice: Voice) -> EventText | None:
    """Return the event for a change of a finding, None for one not worth it."""
    finding = incident.finding
    if incident.dry_run or finding.severity < _severity(voice.settings.event_severity):
        return None
    over = incident.state is IncidentState.RESOLVED
    mild = over or finding.severity is Severity.INFO
    name = camel_case(finding.kind)
    document = voice.document(incident)
    note = document.summary if over else _told(document)
    if not over and document.runbook:
        note = f"{note}; runbook: {document.runbook}"
    return EventText(
        reason=f"{name}Resolved" if over else name,
        kind="Normal" if mild else "Warning",
        action=camel_case(finding.action.value),
        note=bounded(note, MOST_NOTE),
        place=place_of(document.subject),
    )


def camel_case(words: str) -> str:
    """Write ``port_flapping`` as ``PortFlapping``."""
    return "".join(word[:1].upper() + word[1:] for word in words.split("_"))


def bounded(text: str, octets: int) -> str:
    """Return printable text on one line, cut to so many bytes of UTF-8."""
    line = " ".join(text.split())
    plain = "".join(each if each.isprintable() else "?" for each in line)
    raw = plain.encode("utf-8", "backslashreplace")
    if len(raw) <= octets:
        return raw.decode("utf-8")
    return raw[: octets - 3].decode("utf-8", "ignore") + "…"


def place_of(subject: SubjectDocument) -> str:
    """Return what a finding is about in a few words, the node if nothing else."""
    if subject.device is not None:
        port = "" if subject.port is None else f"/{subject.port}"
        return f"{subject.device}{port}"
    for word in ("netdev", "peer", "rail", "leaf", "job"):
        name = getattr(subject, word)
        if name is not None:
            return f"{word} {name}"
    return "node"


def _is_proven(incident: Incident) -> bool:
    finding = incident.finding
    return (
        incident.state is not IncidentState.RESOLVED
        and not incident.dry_run
        and finding.part is Part.CULPRIT
        and finding.action is not Action.NONE
        and finding.severity is not Severity.INFO
    )


def _urgency(incident: Incident) -> tuple[int, int, float, str]:
    """Order findings; of equals the older, so that the reason does not wander."""
    finding = incident.finding
    action = _ORDER.index(finding.action)
    return action, int(finding.severity), -finding.onset, incident.id


def _severity(word: str) -> Severity:
    return Severity[word.upper()]


def _message(documents: Iterable[FindingDocument]) -> str:
    told = [f"{each.action}: {_told(each)}" for each in documents]
    more = len(told) - MOST_TOLD
    rest = [f"and {more} more"] if more > 0 else []
    return bounded("; ".join((*told[:MOST_TOLD], *rest)), MOST_NOTE)


def _told(document: FindingDocument) -> str:
    facts = ", ".join(map(_fact, document.evidence[:MOST_EVIDENCE]))
    return f"{document.summary} [{facts}]" if facts else document.summary


def _fact(item: EvidenceDocument) -> str:
    value = "withheld" if item.value is None else item.value
    if isinstance(value, float):
        value = f"{value:.4g}"
    text = f"{item.signal}={value} {item.unit}".strip()
    if item.threshold is not UNSET and not isinstance(item.threshold, str):
        text += f", limit {item.threshold:.4g}"
    if item.window_seconds is not UNSET:
        text += f" in {item.window_seconds:.0f} s"
    return text


def _unseen(snapshot: Snapshot, voice: Voice) -> str:
    if snapshot.class_error is not None:
        return f"RDMA devices cannot be listed: {snapshot.class_error}"
    unknown = [port for port in snapshot.ports if port.verdict is Verdict.UNKNOWN]
    told = [
        f"{port.info.id}: {', '.join(port.reasons) or 'unknown'}"
        for port in unknown[:MOST_TOLD]
    ]
    more = len(unknown) - MOST_TOLD
    rest = [f"and {more} more"] if more > 0 else []
    text = "; ".join((*told, *rest)) or "the node cannot be judged"
    return bounded(voice.redactor.text(text, voice.names), MOST_NOTE)


def _healthy(snapshot: Snapshot, open_: Iterable[Incident], voice: Voice) -> str:
    """Say what somebody should look at all the same."""
    titles: dict[str, None] = {}
    for incident in sorted(open_, key=_urgency, reverse=True):
        subject = voice.document(incident).subject
        kind = BY_SLUG.get(incident.finding.kind)
        title = kind.slug if kind else incident.finding.kind
        titles[f"{title} ({place_of(subject)})"] = None
    told = list(titles)[:MOST_TOLD]
    if not told:
        return f"{len(snapshot.ports)} ports, nothing that advises to act"
    more = len(titles) - len(told)
    rest = f" and {more} more" if more else ""
    return bounded(f"to be looked at: {', '.join(told)}{rest}", MOST_NOTE)
