"""Files of a tree that say something else as time passes."""

from __future__ import annotations

from typing import Protocol

from fabricmon.host.trace import Ramp


class Motion(Protocol):
    """What a file says where that depends on the time."""

    def text(self, now: float) -> bytes:
        """Return the content at ``now``."""


class Moving:
    """A counter or gauge that moves evenly since ``since``."""

    __slots__ = ("_ramp", "_since")

    def __init__(self, ramp: Ramp, since: float) -> None:
        self._ramp = ramp
        self._since = since

    def text(self, now: float) -> bytes:
        """Return the number and a newline."""
        return b"%d\n" % self._ramp.value_after(now - self._since)
