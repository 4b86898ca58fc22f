"""Every time that one port went down in the last day, each once.

State samples, link events and several counters tell of the same flap, each in its own
time. Every sign claims flaps that it did not claim yet and that may be the same; what
is left over is new. So three signs of one flap are one, and twelve counted flaps of
which a sample saw one are twelve.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct, field

from fabricmon.detect.statistics import decayed
from fabricmon.value import State, Value

MOST_DOWNS = 300
"""Kept at most: an 8-bit counter can tell of 255 in one step."""

_DAY_SECONDS = 86_400.0
UNCERTAINTY_SECONDS = 10.0
"""What lies longer than this between two sights tells no time."""


class SavedDown(Struct, frozen=True):
    """A down as it is saved; times are Unix seconds."""

    low: float
    high: float
    signs: tuple[str, ...]
    times: int
    up: float | None
    quiet: bool
    told: bool
    began: float | None = None


class Sign(Value, frozen=True):
    """Something that tells of ``times`` downs between ``low`` and ``high``.

    ``lumped`` ones happened while nobody looked: they are kept as one.
    """

    name: str
    low: float
    high: float
    times: int = 1
    lumped: bool = False


class Down(State):
    """The port went down between ``low`` and ``high`` and was up again by ``up``.

    ``times`` is more than one where a counter tells how often it happened while nobody
    looked. A ``quiet`` one has a harmless reason; ``told`` ones are in a finding.
    ``began`` is when the outage began that samples saw of it.
    """

    low: float
    high: float
    signs: set[str] = field(default_factory=set)
    times: int = 1
    up: float | None = None
    quiet: bool = False
    told: bool = False
    began: float | None = None

    @property
    def at(self) -> float:
        """When it went down, as near as can be told."""
        return estimate(self.low, self.high) if self.began is None else self.began

    def saved(self, offset: float) -> SavedDown:
        """Return what survives a restart; ``offset`` is wall minus monotonic."""
        return SavedDown(
            low=self.low + offset,
            high=self.high + offset,
            signs=tuple(sorted(self.signs)),
            times=self.times,
            up=None if self.up is None else self.up + offset,
            quiet=self.quiet,
            told=self.told,
            began=None if self.began is None else self.began + offset,
        )


def estimate(low: float, high: float) -> float:
    """Return the likely time of what happened between two sights."""
    return high - min(high - low, UNCERTAINTY_SECONDS) / 2


def restored(saved: SavedDown, offset: float) -> Down:
    """Return the down that `Down.saved` described."""
    return Down(
        low=saved.low - offset,
        high=saved.high - offset,
        signs=set(saved.signs),
        times=saved.times,
        up=None if saved.up is None else saved.up - offset,
        quiet=saved.quiet,
        told=saved.told,
        began=None if saved.began is None else saved.began - offset,
    )


class Downs:
    """The downs of one port, oldest first."""

    __slots__ = ("_downs", "_slack")

    def __init__(self, slack_seconds: float, downs: tuple[Down, ...] = ()) -> None:
        """Signs that lie ``slack_seconds`` apart may be of the same flap."""
        self._slack = slack_seconds
        self._downs = list(downs)

    def __iter__(self) -> Iterator[Down]:
        """Go through them, oldest first."""
        return iter(self._downs)

    @property
    def are_open(self) -> bool:
        """Tell whether the port was not seen up since the newest one."""
        return any(down.up is None for down in self._downs)

    def claim(self, sign: Sign) -> int:
        """Match a sign with known downs; return how many are left over."""
        times = sign.times
        for down in self._downs:
            if times <= 0:
                break
            if sign.name not in down.signs and self._may_be(down, sign):
                down.signs.add(sign.name)
                down.low, down.high = _narrowed(down, sign)
                times -= down.times
        return max(times, 0)

    def add(self, sign: Sign, times: int, *, quiet: bool) -> Down:
        """Add what is left of a sign, return the newest; after a day all is forgotten."""
        begin = sign.high - _DAY_SECONDS
        self._downs = [each for each in self._downs if each.high > begin]
        parts = (times,) if sign.lumped else (1,) * min(times, MOST_DOWNS)
        for part in parts:
            down = Down(sign.low, sign.high, {sign.name}, part, quiet=quiet)
            self._downs.append(down)
        del self._downs[:-MOST_DOWNS]
        return self._downs[-1]

    def begin(self, at: float) -> None:
        """Note that what goes on now began at ``at``, as samples tell."""
        for down in self._downs:
            if down.up is None and down.began is None:
                down.began = at

    def close(self, at: float) -> None:
        """Note that the port was up at ``at``."""
        for down in self._downs:
            if down.up is None and down.high <= at:
                down.up = at

    def drop_open(self) -> None:
        """Forget those that nobody saw end: the device went away meanwhile."""
        self._downs = [down for down in self._downs if down.up is not None]

    def untold(self) -> list[Down]:
        """Return those that are over and in no finding."""
        return [down for down in self._downs if not down.told and down.up is not None]

    def loud_since(self, begin: float) -> list[Down]:
        """Return those after ``begin`` that have no harmless reason, also open ones."""
        return [down for down in self._downs if not down.quiet and down.high > begin]

    def penalty(self, now: float, each: float, half_life: float) -> float:
        """Return the sum of decayed penalties, as RFC 2439 damps routes."""
        ages = [max(now - down.high, 0) for down in self._downs if not down.quiet]
        return sum(decayed(each, age, half_life) for age in ages)

    def _may_be(self, down: Down, sign: Sign) -> bool:
        slack = self._slack
        return down.low <= sign.high + slack and sign.low - slack <= down.high


def _narrowed(down: Down, sign: Sign) -> tuple[float, float]:
    later, sooner = max(down.low, sign.low), min(down.high, sign.high)
    return (later, sooner) if later <= sooner else (down.low, down.high)
