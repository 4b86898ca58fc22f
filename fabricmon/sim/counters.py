"""Numbers of a node as it counts: whole, monotone, within width and ceiling.

A counter writes itself down as the trace wants it: a ramp while it moves, a text while
it stands. Its own books are kept with the rate as written, so that a ramp that ends
never falls behind or runs ahead of the next one.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import floor, inf
from random import Random

from fabricmon.host.trace import Ramp

FAST = 2.0
"""Events a second above which a ramp stands for a Poisson process."""
CHUNK = 10.0
"""Seconds of one such ramp: its rate is drawn anew then."""
CHUNK_EVENTS = 20_000.0
"""So many events in a chunk are near enough even: it lasts longer."""
_SMALL_RATE = 1000.0


@dataclass(frozen=True, slots=True)
class Spot:
    """Where a number stands: a file, or a statistic (``name``) of a network device."""

    path: str
    name: str | None = None


class Counter:
    """One number; ``ceiling`` is where it stops, ``modulus`` where it starts again.

    ``share`` is how much it counts for one unit of its meter (a word for four octets).
    """

    __slots__ = (
        "_frac",
        "_rate",
        "_since",
        "_value",
        "ceiling",
        "modulus",
        "share",
        "spot",
    )

    def __init__(
        self,
        spot: Spot,
        ceiling: int | None = None,
        modulus: int | None = None,
        share: float = 1.0,
    ) -> None:
        self.spot = spot
        self.ceiling = ceiling
        self.modulus = modulus
        self.share = share
        self._value = 0
        self._frac = 0.0
        self._rate = 0.0
        self._since = 0.0

    @property
    def rate(self) -> float:
        """What it counts a second now, as written."""
        return self._rate

    def settle(self, t: float) -> int:
        """Take the books to ``t`` and return the value."""
        total = self._frac + self._rate * (t - self._since)
        whole = floor(total)
        self._value += whole
        self._frac = total - whole
        self._since = t
        if self.modulus is not None and self._value >= self.modulus:
            self._value %= self.modulus
        elif self.ceiling is not None and self._value >= self.ceiling:
            self._value, self._frac = self.ceiling, 0.0
        return self._value

    def put(self, t: float, value: int) -> None:
        """Stand at a value from ``t`` on, as after a reset; the rate stays."""
        self._value = value if self.ceiling is None else min(value, self.ceiling)
        self._frac, self._since = 0.0, t

    def add(self, t: float, amount: int) -> bool:
        """Jump; False if that changes nothing."""
        before = self.settle(t)
        self._value += amount
        return self.settle(t) != before

    def pace(self, t: float, rate: float) -> bool:
        """Move so fast from ``t`` on; False if that changes nothing."""
        rate *= self.share
        rate = float(round(rate)) if rate > _SMALL_RATE else round(rate, 4)
        if rate == self._rate:
            return False
        before, value = self._rate, self.settle(t)
        self._rate = rate
        stands = self.ceiling is not None and value >= self.ceiling
        return not (stands and before)  # at its ceiling it shows nothing

    def shown(self) -> Ramp:
        """Return the number as it was settled last, with where it goes from there."""
        if self.ceiling is not None and self._value >= self.ceiling:
            return Ramp(self._value, 0.0)
        rate = int(self._rate) if self._rate > _SMALL_RATE else self._rate
        ceiling = self.ceiling if rate else None
        return Ramp(self._value, rate, ceiling)

    def wraps_at(self) -> float:
        """Return when it starts again at its modulus, infinite if it does not."""
        if self.modulus is None or self._rate <= 0:
            return inf
        return self._since + (self.modulus - self._value - self._frac) / self._rate


class Hazard:
    """A Poisson process whose rate changes: it says when its next event is due.

    It spends an exponentially distributed budget at its rate, so that a change of the
    rate in between is exact.
    """

    __slots__ = ("_budget", "_random", "_rate", "_since")

    def __init__(self, random: Random) -> None:
        self._random = random
        self._budget = random.expovariate(1.0)
        self._rate = 0.0
        self._since = 0.0

    def change(self, t: float, rate: float) -> float:
        """Go on at another rate; return when the next event is due."""
        self._budget -= self._rate * (t - self._since)
        self._since, self._rate = t, rate
        return t + max(self._budget, 0.0) / rate if rate > 0 else inf

    def take(self, t: float) -> float:
        """Take the event that was due; return when the next one is."""
        self._budget = self._random.expovariate(1.0)
        self._since = t
        return t + self._budget / self._rate if self._rate > 0 else inf


def chunk_seconds(rate: float) -> float:
    """Return how long a ramp may stand for a process of this rate."""
    return max(CHUNK, CHUNK_EVENTS / rate)


def noisy(random: Random, rate: float, seconds: float) -> float:
    """Return the rate that a Poisson process shows over so many seconds."""
    mean = rate * seconds
    return max(random.gauss(mean, mean**0.5), 0.0) / seconds
