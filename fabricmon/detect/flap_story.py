"""Findings of ports that flapped: what is proven, how long it was, what it is not."""

from __future__ import annotations

from fabricmon.config import LinkState as Limits
from fabricmon.detect.downs import UNCERTAINTY_SECONDS
from fabricmon.detect.flap_account import FlapAccount
from fabricmon.detect.flap_track import Track
from fabricmon.detect.wording import clock, lasting, port_source, subject_of
from fabricmon.model import Action, Evidence, Finding, Role, Severity, View
from fabricmon.summaries import one_line, span


def flap(track: Track, account: FlapAccount, view: View, limits: Limits) -> Finding:
    """Return the finding of flaps that are over; quiet ones are information only."""
    return Finding(
        kind="port_flap",
        subject=subject_of(track.info),
        onset=account.onset + view.onset_offset,
        evidence=_proof(track, account, limits),
        summary=one_line(_flap_text(track, account, view.onset_offset, limits)),
        severity=Severity.WARNING if account.loud else Severity.INFO,
        action=Action.INSPECT if account.loud and account.times > 1 else Action.NONE,
    )


def flapping(track: Track, view: View, limits: Limits) -> Finding:
    """Return the finding of a port that flaps again and again."""
    episode = view.now if track.episode is None else track.episode
    begin = min(episode, view.now - limits.flapping_window_short_seconds)
    times = sum(down.times for down in track.downs.loud_since(episode - 1))
    downtime = sum(outage.seconds for outage in track.outages_since(begin))
    onset = episode + view.onset_offset
    managed = is_management(track)
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
    track: Track, account: FlapAccount, offset: float, limits: Limits
) -> str:
    text = f"{track.info.id} {_course(account, offset)}, up now"
    if not account.loud:
        return f"{text}: no fault (boot, driver, maintenance or by hand)"
    if _is_long(account, limits):
        return f"{text}: link lost and back, jobs may have died"
    return f"{text}: link lost and back, no dead port"


def _course(account: FlapAccount, offset: float) -> str:
    """Say how often it went down, when and for how long."""
    when = f"at {clock(account.onset + offset)}"
    wide = account.high - account.low > UNCERTAINTY_SECONDS
    if wide:
        begin, end = clock(account.low + offset), clock(account.high + offset)
        when = f"between {begin} and {end}"
    if account.times == 1:
        if account.worst is None:
            return f"went down once {when}" + ("" if wide else " between polls")
        return f"down once {when} for {lasting(account.worst)}"
    often = f"{account.times} times"
    if account.unseen:
        unseen = span(account.told_at - account.low)
        return f"went down {often} in {unseen}, not each of them seen"
    since = f"since {clock(account.onset + offset)}"
    if account.worst is None or account.downtime is None:
        return f"went down {often} {since} between polls"
    worst, downtime = lasting(account.worst), lasting(account.downtime)
    return f"down {often} {since}, {worst} at worst, {downtime} in all"


def _is_long(account: FlapAccount, limits: Limits) -> bool:
    return account.worst is not None and account.worst >= limits.outage_warning_seconds


def _proof(track: Track, account: FlapAccount, limits: Limits) -> tuple[Evidence, ...]:
    files = port_source(track.info.id)
    evidence = [
        *track.account_proof.values(),
        Evidence("flaps", account.times, "flaps", "fabricmon", 1),
    ]
    if account.worst is not None and account.downtime is not None:
        limit = limits.outage_warning_seconds if _is_long(account, limits) else None
        worst, downtime = round(account.worst, 1), round(account.downtime, 1)
        evidence.append(Evidence("outage_seconds", worst, "s", files, limit))
        if downtime > worst:
            evidence.append(Evidence("downtime_seconds", downtime, "s", files))
    return tuple(evidence)


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


def is_management(track: Track) -> bool:
    """Tell whether the port is no part of the fabric."""
    return track.info.role is Role.MANAGEMENT
