"""Targets that read binary answers: of the kernel, and of the kubelet."""

from __future__ import annotations

import socket
import time
from array import array
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from fabricmon.host.live_addresses import _take as take_addresses
from fabricmon.host.live_addresses import parse_address
from fabricmon.host.live_dcb import parse_answer
from fabricmon.host.live_devlink import Answers, family_of, reporters_of
from fabricmon.host.live_ethtool import MOST_STATISTICS, DriverStatistics
from fabricmon.host.live_kmsg import KernelLog, parse_record
from fabricmon.host.live_kubelet import MOST_BYTES, _Answer
from fabricmon.host.live_netlink import LinkChanges, parse_messages
from fabricmon.host.netlink_message import attributes, messages
from fabricmon.host.protocol import ReadError
from fabricmon.parse.pci_config import redirects_peers
from fabricmon.parse.pod_resources import parse_pod_resources
from tests.fuzz.target import DATA, Target, files, texts


def _hex(*names: str) -> Callable[[], list[bytes]]:
    """Return what reads captures of netlink: one datagram a line, in hexadecimal."""

    def read() -> list[bytes]:
        paths = [DATA / "netlink" / name for name in names]
        lines = [line for path in paths for line in path.read_text().splitlines()]
        return [bytes.fromhex(line) for line in lines]

    return read


def link_messages(data: bytes) -> None:
    """Read changes of network devices; no more of them than bytes could hold."""
    changes = LinkChanges()
    found = [e for m in parse_messages(data) for e in changes.take(m, 1.0)]
    assert len(found) <= len(data) // 8 + 1
    for each in found:
        each.netdev.encode("utf-8", "surrogateescape")


def addresses(data: bytes) -> None:
    """Read addresses, as datagrams and as the body of one."""
    found: list[tuple[int, str]] = []
    take_addresses(data, found)
    assert len(found) <= len(data) // 8 + 1
    parse_address(data)
    assert sum(len(value) for _, value in attributes(data)) <= len(data)
    assert sum(len(each.body) for each in messages(data)) <= len(data)


def devlink(data: bytes) -> None:
    """Read reporters of devices, and the number of the family."""
    for is_dump in (True, False):
        for sequence in (1, 2, 7):
            answers = Answers(sequence)
            with suppress(OSError):
                answers.take(data, is_dump=is_dump)
            family_of(answers.bodies)
            found = reporters_of(answers.bodies, "0000:1a:00.0")
            assert len(found) <= len(data) // 8 + 1
            assert all(each.name.encode() for each in found)


def bridging(data: bytes) -> None:
    """Read data centre bridging."""
    use = parse_answer(data, "eth0", 1)
    if use is not None and use.dscp_to_priority:
        assert len(use.dscp_to_priority) == 64
        assert max(use.dscp_to_priority) < 8


class _Driver:
    """Answers ethtool commands with whatever bytes are left."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def __call__(self, netdev: str, buffer: array[int]) -> None:
        """Write over the buffer as a driver could."""
        size = min(len(buffer), int.from_bytes(self._data[:2], "little"))
        piece, self._data = self._data[2 : 2 + size], self._data[2 + size :]
        buffer[: len(piece)] = array("B", piece)


def driver_statistics(data: bytes) -> None:
    """Ask a driver for its statistics, twice: names are remembered."""
    statistics = DriverStatistics(_Driver(data))
    for _ in range(2):
        found = statistics.read("eth0")
        if not isinstance(found, ReadError):
            assert len(found) <= MOST_STATISTICS


def kernel_records(data: bytes) -> None:
    """Read records of /dev/kmsg; their times never leave what has passed."""
    log = KernelLog("/dev/kmsg")
    for record in data.split(b"\x1e"):
        parse_record(record)
        for line in log._lines_of(record, 100.0):
            assert 0.0 <= line.at <= 100.0
            assert line.lost >= 0
            assert len(line.text) <= len(record)


def pods(data: bytes) -> None:
    """Read the kubelet's list of pods."""
    found = parse_pod_resources(data)
    assert sum(len(each.ids) for each in found) <= len(data)


class _Link(socket.socket):
    """A connection that has received these bytes and whose other end has gone."""

    def __init__(self, data: bytes) -> None:
        super().__init__(socket.AF_UNIX, socket.SOCK_STREAM)
        self._data = data

    def recv(self, size: int, flags: int = 0) -> bytes:
        """Return the next piece."""
        piece, self._data = self._data[:size], self._data[size:]
        return piece

    def sendall(self, data: object, flags: int = 0) -> None:
        """Take what the agent answers."""


def kubelet_frames(data: bytes) -> None:
    """Read the frames of HTTP/2 that answer the agent's one question."""
    with _Link(data) as link:
        answer = _Answer(link, time.monotonic() + 60).message()
    if isinstance(answer, bytes):
        assert len(answer) <= MOST_BYTES
        with suppress(ValueError):
            parse_pod_resources(answer)


def _statistics() -> bytes:
    names = b"".join(name.ljust(32, b"\0") for name in (b"rx_bytes", b"rx_prio3_pause"))
    info = (0x37).to_bytes(4, "little") + bytes(4) + b"\2" + bytes(7) + b"\2\0\0\0"
    strings = b"\x1b\0\0\0\1\0\0\0\2\0\0\0" + names
    values = b"\x1d\0\0\0\2\0\0\0" + bytes(range(16))
    parts = (info, strings, values, info, values)
    return b"".join(len(part).to_bytes(2, "little") + part for part in parts)


def _pod_list() -> list[bytes]:
    raw = Path(DATA / "kubelet" / "list.http2").read_bytes()
    with _Link(raw) as link:
        answer = _Answer(link, time.monotonic() + 60).message()
    assert isinstance(answer, bytes)
    return [answer]


KERNEL_TARGETS = (
    Target("netlink_links", link_messages, _hex("veth.hex")),
    Target("netlink_addresses", addresses, _hex("veth.hex", "dcb.hex"), (OSError,)),
    Target("devlink", devlink, _hex("devlink.hex")),
    Target("dcb", bridging, _hex("dcb.hex"), (OSError,)),
    Target("ethtool_ioctl", driver_statistics, texts(_statistics())),
    Target(
        "kmsg",
        kernel_records,
        texts(
            b"6,339,5140900,-;mlx5_core 0000:1a:00.0 eth0: Link down\n SUBSYSTEM=pci\n"
            b"\x1e3,341,5140990,c;pcieport 0000:17:01.0: AER: Corrected error\n\x1e"
            b"14,342,5141000,-;a program's line\n",
        ),
        words=(b"\x1e", b";", b"18446744073709551616"),
    ),
    Target("pci_config", redirects_peers, texts(bytes(256) + b"\x0d\0\1\0\0\0\x1c\0")),
    Target("pod_resources", pods, _pod_list, (ValueError,)),
    Target("kubelet", kubelet_frames, files("kubelet/*"), (ValueError, OSError)),
)
