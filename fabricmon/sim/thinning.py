"""Time with parts of it left out."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable


class Thinning:
    """Maps time to time without what lies outside some spans; spans may overlap.

    A moment in a part that is left out is where the part was cut.
    """

    def __init__(
        self, spans: Iterable[tuple[float, float]], end: float = float("inf")
    ) -> None:
        self._begins: list[float] = []
        self._ends: list[float] = []
        for begin, over in sorted(
            (max(begin, 0.0), min(over, end)) for begin, over in spans
        ):
            if over <= begin:
                continue
            if self._ends and begin <= self._ends[-1]:
                self._ends[-1] = max(self._ends[-1], over)
            else:
                self._begins.append(begin)
                self._ends.append(over)
        self._before = [0.0]
        for begin, over in zip(self._begins, self._ends, strict=True):
            self._before.append(self._before[-1] + over - begin)

    @property
    def kept(self) -> float:
        """Seconds that are left."""
        return self._before[-1]

    def __call__(self, t: float) -> float:
        """Return how much of the time before ``t`` is kept."""
        number = bisect_right(self._begins, t) - 1
        if number < 0:
            return 0.0
        begin, over = self._begins[number], self._ends[number]
        return self._before[number] + min(t, over) - begin
