"""When a port's errors are those of a link that trains, not of one in use.

A link that comes up, at boot, after an outage or after its driver was loaded, counts
up to ten thousand errors within seconds (``faults``: F05, F06, N03, N16).
"""

from __future__ import annotations

from fabricmon.catalogue import Signal
from fabricmon.config import LinkErrors
from fabricmon.detect.grace import Grace
from fabricmon.model import PortId, View
from fabricmon.parse.words import PortState
from fabricmon.value import State

OUTAGE_SIGNALS = frozenset({Signal.LINK_DOWN, Signal.CARRIER_DOWN})
"""Counters that remember an outage shorter than a poll."""


class _Outage(State):
    """The newest outage of a port; ``end`` is when it was last seen not up."""

    begin: float
    end: float


class Training:
    """Remembers when the links of a node trained."""

    def __init__(self, config: LinkErrors) -> None:
        """Take the times from ``config``."""
        self._before = config.settle_seconds
        self._after = config.retrain_seconds
        self._boot_grace = config.boot_grace_seconds
        self._driver_grace = config.driver_grace_seconds
        self._grace = Grace()
        self._outages: dict[PortId, _Outage] = {}

    def note(self, view: View) -> None:
        """Take what is new in ``view``."""
        self._grace.observe(view)
        for status in view.statuses:
            if status.state not in (PortState.ACTIVE, None):
                self._down(status.port, status.at, status.at)
        for move in view.moves:
            if move.spec.signal in OUTAGE_SIGNALS and move.increase:
                self._down(move.port, move.at - move.seconds, move.at)
        if view.netdevs or view.events:
            self._note_netdevs(view)

    def explains(self, port: PortId, begin: float, end: float) -> bool:
        """Tell whether errors between then are those of a link that trains."""
        if self._grace.since_boot(begin) < self._boot_grace:
            return True
        if self._grace.since_load(port.device, begin) < self._driver_grace:
            return True
        outage = self._outages.get(port)
        return (
            outage is not None
            and outage.begin <= end + self._before
            and begin - self._after <= outage.end
        )

    def _down(self, port: PortId, begin: float, end: float) -> None:
        """Note an outage; one that follows closely belongs to the one before."""
        known = self._outages.get(port)
        if known is None or begin > known.end + self._before + self._after:
            self._outages[port] = _Outage(begin, end)
        else:
            known.begin = min(known.begin, begin)
            known.end = max(known.end, end)

    def _note_netdevs(self, view: View) -> None:
        for netdev in view.netdevs:
            if netdev.carrier is False:
                self._down(netdev.port, netdev.at, netdev.at)
        if not view.events:
            return
        ports = {n: p.info.id for p in view.ports for n in p.info.netdevs}
        for event in view.events:
            port = ports.get(event.netdev)
            if port is not None and event.up is False:
                self._down(port, event.at, event.at)
