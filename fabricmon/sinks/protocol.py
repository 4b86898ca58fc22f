"""What a sink is: somewhere that snapshots and incidents go."""

from __future__ import annotations

from typing import Protocol

from fabricmon.model import Incident, Snapshot


class Sink(Protocol):
    """Takes what the agent concludes; never blocks it and never stops it."""

    name: str

    def open(self) -> None:
        """Start; raises `HostError` where that cannot work (an address in use)."""

    def publish(self, snapshot: Snapshot, changes: tuple[Incident, ...]) -> None:
        """Take a snapshot and what changed with it."""

    def close(self) -> None:
        """Stop, within a second."""
