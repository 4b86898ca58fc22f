"""Data centre bridging of network devices, as the kernel gives it (``dcb`` of iproute2).

Unprivileged, and of our own network namespace only. The kernel asks the driver, and
mlx5 its firmware, under the RTNL lock.
"""

from __future__ import annotations

import errno
import socket
import struct

from fabricmon.host.netlink_message import aligned, attributes, packed
from fabricmon.model import PriorityUse

# From <linux/netlink.h>, <linux/rtnetlink.h> and <linux/dcbnl.h>.
_NETLINK_ROUTE = 0
_NLM_F_REQUEST = 1
_NLMSG_ERROR = 2
_RTM_GETDCB = 78
_CMD_IEEE_GET = 21
_ATTR_IFNAME = 1
_ATTR_IEEE = 13
_IEEE_PFC = 2
_IEEE_APP_TABLE = 3
_APP = 1
_SELECTOR_DSCP = 5

_HEADER = struct.Struct("=IHHII")  # length, type, flags, sequence, sender
_MESSAGE = struct.Struct("=BBH")  # family, command, padding
_PFC = struct.Struct("=BB")  # capability, bits of enabled priorities; more follows
_ENTRY = struct.Struct("=BBH")  # selector, priority, protocol
_ERROR = struct.Struct("=i")

PRIORITIES = 8
DSCPS = 64

_LONGEST_NAME = 15
_MOST_BYTES = 64 * 1024
_ANSWER_SECONDS = 5.0
"""The kernel answers before the request returns; only a lost answer is waited for."""
_MOST_ANSWERS = 16  # that are not ours, before ours counts as lost


def request(netdev: str, sequence: int) -> bytes:
    """Return the question for a device's bridging; ENODEV for what is no name."""
    name = netdev.encode("utf-8", "surrogateescape")
    if not 0 < len(name) <= _LONGEST_NAME or b"\0" in name:
        raise OSError(errno.ENODEV, "no such network device")
    body = _MESSAGE.pack(socket.AF_UNSPEC, _CMD_IEEE_GET, 0)
    body += packed(_ATTR_IFNAME, name + b"\0")
    length = _HEADER.size + len(body)
    return _HEADER.pack(length, _RTM_GETDCB, _NLM_F_REQUEST, sequence, 0) + body


def parse_answer(datagram: bytes, netdev: str, sequence: int) -> PriorityUse | None:
    """Return what the kernel says of a device; None if this is no answer to us.

    Raises OSError with the kernel's number where it refuses.
    """
    offset = 0
    while offset + _HEADER.size <= len(datagram):
        length, kind, _, number, _ = _HEADER.unpack_from(datagram, offset)
        if length < _HEADER.size or offset + length > len(datagram):
            return None
        body = datagram[offset + _HEADER.size : offset + length]
        if number == sequence and kind == _NLMSG_ERROR and len(body) >= _ERROR.size:
            raise OSError(-_ERROR.unpack_from(body)[0], "the kernel refuses")
        if number == sequence and kind == _RTM_GETDCB:
            return _parse(body[_MESSAGE.size :], netdev)
        offset += aligned(length)
    return None


def _parse(data: bytes, netdev: str) -> PriorityUse:
    """Read the IEEE 802.1Qaz part; what a driver leaves out stays unknown."""
    ieee = dict(attributes(dict(attributes(data)).get(_ATTR_IEEE, b"")))
    pfc = ieee.get(_IEEE_PFC, b"")
    enabled = None
    if len(pfc) >= _PFC.size:
        _, bits = _PFC.unpack_from(pfc)
        enabled = tuple(p for p in range(PRIORITIES) if bits >> p & 1)
    return PriorityUse(
        netdev,
        pfc_enabled=enabled,
        dscp_to_priority=_dscp_map(ieee.get(_IEEE_APP_TABLE)),
    )


def _dscp_map(table: bytes | None) -> tuple[int, ...] | None:
    """Return the priority of each DSCP, none at all where the port looks at no DSCP.

    Without an entry a DSCP goes to priority 0; of several the highest counts
    (``dcb_ieee_getapp_dscp_prio_mask_map`` of the kernel). None is no table: the
    kernel sends an empty one where there are no entries.
    """
    if table is None:
        return None
    found: dict[int, int] = {}
    for kind, value in attributes(table):
        if kind != _APP or len(value) < _ENTRY.size:
            continue
        selector, priority, protocol = _ENTRY.unpack_from(value)
        if selector == _SELECTOR_DSCP and protocol < DSCPS and priority < PRIORITIES:
            found[protocol] = max(priority, found.get(protocol, 0))
    return tuple(found.get(dscp, 0) for dscp in range(DSCPS)) if found else ()


class Bridges:
    """Asks the kernel; one thread may use it at a time."""

    def __init__(self) -> None:
        """Open nothing yet."""
        self._socket: socket.socket | None = None
        self._sequence = 0

    def read(self, netdev: str) -> PriorityUse | None:
        """Return a device's bridging, None where kernel or driver have none."""
        try:
            return self._ask(netdev)
        except OSError:
            self.close()  # a late answer to this question is none to the next
            return None

    def _ask(self, netdev: str) -> PriorityUse | None:
        if self._socket is None:
            kind = socket.SOCK_RAW | socket.SOCK_CLOEXEC
            self._socket = socket.socket(socket.AF_NETLINK, kind, _NETLINK_ROUTE)
            self._socket.settimeout(_ANSWER_SECONDS)
            self._socket.bind((0, 0))
        self._sequence += 1
        self._socket.send(request(netdev, self._sequence))
        for _ in range(_MOST_ANSWERS):
            answer = parse_answer(
                self._socket.recv(_MOST_BYTES), netdev, self._sequence
            )
            if answer is not None:
                return answer
        return None

    def close(self) -> None:
        """Close the socket; the next question opens another."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None
