"""How busy a port was in its last burst, in a line below its traffic."""

from __future__ import annotations

from collections.abc import Sequence

from fabricmon.bursts import RECEIVED
from fabricmon.model import Burst, PortId
from fabricmon.sinks.port_measures import BYTES_PER_GIGABIT

_PERCENT = 100


def busy(bursts: Sequence[Burst], port: PortId) -> str:
    """Return the busier direction's share of busy samples and its burst rate."""
    found = [burst for burst in bursts if burst.port == port]
    if not found:
        return ""
    most = max(found, key=lambda burst: (burst.busy, burst.p99))
    if not most.busy:
        return '<p class="soft">idle</p>'
    arrow = "&darr;" if most.direction == RECEIVED else "&uarr;"
    seconds = most.ended - most.began
    title = (
        f"{most.samples} samples over {seconds:.1f} s; {most.idle_gaps} pauses within"
    )
    return (
        f'<p class="soft" title="{title}">busy {most.busy * _PERCENT:.0f} % {arrow} '
        f"{most.p99 / BYTES_PER_GIGABIT:.0f} Gb/s</p>"
    )
