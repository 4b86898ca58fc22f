import os
import select
import socket
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabricmon.errors import HostError
from fabricmon.host import live_netlink
from fabricmon.host.live_netlink import (
    LinkChanges,
    LinkMessage,
    LinkWatch,
    parse_messages,
)
from fabricmon.model import LinkEvent
from tests.support.namespace import apart, ip

# Datagrams of Linux 6.18, one a line, while a veth pair was made, v1 and v0 enabled,
# v0 disabled, and the pair removed.
CAPTURES = Path(__file__).parent.parent / "data" / "netlink"

NEWLINK, DELLINK = 16, 17
UP, LOWER_UP = 1, 0x10000


def attribute(kind: int, value: bytes) -> bytes:
    """Pack one attribute, padded."""
    length = 4 + len(value)
    return struct.pack("=HH", length, kind) + value + bytes(-length % 4)


def message(
    kind: int = NEWLINK,
    *,
    family: int = 0,
    index: int = 4,
    flags: int = UP | LOWER_UP,
    attributes: bytes = attribute(3, b"ib0\0") + attribute(16, b"\x06"),
) -> bytes:
    """Pack one message about a link."""
    body = struct.pack("=BxHiII", family, 1, index, flags, 0) + attributes
    length = 16 + len(body)
    return struct.pack("=IHHII", length, kind, 0, 0, 0) + body + bytes(-length % 4)


class TestParseMessages:
    def test_captured(self) -> None:
        """What a real kernel sends is understood."""
        datagrams = [
            bytes.fromhex(line)
            for line in (CAPTURES / "veth.hex").read_text().splitlines()
        ]

        messages = [message for data in datagrams for message in parse_messages(data)]

        assert [(m.netdev, m.up, m.gone) for m in messages] == [
            ("v1", False, False),
            ("v0", False, False),
            ("v1", False, False),
            ("v0", False, False),
            ("v0", True, False),
            ("v1", True, False),
            ("v0", False, False),
            ("v1", False, False),
            ("v1", False, False),
            ("v0", False, True),
            ("v1", False, True),
        ]

    def test_several_in_one_datagram(self) -> None:
        """Messages follow each other on four byte borders."""
        named = message(attributes=attribute(3, b"ibp12\0"))

        assert [m.netdev for m in parse_messages(named + message())] == ["ibp12", "ib0"]

    @pytest.mark.parametrize(
        ("flags", "state", "up"),
        [
            (UP | LOWER_UP, 6, True),
            (UP | LOWER_UP, 0, True),  # a driver that knows no operational state
            (UP | LOWER_UP, 2, False),
            (UP | LOWER_UP, 3, False),
            (UP, 6, False),
            (LOWER_UP, 6, False),
            (0, 2, False),
        ],
    )
    def test_up(self, *, flags: int, state: int, up: bool) -> None:
        """A link is up when it is enabled, has a carrier and is operational."""
        attributes = attribute(3, b"ib0\0") + attribute(16, bytes([state]))

        (parsed,) = parse_messages(message(flags=flags, attributes=attributes))

        assert parsed == LinkMessage(4, "ib0", up=up, gone=False)

    def test_bridge_lets_go_of_a_port(self) -> None:
        """A DELLINK of the bridge family removes no device."""
        assert not list(parse_messages(message(DELLINK, family=socket.AF_BRIDGE)))

    def test_name_of_any_bytes(self) -> None:
        """A name that is no UTF-8 is kept as it is, as file names are."""
        (parsed,) = parse_messages(message(attributes=attribute(3, b"ib\xff\0")))

        assert parsed.netdev == os.fsdecode(b"ib\xff")

    @given(st.binary(max_size=200))
    def test_any_bytes(self, data: bytes) -> None:
        """No datagram raises or goes on for ever."""
        assert len(list(parse_messages(data))) <= len(data) // 16

    @given(st.binary(max_size=80), st.integers(0, 100))
    def test_damaged(self, junk: bytes, at: int) -> None:
        """A damaged message costs itself and what follows, never what precedes."""
        damaged = message() + message()[:at] + junk

        assert next(parse_messages(damaged)).netdev == "ib0"
        list(parse_messages(damaged))


class TestLinkChanges:
    def test_only_changes(self) -> None:
        """The kernel repeats itself; an event tells of a change."""
        changes = LinkChanges()
        up = LinkMessage(4, "ib0", up=True, gone=False)
        down = LinkMessage(4, "ib0", up=False, gone=False)

        events = [
            event
            for at, message in enumerate((up, up, down, down, up))
            for event in changes.take(message, at)
        ]

        assert events == [
            LinkEvent(0, "ib0", up=True),
            LinkEvent(2, "ib0", up=False),
            LinkEvent(4, "ib0", up=True),
        ]

    def test_renamed(self) -> None:
        """Under the old name it is gone, under the new one it appears."""
        changes = LinkChanges()
        list(changes.take(LinkMessage(4, "ib0", up=True, gone=False), 0))

        renamed = LinkMessage(4, "ibp1", up=True, gone=False)

        assert list(changes.take(renamed, 1)) == [
            LinkEvent(1, "ib0", up=None, gone=True),
            LinkEvent(1, "ibp1", up=True),
        ]

    def test_gone(self) -> None:
        """A device that is gone is told once, and is new when it comes back."""
        changes = LinkChanges()
        here = LinkMessage(4, "ib0", up=True, gone=False)
        list(changes.take(here, 0))

        gone = list(changes.take(LinkMessage(4, "ib0", up=False, gone=True), 1))

        assert gone == [LinkEvent(1, "ib0", up=None, gone=True)]
        assert list(changes.take(here, 2)) == [LinkEvent(2, "ib0", up=True)]

    def test_forget(self) -> None:
        """After a loss nothing counts as known."""
        changes = LinkChanges()
        here = LinkMessage(4, "ib0", up=True, gone=False)
        list(changes.take(here, 0))

        changes.forget()

        assert list(changes.take(here, 1)) == [LinkEvent(1, "ib0", up=True)]


