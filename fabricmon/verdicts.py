"""From open incidents and freshness to one word for a port and for the node."""

from __future__ import annotations

from collections.abc import Iterable

from fabricmon.covers import devices_of
from fabricmon.model import Finding, Incident, PortId, PortView, Severity, Verdict
from fabricmon.parse.words import PortState

DOWN_KINDS = frozenset({"port_down", "port_not_active", "device_missing"})
"""Kinds that mean: no traffic passes here."""

BLIND_KINDS = frozenset({"telemetry_stale", "source_failed"})
"""Kinds that speak of the monitor, not of the fabric: nothing is known there."""


def of_incident(incident: Incident) -> Verdict:
    """Tell what an open incident says of its subject."""
    return Verdict.HEALTHY if incident.dry_run else of_finding(incident.finding)


def of_finding(finding: Finding) -> Verdict:
    """Tell what a finding says of its subject."""
    if finding.severity is Severity.INFO:
        return Verdict.HEALTHY
    if finding.kind in BLIND_KINDS:
        return Verdict.UNKNOWN
    return Verdict.DOWN if finding.kind in DOWN_KINDS else Verdict.DEGRADED


def concerns(incident: Incident, port: PortId) -> bool:
    """Tell whether an incident is about this port or the device it belongs to.

    It may be told of one device for several.
    """
    subject = incident.finding.subject
    if subject.port not in (None, port.port):
        return False
    return subject.device == port.device or port.device in devices_of(incident.finding)


def by_device(incidents: Iterable[Incident]) -> dict[str, list[Incident]]:
    """Return the incidents of each device, in order; one may be of several."""
    found: dict[str, list[Incident]] = {}
    for each in incidents:
        device = each.finding.subject.device
        named = devices_of(each.finding) | ({device} if device is not None else set())
        for name in named:
            found.setdefault(name, []).append(each)
    return found


def of_port(
    view: PortView,
    incidents: Iterable[Incident],
    waits_seconds: float | None = None,
) -> tuple[Verdict, tuple[str, ...]]:
    """Judge one port: the worst open incident, or that nothing is known of it.

    ``waits_seconds`` is how long a port that should be up is not, None for one that
    need not be: until that is a finding it is no sign of health either.
    """
    mine = [item for item in incidents if concerns(item, view.info.id)]
    verdict = max(map(of_incident, mine), default=Verdict.HEALTHY)
    reasons = [item.finding.summary for item in mine if of_incident(item) is verdict]
    if verdict is not Verdict.HEALTHY:
        return verdict, tuple(reasons)
    if view.status is None or view.status.state is None:
        return Verdict.UNKNOWN, ("state cannot be read",)
    if not view.fresh:
        return Verdict.UNKNOWN, ("values are old: a read hangs or is late",)
    if view.status.state is not PortState.ACTIVE:
        if waits_seconds is not None:
            told = (item.finding for item in mine)
            why = tuple(each.summary for each in told if each.kind in DOWN_KINDS)
            waits = f"{view.status.state} for {waits_seconds:.0f} s"
            return Verdict.UNKNOWN, why or (waits,)
        return Verdict.HEALTHY, (f"{view.status.state}: not in use",)
    return Verdict.HEALTHY, ()


def of_node(
    ports: Iterable[Verdict], incidents: Iterable[Incident], *, blind: bool
) -> Verdict:
    """Judge the node: its worst port or node-wide incident, unknown if blind."""
    node_wide = (
        of_incident(item)
        for item in incidents
        if item.finding.subject.device is None or item.finding.kind == "device_missing"
    )
    floor = Verdict.UNKNOWN if blind else Verdict.HEALTHY
    return max([floor, *ports, *node_wide])
