from __future__ import annotations

import os
import subprocess
from array import array
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabricmon.host.live_ethtool import MOST_STATISTICS, DriverStatistics
from fabricmon.host.protocol import ReadError, Statistic
from tests.support.namespace import apart, ip
from tests.support.programs import require

GSTRINGS, GSTATS, GSSET_INFO = 0x1B, 0x1D, 0x37


class Driver:
    """Answers ethtool commands as a driver with these statistics would."""

    def __init__(self, names: list[bytes], values: list[int]) -> None:
        self.names = names
        self.values = values
        self.count = len(names)
        self.asked: list[int] = []

    def __call__(self, netdev: str, buffer: array[int]) -> None:
        """Do what the kernel does with a command's buffer."""
        command = int.from_bytes(buffer[:4], "little")
        self.asked.append(command)
        if command == GSSET_INFO:
            self.put(buffer, 16, self.count.to_bytes(4, "little"))
        elif command == GSTRINGS:
            packed = b"".join(name.ljust(32, b"\0") for name in self.names)
            self.put(buffer, 8, len(self.names).to_bytes(4, "little") + packed)
        else:
            packed = array("Q", self.values).tobytes()
            self.put(buffer, 4, len(self.values).to_bytes(4, "little") + packed)

    @staticmethod
    def put(buffer: array[int], at: int, data: bytes) -> None:
        """Write as the kernel does; a buffer too small is an error of ours."""
        assert at + len(data) <= len(buffer)
        buffer[at : at + len(data)] = array("B", data)


@pytest.fixture
def driver() -> Driver:
    """Return a driver with two statistics."""
    return Driver([b"rx_prio3_pause", b"tx_prio3_pause"], [7, 2**64 - 1])


class TestRealDevices:
    def test_same_as_ethtool(self, tmp_path: Path) -> None:
        """A veth pair has the statistics that `ethtool -S` prints."""

        def both(_root: Path) -> tuple[object, str]:
            ip("link", "add", "v0", "type", "veth", "peer", "name", "v1")
            statistics = DriverStatistics()
            ours = statistics.read("v0")
            statistics.close()
            command = [require("ethtool"), "-S", "v0"]
            printed = subprocess.run(
                command, check=True, capture_output=True, text=True
            )
            return ours, printed.stdout

        ours, printed = apart(both, tmp_path)

        assert isinstance(ours, tuple)
        lines = printed.splitlines()[1:]
        assert [f"     {s.name}: {s.value}" for s in ours] == lines
        assert ours[0].name == "peer_ifindex"

    @pytest.mark.parametrize(
        ("netdev", "error"),
        [
            ("lo", "EOPNOTSUPP"),
            ("absent0", "ENODEV"),
            ("", "ENODEV"),
            ("a" * 16, "ENODEV"),
            ("a\0b", "ENODEV"),
            (os.fsdecode(b"\xff"), "ENODEV"),
        ],
    )
    def test_errors(self, netdev: str, error: str) -> None:
        """No statistics and no device are told apart."""
        statistics = DriverStatistics()

        assert statistics.read(netdev) == ReadError(error)

        statistics.close()


class TestDriverStatistics:
    def test_values(self, driver: Driver) -> None:
        """Names and values come in the driver's order, at full width."""
        assert DriverStatistics(driver).read("eth0") == (
            Statistic("rx_prio3_pause", 7),
            Statistic("tx_prio3_pause", 2**64 - 1),
        )

    def test_names_are_asked_for_once(self, driver: Driver) -> None:
        """A second call asks for the number and the values alone."""
        statistics = DriverStatistics(driver)
        statistics.read("eth0")
        driver.asked.clear()
        driver.values = [8, 9]

        again = statistics.read("eth0")

        assert driver.asked == [GSSET_INFO, GSTATS]
        assert again == (Statistic("rx_prio3_pause", 8), Statistic("tx_prio3_pause", 9))

    def test_number_of_queues_changed(self, driver: Driver) -> None:
        """A new number of statistics means new names."""
        statistics = DriverStatistics(driver)
        statistics.read("eth0")
        driver.names, driver.values, driver.count = [b"rx0_packets"], [5], 1

        assert statistics.read("eth0") == (Statistic("rx0_packets", 5),)

    @pytest.mark.parametrize("values", [[1], [1, 2, 3]])
    def test_number_changed_meanwhile(self, driver: Driver, values: list[int]) -> None:
        """More than was asked for does no harm; fewer cannot be given names."""
        driver.values = values

        read = DriverStatistics(driver).read("eth0")

        few = len(values) < 2
        assert read == ReadError("EAGAIN") if few else len(read) == 2  # type: ignore[arg-type]

    def test_forgotten_names(self, driver: Driver) -> None:
        """After a device is gone its name may belong to another."""
        statistics = DriverStatistics(driver)
        statistics.read("eth0")
        driver.names = [b"a", b"b"]

        statistics.forget("eth0")

        assert statistics.read("eth0") == (
            Statistic("a", 7),
            Statistic("b", 2**64 - 1),
        )

    def test_none(self) -> None:
        """A driver may have an empty list."""
        assert DriverStatistics(Driver([], [])).read("eth0") == ()

    def test_too_many(self, driver: Driver) -> None:
        """A number that no driver has is not believed."""
        driver.count = MOST_STATISTICS + 1

        assert DriverStatistics(driver).read("eth0") == ReadError("EFBIG")

    @given(st.lists(st.binary(max_size=32), max_size=20))
    def test_names_of_any_bytes(self, names: list[bytes]) -> None:
        """Names end at their zero byte or fill all 32 bytes; no byte is refused."""
        read = DriverStatistics(Driver(names, list(range(len(names))))).read("eth0")

        assert isinstance(read, tuple)
        assert [statistic.value for statistic in read] == list(range(len(names)))
        for statistic, name in zip(read, names, strict=True):
            assert statistic.name == name.split(b"\0")[0].decode("latin-1").strip()
