"""Every source and every detector of the agent: one row each, in a fixed order."""

from __future__ import annotations

from operator import attrgetter

from fabricmon.catalogue import Group
from fabricmon.detect.flaps import Flaps
from fabricmon.detect.inventory_check import DevicePresence
from fabricmon.detect.ipoib import IpoibState
from fabricmon.detect.link_errors import LinkErrors
from fabricmon.detect.link_state import LinkState
from fabricmon.detect.profile import HardwareProfile
from fabricmon.detect.protocol import Detector
from fabricmon.detect.rate import LinkRate
from fabricmon.detect.telemetry import Telemetry
from fabricmon.sources import (
    counters,
    devices,
    driver,
    ibstat,
    identity,
    link_events,
    maintenance,
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
    _row("link_events", Scope.NODE, Lane.NODE, link_events.poll),
    _row("identity", Scope.DEVICE, Lane.DEVICE, identity.poll),
    _row("state", Scope.HCA, Lane.DEVICE, state.poll),
    _row("link_detail", Scope.HCA, Lane.DEVICE, state.poll_details),
    _row("outages", Scope.HCA, Lane.DEVICE, counters.poll_of(Group.OUTAGES)),
    _row("errors", Scope.HCA, Lane.DEVICE, counters.poll_of(Group.ERRORS)),
    _row("traffic", Scope.HCA, Lane.DEVICE, counters.poll_of(Group.TRAFFIC)),
    _row("hardware", Scope.HCA, Lane.DEVICE, counters.poll_of(Group.HARDWARE)),
    _row("netdev", Scope.HCA, Lane.DEVICE, netdev.poll),
    _row("pci", Scope.HCA, Lane.DEVICE, pci.poll),
    _row("driver", Scope.HCA, Lane.DRIVER, driver.poll),
    _row("ibstat", Scope.NODE, Lane.TOOL, ibstat.poll),
)

DETECTORS: tuple[type[Detector], ...] = (
    DevicePresence,
    LinkState,
    Flaps,
    LinkRate,
    IpoibState,
    LinkErrors,
    HardwareProfile,
    Telemetry,
)
