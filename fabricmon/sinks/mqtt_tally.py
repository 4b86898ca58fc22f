"""How the MQTT sink fares: written by its thread, read by the agent's."""

from __future__ import annotations

import time

from fabricmon.model import Delivery
from fabricmon.value import State


class Tally(State):
    """Counts since the agent's start; it outlives a change of configuration.

    ``overflow`` are findings that were dropped before they reached the spool, and
    ``dropped`` are those that an earlier spool or this one dropped. ``offset`` is what
    turns this process's monotonic clock into that of the snapshots.
    """

    connected: bool = False
    connects: int = 0
    delivered: int = 0
    failures: int = 0
    waiting: int = 0
    overflow: int = 0
    dropped: int = 0
    offset: float = 0.0
    last_success: float | None = None

    def note_success(self) -> None:
        """Count a message that the broker took."""
        self.delivered += 1
        self.last_success = time.monotonic() + self.offset

    def delivery(self, sink: str, handed_over: int) -> Delivery:
        """Return the counts as they are now; ``handed_over`` wait before the spool."""
        return Delivery(
            sink=sink,
            connected=self.connected,
            connects=self.connects,
            delivered=self.delivered,
            waiting=self.waiting + handed_over,
            dropped=self.dropped + self.overflow,
            failures=self.failures,
            last_success=self.last_success,
        )
