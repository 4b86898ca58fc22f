"""One RDMA device as the inventory knows it, also while it is gone."""

from __future__ import annotations

from msgspec import Struct, field

from fabricmon.model import Hca, PortInfo, Role
from fabricmon.parse.words import Rate
from fabricmon.value import State

NO_GUID = f"0x{0:016x}"
"""EFA, MANA and unbound virtual functions have no GUID of their own."""


class SavedPort(Struct, frozen=True):
    """What is kept of a port: its identity and the best rate that it ever had."""

    info: PortInfo
    best_gbps: float | None = None
    inherited: Role | None = None


class SavedDevice(Struct, frozen=True):
    """What is kept of a device over a restart."""

    name: str
    names: tuple[str, ...]
    guid: str | None
    board: str | None
    pci_address: str | None
    pci_path: str | None
    ports: tuple[SavedPort, ...]


class KnownPort(State):
    """One port: its identity without role, and the rates that it had while ACTIVE.

    ``inherited`` is the role of the card that was in this slot before.
    """

    info: PortInfo
    best_gbps: float | None = None
    last: Rate = field(default_factory=Rate)
    inherited: Role | None = None

    def take_rate(self, rate: Rate) -> bool:
        """Note the rate of an ACTIVE port; tell whether anything is new."""
        gbps = rate.gbps
        if gbps is None or gbps <= 0 or rate == self.last:
            return False
        self.last = rate
        self.best_gbps = max(gbps, self.best_gbps or 0)
        return True


class KnownDevice(State, eq=False):
    """A card, or a virtual function; ``names`` are those that it ever had."""

    name: str
    is_virtual: bool = False
    names: tuple[str, ...] = ()
    guid: str | None = None
    board: str | None = None
    pci_address: str | None = None
    pci_path: str | None = None
    ports: dict[int, KnownPort] = field(default_factory=dict)
    hca: Hca | None = None
    missing_since: float | None = None
    polls: int = 0

    def take(self, hca: Hca, roles: dict[int, Role]) -> bool:
        """Take a newly read identity; tell whether the driver was loaded again.

        ``roles`` are those that the ports had: a card in the slot of another one
        inherits them.
        """
        old = self.hca.driver_instance if self.hca else None
        self._take_ports(hca, roles if self.is_replaced_by(hca) else None)
        self.name, self.hca, self.board = hca.name, hca, _board(hca)
        self.guid = real_guid(hca.node_guid)
        self.pci_address, self.pci_path = hca.pci_address, hca.pci_path
        self.names = tuple(dict.fromkeys((*self.names, hca.name)))
        return None not in {old, hca.driver_instance} and old != hca.driver_instance

    def is_replaced_by(self, hca: Hca) -> bool:
        """Tell whether this is another card than the one that was here before."""
        return self.board not in {None, _board(hca)}

    def see(self) -> None:
        """Note that the device is there."""
        self.missing_since, self.polls = None, 0

    def miss(self, at: float) -> None:
        """Note a listing without the device."""
        self.polls += 1
        if self.missing_since is None:
            self.missing_since = at

    def saved(self) -> SavedDevice:
        """Return what is kept over a restart."""
        return SavedDevice(
            name=self.name,
            names=self.names,
            guid=self.guid,
            board=self.board,
            pci_address=self.pci_address,
            pci_path=self.pci_path,
            ports=tuple(
                SavedPort(port.info, port.best_gbps, port.inherited)
                for port in self.ports.values()
            ),
        )

    def _take_ports(self, hca: Hca, inherit: dict[int, Role] | None) -> None:
        """Take the ports; a device without any (its driver starts) keeps the old."""
        ports = {}
        for info in port_infos(hca):
            number = info.id.port
            known = self.ports.get(number)
            ports[number] = port = KnownPort(info)
            if inherit is not None:
                role = inherit.get(number)
                port.inherited = None if role is Role.UNKNOWN else role
            elif known is not None:
                port.best_gbps, port.last = known.best_gbps, known.last
                port.inherited = known.inherited
        self.ports = ports or self.ports


def _board(hca: Hca) -> str | None:
    return hca.board_id or hca.hca_type or hca.driver


def restored(saved: SavedDevice) -> KnownDevice:
    """Return the device that `KnownDevice.saved` described."""
    return KnownDevice(
        name=saved.name,
        names=saved.names,
        guid=saved.guid,
        board=saved.board,
        pci_address=saved.pci_address,
        pci_path=saved.pci_path,
        ports={
            port.info.id.port: KnownPort(
                port.info, port.best_gbps, inherited=port.inherited
            )
            for port in saved.ports
        },
    )


def real_guid(guid: str | None) -> str | None:
    """Return the GUID unless it is all zeros."""
    return None if guid == NO_GUID else guid


def port_infos(hca: Hca) -> tuple[PortInfo, ...]:
    """Return the identity of every port of a device, roles left open."""
    return tuple(
        PortInfo(
            id=port.id,
            link_layer=port.link_layer,
            netdev=port.netdevs[0] if port.netdevs else None,
            netdevs=port.netdevs,
            pci_address=hca.pci_address,
            driver=hca.driver,
            is_vf=hca.is_vf,
            pf=hca.pf_address,
            guid=port.guid,
            node_guid=hca.node_guid,
            hca_type=hca.hca_type,
            board_id=hca.board_id,
            firmware=hca.firmware,
            numa_node=hca.numa_node,
        )
        for port in hca.ports
    )
