"""Where a node and its ports stand in the fabric, as a document says it. Pure.

What in it does not fit is left out: a place is worth less than the measurement.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace

import msgspec

from fabricmon.model import PeerAddress, PortPlace, Snapshot, Topology
from fabricmon.parse.address import is_routable, plain_peer


def of_node(
    document: Mapping[str, object], peers: Mapping[str, str], node: str
) -> Topology:
    """Return the topology of one node out of its own document.

    ``peers`` are out-of-band addresses and the nodes that have them, this one too.
    """
    known = tuple(
        PeerAddress(plain_peer(address), name)
        for address, name in sorted(peers.items())
    )
    mine = (*_texts(document.get("addresses")), *_of(known, node))
    return Topology(
        rack=_text(document, "rack"),
        ports=tuple(_places(document.get("ports"))),
        peers=known,
        nvlink_domain=_text(document, "nvlink_domain"),
        cluster=_text(document, "cluster"),
        addresses=tuple(dict.fromkeys(map(plain_peer, mine))),
    )


def of_fleet(document: Mapping[str, object], node: str) -> Topology:
    """Return the topology of one node out of that of the whole site.

    A node may go by its short name where the site has the long one, or the other way.
    ``rails`` are patterns of devices: the first rail, the second and so on.
    """
    nodes = document.get("nodes")
    known = {
        str(name): place
        for name, place in (nodes.items() if isinstance(nodes, Mapping) else ())
        if isinstance(place, Mapping)
    }
    name = _name_in(known, node)
    peers = {
        address: node if other == name else other
        for other, place in known.items()
        for address in _texts(place.get("addresses"))
    }
    mine = dict(known.get(name or "", {}))
    mine.setdefault("cluster", document.get("cluster"))
    found = of_node(mine, peers, node)
    return replace(found, rails=tuple(_patterns(document.get("rails"))))


def _name_in(known: Iterable[str], node: str) -> str | None:
    """Return the name by which a node is known, None if it is not."""
    names = list(known)
    if node in names:
        return node
    short = node.partition(".")[0]
    same = [each for each in names if each.partition(".")[0] == short]
    return same[0] if len(same) == 1 else None


def _patterns(rails: object) -> Iterator[tuple[str, ...]]:
    for patterns in rails if isinstance(rails, list | tuple) else ():
        yield tuple(_texts(patterns))


def addresses_of(snapshot: Snapshot) -> tuple[str, ...]:
    """Return the addresses by which other nodes may name this one, each once.

    First what somebody wrote down, then its interfaces, then GIDs of RoCE ports.
    """
    found = snapshot.host_side.addresses
    known = dict.fromkeys(snapshot.topology.addresses)
    known |= dict.fromkeys(() if found is None else found.addresses)
    for table in snapshot.job.gids:
        plain = (plain_peer(gid.gid) for gid in table.gids)
        known |= dict.fromkeys(each for each in plain if is_routable(each))
    return tuple(known)


def _of(peers: Iterable[PeerAddress], node: str) -> Iterator[str]:
    return (peer.address for peer in peers if peer.node == node)


def _places(ports: object) -> Iterator[PortPlace]:
    for port, place in ports.items() if isinstance(ports, Mapping) else ():
        with suppress(msgspec.ValidationError, TypeError):
            yield msgspec.convert({"port": port, **place}, PortPlace)


def _texts(value: object) -> Iterator[str]:
    for each in value if isinstance(value, list | tuple) else ():
        if isinstance(each, str):
            yield each


def _text(document: Mapping[str, object], key: str) -> str | None:
    value = document.get(key)
    return value if isinstance(value, str) and value else None
