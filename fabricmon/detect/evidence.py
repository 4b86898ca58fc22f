"""How findings name what they measured."""

from __future__ import annotations

from fabricmon.catalogue import CounterSpec, Directory, FaultClass, Signal
from fabricmon.model import PortInfo

_OF_NETDEV = frozenset({Directory.NETDEV, Directory.NETDEV_STATISTICS})

_UNITS = {
    Signal.SYMBOL_ERROR: "errors",
    Signal.INTEGRITY: "errors",
    Signal.RECEIVE_ERROR: "packets",
    Signal.CORRUPTION: "packets",
}


def unit_of(spec: CounterSpec) -> str:
    """Return what a counter counts."""
    if spec.signal in _UNITS:
        return _UNITS[spec.signal]
    return "counts" if spec.fault_class is FaultClass.TRAFFIC else "events"


def source_of(port: PortInfo, spec: CounterSpec) -> str:
    """Return where a counter was read, in the way of a path: who has which folder."""
    if spec.directory in _OF_NETDEV:
        below = "" if spec.directory is Directory.NETDEV else f"/{spec.directory}"
        return f"net/{port.netdev}{below}"
    if spec.directory is Directory.ETHTOOL:
        return f"ethtool:{port.netdev}"
    if spec.directory is Directory.PCI:
        return f"pci/{port.pci_address}"
    if spec.directory is Directory.DEVICE_HW_COUNTERS:
        return f"infiniband/{port.id.device}/hw_counters"
    return f"infiniband/{port.id.device}/ports/{port.id.port}/{spec.directory}"
