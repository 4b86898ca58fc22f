"""Outages of a node's links: state files, carriers, counters, kernel log."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

from fabricmon.parse.words import PhysState
from fabricmon.sim.effects import Outage
from fabricmon.sim.meters import Meter
from fabricmon.sim.port_link import Overlay, physical_text

if TYPE_CHECKING:
    from fabricmon.sim.node import NodePlay

_DOWN = "1: DOWN"
_INIT = "2: INIT"
_LINK_UP = "5: LinkUp"


class Links:
    """Plays outages: down, then INIT until a subnet manager has come by, then ACTIVE.

    On Ethernet nobody has to come by, and ``init`` passes as training.
    """

    def __init__(self, play: NodePlay) -> None:
        self._play = play

    def schedule(self, outage: Outage) -> None:
        """Let an outage happen."""
        self._play.at(outage.begin, lambda t: self._down(t, outage))
        if outage.end < inf:
            if not self._play.plan.slot(outage.port).card.ethernet:
                self._play.at(outage.end, lambda t: self._init(t, outage))
            self._play.at(outage.end + outage.init, lambda t: self._up(t, outage))

    def _down(self, t: float, outage: Outage) -> None:
        port = self._play.ports[outage.port]
        port.link.overlay(outage, Overlay(_DOWN, physical_text(outage.phys)))
        if outage.counts:
            port.add(t, Meter.LINK_DOWNS, 1)
            off = outage.phys == PhysState.DISABLED.value
            port.link.lose_carrier(off=off)
        self._say(outage, "Link down")
        self._tell(t, outage, "port error")
        self._play.traffic.refresh(t, outage.port)

    def _init(self, t: float, outage: Outage) -> None:
        del t
        self._play.ports[outage.port].link.overlay(outage, Overlay(_INIT, _LINK_UP))

    def _up(self, t: float, outage: Outage) -> None:
        port = self._play.ports[outage.port]
        port.link.overlay(outage, None)
        if outage.counts:
            port.link.gain_carrier()
        self._say(outage, "Link up")
        self._tell(t, outage, "port active")
        self._play.traffic.refresh(t, outage.port)

    def _say(self, outage: Outage, what: str) -> None:
        port = self._play.ports[outage.port]
        is_told = outage.kernel_lines and "kmsg" in self._play.plan.sights
        if is_told and port.link.netdev:
            address = self._play.plan.pci_address(outage.port)
            line = f"mlx5_core {address} {port.link.netdev}: {what}"
            self._play.page.kernel(line)

    def _tell(self, t: float, outage: Outage, event: str) -> None:
        for job in self._play.jobs:
            job.print_event(t, outage.port, event)
