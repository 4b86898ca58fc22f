"""Addresses of the network devices over netlink."""

import socket
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabricmon.host import live_addresses
from fabricmon.host.live import LiveHost
from fabricmon.host.live_addresses import parse_address, read_addresses, request
from fabricmon.host.netlink_message import messages, packed
from fabricmon.host.protocol import InterfaceAddress, ReadError

INET, INET6 = int(socket.AF_INET), int(socket.AF_INET6)
ADDRESS, LOCAL = 1, 2


def body(family: int, *parts: bytes) -> bytes:
    """Return the body of a message about device 3."""
    return struct.pack("=BBBBI", family, 24, 0, 0, 3) + b"".join(parts)


def test_ipv4() -> None:
    """Of a link between two ends the address is that of our end."""
    ours, theirs = packed(LOCAL, bytes([10, 0, 0, 1])), packed(ADDRESS, bytes(4))
    assert parse_address(body(INET, theirs, ours)) == (3, "10.0.0.1")


def test_ipv6() -> None:
    """It has one address only."""
    raw = socket.inet_pton(socket.AF_INET6, "fd00::2")
    assert parse_address(body(INET6, packed(ADDRESS, raw))) == (3, "fd00::2")


@pytest.mark.parametrize("message", [b"", body(INET), body(40, packed(LOCAL, b"abcd"))])
def test_no_ip_address(message: bytes) -> None:
    """Other families and messages without an address say nothing."""
    assert parse_address(message) is None


@given(st.binary(max_size=200))
def test_any_bytes(data: bytes) -> None:
    """Nothing that arrives breaks the reader."""
    for message in messages(data):
        parse_address(message.body)
    parse_address(data)


def test_question() -> None:
    """One whole message that asks for all addresses."""
    (message,) = messages(request())
    assert (message.kind, len(message.body)) == (22, 8)


def test_running_kernel() -> None:
    """Every network namespace has the loopback device; this one's is up."""
    found = read_addresses()
    if isinstance(found, ReadError):
        pytest.skip(f"netlink is forbidden here: {found.errno}")
    assert InterfaceAddress("lo", "127.0.0.1") in found


def test_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel that says no is told by its errno."""

    def ask() -> list[tuple[int, str]]:
        raise PermissionError(1, "no")

    monkeypatch.setattr(live_addresses, "_ask", ask)
    assert read_addresses() == ReadError("EPERM")


def test_another_node_has_no_addresses(tmp_path: object) -> None:
    """A copied tree says nothing of the network here."""
    assert LiveHost(str(tmp_path)).addresses() == ReadError("ENODEV")
