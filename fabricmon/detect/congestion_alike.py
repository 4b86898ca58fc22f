"""Congestion that most rails of a node share: only their own past tells of it.

No rail stands out then. It is no fault of a node, and worth a word to those who run
the network (``health-systems``, 4.5: the fifth of its checks). What more load explains
is not told, nor what a job does from its start: fabrics that live with notifications
or pause are healthy (``faults``, N22, N23 and N36).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import inf

from fabricmon.config import Congestion
from fabricmon.detect.flow_levels import Measure
from fabricmon.detect.statistics import DecayedMean
from fabricmon.model import PortId
from fabricmon.value import State, Value


class Shown(Value, frozen=True):
    """What a rail shows of a measure, and its share of the line rate, if known."""

    value: float
    load: float | None
    counts: bool  # it is worth a word, and not of this host's own making


class Shared(Value, frozen=True):
    """What most rails show, and since when (monotonic)."""

    measure: Measure
    since: float
    ports: tuple[PortId, ...]


class _Past(State):
    """What a rail showed and carried in this job so far."""

    value: DecayedMean
    load: DecayedMean


class Together:
    """Holds the rails of a node against their own past in this job (A6)."""

    def __init__(self, limits: Congestion) -> None:
        """Take ``alike_*`` and what is usual."""
        self._limits = limits
        self._pasts: dict[tuple[Measure, PortId], _Past] = {}
        self._shared: dict[Measure, Shared] = {}

    def forget(self) -> None:
        """Forget what another job did."""
        self._pasts.clear()
        self._shared.clear()

    def look(
        self, measure: Measure, shown: Mapping[PortId, Shown], rails: int, began: float
    ) -> None:
        """Take a look, that ``began`` then, at those of a node's rails that are used."""
        high = [p for p, each in shown.items() if self._is_high(measure, p, each)]
        known = self._shared.pop(measure, None)
        since = known.since if known is not None else began
        if known is not None:  # who shows it for longest stays the first
            places = {port: place for place, port in enumerate(known.ports)}
            high.sort(key=lambda port: places.get(port, len(places)))
        least = min(self._limits.alike_ports, rails)
        if 2 * len(high) > len(shown) and len(high) >= least:
            self._shared[measure] = Shared(measure, since, tuple(high))
            if began - since < self._limits.usual_half_life_seconds:
                return
        for port, each in shown.items():
            self._learn(measure, port, each, began)

    def held(self, now: float) -> Iterator[Shared]:
        """Yield what has been so for long: bursts are alike on all rails as well."""
        for shared in self._shared.values():
            if now - shared.since >= self._limits.alike_seconds:
                yield shared

    def _is_high(self, measure: Measure, port: PortId, shown: Shown) -> bool:
        """Tell whether neither the past nor the load of a rail explains what it shows.

        At the line rate ports wait for themselves.
        """
        limits, past = self._limits, self._pasts.get((measure, port))
        if past is None or past.value.count < limits.usual_windows or not shown.counts:
            return False
        growth = 1.0
        if shown.load is not None:
            if shown.load >= limits.full_ratio:
                return False
            before = past.load.value
            growth = max(shown.load / before, 1.0) if before else inf
        return shown.value >= limits.alike_factor * growth * (past.value.value or 0.0)

    def _learn(self, measure: Measure, port: PortId, shown: Shown, at: float) -> None:
        past = self._pasts.get((measure, port))
        if past is None:
            half_life = self._limits.usual_half_life_seconds
            past = _Past(DecayedMean(half_life), DecayedMean(half_life))
            self._pasts[measure, port] = past
        past.value.add(shown.value, at)
        if shown.load is not None:
            past.load.add(shown.load, at)
