"""Reading sysfs paths of PCI functions: addresses, their order, what lies between.

A resolved path looks like ``/sys/devices/pci0000:18/0000:18:01.0/0000:1a:00.0``:
the host bridge, the bridges on the way down, the function.
"""

from __future__ import annotations

from functools import lru_cache

from fabricmon.parse.text import hexadecimal

HOST_BRIDGE = "pci"

_REMEMBERED = 1024
"""Paths whose functions are known: a node's own are asked for at each judgement."""

PciOrder = tuple[int, int, int, int]
"""Domain, bus, device, function: sorts as a human reads addresses."""


def pci_order(address: str | None) -> PciOrder | None:
    """Return the four numbers of ``0000:1a:00.0``, None for anything else."""
    domain, _, rest = (address or "").partition(":")
    bus, _, rest = rest.partition(":")
    device, _, function = rest.partition(".")
    numbers = [hexadecimal(part) for part in (domain, bus, device, function)]
    if None in numbers:
        return None
    first, second, third, fourth = (number or 0 for number in numbers)
    return first, second, third, fourth


def pci_address(path: str | None) -> str | None:
    """Return the address of the deepest PCI function on the path."""
    functions = pci_functions(path)
    return functions[-1] if functions else None


@lru_cache(_REMEMBERED)
def pci_functions(path: str | None) -> tuple[str, ...]:
    """Return the addresses on the path from the root port down to the function."""
    parts = (path or "").split("/")
    return tuple(part for part in parts if pci_order(part) is not None)


def host_bridge(path: str | None) -> str | None:
    """Return the host bridge of the path, such as ``pci0000:18``."""
    for part in (path or "").split("/"):
        domain, _, bus = part.removeprefix(HOST_BRIDGE).partition(":")
        if part.startswith(HOST_BRIDGE) and hexadecimal(domain) is not None and bus:
            return part
    return None


def up_to_function(path: str) -> str | None:
    """Cut what lies below the deepest PCI function, such as an auxiliary device."""
    parts = path.split("/")
    while parts and pci_order(parts[-1]) is None:
        parts.pop()
    return "/".join(parts) or None
