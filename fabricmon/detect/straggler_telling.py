"""What a slow rail means: whose fault it is, how sure, what to do."""

from __future__ import annotations

from dataclasses import replace

from fabricmon.bursts import RECEIVED, TRANSMITTED
from fabricmon.config import Stragglers
from fabricmon.detect.local_evidence import LocalSign, Nature
from fabricmon.detect.rail_history import SlowRail
from fabricmon.detect.wording import clock, port_source, subject_of
from fabricmon.model import (
    Action,
    Evidence,
    Finding,
    Part,
    PortView,
    Severity,
    Subject,
    View,
)
from fabricmon.summaries import one_line

_GIGABITS = 8e-9
_DIRECTIONS = {TRANSMITTED: "sending", RECEIVED: "receiving"}


def rail_slow(slow: SlowRail, job: str, view: View, limits: Stragglers) -> Finding:
    """Return the finding of a rail that paces the others, its place not known."""
    what = _measured(slow)
    since = clock(slow.since + view.onset_offset)
    if slow.jitter:
        text = f"rail {slow.rail} slow for moments since {since}: {what}"
    else:
        text = f"rail {slow.rail} paces the others since {since}: {what}"
    return Finding(
        kind="rail_slow",
        subject=Subject(rail=slow.rail, job=job or None),
        onset=slow.since + view.onset_offset,
        evidence=_evidence(slow, limits),
        summary=one_line(f"{text}; place unknown, nothing wrong here"),
        severity=Severity.INFO if slow.jitter else Severity.WARNING,
        part=Part.OBSERVER,
        action=Action.NONE,
        confidence=0.6 if slow.jitter or slow.drifted else 0.8,
    )


def straggler_link(
    slow: SlowRail,
    port: PortView,
    signs: tuple[LocalSign, ...],
    view: View,
    limits: Stragglers,
) -> Finding:
    """Return the finding of the port that makes its rail slow, by what it shows.

    Half of the pace lost is worth a drain after the job, less a look.
    """
    critical = limits.critical_busy_ratio
    halved = slow.busy_ratio >= critical or slow.rate_ratio <= 1 / critical
    nature, shown = signs[0].nature, signs[0].evidence
    reason = f"{shown.signal} {shown.value}" + (f" {shown.unit}" if shown.unit else "")
    since = clock(slow.since + view.onset_offset)
    text = (
        f"{port.info.id} paces rail {slow.rail} since {since}: busy "
        f"x{slow.busy_ratio:.1f}, rate {slow.rate_ratio:.0%}, not the fabric; "
        f"{nature}: {reason}"
    )
    return Finding(
        kind="straggler_link",
        subject=replace(subject_of(port.info), job=None),
        onset=slow.since + view.onset_offset,
        evidence=(*_evidence(slow, limits), *(sign.evidence for sign in signs)),
        summary=one_line(text),
        severity=Severity.CRITICAL,
        part=Part.CULPRIT,
        action=Action.DRAIN_AFTER_JOB if halved else Action.INSPECT,
        confidence=0.9,
    )


def rate_sign(port: PortView, usual_gbps: float | None, now: float) -> LocalSign | None:
    """Return that the link runs below what is expected of it, or of most others."""
    status = port.status
    known = None if status is None else status.rate.gbps
    expected = port.info.expected_rate_gbps or usual_gbps
    if known is None or expected is None or known >= expected:
        return None
    shown = Evidence("rate", known, "Gb/s", port_source(port.info.id), expected)
    return LocalSign(Nature.STATE, now, shown)


def _measured(slow: SlowRail) -> str:
    """Say how much longer and how much slower, in few words."""
    return f"busy x{slow.busy_ratio:.1f}, rate {slow.rate_ratio:.0%} of usual"


def _evidence(slow: SlowRail, limits: Stragglers) -> tuple[Evidence, ...]:
    source = f"bursts, {_DIRECTIONS[slow.direction]}"
    seconds = round(slow.seconds, 1)
    rate = slow.p99 * _GIGABITS
    least = limits.rate_ratio * slow.usual_p99 * _GIGABITS
    return (
        Evidence(
            "busy_ratio",
            round(slow.busy, 3),
            "ratio",
            source,
            round(limits.busy_ratio * slow.usual_busy, 3),
            seconds,
        ),
        Evidence("p99_rate", round(rate, 1), "Gb/s", source, round(least, 1), seconds),
        Evidence(
            "duty_against_usual_rail",
            round(slow.busy_ratio, 2),
            "ratio",
            source,
            limits.pacing_ratio,
            seconds,
        ),
        Evidence(
            "windows_slow",
            slow.flagged,
            "windows",
            f"bursts: {slow.windows} judged",
            limits.jitter_episodes if slow.jitter else limits.least_windows,
            seconds,
        ),
    )
