"""The past of one counter: spans, marks and the bound on what is kept."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabricmon.history import CORNERS, History, Span, least_trusted
from fabricmon.model import Mark

HORIZON = 7500.0


def polled(count: int, period: float = 5.0) -> History:
    """Return the history of a counter that gains one per poll."""
    history = History(0.0, HORIZON)
    for poll in range(count):
        history.step(poll * period, (poll + 1) * period, 1, Mark.OK)
    return history


def test_span_without_a_step_is_rest() -> None:
    """What lies after the newest step gained nothing."""
    history = polled(3)
    assert history.over(100.0, 60.0) == Span(0, 60.0, Mark.OK)


def test_span_from_within_a_step_takes_all_of_it() -> None:
    """How much of a step came before a moment is not known: the span is longer."""
    history = History(0.0, HORIZON)
    history.step(0.0, 600.0, 12, Mark.GAP)
    assert history.over(600.0, 60.0) == Span(12, 600.0, Mark.GAP)


def test_span_names_the_least_trusted_step() -> None:
    """One reset within taints the span, one before it does not."""
    history = polled(10)
    history.step(50.0, 55.0, 0, Mark.RESET)
    history.step(55.0, 60.0, 1, Mark.OK)
    assert history.over(60.0, 30.0).mark is Mark.RESET
    assert history.over(60.0, 5.0) == Span(1, 5.0, Mark.OK)


def test_steps_at_the_same_moment_are_one() -> None:
    """Two answers of one moment add up and keep the worse mark."""
    history = History(0.0, HORIZON)
    history.step(0.0, 5.0, 1, Mark.SATURATED)
    history.step(5.0, 5.0, 2, Mark.OK)
    assert history.over(5.0, 5.0) == Span(3, 5.0, Mark.SATURATED)
    assert len(history) == 2


def test_saturation_is_the_least_trusted() -> None:
    """The order of trust is not that of the numbers."""
    order = [Mark.OK, Mark.GAP, Mark.FIRST, Mark.RESET, Mark.SATURATED]
    for better, worse in pairwise(order):
        assert least_trusted(better, worse) is worse
        assert least_trusted(worse, better) is worse


def test_steps_with_an_increase_are_counted() -> None:
    """Rests and resets are no steps; the one at the beginning is not after it."""
    history = polled(3)
    history.step(15.0, 20.0, 0, Mark.RESET)
    history.step(100.0, 105.0, 7, Mark.OK)
    assert history.steps_since(5.0) == 3
    assert history.steps_since(50.0) == 1
    assert history.steps_since(-1.0) == 4


@pytest.mark.parametrize("period", [0.2, 5.0, 600.0])
def test_history_is_bounded_whatever_the_rhythm(period: float) -> None:
    """Five polls a second or one in ten minutes: never more corners than allowed."""
    history = polled(20_000, period)
    assert len(history) < CORNERS
    span = history.over(20_000 * period, 10 * period)
    assert span.increase == pytest.approx(span.seconds / period)


def test_what_is_older_than_the_horizon_goes() -> None:
    """Memory is for the longest window, not for the life of the agent."""
    history = polled(20_000)
    assert history.newest - history.oldest < HORIZON * 1.2


def test_impossible_increase_starts_anew() -> None:
    """More than 63 bits in one life: the sum begins again instead of failing."""
    history = History(0.0, HORIZON)
    history.step(0.0, 5.0, (1 << 63) - 1, Mark.OK)
    history.step(5.0, 10.0, (1 << 63) - 1, Mark.OK)
    history.step(10.0, 15.0, 4, Mark.OK)
    assert history.over(15.0, 60.0) == Span(4, 5.0, Mark.FIRST)


@given(
    st.lists(
        st.tuples(st.floats(0.5, 100), st.booleans(), st.integers(0, 9)), max_size=700
    ),
    st.floats(1, 8000),
)
def test_span_is_exact_for_what_it_covers(
    steps: list[tuple[float, bool, int]], seconds: float
) -> None:
    """However much was thinned out: the increase is that of the seconds it names."""
    history = History(0.0, HORIZON)
    at, gained = 0.0, []
    for after, rests, increase in steps:
        since = at + after if rests else at
        at = since + after
        history.step(since, at, increase, Mark.OK)
        gained.append((at, increase))
    span = history.over(at, seconds)
    begin = at - span.seconds
    assert span.increase == sum(n for moment, n in gained if moment > begin + 1e-6)
