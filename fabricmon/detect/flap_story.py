"""Findings of ports that flapped: what is proven, how long it was, what it is not."""

from __future__ import annotations

from fabricmon.config import LinkState as Limits
from fabricmon.detect.downs import Down
from fabricmon.detect.evidence import one_line, span
from fabricmon.detect.flap_track import Track
from fabricmon.detect.wording import clock, lasting, port_source, subject_of
from fabricmon.model import Action, Evidence, Finding, Role, Severity, View


def flap(track: Track, downs: list[Down], view: View, limits: Limits) -> Finding:
    """Return the finding of flaps that are over; quiet ones are information only."""
    times = sum(down.times for down in downs)
    loud = not all(down.quiet for down in downs) and not _is_management(track)
    onset = downs[0].at + view.onset_offset
    return Finding(
        kind="port_flap",
        subject=subject_of(track.info),
        onset=onset,
        evidence=_proof(track, times, limits),
        summary=one_line(_flap_text(track, downs, times, onset, loud=loud)),
        severity=Severity.WARNING if loud else Severity.INFO,
        action=Action.INSPECT if loud else Action.NONE,
    )


def flapping(track: Track, view: View, limits: Limits) -> Finding:
    """Return the finding of a port that flaps again and again."""
    episode = view.now if track.episode is None else track.episode
    begin = min(episode, view.now - limits.flapping_window_short_seconds)
    times = sum(down.times for down in track.downs.loud_since(episode - 1))
    downtime = sum(outage.seconds for outage in track.outages_since(begin))
    onset = episode + view.onset_offset
    managed = _is_management(track)
    down = f", {lasting(downtime)} down in all" if downtime else ""
    return Finding(
        kind="port_flapping",
        subject=subject_of(track.info),
        onset=onset,
        evidence=_counts(track, view.now, downtime, limits),
        summary=one_line(
            f"{track.info.id} flapped {times} times since {clock(onset)}{down}: "
            "cable, module or peer port, not load"
        ),
        severity=Severity.WARNING if managed else Severity.CRITICAL,
        action=Action.INSPECT if managed else Action.DRAIN_AFTER_JOB,
    )


def _flap_text(
    track: Track, downs: list[Down], times: int, onset: float, *, loud: bool
) -> str:
    port, seconds = track.info.id, track.untold_seconds
    often = "once" if times == 1 else f"{times} times"
    if any(down.times > 1 for down in downs):
        unseen = span(max(down.high - down.low for down in downs))
        text = f"{port} went down {often} in {unseen} without a look at it, up now"
    elif seconds is None:
        text = f"{port} went down {often} at {clock(onset)} between polls, up now"
    else:
        text = f"{port} down {often} at {clock(onset)} for {lasting(seconds)}, up now"
    if loud:
        return f"{text}: link lost and back, no dead port"
    return f"{text}: no fault (boot, driver, maintenance or by hand)"


def _proof(track: Track, times: int, limits: Limits) -> tuple[Evidence, ...]:
    found = tuple(track.proof.values())
    files = port_source(track.info.id)
    evidence = (*found, Evidence("flaps", times, "flaps", "fabricmon", 1))
    if track.untold_seconds is None:
        return evidence
    seconds, longest = round(track.untold_seconds, 1), limits.outage_warning_seconds
    return (*evidence, Evidence("outage_seconds", seconds, "s", files, longest))


def _counts(
    track: Track, now: float, downtime: float, limits: Limits
) -> tuple[Evidence, ...]:
    short = limits.flapping_window_short_seconds
    long = limits.flapping_window_long_seconds
    files = port_source(track.info.id)
    penalty = track.downs.penalty(
        now, limits.flap_penalty, limits.flap_half_life_seconds
    )
    counted = (
        Evidence(
            signal="flaps",
            value=sum(down.times for down in track.downs.loud_since(now - window)),
            unit="flaps",
            source="fabricmon",
            threshold=most,
            window_seconds=window,
        )
        for window, most in (
            (short, limits.flapping_count_short),
            (long, limits.flapping_count_long),
        )
    )
    hour = round(track.down_in_hour(now), 1)
    most = limits.downtime_critical_seconds_per_hour
    return (
        *counted,
        Evidence("penalty", round(penalty), "", "fabricmon", limits.flapping_penalty),
        Evidence("downtime_seconds", hour, "s", files, most, 3600.0),
        Evidence("downtime_seconds", round(downtime, 1), "s", files),
        *track.proof.values(),
    )


def _is_management(track: Track) -> bool:
    return track.info.role is Role.MANAGEMENT
