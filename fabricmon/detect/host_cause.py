"""What hits several devices of a node at once: told of the worst, for all (A10).

The functions of one card, all that is below one bridge, half of a model or of the
node: cards and slots do not fail together, what they share does. Each finding stays,
so that it goes on to cover what follows from it at its device, but all save one say
with whom they are told: `fabricmon.incidents` opens nothing for those.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from fabricmon.config import Fusion
from fabricmon.covers import DEVICES, TOLD_WITH
from fabricmon.detect.device_places import model_of
from fabricmon.maintenance import under_maintenance
from fabricmon.model import Action, Evidence, Finding, Hca, PortInfo, Severity, View
from fabricmon.parse.pci_path import pci_functions
from fabricmon.summaries import one_line
from fabricmon.value import Value

OF_HOST = frozenset(
    {"device_missing", "device_stuck", "nic_power", "pcie_degraded", "pcie_errors"}
)
"""Kinds that speak of a device and of its way to the host."""

_SEVERAL = 2
_RANK = {action: rank for rank, action in enumerate(Action)}
_CARD = "devices of one card: card or slot, not the fabric"
_BRIDGE = "devices below one bridge: it, not cards or fabric"
_HOST = "devices at once: host, not the cards, not the fabric"

_Key = tuple[str, str, str]  # kind, part, device


class _Shared(Value, frozen=True):
    """Devices that share something, and how many of them make it the cause."""

    devices: frozenset[str]
    enough: int
    text: str


class _Group(Value, frozen=True):
    """Findings with one cause."""

    keys: frozenset[_Key]
    shared: _Shared


class HostCauses:
    """Finds devices that have one fault in common, and remembers who tells of it."""

    def __init__(self, limits: Fusion) -> None:
        """Start without any."""
        self._limits = limits
        self._groups: tuple[_Group, ...] = ()
        self._telling: frozenset[_Key] = frozenset()
        self._hcas: tuple[Hca, ...] = ()
        self._paths: dict[str, tuple[str, ...]] = {}  # also of what is gone

    def told_once(self, findings: Sequence[Finding], view: View) -> list[Finding]:
        """Return the findings, those with one cause told of the worst of them."""
        if view.hcas is not self._hcas:
            self._hcas = view.hcas
            paths = {hca.name: pci_functions(hca.pci_path) for hca in view.hcas}
            self._paths |= paths
        mine = {_key(each): each for each in findings if _may_lead(each, view)}
        if len(mine) < _SEVERAL:
            self._groups, self._telling = (), frozenset()
            return list(findings)
        self._groups = self._grouped(mine, view)
        told: dict[_Key, Finding] = {}
        telling = set()
        for group in self._groups:
            kept = [mine[key] for key in sorted(group.keys)]
            first = max(kept, key=self._weight)
            telling.add(_key(first))
            told |= {_key(each): _told_with(each, first) for each in kept}
            told[_key(first)] = self._for_all(first, kept, group.shared)
        self._telling = frozenset(telling)
        return [
            told.get(_key(each), each) if mine.get(_key(each)) is each else each
            for each in findings
        ]

    def _weight(self, finding: Finding) -> tuple[Severity, bool, bool, int, float]:
        """Sort the worst last, then who told of it before, then where a job is hit."""
        return (
            finding.severity,
            _key(finding) in self._telling,
            finding.subject.job is not None,
            _RANK[finding.action],
            -finding.onset,
        )

    def _grouped(self, mine: Mapping[_Key, Finding], view: View) -> tuple[_Group, ...]:
        """Return what has one cause; what had one has it while two of it are left."""
        groups = [
            replace(group, keys=group.keys & mine.keys())
            for group in self._groups
            if len(group.keys & mine.keys()) >= _SEVERAL
        ]
        for shared in self._shared(view):
            for cluster in self._clusters(shared, mine):
                if len(cluster) < shared.enough:
                    continue
                alike = [each for each in groups if each.keys & cluster]
                if any(cluster <= each.keys for each in alike):
                    continue
                groups = [each for each in groups if each not in alike]
                keys = cluster.union(*(each.keys for each in alike))
                groups.append(_Group(keys, shared))
        return tuple(groups)

    def _shared(self, view: View) -> Iterator[_Shared]:
        """Yield what devices share, the most that they share first."""
        infos = _infos(view)
        several = self._limits.host_cause_devices
        models: dict[tuple[str | None, ...], set[str]] = {}
        bridges: dict[str, set[str]] = {}
        cards: dict[str, set[str]] = {}
        for name, info in infos.items():
            for bridge in self._paths.get(name, ())[:-2]:  # its own slot is none
                bridges.setdefault(bridge, set()).add(name)
            if info is not None:
                models.setdefault(model_of(info), set()).add(name)
                if info.pci_address is not None:
                    card = info.pci_address.rpartition(".")[0]
                    cards.setdefault(card, set()).add(name)
        for alike in (set(infos), *models.values()):
            enough = max(several, (len(alike) + 1) // 2)
            yield _Shared(frozenset(alike), enough, _HOST)
        for below in bridges.values():
            yield _Shared(frozenset(below), max(_SEVERAL, len(below)), _BRIDGE)
        for functions in cards.values():
            yield _Shared(frozenset(functions), _SEVERAL, _CARD)

    def _clusters(
        self, shared: _Shared, mine: Mapping[_Key, Finding]
    ) -> Iterator[frozenset[_Key]]:
        """Yield what began together, of one kind and part, among devices."""
        inside = [key for key in mine if key[2] in shared.devices]
        if len(inside) < shared.enough:
            return
        inside.sort(key=lambda key: (key[:2], mine[key].onset))
        cluster = inside[:1]
        for key in inside[1:]:
            last = cluster[-1]
            apart = mine[key].onset - mine[last].onset
            if key[:2] != last[:2] or apart > self._limits.host_cause_window_seconds:
                yield frozenset(cluster)
                cluster = []
            cluster.append(key)
        yield frozenset(cluster)

    def _for_all(
        self, first: Finding, group: Sequence[Finding], shared: _Shared
    ) -> Finding:
        """Return the finding that tells of all, whom it names."""
        names, limits = sorted(str(each.subject.device) for each in group), self._limits
        summary = first.summary
        if first.severity > Severity.INFO:
            story = summary.rpartition(": ")[0]
            summary = one_line(f"{story}: {len(names)} {shared.text}")
        number = Evidence(
            "devices_at_once", len(names), "devices", "fabricmon", shared.enough,
            limits.host_cause_window_seconds,
        )  # fmt: skip
        named = Evidence(DEVICES, " ".join(names), "", "fabricmon")
        return replace(
            first, summary=summary, evidence=(*first.evidence, number, named)
        )


def _may_lead(finding: Finding, view: View) -> bool:
    """Tell whether a finding speaks for itself; what is worked on or gone does not."""
    if finding.kind not in OF_HOST:
        return False
    if under_maintenance(finding.subject, view.maintenance, view.wall):
        return False
    gone = any(finding.subject.device == each.name for each in view.missing)
    return not gone or finding.kind == "device_missing"


def _key(finding: Finding) -> _Key:
    return finding.kind, finding.part, str(finding.subject.device)


def _told_with(finding: Finding, first: Finding) -> Finding:
    """Return a finding that another tells of; what to do is advised there."""
    told = Evidence(TOLD_WITH, first.subject.device, "", "fabricmon")
    return replace(finding, action=Action.NONE, evidence=(*finding.evidence, told))


def _infos(view: View) -> dict[str, PortInfo | None]:
    """Return the physical devices, those that are missing as well; None: never seen."""
    found: dict[str, PortInfo | None] = {}
    for device in view.missing:
        if not any(info.is_vf for info in device.ports):
            found[device.name] = device.ports[0] if device.ports else None
    for port in view.ports:
        if not port.info.is_vf:
            found[port.info.id.device] = port.info
    return found
