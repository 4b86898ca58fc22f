"""State of the ports, and the details of a link that change with it."""

from __future__ import annotations

from fabricmon.config import Config
from fabricmon.host.protocol import Host, ReadError
from fabricmon.model import Absence, HcaPort, LinkStatus, PortId, Target
from fabricmon.parse.sysfs import (
    parse_lid,
    parse_phys_state,
    parse_rate,
    parse_sm_lid,
    parse_state,
)
from fabricmon.parse.words import Rate
from fabricmon.sources.paths import QUERY_PORT_READS, port_folder

_DETAILS = ("state", "phys_state", "rate", "lid", "sm_lid")


def poll(host: Host, target: Target, _config: Config) -> tuple[LinkStatus, ...]:
    """Read ``state`` of every port and nothing else."""
    ports, cost = _ports(target)
    return tuple(_state(host, port.id, cost) for port in ports)


def poll_details(host: Host, target: Target, _config: Config) -> tuple[LinkStatus, ...]:
    """Read every file that describes the link: 25 firmware commands a port on mlx5."""
    ports, cost = _ports(target)
    return tuple(_details(host, port.id, cost) for port in ports)


def _ports(target: Target) -> tuple[tuple[HcaPort, ...], int]:
    """Return the ports and the firmware commands of a file; software has none."""
    if target.hca is None:
        return (), 0
    return target.hca.ports, QUERY_PORT_READS if target.hca.pci_path else 0


def _state(host: Host, port: PortId, cost: int) -> LinkStatus:
    (raw,) = host.read_many((f"{port_folder(port)}/state",), cost)
    at = host.monotonic()
    if isinstance(raw, ReadError):
        absent = (Absence("state", raw.errno),)
        return LinkStatus(port, at, None, absent=absent, complete=False)
    return LinkStatus(port, at, parse_state(raw), complete=False)


def _details(host: Host, port: PortId, cost: int) -> LinkStatus:
    folder = port_folder(port)
    paths = [f"{folder}/{file}" for file in _DETAILS]
    raws = host.read_many(paths, cost * len(_DETAILS))
    at = host.monotonic()
    state, phys_state, rate, lid, sm_lid = (
        None if isinstance(raw, ReadError) else raw for raw in raws
    )
    return LinkStatus(
        port=port,
        at=at,
        state=None if state is None else parse_state(state),
        phys_state=None if phys_state is None else parse_phys_state(phys_state),
        rate=Rate() if rate is None else parse_rate(rate),
        lid=None if lid is None else parse_lid(lid),
        sm_lid=None if sm_lid is None else parse_sm_lid(sm_lid),
        absent=tuple(
            Absence(file, raw.errno)
            for file, raw in zip(_DETAILS, raws, strict=True)
            if isinstance(raw, ReadError)
        ),
    )
