"""What the metrics about devices and ports measure, apart from their counters.

All of it comes out of `Hardware`, which is equal to the one before while nothing has
happened: then the text of these metrics, more than half of all, stays as it is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from fabricmon.model import (
    Hca,
    PciLink,
    PortInfo,
    PortSnapshot,
    PriorityUse,
    Snapshot,
    Verdict,
)
from fabricmon.parse.words import PhysState, PortState
from fabricmon.sinks.measures import Sample

BYTES_PER_GIGABIT = 125_000_000
"""Octets a second in one Gb/s, as node_exporter converts the rate of a port."""

TRANSFERS_PER_GIGATRANSFER = 1_000_000_000

_STATE_ID = {state: number for number, state in enumerate(PortState)}
_PHYS_STATE_ID = {state: number for number, state in enumerate(PhysState, start=1)}


class PortFacts(NamedTuple):
    """One port as it stands, without the times at which that was read."""

    info: PortInfo
    state: PortState | None
    phys_state: PhysState | None
    rate_gbps: float | None
    carrier: bool | None
    link: PciLink | None
    slot: PciLink | None
    verdict: Verdict
    flaps: int
    downtime_seconds: float
    last_down: float | None
    resets: int
    saturated: tuple[str, ...]
    pause_onset: float | None
    priorities: PriorityUse | None


class Hardware(NamedTuple):
    """What is exported of devices and ports.

    ``ports`` are those shown one by one; ``virtual`` are the states of the ports of
    virtual functions, shown or not.
    """

    ports: tuple[PortFacts, ...]
    hcas: tuple[Hca, ...]
    virtual: tuple[PortState | None, ...]


Samples = Callable[[Hardware], Iterable[Sample]]
"""What finds the samples of a family."""


def hardware_of(snapshot: Snapshot, shown: Sequence[PortSnapshot]) -> Hardware:
    """Return what is exported of a snapshot, in which these ports are shown."""
    path = snapshot.job.host_path
    return Hardware(
        ports=tuple(
            _facts(port, None if path is None else path.use_of(port.info))
            for port in shown
        ),
        hcas=snapshot.hcas,
        virtual=tuple(
            port.status.state if port.status else None
            for port in snapshot.ports
            if port.info.is_vf
        ),
    )


def _facts(port: PortSnapshot, use: PriorityUse | None) -> PortFacts:
    status, netdev, pci = port.status, port.netdev, port.pci
    return PortFacts(
        info=port.info,
        state=None if status is None else status.state,
        phys_state=None if status is None else status.phys_state,
        rate_gbps=None if status is None else status.rate.gbps,
        carrier=None if netdev is None else netdev.carrier,
        link=None if pci is None else pci.link,
        slot=None if pci is None else pci.slot,
        verdict=port.verdict,
        flaps=port.flaps,
        downtime_seconds=port.downtime_seconds,
        last_down=port.last_down,
        resets=port.resets,
        saturated=port.saturated,
        pause_onset=port.pause_onset,
        priorities=use,
    )


def each_port(value: Callable[[PortFacts], float | None]) -> Samples:
    """Return a function for one sample a port, none where there is no value."""

    def samples(hardware: Hardware) -> Iterator[Sample]:
        for port in hardware.ports:
            found = value(port)
            if found is not None:
                yield Sample((port.info.id.device, port.info.id.port), found)

    return samples


def virtual_functions(hardware: Hardware) -> Iterable[Sample]:
    """Ports of virtual functions by state."""
    states = Counter(state or "unknown" for state in hardware.virtual)
    return (Sample((state,), count) for state, count in states.items())


def device_info(hardware: Hardware) -> Iterator[Sample]:
    """Identity of the devices that are shown one by one."""
    shown = {port.info.id.device for port in hardware.ports}
    for hca in hardware.hcas:
        if hca.name in shown or not hca.is_vf:
            identity = (
                hca.name, hca.hca_type, hca.board_id, hca.firmware, hca.node_guid,
                hca.sys_image_guid, hca.pci_address, hca.driver, hca.numa_node,
                hca.pf_address,
            )  # fmt: skip
            yield Sample(_texts(identity), 1)


def node_exporter_info(hardware: Hardware) -> Iterator[Sample]:
    """Identity of the same devices in the labels that node_exporter gives them."""
    shown = {port.info.id.device for port in hardware.ports}
    for hca in hardware.hcas:
        if hca.name in shown or not hca.is_vf:
            yield Sample(
                _texts((hca.name, hca.board_id, hca.firmware, hca.hca_type)), 1
            )


def _texts(values: tuple[object, ...]) -> tuple[object, ...]:
    return tuple("" if value is None else value for value in values)


def pci(value: Callable[[PciLink], float | None]) -> Samples:
    """Return a function for one sample a device and end of its PCIe link."""

    def samples(hardware: Hardware) -> Iterator[Sample]:
        devices = {port.info.id.device: port for port in hardware.ports}
        for device, port in devices.items():
            for end, link in (("device", port.link), ("slot", port.slot)):
                found = None if link is None else value(link)
                if found is not None:
                    yield Sample((device, end), found)

    return samples


def transfers(gts: float | None) -> float | None:
    """Convert GT/s, which may be unknown, to transfers per second."""
    return None if gts is None else int(gts * TRANSFERS_PER_GIGATRANSFER)


def rate(port: PortFacts) -> float | None:
    """Rate of the link in bytes per second."""
    return _octets(port.rate_gbps)


def expected_rate(port: PortFacts) -> float | None:
    """Rate that is expected, in bytes per second."""
    return _octets(port.info.expected_rate_gbps)


def _octets(gbps: float | None) -> float | None:
    return None if gbps is None else int(gbps * BYTES_PER_GIGABIT)


def state(port: PortFacts) -> float | None:
    """Number of the logical state."""
    return None if port.state is None else _STATE_ID[port.state]


def phys_state(port: PortFacts) -> float | None:
    """Number of the physical state."""
    return None if port.phys_state is None else _PHYS_STATE_ID[port.phys_state]


def carrier(port: PortFacts) -> float | None:
    """1 with a carrier, 0 without."""
    return None if port.carrier is None else int(port.carrier)


def port_info(hardware: Hardware) -> Iterator[Sample]:
    """Identity of the ports."""
    for port in hardware.ports:
        info = port.info
        identity = (
            info.id.device, info.id.port, info.link_layer, info.netdev,
            info.pci_address, info.driver, "true" if info.is_vf else "false", info.pf,
            info.guid, info.node_guid, info.rail, info.role, info.leaf,
        )  # fmt: skip
        yield Sample(_texts(identity), 1)


def netdev_info(hardware: Hardware) -> Iterator[Sample]:
    """Network devices of the ports that have several; one is in the port's identity."""
    for port in hardware.ports:
        main = (port.info.netdev,) if port.info.netdev else ()
        netdevs = dict.fromkeys((*main, *port.info.netdevs))
        for netdev in netdevs if len(netdevs) > 1 else ():
            yield Sample((port.info.id.device, port.info.id.port, netdev), 1)


def saturated(hardware: Hardware) -> Iterator[Sample]:
    """Counters at their ceiling."""
    for port in hardware.ports:
        for file in dict.fromkeys(port.saturated):
            yield Sample((port.info.id.device, port.info.id.port, file), 1)