def wait_for(watch: LinkWatch, netdev: str, *, up: bool | None) -> list[LinkEvent]:
    """Return the events up to one that says this of a device."""
    events: list[LinkEvent] = []
    while not any(e.netdev == netdev and e.up == up for e in events):
        readable, _, _ = select.select([watch.fileno()], [], [], 10)
        assert readable, f"{netdev} up={up} was not told; only {events}"
        events.extend(watch.events(5.0))
    return events


class TestLinkWatch:
    def test_life_of_a_link(self, tmp_path: Path) -> None:
        """A real link that comes, goes down, comes back and is removed is told of."""

        def live(_root: Path) -> list[list[LinkEvent]]:
            ip("link", "add", "v0", "type", "veth", "peer", "name", "v1")
            ip("link", "set", "v1", "up")
            watch = LinkWatch()
            phases = []
            for words, up in (
                (("link", "set", "v0", "up"), True),
                (("link", "set", "v1", "down"), False),
                (("link", "set", "v1", "up"), True),
                (("link", "del", "v0"), None),
            ):
                ip(*words)
                phases.append(wait_for(watch, "v0", up=up))
            assert watch.overruns == 0
            watch.close()
            return [[e for e in events if e.netdev == "v0"] for events in phases]

        came, went, back, gone = apart(live, tmp_path)

        assert came[-1] == LinkEvent(5.0, "v0", up=True)
        assert went == [LinkEvent(5.0, "v0", up=False)]
        assert back == [LinkEvent(5.0, "v0", up=True)]
        assert gone[-1] == LinkEvent(5.0, "v0", up=None, gone=True)

    def test_nothing_happened(self, tmp_path: Path) -> None:
        """Without events the answer is empty at once."""

        def ask(_root: Path) -> tuple[LinkEvent, ...]:
            watch = LinkWatch()
            events = watch.events(0)
            watch.close()
            return events

        assert apart(ask, tmp_path) == ()

    def test_overrun(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Lost events are counted and told, and the next state is told anew."""
        monkeypatch.setattr(live_netlink, "_BUFFER_BYTES", 1)

        def flood(_root: Path) -> tuple[tuple[LinkEvent, ...], int, list[LinkEvent]]:
            watch = LinkWatch()
            ip("link", "add", "v0", "type", "veth", "peer", "name", "v1")
            for mtu in range(1300, 1320):
                ip("link", "set", "v0", "mtu", str(mtu))
            events = watch.events(1.0)
            ip("link", "set", "v0", "up")
            after = wait_for(watch, "v0", up=False)
            overruns = watch.overruns
            watch.close()
            return events, overruns, after

        events, overruns, after = apart(flood, tmp_path)

        assert LinkEvent(1.0, "", up=None) in events
        assert overruns >= 1
        assert after

    def test_nobody_asks(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Events that nobody asks for are kept, and lost as a whole when too many."""
        monkeypatch.setattr(live_netlink, "_MOST_PENDING", 4)

        def toggle(_root: Path) -> tuple[bool, int, tuple[LinkEvent, ...]]:
            watch = LinkWatch()
            ip("link", "add", "v0", "type", "veth", "peer", "name", "v1")
            ip("link", "set", "v1", "up")
            for up in ("up", "down") * 4:
                ip("link", "set", "v0", up)
                watch.drain(1.0)
            silent = not select.select([watch.fileno()], [], [], 0)[0]
            overruns = watch.overruns
            events = watch.events(2.0)
            watch.close()
            return silent, overruns, events

        silent, overruns, events = apart(toggle, tmp_path)

        assert silent
        assert overruns >= 1
        assert events[0] == LinkEvent(1.0, "", up=None)

    def test_not_allowed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A sandbox without netlink gives one clear error."""

        def refuse(*_arguments: object) -> None:
            raise OSError(97, "Address family not supported by protocol")

        monkeypatch.setattr(socket, "socket", refuse)

        with pytest.raises(HostError) as caught:
            LinkWatch()

        assert caught.value.errno == "EAFNOSUPPORT"

    def test_forged(self, tmp_path: Path) -> None:
        """What another process sends is not believed."""

        def forge(_root: Path) -> tuple[LinkEvent, ...]:
            watch = LinkWatch()
            address = watch._socket.getsockname()[0]
            with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as forger:
                forger.bind((0, 0))
                forger.sendto(message(), (address, 0))
            readable, _, _ = select.select([watch.fileno()], [], [], 10)
            assert readable
            events = watch.events(0)
            watch.close()
            return events

        assert apart(forge, tmp_path) == ()
