"""Numbers that move evenly, jump, stop at a ceiling or start again."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabricmon.sim.counters import Counter, Hazard, Spot, chunk_seconds, noisy
from fabricmon.sim.draw import poisson

SPOT = Spot("/counter")
CHANGES = st.lists(
    st.tuples(
        st.floats(0.001, 30),  # seconds until then
        st.one_of(st.just(0.0), st.floats(0, 1e10)),  # rate
        st.integers(0, 300),  # jump
    ),
    max_size=20,
)


def read(counter: Counter, since: float, t: float) -> int:
    """Return what a reader of the trace would see at ``t``."""
    return counter.shown().value_after(t - since)


@given(CHANGES, st.sampled_from([15, 255, 65535, (1 << 32) - 1, None]))
def test_what_is_written_never_falls_nor_passes_the_ceiling(
    changes: list[tuple[float, float, int]], ceiling: int | None
) -> None:
    """A reader sees a number that grows, up to its ceiling, over every change."""
    counter = Counter(SPOT, ceiling=ceiling)
    t = 0.0
    counter.settle(t)
    seen = 0
    for wait, rate, jump in changes:
        last = read(counter, t, t + wait)
        assert last >= seen
        t += wait
        counter.pace(t, rate)
        counter.add(t, jump)
        seen = read(counter, t, t)
        assert seen >= last
        assert ceiling is None or seen <= ceiling


@given(st.lists(st.floats(0.001, 5), min_size=1, max_size=50), st.floats(0.5, 900))
def test_pieces_of_a_slow_ramp_add_up(waits: list[float], rate: float) -> None:
    """Stopping and going on loses no count, however short the pieces are."""
    counter = Counter(SPOT)
    counter.pace(0.0, rate)
    t = 0.0
    for wait in waits:
        t += wait
        counter.settle(t)
    assert abs(counter.settle(t) - rate * t) < 1.01 + t * 1e-4


def test_a_counter_at_its_ceiling_is_written_once() -> None:
    """It shows nothing more, so changes of its rate say nothing."""
    counter = Counter(SPOT, ceiling=255)
    assert counter.add(1.0, 400)
    assert counter.shown().value == 255
    assert not counter.add(2.0, 5)
    counter.pace(3.0, 100.0)
    assert not counter.pace(4.0, 200.0)
    assert counter.shown().value_after(100) == 255


def test_words_are_counted_for_octets() -> None:
    """A share of a quarter is what PMA counts data in."""
    counter = Counter(SPOT, share=0.25)
    counter.pace(0.0, 4e9)
    assert counter.settle(10.0) == 10**10


def test_firmware_counters_start_again() -> None:
    """At 2^32 a queue counter goes on from what is left, and says when."""
    counter = Counter(SPOT, modulus=1 << 32)
    counter.put(0.0, (1 << 32) - 1000)
    counter.pace(0.0, 100.0)
    assert counter.wraps_at() == pytest.approx(10.0)
    assert counter.settle(12.0) == 200


def test_hazard_keeps_its_rate_over_changes() -> None:
    """Events come as often as the mean rate says, though it changes all the time."""
    hazard = Hazard(Random(3))
    events, t = 0, 0.0
    due = hazard.change(t, 0.2)
    for step in range(20_000):
        t += 1.0
        while due <= t:
            events += 1
            due = hazard.take(due)
        due = hazard.change(t, 0.2 if step % 2 else 0.6)
    assert events == pytest.approx(8000, rel=0.05)


def test_fast_processes_are_as_noisy_as_poisson() -> None:
    """The spread of a ramp's rate is that of the count it stands for."""
    random = Random(5)
    rates = [noisy(random, 50.0, 10.0) for _ in range(4000)]
    mean = sum(rates) / len(rates)
    spread = (sum((rate - mean) ** 2 for rate in rates) / len(rates)) ** 0.5
    assert mean == pytest.approx(50, rel=0.01)
    assert spread == pytest.approx((500**0.5) / 10, rel=0.1)
    assert chunk_seconds(10.0) < chunk_seconds(1e4) or chunk_seconds(1e4) == 10.0


@pytest.mark.parametrize("mean", [0.0, 0.3, 7.0, 900.0])
def test_poisson_counts_have_their_mean(mean: float) -> None:
    """Small means are exact, large ones by their normal limit."""
    random = Random(11)
    counts = [poisson(random, mean) for _ in range(3000)]
    assert sum(counts) / len(counts) == pytest.approx(mean, rel=0.06, abs=0.03)
