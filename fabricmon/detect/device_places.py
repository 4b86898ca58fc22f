"""Devices as findings about a whole device see them: ports, model, place on PCIe."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fabricmon.model import Hca, KernelEvent, PortInfo, PortView, Role, Subject, View
from fabricmon.parse.pci_path import pci_functions


def by_device(ports: Iterable[PortView]) -> dict[str, list[PortView]]:
    """Return the ports of each physical device."""
    found: dict[str, list[PortView]] = {}
    for port in ports:
        if not port.info.is_vf:
            found.setdefault(port.info.id.device, []).append(port)
    return found


def model_of(info: PortInfo) -> tuple[str | None, ...]:
    """Return what equal devices have in common, not the same in all of a node's."""
    return info.board_id or info.hca_type, info.driver


def subject_of_device(device: str, ports: Sequence[PortView]) -> Subject:
    """Return a device as the subject of a finding, with its rail where it has one."""
    only = ports[0].info if len(ports) == 1 else None
    return Subject(device=device, rail=only.rail if only else None)


def is_management(ports: Sequence[PortView]) -> bool:
    """Tell whether a device is no part of the fabric."""
    return bool(ports) and all(port.info.role is Role.MANAGEMENT for port in ports)


def has_hardware(view: View) -> bool:
    """Tell whether the node has any device on PCIe."""
    return any(p.info.pci_address and not p.info.is_vf for p in view.ports)


class Places:
    """Finds the device that a line of the kernel's log is about."""

    def __init__(self, view: View) -> None:
        """Take the devices of a view."""
        self._names = {hca.name for hca in view.hcas if not hca.is_vf}
        self._addresses: dict[str, str] = {}
        self._netdevs: dict[str, str] = {}
        for hca in view.hcas:
            if not hca.is_vf:
                self._add(hca)

    def device(self, event: KernelEvent) -> str | None:
        """Return the device's name, None for a line about anything else."""
        if event.device in self._names:
            return event.device
        if event.address is not None:
            return self._addresses.get(event.address)
        return self._netdevs.get(event.netdev or "")

    def _add(self, hca: Hca) -> None:
        """Add a device's function and the slot above it, of several the first's."""
        functions = pci_functions(hca.pci_path)
        slot = functions[-2:-1]
        if hca.pci_address is not None:
            self._addresses[hca.pci_address] = hca.name
        for address in slot:
            self._addresses.setdefault(address, hca.name)
        for port in hca.ports:
            for netdev in port.netdevs:
                self._netdevs.setdefault(netdev, hca.name)


def kernel_text(event: KernelEvent) -> str:
    """Return the line as evidence: what it says, without what names the device."""
    return event.text[:120]
