"""What a sink is: somewhere that snapshots and incidents go."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from fabricmon.config import Config
from fabricmon.model import Delivery, Incident, Snapshot


class Sink(Protocol):
    """Takes what the agent concludes; never blocks it and never stops it."""

    name: str

    def open(self) -> None:
        """Start; raises `HostError` where that cannot work (an address in use)."""

    def publish(self, snapshot: Snapshot, changes: tuple[Incident, ...]) -> None:
        """Take a snapshot and what changed with it."""

    def close(self) -> None:
        """Stop, within a second."""


@runtime_checkable
class Sender(Sink, Protocol):
    """A sink that sends to a server, which may be away, and can be told anew where."""

    @property
    def delivery(self) -> Delivery | None:
        """How it fares; None while it is off. Cheap, from any thread."""

    def reload(self, config: Config) -> None:
        """Take a new configuration, which may also turn it on or off; never raises."""
