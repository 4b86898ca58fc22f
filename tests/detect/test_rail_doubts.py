"""Sampling without pause ends where an odd rail turns out to be none to tell of."""

from __future__ import annotations

from fabricmon.detect.rail_doubts import RailDoubts
from tests.detect.rails import STEP, Rails, healthy, slow
from tests.node import pid

LIMIT = 300.0


def test_an_odd_rail_is_new_for_a_while() -> None:
    """It holds a suspicion for so long, and then no more."""
    doubts = RailDoubts(LIMIT)
    odd = {pid(3)}
    held = [bool(doubts.take(odd, 30.0 * number)) for number in range(40)]
    assert held == [True] * 10 + [False] * 30


def test_it_is_new_again_when_it_was_sound_for_as_long() -> None:
    """A few windows between two odd ones are no recovery."""
    doubts = RailDoubts(LIMIT)
    doubts.take({pid(3)}, 0.0)
    doubts.take({pid(3)}, LIMIT)
    assert not doubts.take({pid(3)}, 2 * LIMIT)
    assert doubts.take({pid(3)}, 3 * LIMIT + 1)


def test_another_rail_is_looked_at_for_itself() -> None:
    """What one rail did takes nothing from the next."""
    doubts = RailDoubts(LIMIT)
    doubts.take({pid(3)}, 0.0)
    assert doubts.take({pid(3), pid(5)}, LIMIT) == {pid(5)}


def test_split_jobs_raise_no_suspicion() -> None:
    """Three of eight rails that differ are another job, not something new (N38)."""
    rails = Rails(every=3.0)
    duty, rate = healthy()
    duty[5:] = [12 * STEP] * 3
    suspicions = []
    for _ in range(200):
        rails.play(duty, rate)
        suspicions.append(rails.detector.suspicious)
    assert not any(suspicions)


def test_a_rail_that_is_never_told_is_suspected_once() -> None:
    """An hour of windows of a rail that is odd now and then costs five minutes."""
    rails = Rails(every=3.0)
    suspicions = 0
    for number in range(1200):
        rails.play(*slow(3) if number % 4 == 0 else healthy())
        suspicions += rails.detector.suspicious
    assert 0 < suspicions <= LIMIT / 3
