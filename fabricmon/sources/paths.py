"""Where things lie on the node, and reads that several sources share."""

from __future__ import annotations

from dataclasses import dataclass, field

from fabricmon.host.protocol import Host, ReadError
from fabricmon.model import Absence, PortId
from fabricmon.parse.text import decode

RDMA_CLASS = "/sys/class/infiniband"
NET_CLASS = "/sys/class/net"
PCI_DEVICES = "/sys/bus/pci/devices"
DMI_PRODUCT = "/sys/class/dmi/id/product_name"
UPTIME = "/proc/uptime"

QUERY_PORT_READS = 5
"""Firmware commands of one ``ib_query_port`` on mlx5: behind state, rate and LIDs."""


def device_folder(name: str) -> str:
    """Return the folder of an RDMA device."""
    return f"{RDMA_CLASS}/{name}"


def port_folder(port: PortId) -> str:
    """Return the folder of a port of an RDMA device."""
    return f"{RDMA_CLASS}/{port.device}/ports/{port.port}"


def net_folder(netdev: str) -> str:
    """Return the folder of a network device."""
    return f"{NET_CLASS}/{netdev}"


@dataclass(slots=True)
class Attributes:
    """Reads optional one-line files and keeps why some of them gave nothing."""

    host: Host
    absent: list[Absence] = field(default_factory=list)

    def text(self, folder: str, file: str) -> str | None:
        """Return the stripped text of a file, None where it is empty or unreadable."""
        raw = self.host.read(f"{folder}/{file}")
        if isinstance(raw, ReadError):
            self.absent.append(Absence(file, raw.errno))
            return None
        return decode(raw).strip() or None
