"""What each port is for, from what a fault cannot change.

The largest set of ports of equal board, link layer and closeness to a GPU is the
compute set; its order on PCI makes the rails. State and rate of a port decide nothing
about the port itself: a rail that is dead or slow stays a rail.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from enum import IntEnum

from fabricmon.model import PortId, Role
from fabricmon.parse.pci_path import PciOrder, host_bridge, pci_functions, pci_order
from fabricmon.parse.words import LinkLayer
from fabricmon.value import State, Value

EQUAL_PORTS = 2
"""Ports that make a set: with fewer there is nothing to be equal to."""


class Closeness(IntEnum):
    """How close a port is to the nearest GPU on PCIe."""

    FAR = 0
    HOST_BRIDGE = 1  # traffic between them crosses the processor
    SWITCH = 2  # a bridge below the processor is common to both


class Candidate(Value, frozen=True):
    """What the role of a port is judged by.

    ``best_gbps`` is the highest rate that it ever had while ACTIVE; ``forced`` is a
    role that is known from elsewhere.
    """

    id: PortId
    board: str | None
    link_layer: LinkLayer | None
    pci_address: str | None
    pci_path: str | None
    best_gbps: float | None = None
    forced: Role | None = None


class Assignment(Value, frozen=True):
    """The role of a port; ``rail`` counts compute ports in the order of PCI."""

    role: Role
    rail: int | None = None


class _Port(State, eq=False):
    """A candidate on its way to a role."""

    candidate: Candidate
    near: Closeness
    role: Role = Role.UNKNOWN


_Set = list[_Port]


def closeness(path: str | None, gpu_paths: Iterable[str]) -> Closeness:
    """Return how close the function at ``path`` is to the nearest of the GPUs."""
    bridges = set(pci_functions(path)[:-1])
    bridge = host_bridge(path)
    best = Closeness.FAR
    for gpu in gpu_paths:
        if bridges.intersection(pci_functions(gpu)[:-1]):
            return Closeness.SWITCH
        if bridge is not None and bridge == host_bridge(gpu):
            best = Closeness.HOST_BRIDGE
    return best


def assign(
    candidates: Sequence[Candidate],
    gpu_paths: Sequence[str],
    management_gbps: float,
) -> tuple[Assignment, ...]:
    """Return a role for every candidate, in their order; rails for compute ports.

    Where no two ports are equal, those without a forced role are unknown.
    """
    ports = [_Port(each, closeness(each.pci_path, gpu_paths)) for each in candidates]
    _infer([port for port in ports if port.candidate.forced is None], management_gbps)
    for port in ports:
        port.role = port.candidate.forced or port.role
    compute = [port for port in ports if port.role is Role.COMPUTE]
    compute.sort(key=_order)
    rails = {port: rail for rail, port in enumerate(compute)}
    return tuple(Assignment(port.role, rails.get(port)) for port in ports)


def _infer(ports: Sequence[_Port], management_gbps: float) -> None:
    sets = _sets(ports)
    largest = max(sets, key=_weight, default=[])
    if len(largest) < EQUAL_PORTS:
        return
    for members in sets:
        for port in members:
            if members is largest:
                port.role = Role.COMPUTE
            else:
                port.role = _other(port.candidate, len(members), management_gbps)


def _sets(ports: Sequence[_Port]) -> list[_Set]:
    by_kind: defaultdict[object, _Set] = defaultdict(list)
    for port in ports:
        each = port.candidate
        by_kind[each.board, each.link_layer, port.near].append(port)
    sets = list(by_kind.values())
    if any(port.near > Closeness.FAR for port in ports):
        return sets
    return [part for members in sets for part in _split_by_rate(members)]


def _split_by_rate(members: _Set) -> list[_Set]:
    """Split where two or more ports share another rate; an odd one splits nothing."""
    counts = Counter(port.candidate.best_gbps for port in members)
    del counts[None]
    shared = {rate for rate, ports in counts.items() if ports >= EQUAL_PORTS}
    if len(shared) < EQUAL_PORTS:
        return [members]
    main = max(shared, key=lambda rate: (counts[rate], rate or 0))
    parts: defaultdict[float | None, _Set] = defaultdict(list)
    for port in members:
        rate = port.candidate.best_gbps
        parts[rate if rate in shared else main].append(port)
    return list(parts.values())


def _weight(members: _Set) -> tuple[int, Closeness, bool, float]:
    """Rank sets: size, then closeness to a GPU, InfiniBand, rate."""
    first = members[0]
    fastest = max(port.candidate.best_gbps or 0 for port in members)
    is_infiniband = first.candidate.link_layer is LinkLayer.INFINIBAND
    return len(members), first.near, is_infiniband, fastest


def _other(port: Candidate, equal_ports: int, management_gbps: float) -> Role:
    """Tell storage from management: slow or lone Ethernet manages the node."""
    if port.link_layer is LinkLayer.INFINIBAND:
        return Role.STORAGE
    slow = port.best_gbps is not None and port.best_gbps <= management_gbps
    return Role.MANAGEMENT if slow or equal_ports < EQUAL_PORTS else Role.STORAGE


def _order(port: _Port) -> tuple[bool, PciOrder, PortId]:
    """Order by PCI address as numbers; devices of software after that, by name."""
    place = pci_order(port.candidate.pci_address)
    return (place is None, place or (0, 0, 0, 0), port.candidate.id)
