"""Every source and every detector of the agent: one row each, in a fixed order."""

from __future__ import annotations

from operator import attrgetter

from fabricmon.catalogue import Group
from fabricmon.detect.addresses import AddressChange
from fabricmon.detect.congestion import Congestion
from fabricmon.detect.device_health import DeviceHealth
from fabricmon.detect.firmware import FirmwareDrift
from fabricmon.detect.flaps import Flaps
from fabricmon.detect.inventory_check import DevicePresence
from fabricmon.detect.ipoib import IpoibState
from fabricmon.detect.link_errors import LinkErrors
from fabricmon.detect.link_state import LinkState
from fabricmon.detect.modules import TransceiverHealth
from fabricmon.detect.nccl import NcclErrors
from fabricmon.detect.pcie import Pcie
from fabricmon.detect.profile import HardwareProfile
from fabricmon.detect.protocol import Detector
from fabricmon.detect.rate import LinkRate
from fabricmon.detect.settings import SettingsFit
from fabricmon.detect.straggler import Stragglers
from fabricmon.detect.telemetry import Telemetry
from fabricmon.detect.transport import Transport
from fabricmon.sources import (
    addresses,
    burst,
    clock,
    counters,
    device_health,
    devices,
    driver,
    gids,
    host_path,
    ibstat,
    identity,
    inspector,
    jobs,
    kmsg,
    link_events,
    maintenance,
    modules,
    nccl_log,
    netdev,
    node,
    pci,
    state,
)
from fabricmon.sources.protocol import Lane, Poll, Scope, Source


def _row(name: str, scope: Scope, lane: Lane, poll: Poll) -> Source:
    """Return a source whose period is the configuration key ``NAME_seconds``."""
    return Source(name, scope, lane, attrgetter(f"{name}_seconds"), poll)


SOURCES: tuple[Source, ...] = (
    _row("devices", Scope.NODE, Lane.NODE, devices.poll),
    _row("boot", Scope.NODE, Lane.NODE, node.poll_boot),
    _row("accelerators", Scope.NODE, Lane.NODE, node.poll_accelerators),
    _row("maintenance", Scope.NODE, Lane.NODE, maintenance.poll),
    _row("nccl_log", Scope.NODE, Lane.LOG, nccl_log.poll),
    _row("jobs", Scope.NODE, Lane.JOB, jobs.poll),
    _row("link_events", Scope.NODE, Lane.NODE, link_events.poll),
    _row("identity", Scope.DEVICE, Lane.DEVICE, identity.poll),
    _row("state", Scope.HCA, Lane.DEVICE, state.poll),
    _row("link_detail", Scope.HCA, Lane.DEVICE, state.poll_details),
    _row("outages", Scope.HCA, Lane.DEVICE, counters.poll_of(Group.OUTAGES)),
    _row("errors", Scope.HCA, Lane.DEVICE, counters.poll_of(Group.ERRORS)),
    _row("traffic", Scope.HCA, Lane.DEVICE, counters.poll_of(Group.TRAFFIC)),
    _row("burst", Scope.HCA, Lane.DEVICE, burst.poll),
    _row("hardware", Scope.HCA, Lane.DEVICE, counters.poll_of(Group.HARDWARE)),
    _row("netdev", Scope.HCA, Lane.DEVICE, netdev.poll),
    _row("pci", Scope.HCA, Lane.DEVICE, pci.poll),
    _row("driver", Scope.HCA, Lane.DRIVER, driver.poll),
    _row("ibstat", Scope.NODE, Lane.TOOL, ibstat.poll),
    _row("gids", Scope.HCA, Lane.DEVICE, gids.poll),
    _row("host_path", Scope.NODE, Lane.DRIVER, host_path.poll),
    _row("inspector", Scope.NODE, Lane.LOG, inspector.poll),
    _row("clock", Scope.NODE, Lane.NODE, clock.poll),
    _row("addresses", Scope.NODE, Lane.NODE, addresses.poll),
    _row("kmsg", Scope.NODE, Lane.NODE, kmsg.poll),
    _row("modules", Scope.HCA, Lane.DEVICE, modules.poll),
    _row("device_health", Scope.HCA, Lane.DRIVER, device_health.poll),
)

DETECTORS: tuple[type[Detector], ...] = (
    DevicePresence,
    LinkState,
    Flaps,
    LinkRate,
    IpoibState,
    LinkErrors,
    HardwareProfile,
    FirmwareDrift,
    TransceiverHealth,
    Pcie,
    DeviceHealth,
    NcclErrors,
    SettingsFit,
    AddressChange,
    Transport,
    Congestion,
    Stragglers,
    Telemetry,
)
