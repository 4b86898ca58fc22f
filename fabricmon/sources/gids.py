"""Addresses of RoCE ports: their GIDs, of which NCCL uses one by its index.

Free for the device: the kernel answers from its cache. InfiniBand ports have GIDs too,
but nobody chooses among them.
"""

from __future__ import annotations

from collections.abc import Iterator

from fabricmon.config import Config
from fabricmon.host.protocol import Host, ReadError
from fabricmon.model import Gid, GidTable, PortId, Record, Target
from fabricmon.parse.text import decode
from fabricmon.parse.words import LinkLayer
from fabricmon.sources.paths import port_folder

MAX_GIDS = 128
"""Slots that are looked at; a port with more addresses than this has no index by hand."""

LEAST_GIDS = 16
EMPTY_GIDS = 8  # in a row: the rest is empty as well; a deleted address leaves a hole

_UNSET = frozenset("0:")


def poll(host: Host, target: Target, _config: Config) -> tuple[Record, ...]:
    """List the GIDs of each RoCE port that are set; nothing where it has no table."""
    if target.hca is None:
        return ()
    ports = (
        port.id for port in target.hca.ports if port.link_layer is LinkLayer.ETHERNET
    )
    tables = (_table(host, port) for port in ports)
    return tuple(table for table in tables if table is not None)


def _table(host: Host, port: PortId) -> GidTable | None:
    folder = port_folder(port)
    if isinstance(host.read(f"{folder}/gids/0"), ReadError):
        return None
    return GidTable(port, host.monotonic(), tuple(_gids(host, folder)))


def _gids(host: Host, folder: str) -> Iterator[Gid]:
    empty = 0
    for index in range(MAX_GIDS):
        raw = host.read(f"{folder}/gids/{index}")
        gid = "" if isinstance(raw, ReadError) else decode(raw).strip()
        if not _UNSET.issuperset(gid):
            empty = 0
            kind = _text(host, f"{folder}/gid_attrs/types/{index}")
            netdev = _text(host, f"{folder}/gid_attrs/ndevs/{index}")
            yield Gid(index, gid, kind or "", netdev)
            continue
        empty += 1
        is_over = raw == ReadError("ENOENT")  # the table has no more slots
        if is_over or (empty >= EMPTY_GIDS and index >= LEAST_GIDS - 1):
            return


def _text(host: Host, path: str) -> str | None:
    """Return a line; EINVAL where an address went or lies in another namespace."""
    raw = host.read(path)
    return None if isinstance(raw, ReadError) else decode(raw).strip() or None
