"""The PCI function behind an RDMA device: address, driver, NUMA node, who owns it."""

from __future__ import annotations

from fabricmon.host.protocol import Host
from fabricmon.parse.pci_path import pci_address, up_to_function
from fabricmon.sources.paths import Attributes, device_folder
from fabricmon.value import Value

SUBFUNCTION = ".sf."
"""Part of the name of an auxiliary device that is a slice of a PCI function."""


class Function(Value, frozen=True):
    """Where a device sits; ``folder`` is that of its network devices and driver.

    All of it is None for a device of software (rxe, siw).
    """

    folder: str | None = None
    pci_path: str | None = None
    address: str | None = None
    driver: str | None = None
    numa_node: int | None = None
    is_virtual: bool = False
    owner: str | None = None


def find_function(host: Host, name: str, attributes: Attributes) -> Function:
    """Follow the links of an RDMA device; opens two small files that cost nothing."""
    folder = host.target(f"{device_folder(name)}/device")
    if folder is None:
        # Only rxe has this attribute: the network device on which it was made.
        software = attributes.text(device_folder(name), "parent")
        return Function(driver="rxe" if software else None)
    path = up_to_function(folder)
    owner = pci_address(host.target(f"{folder}/physfn"))
    if owner is None and SUBFUNCTION in folder.rpartition("/")[2]:
        owner = pci_address(path)
    driver = host.target(f"{folder}/driver")
    if driver is None and path is not None:  # an auxiliary device without a driver
        driver = host.target(f"{path}/driver")
    return Function(
        folder=folder,
        pci_path=path,
        address=pci_address(path),
        driver=driver.rpartition("/")[2] if driver else None,
        numa_node=_numa_node(attributes.text(path or folder, "numa_node")),
        is_virtual=owner is not None,
        owner=owner,
    )


def _numa_node(text: str | None) -> int | None:
    """Return the node; -1 stands for a machine that does not say."""
    return int(text) if text and text.isdecimal() else None
