"""Time with parts left out."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabricmon.sim.thinning import Thinning

TIMES = st.floats(0, 1000, allow_nan=False)
SPANS = st.lists(st.tuples(TIMES, TIMES), max_size=8)


@pytest.mark.parametrize(
    ("t", "mapped"),
    [(0, 0), (10, 0), (15, 5), (20, 10), (50, 10), (100, 10), (104, 14), (999, 20)],
)
def test_left_out_time_takes_none(t: float, mapped: float) -> None:
    """A moment that is left out is where the cut is; others keep their distance."""
    assert Thinning([(10, 20), (100, 110)])(t) == mapped


def test_overlaps_count_once() -> None:
    """Spans that overlap or touch are one."""
    assert Thinning([(10, 20), (15, 30), (30, 40), (5, 5)]).kept == 30


def test_the_end_cuts() -> None:
    """Nothing is kept before the beginning or after the end."""
    assert Thinning([(-10, 5), (90, 200)], 100).kept == 15


@given(SPANS, TIMES, TIMES)
def test_order_and_distance(
    spans: list[tuple[float, float]], one: float, other: float
) -> None:
    """Nothing happens earlier than what came before it, nor farther from it."""
    thin = Thinning(spans)
    first, second = sorted((one, other))
    assert thin(first) <= thin(second)
    assert thin(second) - thin(first) <= second - first + 1e-6


@given(SPANS, TIMES)
def test_kept_is_the_whole(spans: list[tuple[float, float]], t: float) -> None:
    """No moment lies outside what is kept, and the last one is its length."""
    thin = Thinning(spans)
    assert 0 <= thin(t) <= thin.kept
    assert thin(1e9) == pytest.approx(thin.kept)
