"""The name under which a port is remembered over restarts and renames."""

from __future__ import annotations

from fabricmon.model import PortInfo


def port_key(info: PortInfo) -> str:
    """Return ``PCI address/port``; a device without PCI address goes by its name.

    A device that is renamed (mlx5_3 becomes ibp94s0) keeps its PCI address.
    """
    return f"{info.pci_address or info.id.device}/{info.id.port}"
