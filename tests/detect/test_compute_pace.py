"""Longer steps on a clean network are no matter of the network; others may be."""

from __future__ import annotations

from collections.abc import Iterator

from fabricmon.config import Config, Stragglers
from fabricmon.detect.compute_pace import ComputePace
from fabricmon.model import Blindness, Finding, View
from tests.rails import LINE, Rails


class Pace:
    """A detector's shape around the pace of one job, whose rails run at line rate."""

    name = "pace"
    kinds: tuple[str, ...] = ("not_network",)

    def __init__(self, config: Config) -> None:
        """Take the limits of stragglers."""
        self._pace = ComputePace(config.stragglers)

    def judge(self, view: View) -> Iterator[Finding]:
        """Yield what holds."""
        self._pace.note_rate(LINE)
        found = self._pace.judge(view)
        if found is not None:
            yield found

    def blind(self, view: View) -> Iterator[Blindness]:
        """See everything."""
        yield from ()

    def save(self) -> bytes:
        """Keep nothing."""
        return b""

    def restore(self, saved: bytes, view_offset: float) -> None:
        """Take nothing back."""


def slowed(**rates: float) -> Rails:
    """Return a node whose steps became longer, while these counters rise on a rail."""
    rails = Rails(Pace)
    limits = Stragglers()
    rails.run(60.0 * (limits.compute_past_minutes + 2))
    rails.load = 0.15
    rails.every(2, **rates)
    rails.run(60.0 * (limits.compute_minutes + 2))
    return rails


def test_longer_steps_of_a_clean_network() -> None:
    """All rails send less of the time, as fast as before."""
    assert slowed().found("not_network")


def test_a_timer_that_runs_out_is_not_clean() -> None:
    """Each holds the rail for seconds at its full rate: the very same signature."""
    assert slowed(local_ack_timeout_err=0.2).found("not_network") == []


def test_reordering_is_clean() -> None:
    """Adaptive routing is no loss, and holds nobody up."""
    assert slowed(out_of_sequence=1000).found("not_network")
