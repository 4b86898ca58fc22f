"""Ports of a node that fall together: one cause in the fabric, told once (A10).

`link_state` follows the outages; here they are counted. What has one cause is
``common_cause``, or ``fabric_control`` where the links stayed trained and only their
configuration is gone: the subnet manager.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from fabricmon.config import LinkState as Limits
from fabricmon.detect.link_cause import Company
from fabricmon.detect.outage import Outage, is_switched_off
from fabricmon.detect.wording import clock, lasting
from fabricmon.model import (
    Action,
    Evidence,
    Finding,
    Part,
    PortId,
    PortInfo,
    PortView,
    Severity,
    Subject,
    View,
)
from fabricmon.summaries import one_line
from fabricmon.value import Value

MEMBERS = "ports"
"""Signal of the evidence that names the ports, parted by spaces."""

CONFIRM_SECONDS = 5.0
"""A node that shuts down takes its ports along and is gone by then."""

_LEFT = 2  # fewer ports that are still down have a story of their own


class _Group(Value, frozen=True):
    """Ports that may have one cause; a ``spare`` group is one plane of several."""

    ports: frozenset[PortId]
    spare: bool = False


class CommonCause:
    """Finds outages that began together and follows them until they are over."""

    def __init__(self, limits: Limits) -> None:
        """Start without any."""
        self._limits = limits
        self._members: dict[PortId, PortInfo] = {}
        self._began = 0.0
        self._kind = ""
        self._spare = False

    def judge(
        self,
        outages: Mapping[PortId, Outage],
        ports: Mapping[PortId, PortView],
        view: View,
    ) -> Finding | None:
        """Return what has one cause, None if nothing has.

        ``ports`` are those of the node that count, ``outages`` those among them that
        should be up.
        """
        if self._members:
            return self._go_on(outages, ports, view)
        young = [each for each in outages.values() if self._counts(each, ports, view)]
        if len(young) < self._limits.common_cause_ports:
            return None
        for group in _groups(ports):
            fallen = self._largest([each for each in young if each.port in group.ports])
            company = Company(len(group.ports), len(fallen), 0)
            if len(fallen) >= company.enough(self._limits):
                self._begin(fallen, group, ports)
                return self._tell(len(fallen), view)
        return None

    def _begin(
        self,
        fallen: Sequence[Outage],
        group: _Group,
        ports: Mapping[PortId, PortView],
    ) -> None:
        self._members = {each.port: ports[each.port].info for each in fallen}
        self._began = min(each.since for each in fallen)
        self._spare = group.spare
        trained = all(each.trained is not None for each in fallen)
        self._kind = "fabric_control" if trained else "common_cause"

    def _counts(
        self, outage: Outage, ports: Mapping[PortId, PortView], view: View
    ) -> bool:
        """Tell whether an outage is confirmed, young, and nobody's doing."""
        limits, age = self._limits, view.now - outage.since
        return (
            outage.port in ports
            and outage.samples >= limits.down_samples
            and CONFIRM_SECONDS <= age < limits.common_cause_seconds
            and not is_switched_off(outage, ports[outage.port])
        )

    def _largest(self, young: Sequence[Outage]) -> Sequence[Outage]:
        """Return the most outages that began together."""
        window = self._limits.common_cause_window_seconds
        groups = ([o for o in young if each.overlaps(o, window)] for each in young)
        return max(groups, key=len, default=())

    def _go_on(
        self,
        outages: Mapping[PortId, Outage],
        ports: Mapping[PortId, PortView],
        view: View,
    ) -> Finding | None:
        """Hold on while several of the same outages go on; a plane as long as it is."""
        window = self._limits.common_cause_window_seconds
        left = [
            outage
            for port, outage in outages.items()
            if port in self._members and outage.low <= self._began + window
        ]
        over = view.now - self._began >= self._limits.common_cause_seconds
        if (over and not self._spare) or len(left) < _LEFT:
            self._members = {}
            return None
        for port, outage in outages.items():
            if port not in self._members and outage.overlaps(left[0], window):
                self._members[port] = ports[port].info  # its samples came late
                left.append(outage)
        return self._tell(len(left), view)

    def _tell(self, left: int, view: View) -> Finding:
        limits, number = self._limits, len(self._members)
        names = " ".join(sorted(str(port) for port in self._members))
        age = view.now - self._began
        since = f"{clock(self._began + view.onset_offset)} ({lasting(age)})"
        manager = self._kind == "fabric_control"
        if manager:
            text = f"{number} ports lost their configuration at {since}: subnet manager"
        elif self._spare:
            text = f"one plane ({number} ports) fell at {since}, others carry on"
        else:
            text = (
                f"{number} ports fell at once at {since}, {left} still down: one cause"
            )
        mild = self._spare or (manager and age < limits.not_active_critical_seconds)
        return Finding(
            kind=self._kind,
            subject=_subject(self._members.values()),
            onset=self._began + view.onset_offset,
            evidence=(
                Evidence(
                    "ports_down_together",
                    number,
                    "ports",
                    "fabricmon",
                    limits.common_cause_ports,
                    limits.common_cause_window_seconds,
                ),
                Evidence(MEMBERS, names, "", "fabricmon"),
            ),
            summary=one_line(f"{text}, not these links"),
            severity=Severity.INFO if mild else Severity.WARNING,
            part=Part.OBSERVER,
            action=Action.NONE,
            confidence=0.9,
        )


def _groups(ports: Mapping[PortId, PortView]) -> Iterator[_Group]:
    """Yield what may fall together: the node, the ports of a leaf, a plane.

    A plane are the ports of one number, where devices have several.
    """
    yield _Group(frozenset(ports))
    leafs: dict[str, set[PortId]] = {}
    planes: dict[int, set[PortId]] = {}
    for where, port in ports.items():
        if port.info.leaf is not None:
            leafs.setdefault(port.info.leaf, set()).add(where)
        planes.setdefault(where.port, set()).add(where)
    yield from (_Group(frozenset(kept)) for kept in leafs.values())
    devices = {where.device for where in ports}
    if len(ports) > len(devices):
        yield from (_Group(frozenset(kept), spare=True) for kept in planes.values())


def members_of(finding: Finding) -> frozenset[str]:
    """Return the ports (``mlx5_0/1``) that a finding of a common cause is about."""
    named = (each.value for each in finding.evidence if each.signal == MEMBERS)
    return frozenset(" ".join(str(value) for value in named).split())


def _subject(places: Iterable[PortInfo]) -> Subject:
    """Return the leaf, else the rail, that the ports share; else the fabric."""
    kept = tuple(places)
    leafs = {place.leaf for place in kept}
    rails = {place.rail for place in kept}
    return Subject(
        leaf=leafs.pop() if len(leafs) == 1 else None,
        rail=rails.pop() if len(rails) == 1 else None,
    )
