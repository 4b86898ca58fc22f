"""What one counter gained over the last minutes and hours, in bounded memory.

A history is the curve of the sum of all increases, kept as its corners: a counter
that rests costs nothing, however long. When it is full, what is older than the horizon
goes, and corners nearer to each other than a small part of their age: the last minutes
by the poll, two hours ago by some minutes. An answer names the seconds that it covers,
so it is exact all the same.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from itertools import pairwise

from fabricmon.model import Mark
from fabricmon.value import Value

CORNERS = 160
"""Corners kept at most: 17 bytes each, 2.7 KiB for a counter that always moves."""

FINENESS = 20
"""Corners may be a twentieth of their age apart: two hours of polls leave 106."""

_ENOUGH = CORNERS * 3 // 4

_BY_TRUST = (Mark.OK, Mark.GAP, Mark.FIRST, Mark.RESET, Mark.SATURATED)
_RANK = tuple(_BY_TRUST.index(mark) for mark in sorted(Mark))


class Span(Value, frozen=True):
    """Increase over ``seconds``; ``mark`` is the least trustworthy step within."""

    increase: int
    seconds: float
    mark: Mark


def least_trusted(one: Mark, other: Mark) -> Mark:
    """Return the mark that says less.

    A gap has a true increase, a first sight none before it, a reset lost some, and a
    counter at its ceiling tells nothing.
    """
    return one if _RANK[one] >= _RANK[other] else other


class History:
    """Sum of increases at points in time; times must not fall."""

    __slots__ = ("_horizon", "_marks", "_times", "_totals", "total")

    def __init__(self, at: float, horizon_seconds: float) -> None:
        """Begin at ``at``, before which nothing is known."""
        self._horizon = horizon_seconds
        self._begin(at)

    def __len__(self) -> int:
        """Number of corners."""
        return len(self._times)

    @property
    def oldest(self) -> float:
        """Time before which nothing is known."""
        return self._times[0]

    @property
    def newest(self) -> float:
        """Time of the newest step, or of the beginning."""
        return self._times[-1]

    def step(self, since: float, at: float, increase: int, mark: Mark) -> None:
        """Add what was gained between two sights of the counter."""
        times = self._times
        if times[-1] < since:
            times.append(since)
            self._totals.append(self.total)
            self._marks.append(0)
        elif at <= times[-1]:  # at the very moment of the last step: one corner
            self._totals.pop()
            at, mark = times.pop(), least_trusted(mark, _BY_TRUST[self._marks.pop()])
        self.total += increase
        try:
            self._totals.append(self.total)
        except OverflowError:  # more than 63 bits gained: no counter lives so long
            self._begin(at)
            return
        times.append(at)
        self._marks.append(_RANK[mark])
        if len(times) >= CORNERS:
            self._shrink()

    def over(self, end: float, seconds: float) -> Span:
        """Return what was gained in ``seconds`` before ``end``, the newest sight.

        Where that begins between two sights, the whole step counts and the span is
        longer; where it begins before the history, the span is shorter.
        """
        times, totals, marks = self._times, self._totals, self._marks
        begin = end - seconds
        base = bisect_right(times, begin) - 1
        if base < 0:
            worst = max(marks)
            return Span(self.total - totals[0], end - times[0], _BY_TRUST[worst])
        after = base + 1
        if after == len(times):
            return Span(0, seconds, Mark.OK)
        rests = totals[base] == totals[after]
        covered = seconds if rests else end - times[base]
        worst = max(marks[after:])
        return Span(self.total - totals[base], covered, _BY_TRUST[worst])

    def steps_since(self, begin: float) -> int:
        """Count the steps with an increase after ``begin``."""
        first = max(bisect_right(self._times, begin), 1)
        totals = self._totals
        return sum(totals[i] > totals[i - 1] for i in range(first, len(totals)))

    def _begin(self, at: float) -> None:
        self.total = 0
        self._times = array("d", (at,))
        self._totals = array("q", (0,))
        self._marks = bytearray((_RANK[Mark.FIRST],))

    def _shrink(self) -> None:
        times = self._times
        oldest = max(bisect_right(times, times[-1] - self._horizon) - 1, 0)
        kept = list(range(oldest, len(times)))
        fineness = FINENESS
        while len(kept) > _ENOUGH:
            kept = self._thinned(kept, fineness)
            fineness //= 2
        # A corner takes in the marks of those dropped before it.
        marks = (max(self._marks[a + 1 : b + 1]) for a, b in pairwise(kept))
        first = self._marks[0] if oldest == 0 else _RANK[Mark.OK]
        self._marks = bytearray((first, *marks))
        self._totals = array("q", [self._totals[i] for i in kept])
        self._times = array("d", [times[i] for i in kept])

    def _thinned(self, corners: list[int], fineness: int) -> list[int]:
        """Leave out corners that are close together for their age."""
        newest = self._times[-1]
        kept = [corners[-1]]
        after = newest
        for corner in reversed(corners[1:-1]):
            at = self._times[corner]
            if (after - at) * fineness >= newest - at:
                kept.append(corner)
                after = at
        kept.append(corners[0])
        kept.reverse()
        return kept
