"""Lines of the kernel log as drivers of the mlx5 family and PCIe print them.

Wording after the kernel's own sources (mlx5 ``events.c``, ``health.c``, ``cmd.c``,
``pcie/aer.c``, ``pci.c``); process ids and line numbers vary from kernel to kernel.
"""

from __future__ import annotations

from dataclasses import dataclass


def cable_unplugged(address: str) -> str:
    """Return what a module event says once the cable is out."""
    return f"mlx5_core {address}: Port module event: module 0, Cable unplugged"


def high_temperature(address: str) -> str:
    """Return the warning of the temperature sensors."""
    return (
        f"mlx5_core {address}: temp_warn:201:(pid 0): High temperature on sensors with "
        "bit set 0x0 0x1"
    )


def module_too_hot(address: str) -> str:
    """Return the module event of over-temperature."""
    return (
        f"mlx5_core {address}: Port module event[error]: module 0, Cable error, High "
        "Temperature"
    )


def insufficient_power(address: str, watts: int) -> str:
    """Return what the driver says of a slot that gives too little power."""
    return (
        f"mlx5_core {address}: mlx5_pcie_event:301:(pid 1207): Detected insufficient "
        f"power on the PCIe slot ({watts}W)."
    )


@dataclass(frozen=True, slots=True)
class Link:
    """A PCIe link: lanes, GT/s of each, and the Gb/s that all carry."""

    width: int
    speed: float
    gbps: float

    def __str__(self) -> str:
        """Return it as the kernel writes it."""
        return f"{self.speed:.1f} GT/s PCIe x{self.width} link"


def limited_bandwidth(address: str, now: Link, capable: Link) -> str:
    """Return the line of a device that trained below what it can (kernel ``pci.c``)."""
    return (
        f"mlx5_core {address}: {now.gbps:.3f} Gb/s available PCIe bandwidth, "
        f"limited by {now} at {_bridge(address)} "
        f"(capable of {capable.gbps:.3f} Gb/s with {capable})"
    )


def corrected(address: str) -> tuple[str, ...]:
    """Return the block of a corrected PCIe error."""
    bridge, device = f"pcieport {_bridge(address)}", f"mlx5_core {address}"
    kind = "severity=Correctable, type=Physical Layer, (Receiver ID)"
    return (
        f"{bridge}: AER: Correctable error message received from {address}",
        f"{device}: PCIe Bus Error: {kind}",
        f"{device}:   device [15b3:1021] error status/mask=00000001/0000e000",
        f"{device}:    [ 0] RxErr                  (First)",
    )


def fatal(address: str) -> tuple[str, ...]:
    """Return the block of a device that a fatal error took off the bus."""
    bridge, device = f"pcieport {_bridge(address)}", f"mlx5_core {address}"
    kind = "severity=Uncorrectable (Fatal), type=Transaction Layer, (Requester ID)"
    state = "Device state = 2 health sensors: 1 pci_status: 1. Enter"
    return (
        f"{bridge}: AER: Uncorrectable (Fatal) error message received from {address}",
        f"{device}: PCIe Bus Error: {kind}",
        f"{device}: mlx5_pci_err_detected {state}, pci channel state = 2",
        f"{bridge}: pciehp: Slot(21): Link Down",
        f"{bridge}: pciehp: Slot(21): Card not present",
    )


def health_compromised(address: str) -> tuple[str, ...]:
    """Return what a driver prints whose firmware answers no more."""
    device = f"mlx5_core {address}"
    compromised = "device's health compromised - reached miss count"
    leak = "Will cause a leak of a command resource"
    return (
        f"{device}: poll_health:825:(pid 0): {compromised}",
        f"{device}: print_health_info:506:(pid 0): assert_var[0] 0x00000001",
        f"{device}: wait_func:1167:(pid 4711): ACCESS_REG(0x805) timeout. {leak}",
    )


def command_canceled(address: str) -> str:
    """Return what a driver prints of a command that found no place in the queue."""
    return (
        f"mlx5_core {address}: wait_func:1150:(pid 4711): DESTROY_MKEY(0x202) canceled "
        "on out of queue timeout."
    )


def register_refused(address: str) -> str:
    """Return what a function without rights gets when it asks for a register."""
    return (
        f"mlx5_core {address}: mlx5_cmd_out_err:809:(pid 3101): ACCESS_REG(0x805) "
        "op_mod(0x1) failed, status bad parameter(0x3), syndrome (0x305684), err(-22)"
    )


def driver_loaded(address: str, firmware: str) -> str:
    """Return the first line of a driver that takes a device."""
    return f"mlx5_core {address}: firmware version: {firmware}"


def _bridge(address: str) -> str:
    """Return an address of the bridge above; only its form matters."""
    domain, bus, _ = address.split(":")
    return f"{domain}:{max(int(bus, 16) - 1, 0):02x}:01.0"
