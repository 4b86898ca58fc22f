"""A whole agent on a live fabric: sysfs, the real ibstat, and what it concludes."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from tests.ibsim.conftest import MakeAgent
from tests.ibsim.fabric import MASTER, STANDBY, Fabric
from tests.ibsim.host import SimulatedHost
from tests.ibsim.netlist import GBPS, HOSTS, Adapter, adapters_of
from tests.support.agent import AgentProcess
from tests.support.servers import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

HERE = adapters_of(HOSTS[0])
FIRST, SECOND, *_ = HERE
DEVICES = [each.device for each in HERE]
RERUN_SECONDS = 240
"""Three rounds take ten seconds, and on a machine that is busy elsewhere minutes."""


def rerun(fabric: Fabric, agent: AgentProcess) -> None:
    """Wait until a run of ibstat that began after this is compared with the files."""
    enough = fabric.tool_runs + 3 * len(HERE)
    agent.until(lambda: fabric.tool_runs >= enough, "ibstat runs again", RERUN_SECONDS)


def states(agent: AgentProcess) -> dict[str, str]:
    """Return the state of each device's port."""
    return {port["device"]: port["state"] for port in agent.check()["ports"]}


def sm_lids(agent: AgentProcess) -> set[int]:
    """Return the LIDs of subnet managers that ports name."""
    return {port["sm_lid"] for port in agent.check()["ports"]}


def told(agent: AgentProcess) -> set[str]:
    """Return every kind of finding that was ever opened."""
    return {line["kind"] for line in agent.lines("finding_open")}


class TestHealthy:
    def test_every_adapter(self, fabric: Fabric, agent: AgentProcess) -> None:
        """All HCAs are seen with what the fabric says of them; nothing is found."""
        agent.until(lambda: agent.check()["verdict"] == "healthy", "healthy")
        rerun(fabric, agent)
        document = agent.check()
        manager = fabric.lid(MASTER)
        for adapter, port in zip(HERE, document["ports"], strict=True):
            assert port["device"] == adapter.device
            assert (port["state"], port["phys_state"]) == ("ACTIVE", "LinkUp")
            assert port["node_guid"] == f"0x{adapter.node_guid:016x}"
            assert (port["lid"], port["sm_lid"]) == (fabric.lid(adapter), manager)
            assert (port["rate_gbps"], port["speed"]) == (GBPS, "FDR")
        assert document["findings"] == document["errors"] == []
        assert agent.metric('source_success{source="ibstat"}') == 1

    def test_counters(
        self, fabric: Fabric, host: SimulatedHost, agent: AgentProcess
    ) -> None:
        """What the port counts in the simulator is what is exported."""
        fabric.count(FIRST, "SymbolErrorCounter", 7)
        fabric.count(FIRST, "PortRcvErrors", 3)
        host.count(FIRST)
        labels = f'{{device="{FIRST.device}",port="1"}}'
        agent.until(
            lambda: agent.metric(f"infiniband_symbol_error_total{labels}") == 7,
            "the count is exported",
        )
        assert agent.metric(f"infiniband_port_errors_received_total{labels}") == 3

    def test_check_of_the_command(
        self, host: SimulatedHost, agent: AgentProcess
    ) -> None:
        """`fabricmon check`, asked beside the agent, says the same, with status 0."""
        agent.until(lambda: agent.check()["verdict"] == "healthy", "healthy")
        words = [sys.executable, "-m", "fabricmon", "check", "--format", "json"]
        done = subprocess.run(
            [*words, "--config", str(agent.config_file)],
            capture_output=True,
            check=False,
        )
        document: dict[str, Any] = json.loads(done.stdout)
        assert (done.returncode, document["source"]) == (0, "agent")
        assert [port["device"] for port in document["ports"]] == DEVICES


class TestLink:
    def test_down_and_up(
        self, fabric: Fabric, host: SimulatedHost, agent: AgentProcess
    ) -> None:
        """A pulled cable is that port's finding and nobody else's, until it is back."""
        with fabric.quiet():
            fabric.unlink(FIRST)
            host.refresh()
        agent.until(lambda: agent.findings("port_down"), "it is told")
        rerun(fabric, agent)
        (finding,) = agent.findings("port_down")
        assert finding["subject"]["device"] == FIRST.device
        assert agent.check()["verdict"] == "down"
        assert states(agent) == dict.fromkeys(DEVICES, "ACTIVE") | {
            FIRST.device: "DOWN"
        }
        assert agent.findings("telemetry_stale") == []
        with fabric.quiet():
            fabric.relink(FIRST)
            agent.until(lambda: refreshed(host, agent), "the port is ACTIVE again")
        agent.until(lambda: not agent.findings("port_down"), "it is resolved")

    def test_files_that_lag(
        self, fabric: Fabric, host: SimulatedHost, agent: AgentProcess
    ) -> None:
        """What ibstat says otherwise than the files is a note, and no verdict."""
        rerun(fabric, agent)
        assert agent.findings("telemetry_stale") == []
        fabric.unlink(FIRST)
        agent.until(lambda: agent.findings("telemetry_stale"), "the note")
        (finding,) = agent.findings("telemetry_stale")
        assert finding["severity"] == "info"
        assert finding["subject"]["device"] == FIRST.device
        shown = {each["signal"]: each["value"] for each in finding["evidence"]}
        assert shown == {"state": "DOWN", "phys_state": "Polling"}
        assert agent.check()["verdict"] == "healthy"
        host.refresh()
        agent.until(lambda: agent.findings("port_down"), "the files say so, too")


