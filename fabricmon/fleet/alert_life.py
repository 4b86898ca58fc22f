"""The life of alerts, as Prometheus has it: pending, firing, kept firing, over.

Pure, and proven equal to ``promtool test rules``. The steps are those of the alerting
rule of Prometheus (``rules/alerting.go``), one evaluation after the other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Timing:
    """``for`` and ``keep_firing_for`` of an alert, seconds."""

    hold_seconds: float = 0
    keep_seconds: float = 0


@dataclass(frozen=True, slots=True)
class Life:
    """One time that an alert fired; times in the unit and on the clock of evaluations.

    ``active`` is when its expression began to hold, ``fired`` when it had held for
    long enough, ``ended`` when it was over, None while it is not. ``value`` is what
    the expression gave when it fired.
    """

    active: float
    fired: float
    ended: float | None
    value: float


def lives(
    evaluations: Sequence[float], values: Mapping[float, float], timing: Timing
) -> Iterator[Life]:
    """Yield each time that one alert fires, in order.

    ``values`` has what the expression gave at those evaluations at which it gave
    anything.
    """
    active = fired = absent = None
    value = 0.0
    for now in evaluations:
        found = values.get(now)
        if found is None:
            if active is None:
                continue
            if fired is not None and timing.keep_seconds > 0:
                absent = now if absent is None else absent
                if now - absent < timing.keep_seconds:
                    continue
            if fired is not None:
                yield Life(active, fired, now, value)
            active = fired = absent = None
            continue
        absent = None
        active = now if active is None else active
        if fired is None and now - active >= timing.hold_seconds:
            fired, value = now, found
    if active is not None and fired is not None:
        yield Life(active, fired, None, value)
