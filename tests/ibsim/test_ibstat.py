"""The real ibstat on a live fabric: source and parser read what is there."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fabricmon.config import Config, Deadlines
from fabricmon.host.live import LiveHost
from fabricmon.model import PortId, ReadFailure, Record, Target, ToolReport
from fabricmon.parse.ibstat import ibstat_report
from fabricmon.parse.report import PortReport
from fabricmon.parse.words import LinkLayer, PhysState, PortState
from fabricmon.sources import ibstat
from tests.ibsim.fabric import MASTER, STANDBY, Fabric
from tests.ibsim.netlist import HOSTS, Adapter, adapters_of
from tests.support.servers import wait_until

Poll = Callable[..., tuple[Record, ...]]

PATIENCE_SECONDS = 30

ACTIVE = (PortState.ACTIVE, PhysState.LINK_UP)
FIRST, SECOND, *_ = adapters_of(HOSTS[0])


@pytest.fixture
def poll(monkeypatch: pytest.MonkeyPatch, bare_fabric: Fabric) -> Iterator[Poll]:
    """Run the agent's source on a host: `poll(host, seconds)`."""
    live = LiveHost()

    def run(host: str, seconds: float = PATIENCE_SECONDS) -> tuple[Record, ...]:
        config = Config(deadlines=Deadlines(command_seconds=seconds))
        folder = bare_fabric.ibstat_of(*adapters_of(host))
        monkeypatch.setenv("PATH", f"{folder}:/usr/sbin:/usr/bin:/sbin:/bin")
        return ibstat.poll(live, Target(), config)

    yield run
    live.close()


def states(records: tuple[Record, ...]) -> dict[str, tuple[Any, Any]]:
    """Return state and physical state of each device."""
    (report,) = records
    assert isinstance(report, ToolReport)
    assert report.errors == ()
    return {each.port.device: (each.state, each.phys_state) for each in report.statuses}


def manager_lids(records: tuple[Record, ...]) -> set[int | None]:
    """Return the LIDs of subnet managers that ports name."""
    (report,) = records
    assert isinstance(report, ToolReport)
    return {each.sm_lid for each in report.statuses}


def seen(fabric: Fabric, adapter: Adapter) -> PortReport:
    """Return what the parser makes of ibstat at an HCA."""
    done = fabric.run(adapter, "ibstat")
    (port,) = ibstat_report(done.stdout, done.stderr, done.returncode).ports
    return port


class TestHealthy:
    @pytest.mark.parametrize("host", HOSTS)
    def test_source(self, fabric: Fabric, poll: Poll, host: str) -> None:
        """Every HCA is there, ACTIVE, with the LIDs and the rate that the fabric has."""
        (report,) = poll(host)
        assert isinstance(report, ToolReport)
        manager = fabric.lid(MASTER)
        for adapter, status in zip(adapters_of(host), report.statuses, strict=True):
            assert status.port == PortId(adapter.device, 1)
            assert (status.state, status.phys_state) == ACTIVE
            assert (status.lid, status.sm_lid) == (fabric.lid(adapter), manager)
            assert status.rate.gbps == adapter.gbps
        assert report.errors == ()

    @pytest.mark.parametrize("host", HOSTS)
    def test_identity(self, fabric: Fabric, host: str) -> None:
        """GUIDs are those that the fabric was built with."""
        for adapter in adapters_of(host):
            port = seen(fabric, adapter)
            assert port.node_guid == f"0x{adapter.node_guid:016x}"
            assert port.guid == f"0x{adapter.node_guid + 1:016x}"
            assert port.link_layer is LinkLayer.INFINIBAND
            assert port.hca_type == "simulator"


class TestLink:
    def test_down_and_up(self, fabric: Fabric, poll: Poll) -> None:
        """The port whose cable is pulled is DOWN, alone, until it is plugged in."""
        fabric.unlink(FIRST)
        down = states(poll(HOSTS[0]))
        assert down.pop(FIRST.device) == (PortState.DOWN, PhysState.POLLING)
        assert set(down.values()) == {ACTIVE}
        fabric.relink(FIRST)
        wait_until(
            lambda: set(states(poll(HOSTS[0])).values()) == {ACTIVE},
            30,
            "the subnet manager activates the port",
        )


class TestManager:
    def test_none(self, bare_fabric: Fabric, poll: Poll) -> None:
        """Links that nobody configured are trained, in INIT, and have no LID."""
        records = poll(HOSTS[0])
        assert set(states(records).values()) == {(PortState.INIT, PhysState.LINK_UP)}
        assert manager_lids(records) == {0}

    def test_killed(self, fabric: Fabric, poll: Poll) -> None:
        """Ports stay as they were; ibstat still names the manager that is gone."""
        before = poll(HOSTS[0])
        fabric.kill_manager(MASTER)
        after = poll(HOSTS[0])
        assert states(after) == states(before)
        assert manager_lids(after) == {fabric.lid(MASTER)}

    def test_failover_and_back(self, fabric: Fabric, poll: Poll) -> None:
        """After a failover ports name the other manager, and after the next the first."""
        fabric.start_manager(STANDBY, standby=True)
        assert manager_lids(poll(HOSTS[0])) == {fabric.lid(MASTER)}
        fabric.kill_manager(MASTER)
        fabric.await_manager(STANDBY)
        assert manager_lids(poll(HOSTS[0])) == {fabric.lid(STANDBY)}
        fabric.start_manager(MASTER, standby=True, priority=1)
        assert manager_lids(poll(HOSTS[0])) == {fabric.lid(STANDBY)}
        fabric.kill_manager(STANDBY)
        fabric.await_manager(MASTER)
        assert manager_lids(poll(HOSTS[0])) == {fabric.lid(MASTER)}


class TestFrozen:
    def test_ended(self, fabric: Fabric, poll: Poll) -> None:
        """A tool that hangs is ended at its deadline; afterwards it answers again."""
        assert states(poll(HOSTS[0]))
        fabric.freeze()
        begin = time.monotonic()
        (failure,) = poll(HOSTS[0], seconds=1)
        took = time.monotonic() - begin
        assert isinstance(failure, ReadFailure)
        assert failure.errno == "ETIMEDOUT"
        assert 1 <= took < 4
        assert fabric.running_tools() == []
        fabric.thaw()
        assert set(states(poll(HOSTS[0])).values()) == {ACTIVE}


class TestCheck:
    @pytest.mark.parametrize(
        ("unlinked", "verdict", "status"), [((), "healthy", 0), ((SECOND,), "down", 2)]
    )
    def test_of_its_output(
        self,
        fabric: Fabric,
        tmp_path: Path,
        unlinked: tuple[Adapter, ...],
        verdict: str,
        status: int,
    ) -> None:
        """`fabricmon check --ibstat` judges what the real tool printed."""
        fabric.unlink(*unlinked)
        program = fabric.ibstat_of(*adapters_of(HOSTS[0])) / "ibstat"
        printed = tmp_path / "printed"
        with printed.open("wb") as output:
            subprocess.run([program], stdout=output, check=True)
        words = ["check", "--ibstat", str(printed), "--format", "json"]
        done = subprocess.run(
            [sys.executable, "-m", "fabricmon", *words],
            capture_output=True,
            check=False,
        )
        document = json.loads(done.stdout)
        ports = {port["device"]: port["verdict"] for port in document["ports"]}
        expected = {each.device: "healthy" for each in adapters_of(HOSTS[0])}
        assert ports == expected | {each.device: "down" for each in unlinked}
        assert (document["verdict"], done.returncode) == (verdict, status)
