"""Which network devices belong to which port of an RDMA device.

RoCE and iWARP ports name theirs beside each GID; the tables have up to 1024 slots, so
they are read only until they look empty. InfiniBand ports have theirs (IPoIB) in the
folder of the PCI function, told apart by ``dev_port``. Names do not help: ib4 may
belong to mlx5_6.
"""

from __future__ import annotations

from fabricmon.host.protocol import Host, ReadError
from fabricmon.model import PortId
from fabricmon.parse.text import decimal, decode
from fabricmon.parse.words import LinkLayer
from fabricmon.sources.paths import net_folder, port_folder
from fabricmon.value import Value

MAX_GIDS = 32
MAX_EMPTY_GIDS = 4  # a deleted address leaves a hole
MAX_FUNCTION_NETDEVS = 64  # representors of virtual functions lie in the same folder


class FunctionNetdev(Value, frozen=True):
    """A network device of a PCI function; ``index`` grows with each one made."""

    name: str
    index: int | None
    dev_port: int | None


class PortNetdevs(Value, frozen=True):
    """Network devices of one port, the one that RDMA names first."""

    names: tuple[str, ...] = ()
    physical: str | None = None


def of_function(host: Host, folder: str | None) -> tuple[FunctionNetdev, ...]:
    """Return the network devices of a PCI function, oldest first."""
    names = host.names(f"{folder}/net") if folder else ()
    if isinstance(names, ReadError):
        return ()
    found = [
        FunctionNetdev(
            name=name,
            index=_number(host, f"{net_folder(name)}/ifindex"),
            dev_port=_number(host, f"{net_folder(name)}/dev_port"),
        )
        for name in names[:MAX_FUNCTION_NETDEVS]
    ]
    return tuple(sorted(found, key=lambda each: (each.index is None, each.index or 0)))


def of_port(
    host: Host,
    port: PortId,
    layer: LinkLayer | None,
    candidates: tuple[FunctionNetdev, ...],
) -> PortNetdevs:
    """Return the network devices of a port; ``candidates`` are its function's own."""
    named = () if layer is LinkLayer.INFINIBAND else _named_by_gids(host, port)
    own = {each.name: None for each in candidates}
    physical = next((name for name in named if name in own), next(iter(own), None))
    names = dict.fromkeys(name for name in (*named, physical) if name)
    return PortNetdevs(tuple(names), physical or next(iter(names), None))


def of_number(
    candidates: tuple[FunctionNetdev, ...], number: int, ports: int
) -> tuple[FunctionNetdev, ...]:
    """Return the candidates of one port; the only port of a device has them all."""
    if ports == 1:
        return candidates
    return tuple(each for each in candidates if each.dev_port == number - 1)


def _named_by_gids(host: Host, port: PortId) -> tuple[str, ...]:
    folder = f"{port_folder(port)}/gid_attrs/ndevs"
    found: dict[str, None] = {}
    empty = 0
    for slot in range(MAX_GIDS):
        raw = host.read(f"{folder}/{slot}")
        name = "" if isinstance(raw, ReadError) else decode(raw).strip()
        empty = 0 if name else empty + 1
        if name and "/" not in name:
            found[name] = None
        if empty == MAX_EMPTY_GIDS or raw == ReadError("ENOENT"):
            break
    return tuple(found)


def _number(host: Host, path: str) -> int | None:
    raw = host.read(path)
    if isinstance(raw, ReadError):
        return None
    return decimal(decode(raw).strip())
