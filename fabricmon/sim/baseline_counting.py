"""Increases of counters over time, as an agent that keeps what it saw counts them."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Increase:
    """How much a counter moved in how many seconds; a fall is a reset, not a move."""

    amount: int
    seconds: float
    is_reset: bool = False

    @property
    def per_second(self) -> float:
        """The mean rate."""
        return self.amount / self.seconds if self.seconds > 0 else 0.0


class Remembered:
    """The last value of a counter, none at first."""

    def __init__(self) -> None:
        self._last: tuple[float, int] | None = None

    def move(self, t: float, value: int | None) -> Increase | None:
        """Return the increase since the last value, None where there is no pair."""
        if value is None:
            return None
        before, self._last = self._last, (t, value)
        if before is None:
            return None
        amount, seconds = value - before[1], t - before[0]
        return Increase(max(0, amount), seconds, is_reset=amount < 0)


class Window:
    """Sum of what happened in the last ``seconds``."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._events: deque[tuple[float, int]] = deque()

    def add(self, t: float, amount: int) -> int:
        """Take in what happened at ``t`` and return the sum."""
        if amount:
            self._events.append((t, amount))
        while self._events and self._events[0][0] <= t - self._seconds:
            self._events.popleft()
        return sum(each for _, each in self._events)
