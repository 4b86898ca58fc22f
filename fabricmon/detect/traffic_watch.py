"""Which ports are at work, and which stand still while their peers are.

A firmware that hangs leaves the counters of its port as they were; so does a port that
has nothing to do. This tells only that a port stopped and its peers did not.
"""

from __future__ import annotations

from math import inf

from fabricmon.catalogue import Signal
from fabricmon.model import PortId, PortView, Role, View
from fabricmon.parse.words import PortState
from fabricmon.value import State

BUSY_SECONDS = 45.0
"""A port whose traffic was last seen to flow so long ago is still at work: counters
are read every 15 s."""

REMEMBER_SECONDS = 600.0
"""A port that was last at work so long ago did not stop, it is idle."""

TOGETHER_SECONDS = 30.0
"""Ports that were seen to stop within so long of each other stopped together: counters
are read every 15 s and looked at every 5 s."""

PEERS = 2
"""Peers at work that make it odd to stand still."""

_BYTES = (Signal.BYTES_RECEIVED, Signal.BYTES_TRANSMITTED)
_WATCHED = frozenset({Role.COMPUTE, Role.STORAGE})
_BITS, _GIGA = 8, 1e9


class _Traffic(State):
    """The bytes of one port as last read, and when they last moved."""

    total: float
    moved_at: float
    busy_at: float = -inf


class TrafficWatch:
    """Looks at the byte counters of each port from time to time."""

    def __init__(self, moving_ratio: float, frozen_seconds: float) -> None:
        """Take the share of the line rate that is work, and how long is a stop."""
        self._ratio = moving_ratio
        self._frozen = frozen_seconds
        self._ports: dict[PortId, _Traffic] = {}

    def look(self, view: View) -> None:
        """Take in the counters as they are now."""
        known = {port.info.id for port in view.ports}
        for gone in self._ports.keys() - known:
            del self._ports[gone]
        for port in view.ports:
            if port.info.role in _WATCHED and not port.info.is_vf:
                self._take(port, view)

    def busy(self) -> dict[str, float]:
        """Return when each device that ever was at work was last seen to be so."""
        found: dict[str, float] = {}
        for port, traffic in self._ports.items():
            if traffic.busy_at > found.get(port.device, -inf):
                found[port.device] = traffic.busy_at
        return found

    def frozen(self, view: View) -> dict[str, float]:
        """Return devices that stand still while their peers work, and since when.

        Every port of the device is ACTIVE as far as it says, and stopped.
        """
        found: dict[str, float] = {}
        lively: set[str] = set()
        for port in view.ports:
            traffic = self._ports.get(port.info.id)
            if traffic is None:
                continue
            if not self._has_stopped(traffic, view.now) or not _is_active(port):
                lively.add(port.info.id.device)
            elif self._peers_at_work(port, view) >= PEERS:
                found[port.info.id.device] = traffic.moved_at
        return {name: at for name, at in found.items() if name not in lively}

    def _has_stopped(self, traffic: _Traffic, now: float) -> bool:
        still = now - traffic.moved_at
        return still >= self._frozen and now - traffic.busy_at <= REMEMBER_SECONDS

    def _peers_at_work(self, port: PortView, view: View) -> int:
        """Count ports of the role at work; none where most of the role stand still."""
        peers = [
            self._ports[other.info.id]
            for other in view.ports
            if other.info.id != port.info.id
            and other.info.role is port.info.role
            and other.info.id in self._ports
        ]
        busy = sum(view.now - peer.busy_at <= BUSY_SECONDS for peer in peers)
        return busy if 2 * busy >= len(peers) else 0

    def _take(self, port: PortView, view: View) -> None:
        total = _bytes(port.info.id, view)
        if total is None:
            return
        known = self._ports.get(port.info.id)
        if known is None:
            self._ports[port.info.id] = _Traffic(total, view.now)
        elif total != known.total:
            seconds = view.now - known.moved_at
            gbps = port.status.rate.gbps if port.status is not None else None
            floor = (gbps or 0) * self._ratio * _GIGA / _BITS
            if floor and seconds > 0 and (total - known.total) / seconds >= floor:
                known.busy_at = view.now
            known.total, known.moved_at = total, view.now


def _bytes(port: PortId, view: View) -> float | None:
    """Return the bytes of both directions, None where one cannot be read."""
    total = 0.0
    for signal in _BYTES:
        specs = view.counters.by_signal(port, signal)
        value = view.counters.value(port, specs[0]) if specs else None
        if value is None:
            return None
        total += value * specs[0].factor
    return total


def _is_active(port: PortView) -> bool:
    return port.status is not None and port.status.state is PortState.ACTIVE
