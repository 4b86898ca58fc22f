"""What a scheduler should do with a node, by what ``check`` says of it. Pure.

Only what this very node proves can take it out of service: a finding whose fault is
here, at warning or above, that advises to drain. What is unknown, what only suffers
and what is in shadow never does.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator
from enum import StrEnum

from msgspec import UNSET, Struct

from fabricmon.finding_document import EvidenceDocument, FindingDocument
from fabricmon.model import Action, IncidentState, Part, Severity

PREFIX = "fabricmon:"
"""How every reason begins; no other reason is ever taken back."""

REASON_CHARACTERS = 80
"""Longest reason: Slurm's lists cut what is longer, node-problem-detector too."""

_MOST_FACTS = 3
_HOUR, _MINUTE = 3600, 60

_WORDS = {
    "port_down": "DOWN",
    "port_not_active": "NOT ACTIVE",
    "port_flap": "FLAP",
    "port_flapping": "FLAP",
    "link_errors": "BIT ERRORS",
    "rate_degraded": "SLOW LINK",
    "device_missing": "MISSING",
    "device_stuck": "STUCK",
    "pcie_degraded": "PCIE",
    "pcie_errors": "PCIE ERRORS",
    "module_hot": "MODULE HOT",
    "optics_weak": "WEAK OPTICS",
    "pause_origin": "PAUSE STORM",
    "straggler_link": "STRAGGLER",
    "retries_exhausted": "RETRIES",
}
"""What the kinds that drain are called where there is room for a word only."""

_TIMES = frozenset({"events", "flaps", "errors", "packets", "frames", "symbols"})
"""Units of what is counted: a count over a window is told as ``3x/3h``."""

_LASTING = {
    "downtime_seconds": "down",
    "outage_seconds": "down",
    "seconds_not_active": "down",
    "seconds_gone": "gone",
}
"""Signals that are lengths of time, told as ``down=41s``."""

_LEVELS = frozenset({"Gb/s", "GT/s", "lanes"})
"""Units of what is less than it should be: told as ``200/400Gb/s``."""


class Moment(StrEnum):
    """When a scheduler asks."""

    HEALTH = "health"  # now and then, also while jobs run
    PROLOG = "prolog"  # before a job
    EPILOG = "epilog"  # after a job: the time for what can wait until then
    RESUME = "resume"  # may a node go back into service that fabricmon took out


class JobPorts(Struct, frozen=True):
    """A job on the node and its ports, ``device/port``; none means not known."""

    job: str
    ports: tuple[str, ...] = ()


class Answer(Struct, frozen=True):
    """What is needed of the document that ``check`` prints; keys that it lacks may."""

    verdict: str
    source: str = "sample"
    findings: tuple[FindingDocument, ...] = ()
    jobs: tuple[JobPorts, ...] = ()


def reasons_to_drain(
    answer: Answer, moment: Moment, job: str | None = None
) -> tuple[FindingDocument, ...]:
    """Return the findings for which the node should take no more jobs, the worst first.

    With a job, only those on ports that it uses or used; where its ports are not known
    it may have used all.
    """
    wanted = {Action.DRAIN_NOW.value}
    if moment in {Moment.EPILOG, Moment.RESUME}:
        wanted.add(Action.DRAIN_AFTER_JOB.value)
    ports = _ports(answer, job)
    found = [
        finding
        for finding in answer.findings
        if _is_proven(finding)
        and finding.action in wanted
        and _is_in_scope(finding, job, ports)
    ]
    return tuple(sorted(found, key=_urgency, reverse=True))


def faults(answer: Answer) -> tuple[FindingDocument, ...]:
    """Return the findings that somebody should act on here, the worst first."""
    found = [
        finding
        for finding in answer.findings
        if _is_proven(finding) and finding.action != Action.NONE.value
    ]
    return tuple(sorted(found, key=_urgency, reverse=True))


