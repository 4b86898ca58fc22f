"""The traffic of a port as a small drawing: received above a line, sent below."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from fabricmon.model import PortSnapshot
from fabricmon.sinks.page_words import NOTHING, bits

POINTS = 60
"""Width of the drawing in points of the line; a younger line stands at the right."""

HALF = 20
"""Height of each side; its end is the rate that the link should have."""

_BITS = 8
_GIGA = 1e9


def spark(port: PortSnapshot) -> str:
    """Return drawing and last values, or a dash where nothing is known."""
    received, sent = port.traffic_received, port.traffic_transmitted
    if not received or not sent:
        return NOTHING
    full = max(*received, *sent, _line_rate(port)) or 1.0
    return (
        f'<svg viewBox="0 0 {POINTS - 1} {2 * HALF}" preserveAspectRatio="none" '
        f'aria-hidden="true"><path class="received" d="{_area(received, full, -1)}"/>'
        f'<path class="sent" d="{_area(sent, full, 1)}"/></svg>'
        f'<span class="last"><span class="received">&darr; {bits(received[-1])}</span> '
        f'<span class="sent">&uarr; {bits(sent[-1])}</span></span>'
    )


def _line_rate(port: PortSnapshot) -> float:
    """Return bytes per second of the link as it should be, else as it is, else 0."""
    actual = port.status.rate.gbps if port.status else None
    return max(port.info.expected_rate_gbps or 0, actual or 0) * _GIGA / _BITS


def _area(values: Sequence[float], full: float, side: int) -> str:
    """Return a path in whole steps from the middle line and back to it."""
    heights = [round(side * HALF * value / full) for value in values[-POINTS:]]
    steps = [heights[0], *(b - a for a, b in pairwise(heights))]
    start = POINTS - len(heights)
    line = "".join(f"l1 {step}" for step in steps[1:])
    return f"M{start} {HALF}v{steps[0]}{line}V{HALF}z"
