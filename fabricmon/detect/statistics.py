"""The little statistics that detectors need; pure functions with their sources."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from functools import lru_cache

LEAST_SAMPLES = 3
"""Fewer pairs than this have no rank correlation."""


@lru_cache(maxsize=1024)
def poisson_bound(mean: float, probability: float) -> int:
    """Return the smallest n with P(X >= n) < ``probability`` for a Poisson X.

    The alarm limit of a count whose ``mean`` is allowed (``health-systems``,
    algorithm A1: mean = line rate x bit error ratio x seconds). At least 1.
    """
    if mean <= 0:
        return 1
    # Summed from far out in the tail towards the mean: no cancellation.
    count = int(mean + 12 * math.sqrt(mean)) + 40
    term = math.exp(count * math.log(mean) - mean - math.lgamma(count + 1))
    tail = term
    while tail < probability and count > 0:
        term *= count / mean
        count -= 1
        tail += term
    return count + 1


def rank_correlation(one: Sequence[float], other: Sequence[float]) -> float | None:
    """Return Spearman's rank correlation, equal values sharing their mean rank.

    Pearson's correlation of the ranks (Spearman 1904). None where one side does not
    vary or there are too few pairs: then nothing can be said.
    """
    if len(one) < LEAST_SAMPLES:
        return None
    try:
        return statistics.correlation(_ranks(one), _ranks(other))
    except statistics.StatisticsError:  # one side is constant
        return None


def decayed(value: float, seconds: float, half_life_seconds: float) -> float:
    """Return what is left of ``value`` after ``seconds`` (RFC 2439, section 4)."""
    return value * math.exp2(-seconds / half_life_seconds)


def _ranks(values: Sequence[float]) -> list[float]:
    order = sorted(range(len(values)), key=values.__getitem__)
    ranks = [0.0] * len(values)
    start = 0
    for end in range(1, len(order) + 1):
        if end < len(order) and values[order[end]] == values[order[start]]:
            continue
        for place in order[start:end]:
            ranks[place] = (start + end - 1) / 2
        start = end
    return ranks


class DecayedMean:
    """A mean in which a value counts half as much each half-life later.

    Exponential smoothing for values that come at uneven times; ``count`` is how many
    were taken in all.
    """

    __slots__ = ("_at", "_half_life", "_sum", "_weight", "count")

    def __init__(self, half_life_seconds: float) -> None:
        """Begin without any value."""
        self._half_life = half_life_seconds
        self._at = 0.0
        self._sum = self._weight = 0.0
        self.count = 0

    def add(self, value: float, at: float) -> None:
        """Take a value; times must not fall."""
        if self.count:
            passed = max(at - self._at, 0.0)
            self._sum = decayed(self._sum, passed, self._half_life)
            self._weight = decayed(self._weight, passed, self._half_life)
        self._sum += value
        self._weight += 1.0
        self._at = at
        self.count += 1

    @property
    def value(self) -> float | None:
        """The mean, None before the first value."""
        return self._sum / self._weight if self._weight > 0 else None
