"""How findings name what they measured."""

from __future__ import annotations

from fabricmon.catalogue import CounterSpec, Directory
from fabricmon.model import PortInfo

SUMMARY_LENGTH = 120
"""Longest summary that sinks accept, in characters."""

_MINUTE, _HOUR = 60.0, 3600.0
_OF_NETDEV = frozenset({Directory.NETDEV, Directory.NETDEV_STATISTICS})


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


def span(seconds: float) -> str:
    """Write a time for a human: ``45 s``, ``12 min``, ``2.1 h``."""
    if seconds < 2 * _MINUTE:
        return f"{seconds:.0f} s"
    if seconds < 2 * _HOUR:
        return f"{seconds / _MINUTE:.0f} min"
    return f"{seconds / _HOUR:.1f} h"


def one_line(text: str) -> str:
    """Cut a summary to the length that sinks accept."""
    short = text[: SUMMARY_LENGTH - 1].rstrip() + "…"
    return text if len(text) <= SUMMARY_LENGTH else short
