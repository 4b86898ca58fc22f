"""Signs of flaps: many may tell of one, and one of many."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabricmon.detect.downs import Down, Downs, Sign, restored


def take(downs: Downs, sign: Sign) -> int:
    """Take a sign as `Flaps` does; return how many downs were new."""
    left = downs.claim(sign)
    if left:
        downs.add(sign, left, quiet=False)
    return left


class TestMerging:
    def test_state_counter_carrier_and_event_are_one(self) -> None:
        """Four signs of one outage, each in its own time."""
        downs = Downs(10)
        assert take(downs, Sign("event", 101.2, 101.2)) == 1
        assert take(downs, Sign("state", 100, 105)) == 0
        assert take(downs, Sign("link_downed", 100.5, 105.5)) == 0
        assert take(downs, Sign("carrier", 98, 103)) == 0
        (down,) = downs
        assert (down.low, down.high) == (101.2, 101.2)

    def test_what_a_sample_did_not_see_is_added(self) -> None:
        """Twelve counted, one of them seen."""
        downs = Downs(10)
        take(downs, Sign("state", 100, 105))
        assert take(downs, Sign("link_downed", 100, 105, times=12)) == 11
        assert take(downs, Sign("carrier", 100, 105, times=12)) == 0

    def test_the_largest_count_wins(self) -> None:
        """Counters of one port are not added up."""
        downs = Downs(10)
        take(downs, Sign("a", 100, 105, times=2))
        take(downs, Sign("b", 100, 105, times=3))
        take(downs, Sign("c", 100, 105, times=1))
        assert len(list(downs)) == 3

    def test_later_flaps_are_others(self) -> None:
        """The same sign again is another flap, however soon."""
        downs = Downs(10)
        take(downs, Sign("state", 100, 101))
        assert take(downs, Sign("state", 102, 103)) == 1

    def test_signs_too_far_apart_are_two(self) -> None:
        """A counter of an hour later tells of something else."""
        downs = Downs(10)
        take(downs, Sign("state", 100, 105))
        assert take(downs, Sign("link_downed", 116, 121)) == 1

    def test_a_gap_is_one_however_many(self) -> None:
        """What happened while nobody looked is kept as one with a count."""
        downs = Downs(10)
        take(downs, Sign("link_downed", 0, 3600, times=12, lumped=True))
        (down,) = downs
        assert down.times == 12

    @given(
        st.lists(
            st.tuples(
                st.sampled_from("abc"),
                st.floats(0, 1000),
                st.floats(0, 20),
                st.integers(1, 5),
            ),
            max_size=30,
        )
    )
    def test_no_sign_is_lost_and_none_counts_twice(
        self, signs: list[tuple[str, float, float, int]]
    ) -> None:
        """There are at least as many downs as any one sign tells, at most the sum."""
        downs = Downs(10)
        told: dict[str, int] = {}
        for name, low, length, times in signs:
            take(downs, Sign(name, low, low + length, times))
            told[name] = told.get(name, 0) + times
        count = len(list(downs))
        assert max(told.values(), default=0) <= count <= sum(told.values())


class TestLife:
    def test_a_down_ends_with_the_first_sight_of_up(self) -> None:
        """Only what was seen after it went down ends it."""
        downs = Downs(10)
        take(downs, Sign("state", 100, 105))
        downs.close(104)
        assert downs.untold() == []
        downs.close(110)
        assert [down.up for down in downs.untold()] == [110]

    def test_a_day_later_it_is_forgotten(self) -> None:
        """History is bounded by a day and by a number."""
        downs = Downs(10)
        take(downs, Sign("state", 0, 1))
        take(downs, Sign("state", 90_000, 90_001))
        assert len(list(downs)) == 1
        take(downs, Sign("x", 90_002, 90_003, times=10_000))
        assert len(list(downs)) == 300

    def test_penalty_decays(self) -> None:
        """A penalty halves in its half-life; quiet downs have none."""
        downs = Downs(10)
        take(downs, Sign("state", 0, 0))
        downs.add(Sign("state", 0, 0), 1, quiet=True)
        assert downs.penalty(900, 1000, 900) == pytest.approx(500)

    def test_saved_downs_come_back(self) -> None:
        """Times are saved as Unix seconds and come back as monotonic ones."""
        down = Down(1, 2, {"state", "event"}, 3, up=4.0, quiet=True, told=True)
        assert restored(down.saved(1000), 1000) == down
        assert restored(down.saved(1000), 990) == Down(
            11, 12, {"state", "event"}, 3, up=14.0, quiet=True, told=True
        )
