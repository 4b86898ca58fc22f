"""What a detector is."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, runtime_checkable

from fabricmon.config import Config
from fabricmon.model import Blindness, Finding, OutageSummary, PortInfo, View


class Detector(Protocol):
    """Judges a view. State it keeps is its own, small, and can be saved.

    A class is made with the configuration (``Detector(config)``) and registered by
    one line in `fabricmon.registry`.
    """

    name: str
    kinds: tuple[str, ...]

    def __init__(self, config: Config) -> None:
        """Take the thresholds from ``config``."""

    def judge(self, view: View) -> Iterable[Finding]:
        """Yield every finding that holds now; a kind that is an event once."""

    def blind(self, view: View) -> Iterable[Blindness]:
        """Yield the kinds that cannot be judged on this node, with the reason."""

    def save(self) -> bytes:
        """Return the state that must survive a restart, empty if none."""

    def restore(self, saved: bytes, view_offset: float) -> None:
        """Take back what `save` returned; ``view_offset`` is wall minus monotonic.

        Saved times are Unix seconds. Raises ValueError for what it cannot read.
        """


@runtime_checkable
class KeepsOutages(Protocol):
    """A detector that remembers outages, for those who show and export them."""

    def outages(self, port: PortInfo) -> OutageSummary:
        """Return what is remembered of this port, zeros if nothing is."""
