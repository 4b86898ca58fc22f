"""Which rails of one window differ from the others: busier, or slower (A5).

Health-systems 4.3: robust z-scores over the rails of a node, with a floor, because
rails that are equal have no spread at all. Mean throughput is no part of it: in a
synchronous job it is the same on every rail (4.2).
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from fabricmon.config import Stragglers
from fabricmon.detect.rail_windows import RailBurst, RailWindow
from fabricmon.model import PortId
from fabricmon.value import Value

MAD_TO_DEVIATION = 1.4826
"""A normal distribution's standard deviation is so many median absolute deviations."""


class Compared(Value, frozen=True):
    """What one window says: its usual rail, and the ports that differ from it.

    ``judged`` is False where too little goes on to say anything of a rate; ``lagging``
    ports were not busy while the others were.
    """

    at: float
    began: float
    judged: bool
    busy: float
    p99: float
    odd: frozenset[PortId]
    lagging: frozenset[PortId]
    rails: tuple[RailBurst, ...]


def robust_scores(
    values: Sequence[float], floor_share: float, floor: float = 0.0
) -> list[float]:
    """Return how many deviations each value is from the median of all.

    The deviation is the median absolute one, at least ``floor_share`` of the median
    and at least ``floor``; where all of that is zero, so are the scores.
    """
    middle = median(values)
    spread = MAD_TO_DEVIATION * median(abs(value - middle) for value in values)
    spread = max(spread, floor_share * abs(middle), floor)
    if not spread:
        return [0.0] * len(values)
    return [(value - middle) / spread for value in values]


def compare(window: RailWindow, limits: Stragglers, usual_p99: float) -> Compared:
    """Return which rails of a window differ; ``usual_p99`` is that of windows before."""
    rails = window.rails
    busy = [rail.busy for rail in rails]
    rates = [rail.p99 for rail in rails]
    usual = median(busy)
    active = sum(each > 0 for each in busy) >= limits.active_share * len(rails)
    enough = usual >= (limits.active_samples - 0.5) * window.step
    judged = active and enough and len(rails) >= limits.least_rails
    odd: set[PortId] = set()
    lagging: set[PortId] = set()
    if judged:
        odd = {*_busier(window, limits), *_slower(window, limits)}
        least = usual - limits.ended_samples * window.step
        lagging = {rail.port for rail in rails if rail.busy < least}
    elif len(rails) >= limits.least_rails:
        odd = set(_alone(window, limits, usual_p99))
    return Compared(
        window.ended,
        window.began,
        judged=judged,
        busy=usual,
        p99=median(rates),
        odd=frozenset(odd),
        lagging=frozenset(lagging),
        rails=rails,
    )


def _busier(window: RailWindow, limits: Stragglers) -> list[PortId]:
    """Return the rails that are busy for longer than the usual one.

    Two samples more are the least: the end of a phase lies within one.
    """
    busy = [rail.busy for rail in window.rails]
    floor = 2 * window.step / limits.score
    scores = robust_scores(busy, limits.spread_floor, floor)
    least = limits.busy_ratio * median(busy)
    slack = window.step / 1000  # shares of samples are no exact numbers
    return [
        rail.port
        for rail, score in zip(window.rails, scores, strict=True)
        if score >= limits.score - slack and rail.busy >= least
    ]


def _slower(window: RailWindow, limits: Stragglers) -> list[PortId]:
    """Return the rails whose highest rate is below that of the usual one.

    A rail that is done sooner had no whole sample to be fast in.
    """
    rates = [rail.p99 for rail in window.rails]
    usual = median(rail.busy for rail in window.rails)
    least = max(usual - limits.ended_samples * window.step, 1.5 * window.step)
    scores = robust_scores(rates, limits.spread_floor)
    most = limits.rate_ratio * median(rates)
    return [
        rail.port
        for rail, score in zip(window.rails, scores, strict=True)
        if score <= -limits.score and 0 < rail.p99 <= most and rail.busy >= least
    ]


def _alone(window: RailWindow, limits: Stragglers, usual_p99: float) -> list[PortId]:
    """Return the rail that still works, slowly, when all others have ended."""
    ended = limits.ended_samples * window.step
    working = [rail for rail in window.rails if rail.busy > ended]
    if len(working) != 1:
        return []
    (rail,) = working
    long = rail.busy >= (limits.alone_samples - 0.5) * window.step
    slow = 0 < rail.p99 <= limits.rate_ratio * usual_p99
    return [rail.port] if long and slow else []
