"""One port that is not ACTIVE now: since when, how sure, and what it looks like."""

from __future__ import annotations

from msgspec import Struct

from fabricmon.detect.downs import estimate
from fabricmon.detect.expectation import Why
from fabricmon.model import LinkStatus, NetdevStatus, PortId, PortView
from fabricmon.parse.words import LinkLayer, PhysState, PortState
from fabricmon.value import State

TRAINED = frozenset({PortState.INIT, PortState.ARMED})
"""States of a link that is trained and waits to be configured."""


class SavedOutage(Struct, frozen=True):
    """An outage as it is saved; times are Unix seconds."""

    key: str
    low: float
    high: float
    since: float
    samples: int
    why: Why | None
    told: str
    trained: float | None
    off_at: float | None = None


class Outage(State):
    """What is known of a port since it was last seen ACTIVE.

    It went down between ``low`` (last seen up) and ``high`` (first seen not up), as
    far as known at ``since``. ``trained`` is since when it is in INIT or ARMED.
    ``told`` is the kind of the finding that it gave last, empty if none. ``off_at`` is
    when it was last seen switched off.
    """

    port: PortId
    low: float
    high: float
    since: float
    state: PortState
    phys_state: PhysState | None = None
    samples: int = 0
    trained: float | None = None
    why: Why | None = None
    told: str = ""
    look_again: float = 0.0
    key: str = ""
    off_at: float | None = None

    def look(self, port: PortView, now: float) -> None:
        """Note whether it is switched off now."""
        if is_switched_off(self, port):
            self.off_at = now

    def may_train(self, now: float, seconds: float) -> bool:
        """Tell whether it was switched on so lately that its link may still train."""
        return self.off_at is not None and now - self.off_at < seconds

    def take(self, status: LinkStatus, state: PortState) -> None:
        """Take in a sample that is not ACTIVE."""
        self.samples += 1
        if status.phys_state is not None or state is not self.state:
            self.phys_state = status.phys_state
        self.state = state
        if state not in TRAINED:
            self.trained = None
        elif self.trained is None:
            self.trained = status.at

    def overlaps(self, other: Outage, seconds: float) -> bool:
        """Tell whether both may have begun within ``seconds`` of each other."""
        return self.low - seconds <= other.high and other.low - seconds <= self.high

    def saved(self, key: str, offset: float) -> SavedOutage:
        """Return what survives a restart; ``offset`` is wall minus monotonic."""
        return SavedOutage(
            key=key,
            low=self.low + offset,
            high=self.high + offset,
            since=self.since + offset,
            samples=self.samples,
            why=self.why,
            told=self.told,
            trained=None if self.trained is None else self.trained + offset,
            off_at=None if self.off_at is None else self.off_at + offset,
        )


def begin(
    status: LinkStatus,
    state: PortState,
    last_up: float | None,
    hint: float | None,
) -> Outage:
    """Return the outage that this sample begins.

    ``hint`` is when an event or a counter told of it; without one it is estimated.
    """
    at = status.at
    if last_up is None:
        low = since = at
    elif hint is not None and last_up <= hint <= at:
        low, since = last_up, hint
    else:
        low, since = last_up, estimate(last_up, at)
    return Outage(status.port, low, at, since, state)


def resume(saved: SavedOutage, begun: Outage, offset: float) -> Outage:
    """Return the saved outage of a port that is still not ACTIVE."""
    begun.low, begun.high = saved.low - offset, saved.high - offset
    begun.since = saved.since - offset
    begun.samples, begun.why, begun.told = saved.samples, saved.why, saved.told
    begun.trained = None if saved.trained is None else saved.trained - offset
    begun.off_at = None if saved.off_at is None else saved.off_at - offset
    return begun


def is_switched_off(outage: Outage, port: PortView) -> bool | None:
    """Tell whether someone took the port down; None if that cannot be told.

    On InfiniBand the physical state Disabled says so. On Ethernet mlx5 says Disabled
    whenever there is no carrier (``mlx5_query_port_roce``), so there the interface
    tells: reading ``carrier`` gives EINVAL while it is administratively down.
    """
    disabled = outage.phys_state is PhysState.DISABLED
    if port.info.link_layer is not LinkLayer.ETHERNET:
        return disabled
    netdev = port.netdev
    if netdev is not None and netdev.at >= outage.low:
        if netdev.carrier is not None:
            return False
        if is_refused(netdev):
            return True
    return None if disabled else False


def is_refused(netdev: NetdevStatus) -> bool:
    """Tell whether the kernel refuses to name the carrier: the interface is down."""
    return any(
        item.file == "carrier" and item.reason == "EINVAL" for item in netdev.absent
    )
