"""The full identity of every port: what was read, inferred, configured, seen on peers.

Configuration wins over a hardware profile, that over a topology, that over inference.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from fabricmon.config import Config
from fabricmon.expectations import Expectations, Expected
from fabricmon.known_device import KnownDevice, KnownPort
from fabricmon.model import PortInfo, Role
from fabricmon.parse.words import Rate
from fabricmon.roles import Assignment, Candidate, assign
from fabricmon.value import Value

_NO_RAIL = Assignment(Role.UNKNOWN)

Described = dict[KnownDevice, tuple[PortInfo, ...]]


class _Row(Value, frozen=True):
    """One port with all that is known about it."""

    device: KnownDevice
    port: KnownPort
    expected: Expected
    found: Assignment = _NO_RAIL


def describe_ports(
    cards: Sequence[KnownDevice],
    virtual: Sequence[KnownDevice],
    gpu_paths: Sequence[str],
    expectations: Expectations,
    config: Config,
) -> Described:
    """Return the ports of every device, of those that are gone too, with roles."""
    rows = _assigned(_rows(cards, expectations), gpu_paths, config)
    usual = _usual_rate(rows, config.roles.majority_ports)
    described: Described = dict.fromkeys(cards, ())
    for row in rows:
        described[row.device] += (_describe(row, usual, config),)
    for device in virtual:
        described[device] = _describe_virtual(device, described, expectations)
    return described


def _rows(devices: Iterable[KnownDevice], expectations: Expectations) -> list[_Row]:
    return [
        _Row(device, port, expectations.of(port.info.id, device.pci_address))
        for device in devices
        for port in device.ports.values()
    ]


def _assigned(
    rows: Sequence[_Row], gpu_paths: Sequence[str], config: Config
) -> list[_Row]:
    candidates = [
        Candidate(
            id=row.port.info.id,
            board=row.device.board,
            link_layer=row.port.info.link_layer,
            pci_address=row.device.pci_address,
            pci_path=row.device.pci_path,
            best_gbps=row.port.best_gbps,
            forced=row.expected.role or row.port.inherited,
        )
        for row in rows
    ]
    found = assign(candidates, gpu_paths, config.roles.management_rate_gbps)
    return [replace(row, found=each) for row, each in zip(rows, found, strict=True)]


def _usual_rate(rows: Iterable[_Row], majority_ports: int) -> Rate:
    """Return the rate that most compute ports have, an empty one if there is none.

    A rate counts as it was when the port was last ACTIVE.
    """
    rates = [row.port.last for row in rows if row.found.role is Role.COMPUTE]
    known = Counter(rate for rate in rates if rate.gbps is not None)
    if not known:
        return Rate()
    rate, ports = known.most_common(1)[0]
    enough = ports >= majority_ports and 2 * ports > known.total()
    return rate if enough else Rate()


def _describe(row: _Row, usual: Rate, config: Config) -> PortInfo:
    role, expected = row.found.role, row.expected
    configured = expected.rate_gbps
    if configured is None and role in {Role.COMPUTE, Role.UNKNOWN}:
        configured = config.expected_rate_gbps
    peers = usual if configured is None and role is Role.COMPUTE else Rate()
    return replace(
        row.port.info,
        role=role,
        rail=row.found.rail if expected.rail is None else expected.rail,
        leaf=expected.leaf,
        expected_rate_gbps=configured or peers.gbps,
        expected_width=peers.width,
        is_rate_configured=configured is not None,
        expected_up=expected.up,
    )


def _describe_virtual(
    device: KnownDevice, described: Described, expectations: Expectations
) -> tuple[PortInfo, ...]:
    """Return the ports of a virtual function: the role of its owner, never a rail."""
    owner_address = device.hca.pf_address if device.hca else None
    owner = next(
        (card for card in described if card.pci_address == owner_address), None
    )
    roles = {info.id.port: info.role for info in described[owner]} if owner else {}
    return tuple(
        replace(
            row.port.info,
            role=row.expected.role or roles.get(row.port.info.id.port, Role.UNKNOWN),
            pf=owner.name if owner else owner_address,
            expected_rate_gbps=row.expected.rate_gbps,
            expected_up=row.expected.up,
        )
        for row in _rows([device], expectations)
    )
