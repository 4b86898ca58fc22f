"""Changes of network devices as the kernel tells them (rtnetlink(7)).

Free, and seconds faster than polling; but only of our own network namespace, and only
of drivers that have a network device.
"""

from __future__ import annotations

import errno
import socket
import struct
from collections.abc import Iterator
from contextlib import suppress

from fabricmon.errors import HostError
from fabricmon.host.live_files import failure
from fabricmon.host.netlink_message import aligned, attributes
from fabricmon.model import LinkEvent
from fabricmon.value import Value

# From <linux/netlink.h>, <linux/rtnetlink.h>, <linux/if.h>, <linux/if_link.h>.
_NETLINK_ROUTE = 0
_RTMGRP_LINK = 1
_RTM_NEWLINK = 16
_RTM_DELLINK = 17
_IFLA_IFNAME = 3
_IFLA_OPERSTATE = 16
_IFF_UP = 1
_IFF_LOWER_UP = 1 << 16
_OPER_NOT_UP = frozenset({1, 2, 3})  # not present, down, lower layer down

_HEADER = struct.Struct("=IHHII")  # length, type, flags, sequence, sender
_LINK = struct.Struct("=BxHiII")  # family, type, index, flags, change mask

_MOST_BYTES = 64 * 1024  # the kernel's messages are at most half of it
_MOST_DATAGRAMS = 10_000  # in one go; the rest waits for the next
_MOST_PENDING = 10_000  # events that nobody asks for; then they count as lost
_KERNEL = 0  # sender of what is true; other processes may send, too
_BUFFER_BYTES = 1024 * 1024  # room for a burst: every virtual function at once


class LinkMessage(Value, frozen=True):
    """What one message says of one network device.

    ``up`` is whether it can carry packets: enabled, with carrier, operational.
    """

    index: int
    netdev: str
    up: bool
    gone: bool


def parse_messages(datagram: bytes) -> Iterator[LinkMessage]:
    """Yield what a datagram says of links; stop where it makes no sense."""
    offset = 0
    while offset + _HEADER.size <= len(datagram):
        length, kind, _, _, _ = _HEADER.unpack_from(datagram, offset)
        if length < _HEADER.size or offset + length > len(datagram):
            return
        if kind in {_RTM_NEWLINK, _RTM_DELLINK}:
            body = datagram[offset + _HEADER.size : offset + length]
            message = _parse_link(body, gone=kind == _RTM_DELLINK)
            if message is not None:
                yield message
        offset += aligned(length)


def _parse_link(body: bytes, *, gone: bool) -> LinkMessage | None:
    if len(body) < _LINK.size:
        return None
    family, _, index, flags, _ = _LINK.unpack_from(body)
    if family != socket.AF_UNSPEC:  # a bridge says so when a port leaves it
        return None
    found = dict(attributes(body[_LINK.size :]))
    name = found.get(_IFLA_IFNAME, b"").rstrip(b"\0")
    if not name:
        return None
    state = found.get(_IFLA_OPERSTATE, b"\0")[:1]
    up = bool(flags & _IFF_UP and flags & _IFF_LOWER_UP)
    up = up and not (state and state[0] in _OPER_NOT_UP)
    netdev = name.decode("utf-8", "surrogateescape")
    return LinkMessage(index, netdev, up=up and not gone, gone=gone)


class LinkChanges:
    """Makes events of messages: one for each change, none for what stays as it is.

    The kernel also sends a message when a name, an address or a queue changes.
    """

    def __init__(self) -> None:
        self._links: dict[int, LinkMessage] = {}

    def forget(self) -> None:
        """Take the next message of every link for a change: some were lost."""
        self._links.clear()

    def take(self, message: LinkMessage, at: float) -> Iterator[LinkEvent]:
        """Yield what the message changes."""
        before = self._links.pop(message.index, None)
        if message.gone:
            yield LinkEvent(at, message.netdev, up=None, gone=True)
            return
        self._links[message.index] = message
        if before is not None and before.netdev != message.netdev:
            yield LinkEvent(at, before.netdev, up=None, gone=True)
        if before != message:
            yield LinkEvent(at, message.netdev, up=message.up)


class _Datagram(Value, frozen=True):
    data: bytes = b""
    lost: bool = False


class LinkWatch:
    """Listens to the kernel; one thread may use it at a time.

    Raises HostError where the kernel or a sandbox does not allow to listen.
    """

    def __init__(self) -> None:
        self._changes = LinkChanges()
        self._overruns = 0
        self._pending: list[LinkEvent] = []
        try:
            self._socket = _listen()
        except OSError as error:
            raise HostError(
                "cannot listen to changes of network devices: link states are polled",
                errno=failure(error.errno).errno,
            ) from error

    @property
    def overruns(self) -> int:
        """Times that messages were lost because they came faster than they were read."""
        return self._overruns

    def fileno(self) -> int:
        """Return the descriptor that becomes readable when there is an event."""
        return self._socket.fileno()

    def events(self, at: float) -> tuple[LinkEvent, ...]:
        """Return the changes since the last call, without waiting.

        An event without a name means that changes were lost: look at every link.
        """
        self.drain(at)
        events, self._pending = tuple(self._pending), []
        return events

    def drain(self, at: float) -> None:
        """Keep what has come for `events`, so that the descriptor falls silent."""
        for _ in range(_MOST_DATAGRAMS):
            datagram = self._receive()
            if datagram is None:
                break
            if datagram.lost or len(self._pending) > _MOST_PENDING:
                self._overruns += 1
                self._changes.forget()
                self._pending = [LinkEvent(at, "", up=None)]
            for message in parse_messages(datagram.data):
                self._pending.extend(self._changes.take(message, at))

    def _receive(self) -> _Datagram | None:
        try:
            data, _, flags, (sender, _) = self._socket.recvmsg(_MOST_BYTES)
        except BlockingIOError:
            return None
        except OSError as error:
            if error.errno == errno.ENOBUFS:
                return _Datagram(lost=True)
            raise
        if flags & socket.MSG_TRUNC:
            return _Datagram(lost=True)
        return _Datagram(data if sender == _KERNEL else b"")

    def close(self) -> None:
        """Stop listening."""
        self._socket.close()


def _listen() -> socket.socket:
    listener = socket.socket(
        socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, _NETLINK_ROUTE
    )
    try:
        listener.setblocking(False)
        with suppress(OSError):
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER_BYTES)
        listener.bind((0, _RTMGRP_LINK))
    except OSError:
        listener.close()
        raise
    return listener
