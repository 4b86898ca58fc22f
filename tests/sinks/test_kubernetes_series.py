"""Events that repeat are counted, and no node floods the cluster's store."""

from __future__ import annotations

from dataclasses import replace

from fabricmon.config import Kubernetes
from fabricmon.sinks.kubernetes_series import MOST_SERIES, Series, Told
from fabricmon.sinks.kubernetes_words import EventText

TEXT = EventText("PortFlapping", "Warning", "Inspect", "note", "mlx5_0/1")
SETTINGS = Kubernetes(event_burst=2, event_refill_seconds=10, series_seconds=60)


def series(node: str = "gpu-1") -> Series:
    """Return a series without a past."""
    return Series(node, SETTINGS, "run")


def write(into: Series, text: EventText, at: float) -> Told:
    """Write an event."""
    told = into.next(text, at)
    into.written(told)
    return told


class TestRepeats:
    def test_soon_after_is_a_repeat(self) -> None:
        """Of the same event, with a count; the note may have changed."""
        into = series()
        first = write(into, TEXT, 1000)
        again = write(into, replace(TEXT, note="more"), 1060)
        assert not first.is_repeat
        assert (again.name, again.count, again.first) == (first.name, 2, 1000)

    def test_repeats_go_on_from_the_last(self) -> None:
        """A port that flaps all day is one series as long as it does not rest."""
        into = series()
        assert [write(into, TEXT, 1000 + 50 * n).count for n in range(4)] == [
            1,
            2,
            3,
            4,
        ]

    def test_after_a_pause_it_is_another(self) -> None:
        """With a name of its own."""
        into = series()
        first, second = write(into, TEXT, 1000), write(into, TEXT, 1061)
        assert not second.is_repeat
        assert first.name != second.name

    def test_other_place_or_reason_is_another(self) -> None:
        """Each is told for itself."""
        into = series()
        texts = (TEXT, replace(TEXT, place="mlx5_1/1"), replace(TEXT, reason="R"))
        assert len({write(into, text, 1000).name for text in texts}) == 3

    def test_what_was_not_written_does_not_count(self) -> None:
        """The server may have been away."""
        into = series()
        into.next(TEXT, 1000)
        assert not into.next(TEXT, 1001).is_repeat

    def test_memory_is_bounded(self) -> None:
        """The one of longest ago is forgotten."""
        into = series()
        for number in range(MOST_SERIES + 1):
            write(into, replace(TEXT, place=str(number)), 1000)
        assert not into.next(replace(TEXT, place="0"), 1001).is_repeat
        assert into.next(replace(TEXT, place="1"), 1001).is_repeat

    def test_name_is_one_that_the_api_takes(self) -> None:
        """At most 253 characters, also of a node with a long name."""
        assert len(write(series("n" * 253), TEXT, 1000).name) <= 253


class TestRate:
    def test_burst_then_now_and_then(self) -> None:
        """As many at once as configured, then one for each time that passed."""
        into = series()
        assert [into.admit(100) for _ in range(3)] == [True, True, False]
        assert [into.admit(110), into.admit(111)] == [True, False]

    def test_rest_gives_no_more_than_a_burst(self) -> None:
        """However long it was quiet."""
        into = series()
        into.admit(100)
        assert [into.admit(10_000) for _ in range(3)] == [True, True, False]
