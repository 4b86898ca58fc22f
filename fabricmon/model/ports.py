"""What a device and its ports are: identity, place, what can be read."""

from __future__ import annotations

from dataclasses import dataclass, field

from fabricmon.catalogue import CounterSpec, Group
from fabricmon.model.words import Role
from fabricmon.parse.words import LinkLayer
from fabricmon.value import Value

_RESTRICTED = frozenset({"EINVAL", "EPERM", "EACCES", "EOPNOTSUPP"})


class Absence(Value, frozen=True):
    """Why a file gave no value.

    ``reason`` is an errno name (ENOENT = absent, any other = unreadable) or the
    text that stood in place of the number, such as ``N/A (no PMA)``.
    """

    file: str
    reason: str

    @property
    def is_absent(self) -> bool:
        """Tell whether the file does not exist, as against one that fails."""
        return self.reason == "ENOENT"

    @property
    def is_errno(self) -> bool:
        """Tell whether a read failed, as against a text in place of a number."""
        reason = self.reason
        return reason != "ENOENT" and reason[:1] == "E" and reason.isupper()

    @property
    def is_restricted(self) -> bool:
        """Tell whether the function is not meant to give this value, or not to us."""
        return self.reason in _RESTRICTED


class PortId(Value, frozen=True, order=True):
    """One port of one RDMA device; port 0 stands for the device itself."""

    device: str
    port: int

    def __str__(self) -> str:
        """Write it as the field does: ``mlx5_0/1``."""
        return f"{self.device}/{self.port}"


class ReadPlan(Value, frozen=True):
    """The files of one port that are read in one burst, and what each one means.

    ``specs`` and ``paths`` have the same order. ``firmware_reads`` is what one
    burst costs the device in firmware commands.
    """

    port: PortId
    specs: tuple[CounterSpec, ...]
    paths: tuple[str, ...]
    firmware_reads: int


@dataclass(frozen=True, slots=True)
class Hca:
    """Identity of one RDMA device and what can be read from it."""

    name: str
    node_guid: str | None
    sys_image_guid: str | None
    hca_type: str | None
    board_id: str | None
    firmware: str | None
    node_type: str | None
    pci_address: str | None
    driver: str | None
    numa_node: int | None
    is_vf: bool
    pf_address: str | None
    ports: tuple[HcaPort, ...]
    plans: tuple[GroupedPlan, ...]
    absent: tuple[Absence, ...] = ()
    pci_path: str | None = None  # resolved sysfs path of the PCI function
    driver_instance: str | None = None  # changes when the driver was loaded again
    at: float = field(default=0.0, compare=False)


class HcaPort(Value, frozen=True):
    """Identity of one port as its files say it."""

    id: PortId
    link_layer: LinkLayer | None
    guid: str | None
    netdevs: tuple[str, ...]
    physical_netdev: str | None = None  # of the PCI function itself; not a bond


class GroupedPlan(Value, frozen=True):
    """A read plan and the group in whose rhythm it is read."""

    group: Group
    plan: ReadPlan


class PortInfo(Value, frozen=True):
    """Everything about a port that does not change from poll to poll."""

    id: PortId
    link_layer: LinkLayer | None = None
    netdev: str | None = None
    netdevs: tuple[str, ...] = ()
    pci_address: str | None = None
    driver: str | None = None
    is_vf: bool = False
    pf: str | None = None
    guid: str | None = None
    node_guid: str | None = None
    hca_type: str | None = None
    board_id: str | None = None
    firmware: str | None = None
    numa_node: int | None = None
    rail: int | str | None = None
    leaf: str | None = None
    role: Role = Role.UNKNOWN
    expected_rate_gbps: float | None = None
    expected_width: int | None = None
    is_rate_configured: bool = False  # else the expectation is that of its peers
    expected_up: bool | None = None  # configured; None: judged by history and peers


class PortPlace(Value, frozen=True):
    """Where one port (``mlx5_0/1``) is in the fabric, as a topology says it."""

    port: str
    leaf: str | None = None
    leaf_port: str | None = None
    rail: int | str | None = None
    role: Role | None = None
    fabric: str | None = None
    plane: int | str | None = None


class PeerAddress(Value, frozen=True):
    """An out-of-band address and the node that has it."""

    address: str
    node: str


class Topology(Value, frozen=True):
    """The places of one node's ports; configuration wins over it, inference loses.

    ``addresses`` are the node's own, in the form of `parse.address.plain_peer`, as are
    those of its peers.
    """

    rack: str | None = None
    ports: tuple[PortPlace, ...] = ()
    peers: tuple[PeerAddress, ...] = ()
    nvlink_domain: str | None = None
    cluster: str | None = None
    addresses: tuple[str, ...] = ()
    rails: tuple[tuple[str, ...], ...] = ()  # patterns of devices, rail by rail
