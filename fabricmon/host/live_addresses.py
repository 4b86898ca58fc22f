"""Addresses of the network devices of our own namespace (rtnetlink(7)).

Unprivileged; the kernel answers from memory.
"""

from __future__ import annotations

import errno
import socket
import struct
from collections.abc import Iterable, Iterator
from ipaddress import ip_address

from fabricmon.host.live_files import failure
from fabricmon.host.netlink_message import HEADER, attributes, messages
from fabricmon.host.protocol import InterfaceAddress, ReadError

# From <linux/netlink.h>, <linux/rtnetlink.h> and <linux/if_addr.h>.
_NETLINK_ROUTE = 0
_NLM_F_REQUEST, _NLM_F_DUMP = 1, 0x300
_NLMSG_ERROR, _NLMSG_DONE = 2, 3
_RTM_NEWADDR, _RTM_GETADDR = 20, 22
_IFA_ADDRESS, _IFA_LOCAL = 1, 2

_ADDRESS = struct.Struct("=BBBBI")  # family, length, flags, scope, device's index
_ERROR = struct.Struct("=i")
_SIZES = {socket.AF_INET: 4, socket.AF_INET6: 16}
_MOST_BYTES = 64 * 1024
_MOST_ANSWERS = 256  # datagrams of one dump, each of some 300 addresses
_ANSWER_SECONDS = 5.0
"""The kernel answers before the request returns; only a lost answer is waited for."""

_SEQUENCE = 1  # a socket asks once


def request() -> bytes:
    """Return the question for all addresses."""
    body = _ADDRESS.pack(socket.AF_UNSPEC, 0, 0, 0, 0)
    flags = _NLM_F_REQUEST | _NLM_F_DUMP
    return (
        HEADER.pack(HEADER.size + len(body), _RTM_GETADDR, flags, _SEQUENCE, 0) + body
    )


def parse_address(body: bytes) -> tuple[int, str] | None:
    """Return index of the device and address; None for what is no IP address.

    Of a link between two ends (``IFA_LOCAL``) the address is that of our end.
    """
    if len(body) < _ADDRESS.size:
        return None
    family, _, _, _, index = _ADDRESS.unpack_from(body)
    found = dict(attributes(body[_ADDRESS.size :]))
    raw = found.get(_IFA_LOCAL) or found.get(_IFA_ADDRESS, b"")
    if len(raw) != _SIZES.get(family):
        return None
    return index, str(ip_address(raw))


def read_addresses() -> tuple[InterfaceAddress, ...] | ReadError:
    """Return every address and the device that has it, in the kernel's order."""
    try:
        return tuple(_named(_ask()))
    except OSError as error:
        return failure(error.errno)


def _named(found: Iterable[tuple[int, str]]) -> Iterator[InterfaceAddress]:
    names = dict(socket.if_nameindex())
    for index, address in found:
        name = names.get(index)  # a device may be gone by now
        if name is not None:
            yield InterfaceAddress(name, address)


def _ask() -> list[tuple[int, str]]:
    kind = socket.SOCK_RAW | socket.SOCK_CLOEXEC
    found: list[tuple[int, str]] = []
    with socket.socket(socket.AF_NETLINK, kind, _NETLINK_ROUTE) as asking:
        asking.settimeout(_ANSWER_SECONDS)
        asking.bind((0, 0))
        asking.send(request())
        for _ in range(_MOST_ANSWERS):
            if _take(asking.recv(_MOST_BYTES), found):
                return found
    raise OSError(errno.EMSGSIZE, "an answer without end")


def _take(datagram: bytes, found: list[tuple[int, str]]) -> bool:
    """Take the addresses out of a datagram; tell whether it was the last."""
    for message in messages(datagram):
        if message.kind == _NLMSG_DONE:
            return True
        if message.kind == _NLMSG_ERROR and len(message.body) >= _ERROR.size:
            raise OSError(-_ERROR.unpack_from(message.body)[0], "the kernel refuses")
        if message.kind == _RTM_NEWADDR:
            parsed = parse_address(message.body)
            if parsed is not None:
                found.append(parsed)
    return False
