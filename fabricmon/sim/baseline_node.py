"""A node as a peer's agent sees it: the same files, at its own poll period."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from fabricmon.host.protocol import KernelLine, ReadError
from fabricmon.host.replay import ReplayHost
from fabricmon.model import PortId
from fabricmon.parse.sysfs import (
    parse_counter,
    parse_link_layer,
    parse_pci_width,
    parse_phys_state,
    parse_rate,
    parse_state,
    parse_uptime,
)
from fabricmon.parse.words import LinkLayer, PhysState, PortState
from fabricmon.sources.paths import (
    NET_CLASS,
    RDMA_CLASS,
    UPTIME,
    device_folder,
    port_folder,
)

LONG_UP = 1e9  # seconds: a node that does not say when it booted


@dataclass(frozen=True, slots=True)
class WatchedPort:
    """A port that a site would let a peer watch, and what its log lines name it by."""

    id: PortId
    is_infiniband: bool
    names: tuple[str, ...]
    netdev: str | None
    pci_folder: str | None


class PeerNode:
    """The files of one node, each read at most once at a time.

    Every peer is given the site's best configuration: it watches only the ports of
    the largest group of equal boards and link layers that were up when it began.
    """

    def __init__(self, host: ReplayHost) -> None:
        self._host = host
        self._memory: dict[str, bytes | ReadError] = {}
        self._at = -1.0
        self._lines: list[KernelLine] = []
        self.name = host.header.node
        self.watched = _watched(self)

    @property
    def now(self) -> float:
        """Seconds since the start of the trace."""
        return self._host.monotonic()

    @property
    def boot_id(self) -> str:
        """Identity of the running boot."""
        return self._host.boot_id()

    @property
    def uptime(self) -> float:
        """Seconds since the node booted."""
        seconds = parse_uptime(self.text(UPTIME) or "")
        return LONG_UP if seconds is None else seconds

    def is_there(self, port: PortId) -> bool:
        """Tell whether the device is listed."""
        return port.device in self.names(RDMA_CLASS)

    def is_up(self, port: PortId) -> bool | None:
        """Tell whether a port is ACTIVE and LinkUp; None where it cannot be read."""
        folder = port_folder(port)
        state, phys = self.text(f"{folder}/state"), self.text(f"{folder}/phys_state")
        if state is None or phys is None:
            return None
        is_active = parse_state(state) is PortState.ACTIVE
        return is_active and parse_phys_state(phys) is PhysState.LINK_UP

    def rate_gbps(self, port: PortId) -> float | None:
        """Rate of a port."""
        return parse_rate(self.text(f"{port_folder(port)}/rate") or "").gbps

    def counter(self, port: PortId, file: str) -> int | None:
        """Read a counter such as ``counters/link_downed``; None where there is none."""
        return self._number(f"{port_folder(port)}/{file}")

    def net_counter(self, port: WatchedPort, file: str) -> int | None:
        """Read a counter of a port's network device, such as ``carrier_changes``."""
        if port.netdev is None:
            return None
        return self._number(f"{NET_CLASS}/{port.netdev}/{file}")

    def pci_width(self, port: WatchedPort) -> tuple[int | None, int | None]:
        """Lanes of the device's PCIe link, and the most that it can."""
        folder = port.pci_folder
        if folder is None:
            return None, None
        now, most = (
            parse_pci_width(self.text(f"{folder}/{file}_link_width") or "")
            for file in ("current", "max")
        )
        return now, most

    def aer_correctable(self, port: WatchedPort) -> int | None:
        """Correctable PCIe errors since boot."""
        text = self.text(f"{port.pci_folder}/aer_dev_correctable") or ""
        total = text.rpartition("TOTAL_ERR_COR")[2].strip()
        return int(total) if total.isdigit() else None

    def lines(self, first: int = 0) -> list[KernelLine]:
        """Lines of the kernel log so far, from the ``first`` on."""
        lines = self._host.kernel_log()
        self._lines += () if isinstance(lines, ReadError) else lines
        return self._lines[first:]

    def text(self, path: str) -> str | None:
        """Text of a file, None where it cannot be read."""
        raw = self._read(path)
        return None if isinstance(raw, ReadError) else raw.decode("utf-8", "replace")

    def names(self, path: str) -> tuple[str, ...]:
        """Names in a folder, none where it is not there."""
        names = self._host.names(path)
        return () if isinstance(names, ReadError) else names

    def target(self, path: str) -> str | None:
        """Path with links followed."""
        return self._host.target(path)

    def _number(self, path: str) -> int | None:
        raw = self._read(path)
        value = "" if isinstance(raw, ReadError) else parse_counter(raw)
        return value if isinstance(value, int) else None

    def _read(self, path: str) -> bytes | ReadError:
        if self._at != self.now:
            self._memory.clear()
            self._at = self.now
        if path not in self._memory:
            self._memory[path] = self._host.read(path)
        return self._memory[path]


def _watched(node: PeerNode) -> tuple[WatchedPort, ...]:
    ports = [
        PortId(device, int(number))
        for device in node.names(RDMA_CLASS)
        for number in node.names(f"{device_folder(device)}/ports")
        if number.isdecimal()
    ]
    boards = {port: _board(node, port) for port in ports}
    up = [port for port in ports if node.is_up(port)]
    most = Counter(boards[port] for port in up).most_common(1)
    return tuple(_port(node, port) for port in up if boards[port] == most[0][0])


def _board(node: PeerNode, port: PortId) -> tuple[str | None, LinkLayer | None]:
    board = node.text(f"{device_folder(port.device)}/board_id")
    return board, _layer(node, port)


def _layer(node: PeerNode, port: PortId) -> LinkLayer | None:
    return parse_link_layer(node.text(f"{port_folder(port)}/link_layer") or "")


def _port(node: PeerNode, port: PortId) -> WatchedPort:
    folder = node.target(f"{device_folder(port.device)}/device")
    netdevs = node.names(f"{folder}/net") if folder else ()
    address = folder.rpartition("/")[2] if folder else None
    names = (port.device, address, *netdevs)
    return WatchedPort(
        id=port,
        is_infiniband=_layer(node, port) is LinkLayer.INFINIBAND,
        names=tuple(name for name in names if name),
        netdev=netdevs[0] if netdevs else None,
        pci_folder=folder,
    )
