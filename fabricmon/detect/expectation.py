"""Why a port should be up: only positive evidence makes a port that is down a fault.

Ports that are down by design are the loudest false alarm of health monitors
(``health-systems``, conclusion 7 and algorithm A4).
"""

from __future__ import annotations

from enum import StrEnum

from fabricmon.catalogue import Signal
from fabricmon.config import Config
from fabricmon.expectations import Expectations
from fabricmon.model import BootInfo, PortId, PortInfo, PortView, Role, View
from fabricmon.parse.words import LinkLayer, PortState

CARRIER_LOSSES = 2
"""A driver counts one loss when it starts; a second one means there was a carrier."""

_PEERS_MINIMUM = 3
_EQUAL_ROLES = frozenset({Role.COMPUTE, Role.STORAGE})


class Why(StrEnum):
    """What makes a port expected up, from the strongest evidence to the weakest."""

    CONFIGURED = "configured to be up"
    WAS_ACTIVE = "was ACTIVE before"
    PEERS = "most of its peers are up"
    TRAINED = "its link is trained"
    CARRIER = "had a carrier before"

    @property
    def confidence(self) -> float:
        """How sure that is."""
        return {Why.PEERS: 0.9, Why.CARRIER: 0.7}.get(self, 1.0)


class ExpectedUp:
    """Tells of each port whether it should be up, and why."""

    def __init__(self, config: Config) -> None:
        """Take the expectations of the configuration."""
        self._expectations = Expectations(config)
        self._boot: BootInfo | None = None
        self._configured: dict[PortId, bool | None] = {}

    def why(self, port: PortView, view: View) -> Why | None:
        """Return why the port should be up, None where nothing says so.

        Virtual functions are up and down with their users: only configuration can
        expect them up.
        """
        configured = self.configured(port.info, view)
        if configured is not None:
            return Why.CONFIGURED if configured else None
        if port.info.is_vf:
            return None
        if port.ever_active:
            return Why.WAS_ACTIVE
        if _peers_are_up(port, view):
            return Why.PEERS
        return Why.CARRIER if _had_carrier(port, view) else None

    def why_now(self, port: PortView, view: View, *, trained: bool) -> Why | None:
        """Return why a port that is not ACTIVE should be.

        A trained InfiniBand link alone waits for its subnet manager.
        """
        why = self.why(port, view)
        if why is not None or self.configured(port.info, view) is False:
            return why
        waits = trained and not port.info.is_vf
        infiniband = port.info.link_layer is LinkLayer.INFINIBAND
        return Why.TRAINED if waits and infiniband else None

    def configured(self, info: PortInfo, view: View) -> bool | None:
        """Return what the configuration says of the port, None if nothing."""
        if view.boot is not None and view.boot is not self._boot:
            self._boot = view.boot
            self._expectations.take_product(view.boot.product)
            self._configured.clear()
        if info.id not in self._configured:
            expected = self._expectations.of(info.id, info.pci_address)
            self._configured[info.id] = expected.up
        return self._configured[info.id]


def _peers_are_up(port: PortView, view: View) -> bool:
    """Tell whether most ports in the same place of equal devices are up.

    The same place: equal role, board, port number and PCI function, so that the spare
    ports of many-port devices are compared with each other only.
    """
    if port.info.role not in _EQUAL_ROLES:
        return False
    place = _place(port.info)
    peers = [
        each
        for each in view.ports
        if not each.info.is_vf and _place(each.info) == place
    ]
    up = sum(
        each.status is not None and each.status.state is PortState.ACTIVE
        for each in peers
    )
    return len(peers) >= _PEERS_MINIMUM and 2 * up > len(peers)


def _place(info: PortInfo) -> tuple[object, ...]:
    function = (info.pci_address or "").rpartition(".")[2]
    return info.role, info.board_id, info.link_layer, info.id.port, function


def _had_carrier(port: PortView, view: View) -> bool:
    return any(
        (view.counters.value(port.info.id, spec) or 0) >= CARRIER_LOSSES
        for spec in view.counters.by_signal(port.info.id, Signal.CARRIER_DOWN)
    )