class TestManager:
    def test_killed(
        self, fabric: Fabric, host: SimulatedHost, agent: AgentProcess
    ) -> None:
        """Without a manager what is configured goes on: nothing is concluded from it."""
        agent.until(lambda: agent.check()["verdict"] == "healthy", "healthy")
        fabric.kill_manager(MASTER)
        host.refresh()
        rerun(fabric, agent)
        agent.until(lambda: agent.check()["verdict"] == "healthy", "healthy still")
        assert sm_lids(agent) == {fabric.lid(MASTER)}
        assert told(agent) == set()

    def test_one_link_blinks_meanwhile(
        self, fabric: Fabric, host: SimulatedHost, agent: AgentProcess
    ) -> None:
        """A link that trains anew without a manager is not configured: no bad cable."""
        fabric.kill_manager(MASTER)
        with fabric.quiet():
            fabric.unlink(FIRST)
            fabric.relink(FIRST)
            host.refresh()
        agent.until(lambda: agent.findings("port_not_active"), "it is told")
        (finding,) = agent.findings("port_not_active")
        assert finding["subject"]["device"] == FIRST.device
        assert (finding["role"], finding["action"]) == ("observer", "none")
        assert "subnet manager" in finding["summary"]
        assert agent.findings("port_down") == []
        assert states(agent)[FIRST.device] == "INIT"
        with fabric.quiet():
            fabric.start_manager(MASTER)
            agent.until(lambda: refreshed(host, agent), "the port is ACTIVE again")
        agent.until(lambda: not agent.findings("port_not_active"), "it is resolved")
        assert told(agent) <= {"port_not_active", "port_flap"}

    def test_all_links_blink_meanwhile(
        self, fabric: Fabric, host: SimulatedHost, agent: AgentProcess
    ) -> None:
        """All ports in INIT at once are one story of the fabric's control."""
        agent.until(lambda: agent.check()["verdict"] == "healthy", "healthy")
        fabric.kill_manager(MASTER)
        with fabric.quiet():
            fabric.unlink(*HERE)
            fabric.relink(*HERE)
            host.refresh()
        agent.until(lambda: agent.findings("fabric_control"), "one story")
        (finding,) = agent.findings("fabric_control")
        assert (finding["severity"], finding["action"]) == ("info", "none")
        assert {finding["action"] for finding in agent.check()["findings"]} == {"none"}
        assert not told(agent) & {"port_down", "common_cause", "device_missing"}
        with fabric.quiet():
            fabric.start_manager(MASTER)
            agent.until(lambda: refreshed(host, agent), "the ports are ACTIVE again")
        agent.until(lambda: not agent.findings("fabric_control"), "it is resolved")

    def test_failover_and_back(
        self, fabric: Fabric, host: SimulatedHost, agent: AgentProcess
    ) -> None:
        """Two failovers change the manager's LID at every port, and find nothing."""
        agent.until(lambda: agent.check()["verdict"] == "healthy", "healthy")
        fabric.start_manager(STANDBY, standby=True)
        self._fail_over(fabric, host, agent, MASTER, STANDBY)
        fabric.start_manager(MASTER, standby=True, priority=1)
        self._fail_over(fabric, host, agent, STANDBY, MASTER)
        assert agent.check()["verdict"] == "healthy"
        assert told(agent) == set()

    @staticmethod
    def _fail_over(
        fabric: Fabric,
        host: SimulatedHost,
        agent: AgentProcess,
        killed: Adapter,
        heir: Adapter,
    ) -> None:
        with fabric.quiet():
            fabric.kill_manager(killed)
            fabric.await_manager(heir)
            host.refresh()
        agent.until(lambda: sm_lids(agent) == {fabric.lid(heir)}, "the other rules")
        rerun(fabric, agent)


class TestFrozen:
    def test_hangs_and_recovers(self, fabric: Fabric, make_agent: MakeAgent) -> None:
        """A tool that hangs is ended, counted, told once, and hinders nothing."""
        agent = make_agent({"deadlines": {"command_seconds": 5}})
        agent.until(lambda: agent.check()["verdict"] == "healthy", "healthy")
        fabric.freeze()
        ended = 'read_errors_total{errno="ETIMEDOUT",source="ibstat"}'
        agent.until(lambda: (agent.metric(ended) or 0) >= 2, "two runs were ended", 60)
        metrics = agent.metrics()
        assert metrics['source_success{source="ibstat"}'] == 0
        assert metrics['source_success{source="state"}'] == 1
        assert metrics['source_age_seconds{source="state"}'] < 10
        document = agent.check()
        (error,) = document["errors"]
        assert (error["tool"], error["errno"]) == ("ibstat", "ETIMEDOUT")
        assert document["verdict"] == "unknown"
        assert {port["verdict"] for port in document["ports"]} == {"healthy"}
        assert [line["source"] for line in agent.lines("source_failed")] == ["ibstat"]
        assert len(fabric.running_tools()) <= 1
        agent.until(lambda: agent.findings("source_failed"), "the finding", 60)
        fabric.thaw()
        agent.until(lambda: agent.check()["verdict"] == "healthy", "healthy again", 60)
        assert agent.check()["errors"] == agent.findings("source_failed") == []
        (line,) = agent.lines("source_recovered")
        assert line["source"] == "ibstat"
        assert told(agent) == {"source_failed"}

    def test_stops_while_it_hangs(self, fabric: Fabric, agent: AgentProcess) -> None:
        """The agent ends within its time, and leaves no tool behind."""
        rerun(fabric, agent)
        fabric.freeze()
        agent.until(fabric.running_tools, "a tool hangs")
        assert agent.stop() < 2
        wait_until(lambda: not fabric.running_tools(), 10, "the tool is gone")


def refreshed(host: SimulatedHost, agent: AgentProcess) -> bool:
    """Let the files follow the fabric; tell whether all ports are ACTIVE."""
    host.refresh()
    return set(states(agent).values()) == {"ACTIVE"}
