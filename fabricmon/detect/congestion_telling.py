"""How congestion is told: which class, how much, and that nobody here is to blame."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fabricmon.config import Congestion
from fabricmon.detect.flow_levels import Level, Levels, Measure
from fabricmon.detect.wording import clock, subject_of
from fabricmon.model import Evidence, Finding, Part, PortView, Severity, View
from fabricmon.summaries import one_line

CLASS = {
    Measure.NOTIFIED: "many send to it at once (incast)",
    Measure.SLOWED: "its path or receiver is shared",
    Measure.PAUSE_RECEIVED: "the network or its receiver holds it up",
    Measure.WAITED: "its path or receiver gives no credit",
}
"""What each measure tells (``health-systems``, 4.4)."""

_PERCENT = frozenset({Measure.PAUSE_RECEIVED, Measure.WAITED, Measure.PAUSE_SENT})


def tell_congestion(
    port: PortView,
    unusual: Sequence[Measure],
    levels: Levels,
    onset: float,
    limits: Congestion,
) -> Finding:
    """Return the finding of a port that stands out; ``unusual`` is not empty."""
    first = unusual[0]
    part = Part.OBSERVER if first is Measure.NOTIFIED else Part.VICTIM
    return Finding(
        kind="congestion",
        subject=subject_of(port.info),
        onset=onset,
        evidence=tuple(_evidence(port, unusual, levels, limits)),
        summary=one_line(
            f"{port.info.id}: {_amount(first, levels)} since {clock(onset)}: "
            f"{CLASS[first]}, no fault here"
        ),
        severity=Severity.INFO,
        part=part,
        confidence=0.7,
    )


def tell_victim(
    port: PortView, held: Level, since: float, limits: Congestion, view: View
) -> Finding:
    """Return the finding of a port that the network holds up for too long."""
    onset = since + view.onset_offset
    return Finding(
        kind="pause_victim",
        subject=subject_of(port.info),
        onset=onset,
        evidence=(
            held.evidence(port),
            Evidence(
                "pause_received_ratio",
                round(held.value, 4),
                "1",
                "fabricmon",
                limits.victim_ratio,
                round(held.seconds, 1),
            ),
            Evidence("local_evidence", "no pause sent", "", "fabricmon"),
        ),
        summary=one_line(
            f"{port.info.id} is paused by the network {held.value:.0%} of the time "
            f"since {clock(onset)}: the origin is elsewhere"
        ),
        severity=Severity.INFO,
        part=Part.VICTIM,
        confidence=0.8,
    )


def _amount(measure: Measure, levels: Levels) -> str:
    level = levels.get(measure)
    value = level.value if level is not None else 0.0
    if measure in _PERCENT:
        least = "at least " if level is not None and level.at_least else ""
        return f"{least}{value:.0%} {measure}"
    return f"{value:.0f}/s {measure}"


def _evidence(
    port: PortView, unusual: Sequence[Measure], levels: Levels, limits: Congestion
) -> Iterator[Evidence]:
    """Yield what stands out, then everything else that was measured."""
    floors = {
        Measure.NOTIFIED: limits.notifications_per_second,
        Measure.SLOWED: limits.notifications_per_second,
    }
    for measure in (*unusual, *(m for m in levels if m not in unusual)):
        level = levels.get(measure)
        if level is None:
            continue
        floor = floors.get(measure)
        yield level.evidence(
            port, None if floor is None else round(floor * level.seconds)
        )
