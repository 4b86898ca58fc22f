"""A small rail-optimised fabric: hosts, one leaf switch for each rail, one spine."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

HOSTS = ("node01", "node02")
RAILS = 4
GBPS = 56
"""4X FDR, the fastest link whose rate the simulator tells as hardware does."""

NARROW_GBPS = 14
_VENDOR, _HCA, _SWITCH = 0x2C9, 0x101B, 0xD2F0
_GUIDS, _SWITCH_GUIDS = 0x0C42A10300000000, 0x1070FD0300000000
_RADIX = 8


@dataclass(frozen=True, slots=True)
class Adapter:
    """An HCA with one port: what the fabric was told about it."""

    host: str
    rail: int
    narrow: bool = False

    @property
    def device(self) -> str:
        """Its name on the host."""
        return f"mlx5_{self.rail}"

    @property
    def name(self) -> str:
        """Its name in the fabric."""
        return f"{self.host}-{self.device}"

    @property
    def node_guid(self) -> int:
        """GUID of the device; the simulator gives its port the next one."""
        return _GUIDS + (HOSTS.index(self.host) << 16) + (self.rail << 4)

    @property
    def gbps(self) -> int:
        """Rate of its link."""
        return NARROW_GBPS if self.narrow else GBPS

    @property
    def width(self) -> str:
        """The same in words of the netlist."""
        return "1xFDR" if self.narrow else "4xFDR"


ADAPTERS = tuple(
    # One link trains at a quarter of its width.
    Adapter(host, rail, narrow=(host, rail) == ("node02", 3))
    for host in HOSTS
    for rail in range(RAILS)
)


def adapters_of(host: str) -> tuple[Adapter, ...]:
    """Return the HCAs of a host."""
    return tuple(each for each in ADAPTERS if each.host == host)


def netlist() -> str:
    """Return the fabric in the words of ibsim."""
    lines = [*_adapters(), *_leaves(), *_spine()]
    return "\n".join(lines) + "\n"


def _adapters() -> Iterator[str]:
    for each in ADAPTERS:
        port = HOSTS.index(each.host) + 1
        yield from _node("caguid", _HCA, each.node_guid)
        yield f'Ca\t1 "{each.name}"\t# "{each.host} {each.device}"'
        yield f'[1]\t"leaf{each.rail}"[{port}]\t# lid 0 lmc 0 "" lid 0 {each.width}\n'


def _leaves() -> Iterator[str]:
    for rail in range(RAILS):
        yield from _node("switchguid", _SWITCH, _SWITCH_GUIDS + (rail << 16))
        yield f'Switch\t{_RADIX} "leaf{rail}"\t# "leaf{rail}" enhanced port 0 lid 0 lmc 0'
        for each in (each for each in ADAPTERS if each.rail == rail):
            port = HOSTS.index(each.host) + 1
            yield f'[{port}]\t"{each.name}"[1]\t# "" lid 0 {each.width}'
        yield f'[{_RADIX}]\t"spine"[{rail + 1}]\t# "" lid 0 4xFDR\n'


def _spine() -> Iterator[str]:
    yield from _node("switchguid", _SWITCH, _SWITCH_GUIDS + (RAILS << 16))
    yield f'Switch\t{_RADIX} "spine"\t# "spine" enhanced port 0 lid 0 lmc 0'
    for rail in range(RAILS):
        yield f'[{rail + 1}]\t"leaf{rail}"[{_RADIX}]\t# "" lid 0 4xFDR'


def _node(kind: str, device: int, guid: int) -> tuple[str, ...]:
    return (
        f"vendid={_VENDOR:#x}",
        f"devid={device:#x}",
        f"sysimgguid={guid:#x}",
        f"{kind}={guid:#x}",
    )
