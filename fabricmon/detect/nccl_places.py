"""Which port and which peer a trouble in a log is about, checked against the node."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from ipaddress import IPv6Address

from fabricmon.detect.nccl_ports import PortSigns
from fabricmon.model import PortId, PortView, Role, View
from fabricmon.parse.log_event import LogEvent
from fabricmon.stories.nature import COMPLETION, MODIFY_QP, Nature, has_index
from fabricmon.stories.story import Trouble
from fabricmon.value import Value

_TWIN = "_dma"  # Data Direct shows a second device of the same HCA
_MERGED = "+"  # NCCL names merged NICs mlx5_0+mlx5_1
_LOCAL_GID = ("local_gid", "lgid", "localGid")


class Place(Value, frozen=True):
    """The port that a trouble is about; ``how`` says what tells so."""

    port: PortId | None = None
    how: str = "no port is named"
    named: str | None = None  # as the log has it, where this node has no such port


_OF_PORTS = frozenset(
    {
        *(Nature.LINK, Nature.PATH, Nature.PEER, Nature.DEVICE, Nature.SUBNET),
        *(Nature.CONFIGURATION, Nature.UNKNOWN),
    }
)

NOWHERE = Place()
NO_PORT = Place(None, "no port is at fault")


def place_of(troubles: Sequence[Trouble], signs: PortSigns, view: View) -> Place:
    """Return the port that these troubles of one job are about; the first is the root.

    Named by all of them, or the only one named that shows a fault of its own, or, where
    none is named, the only one with a fault of its own or else with retries. What GPU or
    application began is about no port, whatever follows.
    """
    if not troubles[0].nature.is_network:
        return NO_PORT
    named = _of_named(troubles, signs, view)
    if named is not None:
        return named
    return _by_signs(signs, view) if may_be_link(troubles[0]) else NOWHERE


def _of_named(
    troubles: Sequence[Trouble], signs: PortSigns, view: View
) -> Place | None:
    """Return the one of the ports named that it is, None if none is named."""
    places = [_named(each, signs, view) for each in troubles]
    found = {place.port: place for place in places if place.port is not None}
    if len(found) == 1:
        return next(iter(found.values()))
    guilty = [port for port in found if signs.has_own(port, view.now)]
    if len(guilty) == 1:
        return Place(guilty[0], "of several ports named, the one with a fault")
    if found:
        return Place(None, f"{len(found)} ports are named")
    return next((place for place in places if place.named), None)


def _by_signs(signs: PortSigns, view: View) -> Place:
    """Return the only port that shows anything, where the log names none."""
    rails = _rails(view.ports)
    faulty = [p.info.id for p in rails if signs.has_own(p.info.id, view.now)]
    if len(faulty) == 1:
        return Place(faulty[0], "the only port with a fault of its own")
    retrying = signs.retrying(rails, view.now)
    if len(retrying) == 1:
        return Place(retrying[0], "the only port whose retries moved")
    return NOWHERE


def may_be_link(trouble: Trouble) -> bool:
    """Tell whether a port's own fault would explain a trouble.

    A connection that cannot be made at the start is a matter of set-up only while the
    port itself is well.
    """
    if trouble.root.kind in {COMPLETION, MODIFY_QP}:
        return trouble.nature.blames_link or trouble.nature in {
            *(Nature.CONFIGURATION, Nature.PEER, Nature.UNKNOWN)
        }
    return trouble.nature.blames_link or trouble.nature is Nature.UNKNOWN


def may_follow(trouble: Trouble) -> bool:
    """Tell whether a trouble and a fault of its port may have to do with each other.

    Memory, limits, software and sockets of the host have not, whatever the port shows.
    """
    return trouble.nature in _OF_PORTS


def _rails(ports: Iterable[PortView]) -> list[PortView]:
    wanted = {Role.COMPUTE, Role.UNKNOWN}
    return [port for port in ports if port.info.role in wanted]


def _named(trouble: Trouble, signs: PortSigns, view: View) -> Place:
    """Return the port that a trouble names, by device, GID or the rank's channels.

    The channels tell only where a link may be meant: a call may be about any device.
    """
    event = trouble.root
    device = None if has_index(event) else event.device
    used = trouble.devices if may_be_link(trouble) else ()
    names = used if device is None else (device,)
    parts = [part for name in names for part in name.split(_MERGED)]
    ports = [port.info.id for port in view.ports]
    found = dict.fromkeys(
        port for part in parts for port in _ports_called(part, event.port, ports)
    )
    if not found:
        by_gid = _by_gid(event, view)
        if by_gid is not None:
            return Place(by_gid, "named by its GID")
        return (
            Place(None, "this node has no such port", event.device)
            if parts
            else NOWHERE
        )
    if len(found) > 1:
        found = {port: None for port in found if signs.has_own(port, view.now)} or found
    if len(found) > 1:
        return Place(None, f"{len(found)} ports are possible")
    port = next(iter(found))
    sibling = _sibling(port, ports, signs, view.now)
    if sibling is not None:
        return Place(sibling, f"the log says {port}, the fault is at its other port")
    return Place(port, "named by the log")


def _ports_called(
    name: str, number: int | None, ports: Sequence[PortId]
) -> list[PortId]:
    device = name.removesuffix(_TWIN)
    same = [port for port in ports if port.device == device]
    exact = [port for port in same if port.port == number]
    return exact or same


def _sibling(
    port: PortId, ports: Sequence[PortId], signs: PortSigns, now: float
) -> PortId | None:
    """Return the other port of a device where that alone shows a fault.

    NCCL prints the wrong port of HCAs with two (NVIDIA/nccl issue 1819).
    """
    if signs.has_own(port, now):
        return None
    others = [p for p in ports if p.device == port.device and p != port]
    guilty = [other for other in others if signs.has_own(other, now)]
    return guilty[0] if len(guilty) == 1 else None


def _by_gid(event: LogEvent, view: View) -> PortId | None:
    value = next((event.field(name) for name in _LOCAL_GID if event.field(name)), None)
    if value is None or not view.job.gids:
        return None
    wanted = _plain_gid(str(value))
    for table in view.job.gids:
        if any(_plain_gid(gid.gid) == wanted for gid in table.gids):
            return table.port
    return None


def _plain_gid(text: str) -> str:
    """Write a GID so that two spellings of it are equal."""
    try:
        return IPv6Address(text.strip()).exploded
    except ValueError:
        pass
    try:
        return IPv6Address(f"::ffff:{text.strip()}").exploded
    except ValueError:
        return text.strip().lower()
