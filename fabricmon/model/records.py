"""What sources find out: each poll gives some of these."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from fabricmon.catalogue import CounterSpec
from fabricmon.model.host_side import DeviceHealth, KernelEvents, ModuleStatus
from fabricmon.model.logs import (
    CollectiveRates,
    GidTable,
    HostPath,
    JobList,
    LogNews,
)
from fabricmon.model.node import ClockStatus, NodeAddresses
from fabricmon.model.ports import Absence, Hca, PortId
from fabricmon.parse.words import PhysState, PortState, Rate

NO_RATE = Rate()
"""A rate of which nothing is known."""


@dataclass(frozen=True, slots=True)
class Reading:
    """One burst over a `ReadPlan`: values in the order of ``specs``, unscaled."""

    port: PortId
    at: float
    specs: tuple[CounterSpec, ...]
    values: tuple[int | None, ...]
    absent: tuple[Absence, ...] = ()


@dataclass(frozen=True, slots=True)
class LinkStatus:
    """State of a port as its files say it at ``at``.

    ``rate``, ``lid`` and the others are None where the file holds no such value;
    ``absent`` says why. ``complete`` is False where only ``state`` was read (the
    dear files are read on change); then the rest repeats the last known values.
    """

    port: PortId
    at: float
    state: PortState | None
    phys_state: PhysState | None = None
    rate: Rate = NO_RATE
    lid: int | None = None
    sm_lid: int | None = None
    absent: tuple[Absence, ...] = ()
    complete: bool = True


@dataclass(frozen=True, slots=True)
class NetdevStatus:
    """State of the network device that belongs to a port.

    ``operstate`` is the kernel's word (``up``, ``down``, ``unknown``...); ``carrier``
    is None while the interface is administratively down (the file gives EINVAL).
    """

    port: PortId
    netdev: str
    at: float
    operstate: str | None
    carrier: bool | None
    absent: tuple[Absence, ...] = ()


@dataclass(frozen=True, slots=True)
class PciLink:
    """One end of a PCIe link: speed in GT/s and lanes, None where unknown."""

    speed_gts: float | None = None
    width: int | None = None
    max_speed_gts: float | None = None
    max_width: int | None = None


@dataclass(frozen=True, slots=True)
class PciStatus:
    """PCIe link of a device and of the slot above it, at ``at``."""

    device: str
    at: float
    address: str
    link: PciLink
    slot: PciLink
    absent: tuple[Absence, ...] = ()


@dataclass(frozen=True, slots=True)
class DeviceList:
    """Names under the RDMA class; ``error`` is an errno name where it has none."""

    at: float
    names: tuple[str, ...]
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Accelerators:
    """Resolved sysfs paths of the GPUs of the node; rails are the ports near them."""

    at: float
    paths: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LinkEvent:
    """A change of a network device told by the kernel, at ``at``."""

    at: float
    netdev: str
    up: bool | None
    gone: bool = False


@dataclass(frozen=True, slots=True)
class BootInfo:
    """Which boot this is and for how long the node has been up, in seconds.

    ``tells_links`` is False where the kernel's link events do not reach the agent.
    """

    at: float
    boot_id: str
    uptime_seconds: float | None
    product: str | None = None
    tells_links: bool = True


@dataclass(frozen=True, slots=True)
class MaintenanceWindow:
    """Ports that are being worked on until ``until``; no ports means the node."""

    until: float
    ports: tuple[str, ...] = ()
    reason: str = ""


@dataclass(frozen=True, slots=True)
class MaintenancePlan:
    """The maintenance windows in force, with what could not be understood."""

    at: float
    windows: tuple[MaintenanceWindow, ...] = ()
    error: str | None = None


@dataclass(frozen=True, slots=True)
class ToolReport:
    """Port states that a tool printed, to be compared with sysfs."""

    tool: str
    at: float
    statuses: tuple[LinkStatus, ...]
    errors: tuple[ReadFailure, ...] = ()


@dataclass(frozen=True, slots=True)
class BurstSample:
    """Bytes of a port at one moment of a burst, by its own read time ``at``."""

    port: PortId
    at: float
    received: int | None
    transmitted: int | None


@dataclass(frozen=True, slots=True)
class ReadFailure:
    """A device, folder or tool that could not be read at all."""

    device: str | None
    port: int | None
    file: str
    errno: str | None
    message: str


Record: TypeAlias = (
    Reading
    | LinkStatus
    | NetdevStatus
    | PciStatus
    | Hca
    | DeviceList
    | Accelerators
    | LinkEvent
    | BootInfo
    | MaintenancePlan
    | ToolReport
    | ReadFailure
    | LogNews
    | JobList
    | GidTable
    | HostPath
    | CollectiveRates
    | BurstSample
    | KernelEvents
    | ModuleStatus
    | DeviceHealth
    | ClockStatus
    | NodeAddresses
)
