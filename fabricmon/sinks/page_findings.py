"""The open findings of the status page: the worst first, each with its evidence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from fabricmon.kinds import BY_SLUG
from fabricmon.model import (
    Action,
    Evidence,
    Incident,
    Part,
    Severity,
    Snapshot,
    Subject,
)
from fabricmon.sinks.page_words import clock, listed, quantity, span, text

_ADVICE = {
    Action.INSPECT: "inspect",
    Action.DRAIN_AFTER_JOB: "drain after the job",
    Action.DRAIN_NOW: "drain now",
}
_URGENCY = tuple(Action)
_PARTS = {
    Part.VICTIM: "this place is the victim",
    Part.OBSERVER: "seen here, not blamed on this place",
}


def findings(snapshot: Snapshot) -> str:
    """Return a card for each open finding."""
    cards = "".join(_card(each, snapshot.wall) for each in worst_first(snapshot))
    shown = cards or '<p class="calm">Nothing is open.</p>'
    return (
        '<section id="findings" aria-labelledby="findings-title">'
        f'<h2 id="findings-title">Findings</h2>{shown}</section>'
    )


def worst_first(snapshot: Snapshot) -> list[Incident]:
    """Return the open findings; what is only tried out comes last."""
    return sorted(
        snapshot.incidents,
        key=lambda each: (
            each.dry_run,
            -each.finding.severity,
            -_URGENCY.index(each.finding.action),
            each.finding.onset,
            each.finding.kind,
            anchor(each),
        ),
    )


def in_words(incidents: Iterable[Incident]) -> str:
    """Count findings by severity: 2 critical and 1 warning."""
    counts = Counter(each.finding.severity for each in incidents if not each.dry_run)
    found = [
        f"{counts[s]} {s.word}" for s in sorted(Severity, reverse=True) if counts[s]
    ]
    if not found:
        return "nothing is open"
    return f"open: {listed(found)}"


def anchor(incident: Incident) -> str:
    """Return the id of a finding's card, to link to."""
    return text(f"finding-{incident.id}")


def mark(incident: Incident) -> str:
    """Return a short link to the card of a finding."""
    finding = incident.finding
    shade = "shadow" if incident.dry_run else finding.severity.word
    return (
        f'<a class="chip {shade}" href="#{anchor(incident)}">{text(finding.kind)}</a>'
    )


def _card(incident: Incident, wall: float) -> str:
    finding = incident.finding
    severity = finding.severity.word
    shade = f"{severity} shadow" if incident.dry_run else severity
    evidence = "".join(map(_evidence, finding.evidence))
    return (
        f'<article class="card {shade}" id="{anchor(incident)}" '
        f'data-key="{anchor(incident)}" data-kind="{text(finding.kind)}">'
        f'<p class="line"><b class="chip {shade}">{severity}</b>'
        f"{_subject(finding.subject)}"
        f'<span class="when">for {span(wall - finding.onset)}, '
        f"since {clock(finding.onset, wall)}</span></p>"
        f"<h3>{text(finding.summary)}</h3>"
        f'<p class="line">{" ".join(_meaning(incident))}</p>'
        f'<ul class="evidence" aria-label="Evidence">{evidence}</ul></article>'
    )


def _subject(subject: Subject) -> str:
    """Return what a finding is about, from the device to the job."""
    parts = []
    if subject.device is not None:
        port = "" if subject.port is None else f"/{subject.port}"
        parts.append(f'<b class="name">{text(subject.device + port)}</b>')
    named = {
        "netdev": subject.netdev,
        "rail": subject.rail,
        "leaf": subject.leaf,
        "peer": subject.peer,
        "job": subject.job,
        "communicator": subject.comm,
    }
    parts += [
        f"<bdi>{name} {text(value)}</bdi>"
        for name, value in named.items()
        if value is not None
    ]
    return " ".join(parts) or '<b class="name">the node</b>'


def _meaning(incident: Incident) -> list[str]:
    """Return kind, advice and where to read on."""
    finding = incident.finding
    kind = BY_SLUG.get(finding.kind)
    told = [f"<span>{text(kind.title if kind else finding.kind)}</span>"]
    if finding.action is not Action.NONE:
        told.append(f'<b class="advice">Advice: {_ADVICE[finding.action]}</b>')
    if finding.part in _PARTS:
        told.append(f"<span>{_PARTS[finding.part]}</span>")
    if finding.confidence < 1:
        told.append(f"<span>confidence {finding.confidence:.0%}</span>")
    if incident.dry_run:
        told.append("<span>in shadow: nobody is alerted</span>")
    told.append(f"<code>fabricmon explain {text(finding.kind)}</code>")
    told.append(f"<span>{text(incident.runbook)}</span>")
    return told


def _evidence(item: Evidence) -> str:
    bounds = []
    if item.window_seconds is not None:
        bounds.append(f"in {span(item.window_seconds)}")
    if item.threshold is not None:
        bounds.append(f"{_word(item.threshold)} {quantity(item.threshold)}")
    return (
        f'<li><span class="signal">{_breakable(item.signal)}</span> '
        f'<b class="value">{quantity(item.value)} {text(_unit(item))}</b> '
        f'<span class="bounds">{", ".join(bounds)}</span> '
        f'<span class="source">{text(item.source)}</span></li>'
    )


def _breakable(name: str) -> str:
    """Let a long name break after its underscores, not before its last letter."""
    return text(name).replace("_", "_<wbr>")


def _word(threshold: float | str) -> str:
    """Name a threshold: a word is a state that should be."""
    return "expected" if isinstance(threshold, str) else "threshold"


def _unit(item: Evidence) -> str:
    """Return the unit, which detectors give in the plural, as one says it."""
    is_plural = item.value == 1 and len(item.unit) > 1 and item.unit.endswith("s")
    return item.unit[:-1] if is_plural else item.unit
