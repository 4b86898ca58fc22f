"""Health reporters of a device (devlink): what its driver thinks of its firmware.

The kernel takes the device's lock for the answer, so this has the lane of the driver
statistics: a device that is being recovered must not hold up the reading of the others.
"""

from __future__ import annotations

from fabricmon.config import Config
from fabricmon.host.protocol import Host
from fabricmon.model import DeviceHealth, Target


def poll(host: Host, target: Target, _config: Config) -> tuple[DeviceHealth, ...]:
    """Ask for the reporters of a device's PCI function; none give no record."""
    hca = target.hca
    if hca is None or hca.is_vf or hca.pci_address is None:
        return ()
    reporters = host.devlink(hca.pci_address)
    if not reporters:
        return ()
    return (DeviceHealth(hca.name, host.monotonic(), reporters),)
