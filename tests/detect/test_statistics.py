"""Bounds, ranks, robust deviations and decay."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabricmon.detect.statistics import (
    DecayedMean,
    decayed,
    poisson_bound,
    rank_correlation,
)

BIT_ERRORS = [
    (100e9, 8, 9, 22),
    (200e9, 11, 11, 33),
    (400e9, 15, 15, 52),
    (800e9, 21, 22, 85),
]


@pytest.mark.parametrize(("rate", "warning", "slow", "critical"), BIT_ERRORS)
def test_bounds_are_those_of_the_line_rate(
    rate: float, warning: int, slow: int, critical: int
) -> None:
    """The limits of the design for 12 min, 125 min and 60 s at each line rate."""
    assert poisson_bound(rate * 1e-14 * 720, 1e-6) == warning
    assert poisson_bound(rate * 1e-15 * 7500, 1e-6) == slow
    assert poisson_bound(rate * 1e-12 * 60, 1e-6) == critical


def tail(mean: float, count: int) -> float:
    """Return P(X >= count), the slow way."""
    log = math.log(mean)
    terms = (
        math.exp(k * log - mean - math.lgamma(k + 1))
        for k in range(count, count + 400 + int(mean))
    )
    return math.fsum(terms)


@given(
    mean=st.floats(1e-6, 2000.0), probability=st.sampled_from([1e-3, 1e-6, 1e-9, 1e-12])
)
def test_bound_is_the_smallest_that_holds(mean: float, probability: float) -> None:
    """The bound is rare enough and one less is not."""
    bound = poisson_bound(mean, probability)
    assert tail(mean, bound) < probability * (1 + 1e-9)
    assert bound == 1 or tail(mean, bound - 1) >= probability * (1 - 1e-9)


def test_bound_without_any_allowance_is_one() -> None:
    """Where nothing is allowed the first event is too many."""
    assert poisson_bound(0.0, 1e-6) == 1


def test_correlation_of_ranks_ignores_the_scale() -> None:
    """Any rising relation is 1, any falling one is -1."""
    load = [1.0, 2.0, 3.0, 4.0, 5.0]
    assert rank_correlation(load, [math.exp(x) for x in load]) == pytest.approx(1.0)
    assert rank_correlation(load, [-(x**3) for x in load]) == pytest.approx(-1.0)


def test_equal_values_share_their_rank() -> None:
    """Ties count as their mean rank: the textbook value, not the shortcut formula."""
    assert rank_correlation([1, 2, 2, 4], [1, 3, 2, 4]) == pytest.approx(0.9486832981)


def test_constant_side_has_no_correlation() -> None:
    """An idle link says nothing about load: unknown is not zero."""
    assert rank_correlation([0.0] * 20, list(map(float, range(20)))) is None
    assert rank_correlation([1.0, 2.0], [1.0, 2.0]) is None


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=3))
def test_correlation_is_between_minus_one_and_one(pairs: list[tuple[int, int]]) -> None:
    """Whatever the samples, with many ties too."""
    found = rank_correlation([a for a, _ in pairs], [b for _, b in pairs])
    assert found is None or -1.000001 <= found <= 1.000001


def test_decay_halves_per_half_life() -> None:
    """The flap penalty of 2000 falls to 750 in 21 minutes."""
    assert decayed(1000.0, 900.0, 900.0) == pytest.approx(500.0)
    assert decayed(2000.0, 21.23 * 60, 900.0) == pytest.approx(750.0, rel=1e-3)


class TestDecayedMean:
    """What is usual: old values count less and less."""

    def test_no_value(self) -> None:
        """Nothing is not zero."""
        assert DecayedMean(60).value is None

    def test_half_as_much_a_half_life_later(self) -> None:
        """One value of an hour ago against one of now: a third and two thirds."""
        mean = DecayedMean(3600)
        mean.add(0.0, 0)
        mean.add(9.0, 3600)
        assert mean.value == pytest.approx(6.0)
        assert mean.count == 2

    @given(st.lists(st.floats(0, 1e12), min_size=1, max_size=50))
    def test_between_its_extremes(self, values: list[float]) -> None:
        """Whatever the order and the times."""
        mean = DecayedMean(10)
        for second, value in enumerate(values):
            mean.add(value, second)
        assert mean.value is not None
        least, most = min(values), max(values)
        assert least <= mean.value * (1 + 1e-9) + 1e-9
        assert mean.value <= most * (1 + 1e-9) + 1e-9
