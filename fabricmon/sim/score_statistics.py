"""The little statistics of a scorer; pure functions with their sources."""

from __future__ import annotations

import math
from collections.abc import Sequence

CONFIDENCE = 0.95
"""Of one-sided bounds."""

_STEPS = 100  # halvings of an interval: more than a double has bits


def quantile(values: Sequence[float], share: float) -> float | None:
    """Return the smallest value that ``share`` of all do not exceed (nearest rank)."""
    if not values:
        return None
    rank = max(1, math.ceil(share * len(values)))
    return sorted(values)[rank - 1]


def poisson_upper(count: int, confidence: float = CONFIDENCE) -> float:
    """Return the one-sided upper bound of a Poisson mean of which ``count`` were seen.

    The exact bound of Garwood (1936): the mean at which ``count`` or fewer have the
    probability 1 - ``confidence``. With none seen it is 3.0 at 95 %.
    """
    low, high = float(count), count + 10 * math.sqrt(count + 1) + 10
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if _at_most(count, middle) > 1 - confidence:
            low = middle
        else:
            high = middle
    return high


def _at_most(count: int, mean: float) -> float:
    """Return P(X <= count) of a Poisson X."""
    return math.fsum(
        math.exp(k * math.log(mean) - mean - math.lgamma(k + 1))
        for k in range(count + 1)
    )
