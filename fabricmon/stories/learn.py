"""What context lines of a log tell of their process and node. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from fabricmon.parse.log_event import LogEvent
from fabricmon.parse.text import decimal
from fabricmon.stories.nature import COMPLETION, Phase
from fabricmon.stories.roster import Nic, Node, Process, Roster, Route
from fabricmon.value import Value

MAX_NICS = 256
"""Devices of a node remembered."""

MAX_NETWORKS = 16
"""Networks of a process remembered."""

_ADDRESS = re.compile(r"(?:^| |\[\d{1,4}\])([^\s:<\[\]]{1,64}):([0-9A-Fa-f.:]{3,45})")
_CONNECTION_KINDS = frozenset({COMPLETION, "ib_modify_qp_failed"})


class Speaker(Value, frozen=True):
    """Who told an event, and everybody else."""

    process: Process
    node: Node
    roster: Roster


Learn = Callable[[LogEvent, Speaker], None]


def learn(
    event: LogEvent, process: Process, roster: Roster, when: float | None
) -> None:
    """Take what an event tells of its process and node."""
    if event.kind == "init_start_complete":
        _init(event, process, roster, when)
        return
    known = _LEARN.get(event.kind)
    if known is not None:
        known(event, Speaker(process, roster.node(process.place), roster))


def phase_of(
    event: LogEvent, process: Process, when: float | None, start_seconds: float
) -> Phase:
    """Return whether a failure came while connections were made or after traffic.

    Without times only this is known: a connection that cannot be made before the start
    is complete belongs to it, and a collective that completed was traffic.
    """
    if when is not None and process.started is not None:
        late = when - process.started > start_seconds
        return Phase.RUNNING if late else Phase.START
    if process.traffic:
        return Phase.RUNNING
    if process.began and not process.ready and event.kind in _CONNECTION_KINDS:
        return Phase.START
    return Phase.UNKNOWN


def text_of(event: LogEvent, name: str) -> str | None:
    """Return a field as text, None if the event has none of this name."""
    value = event.field(name)
    return None if value is None else str(value)


def number_of(event: LogEvent, name: str) -> int | None:
    """Return a field as a number, None if it is none."""
    return decimal(text_of(event, name) or "")


def _init(
    event: LogEvent, process: Process, roster: Roster, when: float | None
) -> None:
    state = text_of(event, "state") or str(event.status or "")
    process.comm = text_of(event, "comm_id") or process.comm
    roster.note_rank(event, process, number_of(event, "ranks"))
    if state == "Init START":
        process.began, process.ready = True, False
        process.started = when
    elif state == "Init COMPLETE":
        process.ready = True


def _shape(event: LogEvent, by: Speaker) -> None:
    by.process.nodes = number_of(event, "nodes") or by.process.nodes
    by.roster.note_rank(event, by.process, number_of(event, "ranks"))


def _setting(event: LogEvent, by: Speaker) -> None:
    name, value = text_of(event, "name"), text_of(event, "value")
    if name and value is not None:
        by.roster.set(by.process, name, value)


def _nic(event: LogEvent, by: Speaker) -> None:
    """Take one entry of NCCL's own list; a merged device goes by its first port."""
    index, known = number_of(event, "nic"), by.node.nics
    if index is not None and event.device and len(known) < MAX_NICS:
        layer = text_of(event, "link_layer")
        known.setdefault(index, Nic(index, event.device, event.port, layer))
    _own_address(text_of(event, "oob_address"), by)


def _addresses(event: LogEvent, by: Speaker) -> None:
    for _, address in _ADDRESS.findall(text_of(event, "interfaces") or ""):
        by.roster.note_address(address, by.node.name)


def _network(event: LogEvent, by: Speaker) -> None:
    by.process.network = str(event.status or "") or by.process.network


def _channel(event: LogEvent, by: Speaker) -> None:
    network = str(event.status or "")
    if network in by.process.via or len(by.process.via) < MAX_NETWORKS:
        by.process.via[network] = by.process.via.get(network, 0) + event.count
    source, target = number_of(event, "from_rank"), number_of(event, "to_rank")
    channel, nic = number_of(event, "channel"), number_of(event, "nic")
    if source is None or target is None or channel is None:
        return
    sends = event.field("direction") == "send"
    rank, peer = (source, target) if sends else (target, source)
    device = by.node.device_of(nic) if network.startswith("IB") else None
    gpu_direct = bool(event.field("gdr"))
    route = Route(channel, rank, peer, network, nic, device, gpu_direct)
    by.roster.lead(by.node, route)


def _own_gid(event: LogEvent, by: Speaker) -> None:
    _own_address(text_of(event, "local_gid"), by)


def _status(event: LogEvent, by: Speaker) -> None:
    process = by.process
    enqueued, done = (
        number_of(event, "last_enqueued"),
        number_of(event, "last_completed"),
    )
    process.enqueued = process.enqueued if enqueued is None else enqueued
    process.completed = process.completed if done is None else done
    process.traffic = process.traffic or bool(done)


def _stuck(event: LogEvent, by: Speaker) -> None:
    by.process.stuck = str(event.status or "")


def _own_address(address: str | None, by: Speaker) -> None:
    if address:
        by.roster.note_address(address, by.node.name)


_LEARN: Mapping[str, Learn] = {
    "bootstrap_using": _addresses,
    "channel_via_net": _channel,
    "channel_via_socket": _channel,
    "comm_shape": _shape,
    "env_setting": _setting,
    COMPLETION: _own_gid,
    "ib_modify_qp_failed": _own_gid,
    "net_fallback_socket": _network,
    "net_name": _network,
    "net_selected": _nic,
    "net_socket_list": _addresses,
    "pytorch_pg_status": _status,
    "pytorch_watchdog_timeout": _stuck,
    "suspicious_interface": _addresses,
}
