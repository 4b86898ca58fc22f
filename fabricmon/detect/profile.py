"""Fewer compute devices than the node's hardware profile has: ``config_drift``.

A card that was dead when the agent first started is known to nobody but the profile.
"""

from __future__ import annotations

from collections.abc import Iterator

from fabricmon.config import Config
from fabricmon.model import (
    Action,
    Blindness,
    Evidence,
    Finding,
    Severity,
    Subject,
    View,
)


class HardwareProfile:
    """Compares the number of compute devices with the profile's."""

    name = "profile"
    kinds: tuple[str, ...] = ("config_drift",)

    def __init__(self, config: Config) -> None:
        """Take how many polls must agree: drivers load one after the other."""
        self._polls = config.link_state.missing_polls
        self._seconds = self._polls * config.periods.identity_seconds
        self._since: float | None = None

    def judge(self, view: View) -> Iterator[Finding]:
        """Yield the shortfall once it has lasted."""
        if not view.compute_shortfall:
            self._since = None
            return
        if self._since is None:
            self._since = view.now
        if view.now - self._since < self._seconds:
            return
        short = view.compute_shortfall
        there = len(
            {port.info.id.device for port in view.ports if port.info.rail is not None}
        )
        yield Finding(
            kind="config_drift",
            subject=Subject(),
            onset=self._since + view.onset_offset,
            evidence=(
                Evidence(
                    signal="compute_devices",
                    value=there,
                    unit="devices",
                    source="profiles",
                    threshold=there + short,
                    window_seconds=self._seconds,
                ),
            ),
            summary=f"{there} compute devices of the {there + short} that the "
            "hardware profile has; never seen here, so no port of theirs is watched",
            severity=Severity.WARNING,
            action=Action.INSPECT,
        )

    def blind(self, view: View) -> Iterator[Blindness]:
        """Yield nothing: a node without a profile expects nothing."""
        del view
        yield from ()

    def save(self) -> bytes:
        """Return nothing: the next agent looks again."""
        return b""

    def restore(self, saved: bytes, view_offset: float) -> None:
        """Take nothing back."""
