"""Incidents as documents that other programs read: ``fabricmon.finding/1``."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TypeVar, overload

from msgspec import UNSET, Struct, UnsetType

from fabricmon.kinds import BY_SLUG
from fabricmon.model import Evidence, Finding, Incident, IncidentState, Subject

SCHEMA = "fabricmon.finding/1"

SUMMARY_LENGTH = 120
"""Longest summary, in characters."""

_T = TypeVar("_T")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LAST = 253_402_300_799.0  # the end of the year 9999, where RFC 3339 ends


class SubjectDocument(Struct, frozen=True, omit_defaults=True):
    """What the finding is about; what does not apply is left out, but for ``node``."""

    node: str | None
    device: str | None = None
    port: int | None = None
    rail: int | str | None = None
    netdev: str | None = None
    peer: str | None = None
    leaf: str | None = None
    job: str | None = None
    comm: str | None = None


class EvidenceDocument(Struct, frozen=True):
    """One measured reason; threshold and window only where there is one."""

    signal: str
    value: float | int | str | None
    unit: str
    source: str
    threshold: float | int | str | UnsetType = UNSET
    window_seconds: float | UnsetType = UNSET


class FindingDocument(Struct, frozen=True, kw_only=True):
    """One finding; every key is always there, except ``t`` outside of replays.

    ``id`` and ``seq`` are null for a finding of a single sample.
    """

    schema: str = SCHEMA
    id: str | None
    seq: int | None
    t: float | UnsetType = UNSET
    time: str
    onset: str
    state: str
    kind: str
    severity: str
    role: str
    action: str
    subject: SubjectDocument
    evidence: tuple[EvidenceDocument, ...]
    summary: str
    runbook: str
    confidence: float
    dry_run: bool


def finding_document(incident: Incident, t: float | None = None) -> FindingDocument:
    """Return an incident as others read it; ``t`` is seconds since a trace's start."""
    return _document(
        incident.finding,
        node=incident.node,
        time=incident.time,
        id=incident.id,
        seq=incident.seq,
        t=UNSET if t is None else t,
        state=incident.state,
        runbook=incident.runbook,
        dry_run=incident.dry_run,
    )


def sample_document(finding: Finding, node: str, time: float) -> FindingDocument:
    """Return a finding of one sample, which has no identity: null id and seq."""
    kind = BY_SLUG.get(finding.kind)
    return _document(
        finding,
        node=node,
        time=time,
        id=None,
        seq=None,
        t=UNSET,
        state=IncidentState.OPEN,
        runbook=kind.runbook if kind else "",
        dry_run=False,
    )


def rfc3339(unix_seconds: float) -> str:
    """Return a time in UTC with milliseconds; what RFC 3339 cannot say is clamped."""
    seconds = min(max(0.0, unix_seconds), _LAST)  # this order makes NaN zero
    moment = _EPOCH + timedelta(milliseconds=round(seconds * 1000))
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _document(
    finding: Finding,
    *,
    node: str,
    time: float,
    id: str | None,  # noqa: A002 - the word of the format
    seq: int | None,
    t: float | UnsetType,
    state: IncidentState,
    runbook: str,
    dry_run: bool,
) -> FindingDocument:
    return FindingDocument(
        id=id,
        seq=seq,
        t=t,
        time=rfc3339(time),
        onset=rfc3339(finding.onset),
        state=state.value,
        kind=finding.kind,
        severity=finding.severity.word,
        role=finding.part.value,
        action=finding.action.value,
        subject=_subject(finding.subject, node),
        evidence=tuple(map(_evidence, finding.evidence)),
        summary=_one_line(finding.summary),
        runbook=runbook,
        confidence=finding.confidence,
        dry_run=dry_run,
    )


def _subject(subject: Subject, node: str) -> SubjectDocument:
    return SubjectDocument(
        node=_plain(node),
        device=_plain(subject.device),
        port=subject.port,
        rail=_plain(subject.rail),
        netdev=_plain(subject.netdev),
        peer=_plain(subject.peer),
        leaf=_plain(subject.leaf),
        job=_plain(subject.job),
        comm=_plain(subject.comm),
    )


def _evidence(item: Evidence) -> EvidenceDocument:
    return EvidenceDocument(
        signal=_plain(item.signal),
        value=_plain(item.value),
        unit=item.unit,
        source=item.source,
        threshold=UNSET if item.threshold is None else _plain(item.threshold),
        window_seconds=UNSET if item.window_seconds is None else item.window_seconds,
    )


def _one_line(text: str) -> str:
    line = " ".join(_plain(text).split())
    return line if len(line) <= SUMMARY_LENGTH else f"{line[: SUMMARY_LENGTH - 1]}…"


@overload
def _plain(value: str) -> str: ...
@overload
def _plain(value: _T) -> _T: ...
def _plain(value: object) -> object:
    """Make a text JSON can hold: bytes that are not UTF-8 are lone surrogates here."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode("utf-8")
    return value
