"""What is known of each port now, merged from samples of different depth."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fabricmon.catalogue import CounterSpec
from fabricmon.config import Config
from fabricmon.model import (
    Absence,
    Hca,
    HcaPort,
    LinkStatus,
    PciLink,
    PciStatus,
    PortId,
    Reading,
)
from fabricmon.observed import TRAFFIC_POINTS, Observed, ObservedPorts
from fabricmon.parse.words import PhysState, PortState, Rate
from fabricmon.window import Window
from tests.views import NDR, SPECS

PORT = PortId("mlx5_0", 1)
UNREAD = (Absence("state", "EINVAL"),)
WHOLE = LinkStatus(
    PORT, 10.0, PortState.ACTIVE, PhysState.LINK_UP, NDR, lid=7, sm_lid=1
)
DOWN = LinkStatus(PORT, 12.0, PortState.DOWN, complete=False)


def quick(at: float, state: PortState | None = PortState.ACTIVE) -> LinkStatus:
    """Return a sample of `state` alone."""
    absent = UNREAD if state is None else ()
    return LinkStatus(PORT, at, state, absent=absent, complete=False)


@pytest.fixture
def port() -> Observed:
    """Return a port that was seen whole once."""
    seen = Observed(PORT)
    seen.take_status(WHOLE)
    return seen


class TestStatus:
    def test_a_quick_sample_keeps_what_was_known(self, port: Observed) -> None:
        """Rate and LIDs are read rarely; they are as they were, the time is new."""
        assert port.take_status(quick(11.0)) == replace(WHOLE, at=11.0, complete=False)

    def test_another_state_drops_what_was_known(self, port: Observed) -> None:
        """The rate of the link that was is not the rate of the one that is not."""
        merged = port.take_status(DOWN)
        assert (merged.phys_state, merged.rate) == (None, Rate())

    def test_a_state_that_cannot_be_read(self, port: Observed) -> None:
        """It is unknown, with its reason; the last one does not stand in for it."""
        merged = port.take_status(quick(11.0, None))
        assert (merged.state, merged.absent) == (None, UNREAD)

    def test_reasons_of_the_whole_sample_stay(self) -> None:
        """That the rate cannot be read is still true a second later."""
        seen = Observed(PORT)
        absent = (Absence("rate", "EINVAL"),)
        seen.take_status(replace(WHOLE, rate=Rate(), absent=absent))
        assert seen.take_status(quick(11.0)).absent == absent

    def test_back_again(self, port: Observed) -> None:
        """Back in the state of the whole sample, its values hold till the next one."""
        port.take_status(DOWN)
        assert port.take_status(quick(13.0)).rate == NDR

    def test_was_active(self) -> None:
        """Once up, a port is expected up, whatever it is now."""
        seen = Observed(PORT)
        seen.take_status(DOWN)
        assert not seen.was_active
        seen.take_status(quick(13.0))
        seen.take_status(replace(DOWN, at=14.0))
        assert seen.was_active


class Traffic:
    """A port whose data counters are read in a steady rhythm."""

    def __init__(self) -> None:
        self.seen = Observed(PORT)
        self.last: Reading | None = None
        self.specs: tuple[CounterSpec, ...] = (
            SPECS["port_rcv_data"],
            SPECS["port_xmit_data"],
        )

    def read(self, at: float, received: int | None, sent: int | None) -> None:
        """Take in a reading as the intake does."""
        reading = Reading(PORT, at, self.specs, (received, sent))
        self.seen.take_traffic(reading, self.last)
        self.last = reading


class TestTraffic:
    def test_bytes_per_second(self) -> None:
        """The files count words of four octets."""
        traffic = Traffic()
        traffic.read(0, 0, 0)
        traffic.read(15, 15_000, 30_000)
        assert list(traffic.seen.received) == [4000]
        assert list(traffic.seen.transmitted) == [8000]

    def test_one_reading_is_no_line(self) -> None:
        """A rate needs two."""
        traffic = Traffic()
        traffic.read(0, 10**12, 10**12)
        assert not traffic.seen.received

    def test_the_same_reading_again(self) -> None:
        """No time has passed: there is no rate, and no division by zero."""
        traffic = Traffic()
        traffic.read(0, 0, 0)
        traffic.read(0, 5, 5)
        assert not traffic.seen.received

    def test_a_reset_is_not_traffic(self) -> None:
        """A counter that fell never gives a negative or absurd rate."""
        traffic = Traffic()
        traffic.read(0, 10**12, 10**12)
        traffic.read(15, 100, 100)
        assert all(0 <= point < 10**6 for point in traffic.seen.received)

    def test_a_counter_without_a_number(self) -> None:
        """What cannot be read makes no point of its own and hides no other."""
        traffic = Traffic()
        traffic.read(0, None, 0)
        traffic.read(15, None, 15)
        assert not traffic.seen.received
        assert list(traffic.seen.transmitted) == [4]

    def test_bounded(self) -> None:
        """The line on the page shows the newest quarter of an hour."""
        traffic = Traffic()
        for step in range(TRAFFIC_POINTS + 10):
            traffic.read(15.0 * step, 15 * step, 15 * step * step)
        assert len(traffic.seen.transmitted) == TRAFFIC_POINTS
        assert traffic.seen.transmitted[-1] > traffic.seen.transmitted[0] > 4


class TestErrors:
    def test_sum_of_the_hour(self) -> None:
        """Every counter of the link adds up; traffic and others do not."""
        window, seen = Window(Config()), Observed(PORT)
        specs = tuple(SPECS[f] for f in ("symbol_error", "port_rcv_errors"))
        for at, values in ((0.0, (5, 0)), (10.0, (8, 2))):
            window.add(Reading(PORT, at, specs, values), 5.0)
        traffic = (SPECS["port_rcv_data"],)
        for at in (0.0, 10.0):
            window.add(Reading(PORT, at, traffic, (int(at) * 1000,)), 5.0)
        seen.count_errors(window, 10.0)
        assert seen.errors_per_hour == 5

    def test_nothing_to_count(self) -> None:
        """A port without error counters has no number, which is not zero."""
        seen = Observed(PORT)
        seen.count_errors(Window(Config()), 10.0)
        assert seen.errors_per_hour is None


def hca(*numbers: int) -> Hca:
    """Return a device with these ports."""
    ports = tuple(HcaPort(PortId("mlx5_0", n), None, None, ()) for n in numbers)
    return Hca(
        name="mlx5_0",
        node_guid=None,
        sys_image_guid=None,
        hca_type=None,
        board_id=None,
        firmware=None,
        node_type=None,
        pci_address=None,
        driver=None,
        numa_node=None,
        is_vf=False,
        pf_address=None,
        ports=ports,
        plans=(),
    )


class TestPorts:
    def test_a_port_is_remembered(self) -> None:
        """Asking twice gives the same one."""
        ports = ObservedPorts()
        assert ports.port(PORT) is ports.port(PORT)

    def test_ports_that_a_device_no_longer_has(self) -> None:
        """They go; the device's own counters and other devices stay."""
        ports = ObservedPorts()
        kept = [PortId("mlx5_0", 0), PORT, PortId("mlx5_1", 2)]
        for port in (*kept, PortId("mlx5_0", 2)):
            ports.port(port)
        assert ports.keep_only(hca(1), hca(1)) == ()
        assert [seen.id for seen in ports] == kept

    def test_a_device_that_is_gone(self) -> None:
        """All of it goes, the PCIe link too."""
        ports = ObservedPorts()
        ports.port(PORT)
        other = ports.port(PortId("mlx5_1", 1))
        ports.pci["mlx5_0"] = PciStatus("mlx5_0", 0, "", PciLink(), PciLink())
        ports.forget("mlx5_0")
        assert list(ports) == [other]
        assert not ports.pci
