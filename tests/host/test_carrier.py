from typing import Any

import pytest

from fabricmon.host.carrier import CarrierWatch
from fabricmon.host.trace import Ramp, TraceRecord
from fabricmon.host.tree import Tree
from fabricmon.model import LinkEvent

NET = "/sys/class/net"
DEVICE = "/sys/devices/0000:1a:00.0/net/eth0"


class _Netdevs:
    """A tree and what its watch makes of each record."""

    def __init__(self, **first: Any) -> None:
        self._tree = Tree()
        self._watch = CarrierWatch(self._tree)
        self.change(0, **first)

    def change(self, t: float, **changes: Any) -> list[LinkEvent]:
        record = TraceRecord(t=t, **changes)
        assert self._tree.apply(record) == []
        return self._watch.look(t) if self._watch.concerns(record) else []

    def look(self, t: float) -> list[LinkEvent]:
        return self._watch.look(t)

    def moves(self) -> bool:
        return self._watch.is_moving


def one(**files: str) -> _Netdevs:
    """Watch one device whose files hold this."""
    return _Netdevs(
        link={f"{NET}/eth0": "../../devices/0000:1a:00.0/net/eth0"},
        set={f"{DEVICE}/{name}": f"{text}\n" for name, text in files.items()},
    )


class TestEdges:
    @pytest.mark.parametrize("folder", [DEVICE, f"{NET}/eth0"])
    def test_carrier(self, folder: str) -> None:
        """Carrier lost and found again, under whichever name it is set."""
        netdevs = one(carrier="1", operstate="up")
        assert netdevs.change(3, set={f"{folder}/carrier": "0\n"}) == [
            LinkEvent(3, "eth0", up=False)
        ]
        assert netdevs.change(4, set={f"{folder}/carrier": "1\n"}) == [
            LinkEvent(4, "eth0", up=True)
        ]

    @pytest.mark.parametrize("word", ["down", "lowerlayerdown", "notpresent"])
    def test_operstate(self, word: str) -> None:
        """A device that is not operational is down, as rtnetlink has it."""
        netdevs = one(carrier="1", operstate="up")
        assert netdevs.change(3, set={f"{DEVICE}/operstate": f"{word}\n"}) == [
            LinkEvent(3, "eth0", up=False)
        ]

    def test_unknown_operstate_with_carrier_is_up(self) -> None:
        """Some drivers never say more than unknown."""
        netdevs = one(carrier="0", operstate="unknown")
        assert netdevs.change(3, set={f"{DEVICE}/carrier": "1\n"}) == [
            LinkEvent(3, "eth0", up=True)
        ]

    def test_switched_off(self) -> None:
        """The kernel refuses to tell the carrier of a device that is switched off."""
        netdevs = one(carrier="1")
        assert netdevs.change(3, err={f"{DEVICE}/carrier": "EINVAL"}) == [
            LinkEvent(3, "eth0", up=False)
        ]

    def test_both_files_in_one_record_are_one_event(self) -> None:
        """As one message of the kernel."""
        netdevs = one(carrier="1", operstate="up", carrier_changes="2")
        files = {"carrier": "0\n", "operstate": "down\n", "carrier_changes": "3\n"}
        changes = {f"{DEVICE}/{name}": text for name, text in files.items()}
        assert netdevs.change(3, set=changes) == [LinkEvent(3, "eth0", up=False)]

    def test_same_again_is_no_event(self) -> None:
        """Nor is a change of anything else."""
        netdevs = one(carrier="1", mtu="1500")
        assert netdevs.change(3, set={f"{DEVICE}/carrier": "1\n"}) == []
        assert netdevs.change(4, set={f"{DEVICE}/mtu": "9000\n"}) == []


class TestCounters:
    @pytest.mark.parametrize(
        "name", ["carrier_changes", "carrier_up_count", "carrier_down_count"]
    )
    def test_step(self, name: str) -> None:
        """A flap that only a counter remembers is an event, with the state as it is."""
        netdevs = one(carrier="1", **{name: "2"})
        assert netdevs.change(3, set={f"{DEVICE}/{name}": "4\n"}) == [
            LinkEvent(3, "eth0", up=True)
        ]

    def test_moving_counter(self) -> None:
        """Its steps are seen when someone looks, and only while it moves."""
        netdevs = one(carrier="1", carrier_changes="2")
        assert netdevs.moves() is False
        ramp = {f"{DEVICE}/carrier_changes": Ramp(2, 0.5)}
        assert netdevs.change(10, ramp=ramp) == []
        assert netdevs.moves() is True
        assert netdevs.look(11) == []
        assert netdevs.look(12) == [LinkEvent(12, "eth0", up=True)]
        assert netdevs.look(12) == []
        netdevs.change(13, set={f"{DEVICE}/carrier_changes": "3\n"})
        assert netdevs.moves() is False


class TestDevices:
    def test_gone_and_back(self) -> None:
        """A device that vanishes is told once, and one that comes with its state."""
        netdevs = one(carrier="1")
        assert netdevs.change(3, deleted=[f"{NET}/eth0"]) == [
            LinkEvent(3, "eth0", up=None, gone=True)
        ]
        assert netdevs.change(4, deleted=[DEVICE]) == []
        text = {f"{NET}/eth0/carrier": "0\n"}
        assert netdevs.change(5, set=text) == [LinkEvent(5, "eth0", up=False)]

    def test_renamed(self) -> None:
        """The old name goes, then the new one comes."""
        netdevs = one(carrier="1")
        events = netdevs.change(
            3, deleted=[f"{NET}/eth0"], link={f"{NET}/ens1": f"../../..{DEVICE}"}
        )
        assert events == [
            LinkEvent(3, "eth0", up=None, gone=True),
            LinkEvent(3, "ens1", up=True),
        ]

    def test_device_that_says_nothing(self) -> None:
        """Neither up nor down is unknown."""
        netdevs = _Netdevs(dir=[NET])
        assert netdevs.change(1, dir=[f"{NET}/ib0"]) == [LinkEvent(1, "ib0", up=None)]
