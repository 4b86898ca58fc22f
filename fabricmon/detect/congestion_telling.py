"""How congestion is told: which class, how much, and that nobody here is to blame."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fabricmon.config import Congestion
from fabricmon.detect.flow_levels import Level, Levels, Measure
from fabricmon.detect.wording import clock, subject_of
from fabricmon.model import Evidence, Finding, Part, PortId, PortView, Severity
from fabricmon.summaries import one_line
from fabricmon.value import Value

CLASS = {
    Measure.NOTIFIED: "many send to it at once (incast)",
    Measure.SLOWED: "its path or receiver is shared",
    Measure.PAUSE_RECEIVED: "the network or its receiver holds it up",
    Measure.WAITED: "its path or receiver gives no credit",
}
"""What each measure tells (``health-systems``, 4.4)."""

_PERCENT = frozenset({Measure.PAUSE_RECEIVED, Measure.WAITED, Measure.PAUSE_SENT})


class Unusual(Value, frozen=True):
    """What a port shows and others do not, or it did not before; never nothing."""

    measures: tuple[Measure, ...]
    onset: float
    others: tuple[PortId, ...] = ()  # that show the same


def tell_congestion(
    port: PortView, unusual: Unusual, levels: Levels, limits: Congestion
) -> Finding:
    """Return the finding of a port that stands out, or of most rails, by this one."""
    first, others = unusual.measures[0], unusual.others
    part = Part.OBSERVER if first is Measure.NOTIFIED else Part.VICTIM
    evidence = [*_evidence(port, unusual.measures, levels, limits)]
    who, why = str(port.info.id), CLASS[first]
    if others:
        who, why = f"{who} and {len(others)} more", "the network is loaded"
        names = " ".join(map(str, others))
        evidence.append(Evidence("ports_alike", names, "", "fabricmon"))
    return Finding(
        kind="congestion",
        subject=subject_of(port.info),
        onset=unusual.onset,
        evidence=tuple(evidence),
        summary=one_line(
            f"{who}: {_amount(first, levels)} since {clock(unusual.onset)}: "
            f"{why}, no fault here"
        ),
        severity=Severity.INFO,
        part=part,
        confidence=0.7,
    )


def tell_victim(
    port: PortView,
    held: Level,
    sent: Level | None,
    onset: float,
    limits: Congestion,
) -> Finding:
    """Return the finding of a port that the network holds up for too long."""
    if sent is None:
        own = Evidence("local_evidence", "no pause sent", "", "fabricmon")
    else:
        least = round(held.value / limits.pause_excess, 4)
        own = _share("pause_sent_ratio", sent, least)
    return Finding(
        kind="pause_victim",
        subject=subject_of(port.info),
        onset=onset,
        evidence=(
            held.evidence(port),
            _share("pause_received_ratio", held, limits.victim_ratio),
            own,
        ),
        summary=one_line(
            f"{port.info.id} is paused by the network {held.bound}{held.value:.0%} of "
            f"the time since {clock(onset)}: the origin is elsewhere"
        ),
        severity=Severity.INFO,
        part=Part.VICTIM,
        confidence=0.8,
    )


def _share(name: str, level: Level, threshold: float) -> Evidence:
    """Return a share of time, as evidence."""
    value, seconds = round(level.value, 4), round(level.seconds, 1)
    return Evidence(name, value, "1", "fabricmon", threshold, seconds)


def _amount(measure: Measure, levels: Levels) -> str:
    level = levels.get(measure)
    value = level.value if level is not None else 0.0
    if measure in _PERCENT:
        bound = "" if level is None else level.bound
        return f"{bound}{value:.0%} {measure}"
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
