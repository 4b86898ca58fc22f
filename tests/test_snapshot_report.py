"""A snapshot in the records of tool parsers: the same words, nothing made up."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fabricmon.model import PortSnapshot, ReadFailure, Snapshot
from fabricmon.parse.report import PortReport, Report, Unavailable
from fabricmon.parse.words import PortState
from fabricmon.snapshot_report import port_report, report
from fabricmon.sources.paths import RDMA_CLASS
from tests.fake_host import FakeHost
from tests.manifest import SYSFS
from tests.running import Running
from tests.sources.mlx5_node import mlx5_node

FOLDER = f"{RDMA_CLASS}/mlx5_0/ports/1"


@pytest.fixture
def host() -> FakeHost:
    """Return a node with one HCA."""
    return mlx5_node(1)


def snapshot(host: FakeHost) -> Snapshot:
    """Return the snapshot after the first look at a node."""
    return Running(host).settle().pipeline.snapshot


def only_port(host: FakeHost) -> PortReport:
    """Return the report of the only port of a node."""
    (found,) = report(snapshot(host)).ports
    return found


def values(port: PortReport, folder: str) -> dict[str, int]:
    """Return the counters of a folder by name."""
    return {each.name: each.value for each in getattr(port, folder)}


class TestPort:
    def test_state_and_identity(self, host: FakeHost) -> None:
        """What the files say, in the words of the documents."""
        port = only_port(host)
        assert (port.device, port.port, port.state) == ("mlx5_0", 1, PortState.ACTIVE)
        assert (port.rate.gbps, port.rate.width, port.rate.speed) == (400, 4, "NDR")
        assert (port.driver, port.netdev) == ("mlx5_core", "ib0")
        assert port.node_guid == "0x2c883103009a0000"

    def test_counters_by_folder(self, host: FakeHost) -> None:
        """As read, unscaled, each in the folder where its file lies."""
        host.put(f"{FOLDER}/counters/port_rcv_data", 2**64 - 2)
        host.put(f"{FOLDER}/hw_counters/out_of_buffer", 9)
        port = only_port(host)
        assert values(port, "counters")["port_rcv_data"] == 2**64 - 2
        assert values(port, "hw_counters")["out_of_buffer"] == 9
        assert not values(port, "counters").keys() & values(port, "hw_counters").keys()

    def test_settings_are_no_counters(self, host: FakeHost) -> None:
        """`lifespan` counts nothing."""
        assert isinstance(host.read(f"{FOLDER}/hw_counters/lifespan"), bytes)
        assert "lifespan" not in values(only_port(host), "hw_counters")

    def test_a_counter_without_a_number(self, host: FakeHost) -> None:
        """It is unavailable with its reason; it is not zero."""
        host.fail(f"{FOLDER}/counters/symbol_error", "EIO")
        port = only_port(host)
        assert "symbol_error" not in values(port, "counters")
        assert Unavailable("symbol_error", "EIO") in port.unavailable

    def test_text_in_place_of_a_number(self) -> None:
        """The driver says that it has no such counter."""
        manifest = SYSFS / "sysfs-i40iw-no-pma-mlx4-legacy.manifest"
        ports = report(snapshot(FakeHost(manifest))).ports
        reasons = {item.reason for port in ports for item in port.unavailable}
        assert "N/A (no PMA)" in reasons

    def test_counters_at_their_ceiling(self) -> None:
        """They are named: such a value shows nothing more."""
        host = FakeHost(SYSFS / "sysfs-h100-ndr-bond.manifest")
        saturated = {p.device: p.saturated for p in report(snapshot(host)).ports}
        assert "link_downed" in saturated["mlx5_1"]
        assert "link_downed" not in saturated["mlx5_0"]

    def test_a_port_that_was_never_read(self, host: FakeHost) -> None:
        """Everything is null that only the files tell."""
        seen = snapshot(host).ports[0]
        empty: PortSnapshot = replace(seen, status=None, readings=())
        port = port_report(empty)
        assert (port.state, port.rate.gbps, port.lid) == (None, None, None)
        assert (port.counters, port.unavailable) == ((), ())

    def test_counters_of_the_device(self, host: FakeHost) -> None:
        """They stand once, under port 0, also where the device has two ports."""
        host.put(f"{RDMA_CLASS}/mlx5_0/hw_counters/rx_write_requests", 5)
        for file in ("state", "phys_state", "rate", "link_layer"):
            raw = host.read(f"{FOLDER}/{file}")
            assert isinstance(raw, bytes)
            host.put(f"{RDMA_CLASS}/mlx5_0/ports/2/{file}", raw)
        ports = report(snapshot(host)).ports
        own = [port for port in ports if port.port == 0]
        assert [values(port, "hw_counters") for port in own] == [
            {"rx_write_requests": 5}
        ]
        assert len(ports) == 3


class TestErrors:
    def errors(self, found: Report) -> list[tuple[object, ...]]:
        """Return where what failed, and with which errno."""
        return [(e.device, e.port, e.file, e.errno) for e in found.errors]

    def test_none(self, host: FakeHost) -> None:
        """A node that can be read whole has no errors."""
        assert report(snapshot(host)).errors == ()

    def test_a_file_that_describes_the_link(self, host: FakeHost) -> None:
        """One that fails is an error, one that does not exist is none."""
        host.fail(f"{FOLDER}/rate", "EINVAL")
        host.remove(f"{FOLDER}/lid")
        found = self.errors(report(snapshot(host)))
        assert found == [("mlx5_0", 1, "rate", "EINVAL")]

    def test_no_driver(self) -> None:
        """The class is not there: that is said, with what it means."""
        (error,) = report(snapshot(FakeHost())).errors
        assert (error.file, error.errno) == (RDMA_CLASS, "ENOENT")
        assert "no driver" in error.message

    def test_a_class_that_cannot_be_read(self, host: FakeHost) -> None:
        """That is another thing than none."""
        host.fail_folder(RDMA_CLASS, "EACCES")
        (error,) = report(snapshot(host)).errors
        assert error.errno == "EACCES"
        assert "no driver" not in error.message

    def test_what_sources_failed_at(self, host: FakeHost) -> None:
        """Devices, folders and tools, as their sources said it."""
        failure = ReadFailure("mlx5_0", 2, "x/y", "EIO", "why")
        found = replace(snapshot(host), failures=(failure,))
        assert self.errors(report(found)) == [("mlx5_0", 2, "x/y", "EIO")]

    def test_of_a_tool(self, host: FakeHost) -> None:
        """A tool is no file: it is named as what it is."""
        failure = ReadFailure(None, None, "ibstat", "ETIMEDOUT", "why")
        found = replace(snapshot(host), failures=(failure,))
        (error,) = report(found).errors
        assert (error.tool, error.file) == ("ibstat", None)
