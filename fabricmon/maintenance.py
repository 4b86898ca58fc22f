"""Whether somebody works on a port, a device or the node now."""

from __future__ import annotations

from collections.abc import Iterable

from fabricmon.model import MaintenanceWindow, Subject


def under_maintenance(
    subject: Subject, windows: Iterable[MaintenanceWindow], wall: float
) -> bool:
    """Tell whether someone works on this subject at ``wall``, Unix seconds.

    A window without ports is about the whole node, one with ports about these and
    about their devices.
    """
    return any(
        window.until > wall and (not window.ports or _is_named(subject, window.ports))
        for window in windows
    )


def _is_named(subject: Subject, ports: tuple[str, ...]) -> bool:
    if subject.device is None:
        return False
    if subject.port is None:
        return any(port.rpartition("/")[0] == subject.device for port in ports)
    return f"{subject.device}/{subject.port}" in ports
