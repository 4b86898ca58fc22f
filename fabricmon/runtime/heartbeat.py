"""When the agent's loop last turned, and whether it has seen the node yet."""

from __future__ import annotations

import time


class Heartbeat:
    """Written by the loop, read by the threads that answer probes."""

    def __init__(self) -> None:
        """Start alive and not ready."""
        self._at = time.monotonic()
        self.ready = False

    @property
    def age_seconds(self) -> float:
        """Seconds since the loop last turned."""
        return time.monotonic() - self._at

    def beat(self) -> None:
        """Note that the loop turns."""
        self._at = time.monotonic()
