"""How many errors a sound link may show in a window, by its line rate."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import ceil

from fabricmon.catalogue import CounterSpec
from fabricmon.config import LinkErrors
from fabricmon.detect.statistics import poisson_bound, rank_correlation
from fabricmon.history import History
from fabricmon.value import Value


class Excess(Value, frozen=True):
    """A window over its bound.

    ``separation_seconds`` must pass before errors belong to another window: those of
    one burst are one.
    """

    spec: CounterSpec
    increase: int
    seconds: float
    bound: int
    separation_seconds: float = 0.0


class _Rule(Value, frozen=True):
    """A window and the bit error ratio that a sound link stays below in it."""

    seconds: float
    ratio: float
    separation_seconds: float = 0.0


class Bounds:
    """The limits of ``config.link_errors`` applied to the errors of one counter.

    A window that had to be longer, because it begins within a late poll, is allowed
    more; one that is shorter, because little is known yet, is not allowed less.
    """

    def __init__(self, limits: LinkErrors) -> None:
        """Take the limits."""
        self._limits = limits
        warning, short = limits.warning_bit_error_ratio, limits.critical_window_seconds
        self._rules = (
            _Rule(short, warning, separation_seconds=short),
            _Rule(limits.warning_window_seconds, warning),
            _Rule(limits.slow_window_seconds, limits.slow_bit_error_ratio),
        )

    def bits(
        self, spec: CounterSpec, errors: History, since: float, rate: float
    ) -> Excess | None:
        """Hold bit errors since ``since`` against the bounds for ``rate`` bit/s."""
        at = errors.newest
        for rule in self._rules:
            span = errors.over(at, min(rule.seconds, at - since))
            seconds = max(rule.seconds, span.seconds)
            bound = self._bound(rate * rule.ratio * seconds)
            if span.increase >= bound:
                return Excess(
                    spec, span.increase, seconds, bound, rule.separation_seconds
                )
        return None

    def critical(
        self, spec: CounterSpec, errors: History, step_seconds: float, rate: float
    ) -> Excess | None:
        """Hold them against the bound that no link in use may pass.

        The errors must go on over several polls: a burst is not an error ratio.
        """
        limits = self._limits
        polls = limits.sustained_polls
        wanted = max(limits.critical_window_seconds, polls * step_seconds)
        at = errors.newest
        span = errors.over(at, wanted)
        seconds = max(wanted, span.seconds)
        bound = self._bound(rate * limits.critical_bit_error_ratio * seconds)
        if span.increase < bound or errors.steps_since(at - wanted) < polls:
            return None
        return Excess(spec, span.increase, seconds, bound)

    def packets(
        self, spec: CounterSpec, errors: History, since: float
    ) -> Excess | None:
        """Hold damaged packets against the rate that warns on its own."""
        limits = self._limits
        at = errors.newest
        wanted = limits.packet_window_seconds / limits.windows
        span = errors.over(at, min(wanted, at - since))
        seconds = max(wanted, span.seconds)
        bound = ceil(limits.packet_errors_per_second * seconds)
        if span.increase < bound:
            return None
        return Excess(spec, span.increase, seconds, bound, wanted)

    def _bound(self, mean: float) -> int:
        return poisson_bound(mean, self._limits.false_alarm_probability)


def load_correlation(
    errors: History, carried: Sequence[int], window: float
) -> float | None:
    """Return how far errors follow the load, from -1 to 1 (algorithm A2).

    ``carried`` holds the bytes of the newest one, two, three... windows up to the
    newest error. Spearman's correlation of errors and bytes per window; None where
    either does not vary.
    """
    at = errors.newest
    counted = [errors.over(at, window * n).increase for n in range(1, len(carried) + 1)]
    return rank_correlation(_steps(counted), _steps(carried))


def _steps(sums: Sequence[int]) -> list[float]:
    return [float(b - a) for a, b in pairwise([0, *sums])]
