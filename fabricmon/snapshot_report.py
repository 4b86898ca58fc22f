"""A snapshot in the records that tool parsers share, so that one code judges both."""

from __future__ import annotations

from collections.abc import Iterator

from fabricmon.catalogue import CounterKind, Directory
from fabricmon.model import (
    Absence,
    PortId,
    PortSnapshot,
    ReadFailure,
    Reading,
    Snapshot,
)
from fabricmon.parse.ibstat import TOOL
from fabricmon.parse.report import (
    CounterValue,
    PortReport,
    Report,
    ToolFailure,
    Unavailable,
)

CLASS_FOLDER = "/sys/class/infiniband"


def report(snapshot: Snapshot) -> Report:
    """Return what the snapshot says, port by port, and what could not be read."""
    return Report(
        tool="sysfs",
        ports=tuple(_ports(snapshot)),
        errors=tuple(_failures(snapshot)),
    )


def _ports(snapshot: Snapshot) -> Iterator[PortReport]:
    """Go through the ports; what a device counts as a whole stands under port 0."""
    for port in snapshot.ports:
        yield port_report(port)
        own = tuple(_values(port.readings, Directory.DEVICE_HW_COUNTERS))
        if own:
            yield PortReport(port.info.id.device, 0, hw_counters=own)


def port_report(port: PortSnapshot) -> PortReport:
    """Return one port: None where it could not be read, never 0."""
    info, status = port.info, port.status
    return PortReport(
        device=info.id.device,
        port=info.id.port,
        state=status.state if status else None,
        phys_state=status.phys_state if status else None,
        link_layer=info.link_layer,
        rate=status.rate if status else PortReport("", 0).rate,
        lid=status.lid if status else None,
        sm_lid=status.sm_lid if status else None,
        guid=info.guid,
        node_guid=info.node_guid,
        fw=info.firmware or None,
        hca_type=info.hca_type,
        netdev=info.netdev,
        pci_address=info.pci_address,
        driver=info.driver,
        rail=info.rail,
        role=info.role.value,
        counters=tuple(_values(port.readings, Directory.COUNTERS)),
        hw_counters=tuple(_values(port.readings, Directory.HW_COUNTERS)),
        saturated=port.saturated,
        unavailable=tuple(_unavailable(port)),
    )


def _values(
    readings: tuple[Reading, ...], directory: Directory
) -> Iterator[CounterValue]:
    for reading in readings:
        for spec, value in zip(reading.specs, reading.values, strict=True):
            counts = spec.kind is not CounterKind.KNOB
            if counts and value is not None and spec.directory is directory:
                yield CounterValue(spec.file, value)


def _unavailable(port: PortSnapshot) -> Iterator[Unavailable]:
    absences: list[Absence] = list(port.status.absent) if port.status else []
    for reading in port.readings:
        absences += reading.absent
    for absence in absences:
        yield Unavailable(absence.file, absence.reason)


def _failures(snapshot: Snapshot) -> Iterator[ToolFailure]:
    if snapshot.class_error is not None:
        yield ToolFailure(
            tool=None,
            file=CLASS_FOLDER,
            errno=snapshot.class_error,
            message="no RDMA class: no driver is loaded"
            if snapshot.class_error == "ENOENT"
            else "the RDMA class cannot be read",
        )
    for port in snapshot.ports:
        for absence in port.status.absent if port.status else ():
            if not absence.is_absent:
                yield _from_absence(port.info.id, absence)
    yield from map(tool_failure, snapshot.failures)


def _from_absence(port: PortId, absence: Absence) -> ToolFailure:
    return ToolFailure(
        tool=None,
        file=absence.file,
        device=port.device,
        port=port.port,
        errno=absence.reason,
        message=f"{absence.file} cannot be read",
    )


def tool_failure(failure: ReadFailure) -> ToolFailure:
    """Return a failure as an entry of a report's errors."""
    is_tool = failure.file == TOOL
    return ToolFailure(
        tool=failure.file if is_tool else None,
        file=None if is_tool else failure.file,
        device=failure.device,
        port=failure.port,
        errno=failure.errno,
        message=failure.message,
    )
