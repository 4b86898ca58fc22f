"""A clock that is set does not move what was heard before."""

from dataclasses import replace

from fabricmon.detect.steady_clock import SteadyClock
from fabricmon.model import View
from tests.detect.nccl_node import event
from tests.views import START, WALL, make_view


def later(seconds: float, step: float, written: float | None = None) -> View:
    """Return a view after a while, with a line, on a clock that was set by a step."""
    view = make_view(START + seconds)
    wall = WALL + seconds + step
    return replace(view, wall=wall, log_events=(event(time=written),))


def test_steps_are_taken_back() -> None:
    """Times go on as if nobody had set the clock, also those that a log tells."""
    clock = SteadyClock()
    clock.view(later(0, 0))
    steady = clock.view(later(60, 3600, written=WALL + 59 + 3600))
    assert steady.wall == WALL + 60
    assert steady.log_events[0].time == WALL + 59
    assert clock.step == 3600


def test_lines_without_a_time() -> None:
    """They count from when they came."""
    clock = SteadyClock()
    clock.view(later(0, 0))
    assert clock.view(later(60, -5)).log_events[0].time is None


def test_a_clock_that_is_kept() -> None:
    """What lies between two reads of clocks is no step: the view stays as it is."""
    clock = SteadyClock()
    clock.view(later(0, 0))
    view = later(60, 0.2)
    assert clock.view(view) is view
    assert clock.step == 0
