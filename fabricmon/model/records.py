"""What sources find out: each poll gives some of these."""

from __future__ import annotations

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
from fabricmon.value import Value

NO_RATE = Rate()
"""A rate of which nothing is known."""


class Reading(Value, frozen=True):
    """One burst over a `ReadPlan`: values in the order of ``specs``, unscaled."""

    port: PortId
    at: float
    specs: tuple[CounterSpec, ...]
    values: tuple[int | None, ...]
    absent: tuple[Absence, ...] = ()


class LinkStatus(Value, frozen=True):
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


class NetdevStatus(Value, frozen=True):
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


class PciLink(Value, frozen=True):
    """One end of a PCIe link: speed in GT/s and lanes, None where unknown."""

    speed_gts: float | None = None
    width: int | None = None
    max_speed_gts: float | None = None
    max_width: int | None = None


class PciStatus(Value, frozen=True):
    """PCIe link of a device and of the slot above it, at ``at``."""

    device: str
    at: float
    address: str
    link: PciLink
    slot: PciLink
    absent: tuple[Absence, ...] = ()


class DeviceList(Value, frozen=True):
    """Names under the RDMA class; ``error`` is an errno name where it has none."""

    at: float
    names: tuple[str, ...]
    error: str | None = None


class Accelerators(Value, frozen=True):
    """Resolved sysfs paths of the GPUs of the node; rails are the ports near them."""

    at: float
    paths: tuple[str, ...]


class LinkEvent(Value, frozen=True):
    """A change of a network device told by the kernel, at ``at``."""

    at: float
    netdev: str
    up: bool | None
    gone: bool = False


class BootInfo(Value, frozen=True):
    """Which boot this is and for how long the node has been up, in seconds.

    ``tells_links`` is False where the kernel's link events do not reach the agent.
    """

    at: float
    boot_id: str
    uptime_seconds: float | None
    product: str | None = None
    tells_links: bool = True


class MaintenanceWindow(Value, frozen=True):
    """Ports that are being worked on until ``until``; no ports means the node."""

    until: float
    ports: tuple[str, ...] = ()
    reason: str = ""


class MaintenancePlan(Value, frozen=True):
    """The maintenance windows in force, with what could not be understood."""

    at: float
    windows: tuple[MaintenanceWindow, ...] = ()
    error: str | None = None


class ToolReport(Value, frozen=True):
    """Port states that a tool printed between ``began`` and ``at``."""

    tool: str
    began: float
    at: float
    statuses: tuple[LinkStatus, ...]
    errors: tuple[ReadFailure, ...] = ()


class BurstSample(Value, frozen=True):
    """Bytes of a port at one moment of a burst, by its own read time ``at``."""

    port: PortId
    at: float
    received: int | None
    transmitted: int | None


class ReadFailure(Value, frozen=True):
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
