"""For how long a rail that is odd and not told is worth sampling without pause.

A rail that stays odd and is never told is of another job, or carries more traffic: it
is looked at once. It is new again when it was sound for as long.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from fabricmon.model import PortId
from fabricmon.value import State


class _Doubt(State):
    """A rail that is odd: since when, and when it was so last."""

    since: float
    last: float


class RailDoubts:
    """Remembers which rails were looked at already."""

    def __init__(self, seconds: float) -> None:
        """Take for how long a rail may hold a suspicion."""
        self._seconds = seconds
        self._doubts: dict[PortId, _Doubt] = {}

    def take(self, odd: AbstractSet[PortId], at: float) -> frozenset[PortId]:
        """Take the odd rails of a window; return those that are odd since lately."""
        for port, doubt in tuple(self._doubts.items()):
            if at - doubt.last > self._seconds:
                del self._doubts[port]
        for port in odd:
            doubt = self._doubts.setdefault(port, _Doubt(at, at))
            doubt.last = at
        return frozenset(
            port for port in odd if at - self._doubts[port].since < self._seconds
        )
