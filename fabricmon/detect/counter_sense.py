"""Which steps of a counter no hardware can make."""

from __future__ import annotations

from fabricmon.catalogue import Signal
from fabricmon.model import Mark, Move

OUTAGE_SIGNALS = frozenset({Signal.LINK_DOWN, Signal.CARRIER_DOWN})
"""Counters that remember outages."""

_LATE_SECONDS = 1.0  # firmware adds up about once a second, whenever it is asked


def is_impossible(move: Move, least_seconds: float) -> bool:
    """Tell whether outages of ``least_seconds`` do not fit into a step's time.

    Such a step is garbage, or someone wrote the counter.
    """
    if move.spec.signal not in OUTAGE_SIGNALS or move.mark is Mark.FIRST:
        return False
    return move.increase * least_seconds > max(move.seconds, _LATE_SECONDS)
