"""Rails against their own past: a slow drift that no single window shows (A6).

What is followed is the rate of a rail against the usual rail of the same window, so
that phases of the job cancel out. EWMA (Roberts 1959) keeps the past, CUSUM (Page 1954)
adds up what falls short of it.
"""

from __future__ import annotations

from collections import deque
from math import sqrt
from statistics import fmean

from msgspec import field

from fabricmon.config import Stragglers
from fabricmon.detect.rail_comparison import Compared
from fabricmon.model import PortId
from fabricmon.value import State

_ALLOWANCE = 0.5  # deviations: half the shift to be found, as Page has it


def cusum(sum_so_far: float, shortfall: float) -> float:
    """Return the sum after one more value; ``shortfall`` is in standard deviations."""
    return max(0.0, sum_so_far + shortfall - _ALLOWANCE)


class _Past(State):
    """What a rail used to do, and how far it falls short of that by now."""

    mean: float
    variance: float = 0.0
    windows: int = 1
    short: float = 0.0
    lasts: int = 0
    since: float = 0.0
    at: float = 0.0
    newest: deque[float] = field(default_factory=deque)


class RailDrift:
    """Follows the rails of one job; a new job begins with a new one."""

    def __init__(self, limits: Stragglers) -> None:
        """Start without a past."""
        self._limits = limits
        self._pasts: dict[PortId, _Past] = {}

    def take(self, window: Compared) -> None:
        """Take in a window in which all rails had something to do."""
        if not window.p99:
            return
        for rail in window.rails:
            ratio = rail.p99 / window.p99
            past = self._pasts.get(rail.port)
            if past is None:
                self._pasts[rail.port] = _Past(ratio)
            else:
                self._follow(past, ratio, window.began)

    def drifted(self, most: int) -> list[tuple[PortId, float]]:
        """Return the rails that are slow against their past, and since when.

        None where there are more than ``most``: something else changed.
        """
        limits = self._limits
        found = [
            (port, past.since)
            for port, past in self._pasts.items()
            if past.short >= limits.drift_limit
            and past.lasts >= limits.least_windows
            and past.at - past.since >= limits.least_seconds
            and fmean(past.newest) <= limits.drift_ratio * past.mean
        ]
        return found if len(found) <= most else []

    def _follow(self, past: _Past, ratio: float, at: float) -> None:
        limits = self._limits
        past.at = at
        past.newest.append(ratio)
        while len(past.newest) > limits.least_windows:
            past.newest.popleft()
        deviation = max(sqrt(past.variance), limits.spread_floor * past.mean)
        if past.windows >= limits.drift_windows and deviation:
            before = past.short
            # One wild window is no drift: what it adds is bounded.
            shortfall = min((past.mean - ratio) / deviation, limits.score)
            past.short = cusum(before, shortfall)
            if past.short and not before:
                past.since, past.lasts = at, 0
            past.lasts += 1
            past.short = min(past.short, 2 * limits.drift_limit)
        if not past.short or past.windows < limits.drift_windows:
            self._learn(past, ratio)

    def _learn(self, past: _Past, ratio: float) -> None:
        """Let the past move a little; not while the rail falls short of it."""
        weight = max(self._limits.drift_weight, 1 / (past.windows + 1))
        step = ratio - past.mean
        past.mean += weight * step
        past.variance = (1 - weight) * (past.variance + weight * step * step)
        past.windows += 1
