"""How symptoms of the transport become findings: role, severity, words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from fabricmon.config import Transport
from fabricmon.detect.local_evidence import LocalSign
from fabricmon.detect.transport_rules import (
    EXHAUSTED,
    RETRYING,
    STALLED,
    UPSTREAM,
    Symptom,
)
from fabricmon.detect.wording import clock, subject_of
from fabricmon.model import (
    Action,
    Evidence,
    Finding,
    Part,
    PortInfo,
    Role,
    Severity,
    Subject,
    View,
)
from fabricmon.summaries import one_line, span
from fabricmon.value import Value

CONFIDENCE = {True: 0.9, False: 0.3}
"""Of transport symptoms with and without local evidence (``health-systems``, A11)."""


class Case(Value, frozen=True):
    """One kind of symptom at one port; times are monotonic seconds.

    ``since`` is when its counters began to move, ``held`` since when they are too many.
    ``signs`` are faults of the port that explain it, ``unrelated`` those that do not.
    """

    kind: str
    port: PortInfo
    since: float
    held: float
    symptoms: tuple[Symptom, ...]
    signs: tuple[LocalSign, ...]
    unrelated: tuple[LocalSign, ...] = ()


def folded(
    cases: Iterable[Case], enough: int
) -> Iterator[tuple[Case, tuple[PortInfo, ...]]]:
    """Yield the cases, those that most rails share as one: theirs is one cause.

    A port with a fault of its own stands for itself. The first to begin speaks.
    """
    shared: dict[str, list[Case]] = {}
    for case in cases:
        is_rail = case.port.role is not Role.STORAGE
        if is_rail and not case.signs:
            shared.setdefault(case.kind, []).append(case)
        else:
            yield case, ()
    for alike in shared.values():
        if len(alike) < enough:
            yield from ((case, ()) for case in alike)
            continue
        first = min(alike, key=lambda each: (each.held, each.port.id))
        yield first, tuple(each.port for each in alike if each is not first)


def tell(
    case: Case, others: tuple[PortInfo, ...], limits: Transport, view: View
) -> Finding:
    """Return the finding of a case that ``others`` share."""
    onset = case.since + view.onset_offset
    part = _part(case)
    return Finding(
        kind=case.kind,
        subject=_subject(case),
        onset=onset,
        evidence=tuple(_evidence(case, others, view)),
        summary=one_line(_summary(case, others, clock(onset))),
        severity=_severity(case, limits, view),
        part=part,
        action=Action.INSPECT if part is Part.CULPRIT and case.signs else Action.NONE,
        confidence=0.8 if case.kind == STALLED else CONFIDENCE[bool(case.signs)],
    )


def _part(case: Case) -> Part:
    return Part.CULPRIT if case.signs else case.symptoms[0].rule.part


def _severity(case: Case, limits: Transport, view: View) -> Severity:
    """Queue pairs that died end a job; retries may be a peer's short outage.

    Losses of little effect are told of at the place that has a fault of its own, not
    at every port that feels them.
    """
    if case.kind == EXHAUSTED:
        return Severity.CRITICAL if case.signs else Severity.WARNING
    if case.kind != RETRYING:
        return Severity.WARNING
    lasts = view.now - case.held >= limits.sustained_seconds
    warns = any(symptom.rule.warns for symptom in case.symptoms)
    is_grave = lasts and (warns or bool(case.signs))
    return Severity.WARNING if is_grave else Severity.INFO


def _subject(case: Case) -> Subject:
    if case.kind == UPSTREAM:
        return Subject(rail=case.port.rail, leaf=case.port.leaf)
    return subject_of(case.port)


def _summary(case: Case, others: tuple[PortInfo, ...], since: str) -> str:
    worst = case.symptoms[0]
    who = str(case.port.id) if not others else f"{case.port.id} and {len(others)} more"
    text = f"{who}: {worst.count} {worst.rule.text} in {span(worst.seconds)}"
    return f"{text} since {since}; {_verdict(case)}"


def _verdict(case: Case) -> str:
    if case.signs:
        return f"own fault: {case.signs[0].evidence.signal}"
    return case.symptoms[0].rule.verdict


def _evidence(
    case: Case, others: tuple[PortInfo, ...], view: View
) -> Iterator[Evidence]:
    """Yield the counts, then what speaks for or against this end."""
    seen: set[str] = set()
    for item in (item for symptom in case.symptoms for item in symptom.evidence):
        if item.signal not in seen:
            seen.add(item.signal)
            yield item
    if others:
        names = " ".join(str(other.id) for other in others)
        yield Evidence("ports_alike", names, "", "fabricmon")
    yield from (sign.evidence for sign in case.signs)
    if not case.signs:
        names = ", ".join({sign.evidence.signal: None for sign in case.unrelated})
        value = f"unrelated: {names}" if names else "none"
        yield Evidence("local_evidence", value, "", "fabricmon")
    jobs = " ".join(use.job for use in view.job.jobs)
    if jobs:
        yield Evidence("jobs", jobs, "", "fabricmon")