def why_not_resume(answer: Answer) -> str | None:
    """Say what speaks against taking the node back into service, None if nothing.

    A sample cannot see what an agent saw before, so it never speaks for the node.
    """
    drains = reasons_to_drain(answer, Moment.RESUME)
    if drains:
        return reason(drains)
    if answer.source != "agent":
        return _line("no agent answers: one sample proves nothing")
    if answer.verdict in {"unknown", "down"}:
        return _line(f"the node is {answer.verdict}")
    return None


def reason(findings: Iterable[FindingDocument]) -> str:
    """Return one printable line: what, where, how much, and how many more there are."""
    first, *others = findings
    more = f" (+{len(others)})" if others else ""
    words = [
        _place(first),
        _WORDS.get(first.kind, first.kind.replace("_", " ").upper()),
    ]
    return _line(" ".join(filter(None, (*words, *_facts(first)))), more)


def shortened(text: str) -> str:
    """Return text as one line of printable ASCII that is not too long."""
    return _cut(_ascii(text), REASON_CHARACTERS)


def _line(text: str, more: str = "") -> str:
    line = _cut(f"{PREFIX} {_ascii(text)}", REASON_CHARACTERS - len(more))
    return f"{line}{more}"


def _cut(line: str, room: int) -> str:
    return line if len(line) <= room else f"{line[: room - 3]}..."


def _ascii(text: str) -> str:
    """Leave only what a scheduler's database, a shell and a terminal pass on as it is."""
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "replace").decode()
    kept = "".join(c if c.isprintable() and c not in "'\"`$\\" else "?" for c in plain)
    return " ".join(kept.split())


def _is_proven(finding: FindingDocument) -> bool:
    return (
        finding.role == Part.CULPRIT.value
        and not finding.dry_run
        and finding.state != IncidentState.RESOLVED.value
        and finding.severity != Severity.INFO.word
    )


def _urgency(finding: FindingDocument) -> tuple[bool, bool, float]:
    return (
        finding.action == Action.DRAIN_NOW.value,
        finding.severity == Severity.CRITICAL.word,
        finding.confidence,
    )


def _ports(answer: Answer, job: str | None) -> frozenset[str]:
    return frozenset(
        port for use in answer.jobs if use.job == job for port in use.ports
    )


def _is_in_scope(
    finding: FindingDocument, job: str | None, ports: frozenset[str]
) -> bool:
    """Tell whether a finding may concern a job."""
    subject = finding.subject
    if job is None or not ports or subject.device is None:
        return True
    if subject.port is not None:
        return f"{subject.device}/{subject.port}" in ports
    return any(port.rpartition("/")[0] == subject.device for port in ports)


def _place(finding: FindingDocument) -> str:
    subject = finding.subject
    if subject.device is None:
        return ""
    port = "" if subject.port is None else f"/{subject.port}"
    return f"{subject.device}{port}"


def _facts(finding: FindingDocument) -> Iterator[str]:
    """Yield the first facts of the evidence, each in one word."""
    told: set[str] = set()
    for item in finding.evidence:
        fact = _fact(item)
        if fact is not None and fact[0] not in told:
            told.add(fact[0])
            yield fact[1]
        if len(told) == _MOST_FACTS:
            return


def _fact(item: EvidenceDocument) -> tuple[str, str] | None:
    """Return what sort of fact a piece of evidence is, and the fact; None if long."""
    value, window, most = item.value, item.window_seconds, item.threshold
    if isinstance(value, str) or not value:
        return None
    if window is not UNSET:
        counted = item.unit in _TIMES
        return ("count", f"{value:g}x/{_span(window)}") if counted else None
    if item.unit in _LEVELS and isinstance(most, int | float):
        return item.unit, f"{value:g}/{most:g}{item.unit}"
    name = _LASTING.get(item.signal)
    return None if name is None else (name, f"{name}={_span(value)}")


def _span(seconds: float) -> str:
    """Write a time in one word: 41s, 12min, 3h."""
    if seconds >= _HOUR and seconds % _HOUR == 0:
        return f"{seconds / _HOUR:.0f}h"
    if seconds >= 2 * _MINUTE and seconds % _MINUTE == 0:
        return f"{seconds / _MINUTE:.0f}min"
    return f"{seconds:.0f}s"
