"""A real agent from start to end: readiness, liveliness, reload, stop.

The times asserted are those that an operator would notice, not measurements.
"""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any
from urllib.error import HTTPError

import pytest

from tests.agent.conftest import MakeAgent
from tests.support.agent import CLASS, AgentProcess, Node
from tests.support.servers import LOOPBACK, wait_until

START_SECONDS = 10.0  # a second on an idle machine
STOP_SECONDS = 6.0  # two seconds are promised


def configured_hash(agent: AgentProcess) -> str:
    """Return the hash of the configuration in force."""
    series = [s for s in agent.metrics() if s.startswith("config_info")]
    return series[0]


@pytest.fixture(scope="module")
def quiet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AgentProcess]:
    """Return an agent to which nothing happens."""
    folder = tmp_path_factory.mktemp("quiet")
    Node(folder)
    agent = AgentProcess(folder)
    try:
        yield agent.start()
    finally:
        agent.close()


class TestStart:
    def test_ready(self, quiet: AgentProcess) -> None:
        """It says so once every port is known and metrics are served."""
        ready = quiet.supervisor.times("READY=1")[0]
        assert ready - quiet.started < START_SECONDS
        assert quiet.get("/readyz") == "ready\n"
        assert quiet.metric("node_verdict") == 0
        quiet.until(lambda: quiet.lines("agent_ready"), "it is logged")
        (line,) = quiet.lines("agent_ready")
        assert line["seen"] == "4 ports, healthy"

    @pytest.mark.parametrize("file", ["node_guid", "ports/1/state", "ports/1/rate"])
    def test_ready_although_a_device_hangs(
        self, node: Node, make_agent: MakeAgent, file: str
    ) -> None:
        """A start does not wait for a device that may never answer."""
        node.hang(f"{CLASS}/mlx5_0/{file}")
        agent = make_agent(
            {
                "periods": {"link_events_seconds": 60},
                "deadlines": {"read_seconds": 60},
            }
        ).start()
        (ready,) = agent.supervisor.times("READY=1")
        assert ready - agent.started < START_SECONDS
        active = [p["device"] for p in agent.check()["ports"] if p["state"] == "ACTIVE"]
        assert {"mlx5_1", "mlx5_4", "mlx5_bond_0"} <= set(active)

    def test_an_address_in_use(self, node: Node, make_agent: MakeAgent) -> None:
        """It ends with one line that names the address, and says no READY."""
        agent = make_agent()
        with socket.create_server((LOOPBACK, agent.port)):
            agent.start(ready=False)
            assert agent.wait(20) == 70
        last = agent.log_file.read_text().splitlines()[-1]
        assert last.startswith("fabricmon: ")
        assert str(agent.port) in last
        assert agent.supervisor.times("READY=1") == []

    def test_a_second_agent(self, node: Node, make_agent: MakeAgent) -> None:
        """The socket stays with the first one; the second one says so and runs."""
        first = make_agent().start()
        second = make_agent({"run_folder": str(first.run_folder)}, name="second")
        second.start()
        (line,) = second.lines("socket_unavailable")
        assert "another agent answers here" in line["err"]
        second.stop()
        assert first.check()["verdict"] == "healthy"


class TestWatchdog:
    def test_it_is_fed(self, node: Node, make_agent: MakeAgent) -> None:
        """Again and again, also while a device hangs: that is no reason to kill it."""
        node.hang(f"{CLASS}/mlx5_0/ports/1/state")
        agent = make_agent().start(WATCHDOG_USEC="1000000")
        agent.until(
            lambda: len(agent.supervisor.times("WATCHDOG=1")) >= 4, "four signs of life"
        )
        first, *_, last = agent.supervisor.times("WATCHDOG=1")
        assert last - first >= 0.6

    def test_nobody_wants_it(self, quiet: AgentProcess) -> None:
        """Without a watchdog nothing is sent."""
        assert quiet.supervisor.times("READY=1")
        assert quiet.supervisor.times("WATCHDOG=1") == []


class TestStop:
    def test_at_once(self, agent: AgentProcess) -> None:
        """It says that it stops, saves its state and takes its socket away."""
        assert agent.stop() < STOP_SECONDS
        assert len(agent.supervisor.times("STOPPING=1")) == 1
        assert (agent.state_folder / "state.msgpack").exists()
        assert list(agent.run_folder.iterdir()) == []
        assert agent.lines()[-1]["event"] == "agent_stopped"

    def test_with_a_hung_read_and_an_open_scrape(
        self, node: Node, agent: AgentProcess
    ) -> None:
        """Neither holds it up; the read that was given up is named."""
        node.hang(node.port("mlx5_0", "counters/symbol_error"))
        agent.until(lambda: agent.check()["errors"], "the read hangs")
        address = (LOOPBACK, agent.port)
        with socket.create_connection(address) as silent:
            silent.sendall(b"GET /metrics HTTP/1.1\r\n")
            with socket.create_connection(address):
                assert agent.stop() < STOP_SECONDS
        (line,) = agent.lines("read_abandoned")
        assert line["device"] == "mlx5_0"

    def test_twice(self, agent: AgentProcess) -> None:
        """An impatient operator changes nothing."""
        agent.signal(signal.SIGTERM)
        agent.signal(signal.SIGINT)
        assert agent.wait(10) == 0
        assert len(agent.lines("agent_stopping")) == 1

    def test_before_it_is_ready(self, node: Node, make_agent: MakeAgent) -> None:
        """A start that is called off ends as well."""
        node.hang(f"{CLASS}/mlx5_0/node_guid")
        agent = make_agent()
        agent.start(ready=False)
        wait_until(
            (agent.run_folder / "agent.sock").exists, 20, "the agent is about to start"
        )
        agent.signal(signal.SIGTERM)
        assert agent.wait(10) in {0, -signal.SIGTERM}


class TestReload:
    def test_a_good_configuration(self, node: Node, agent: AgentProcess) -> None:
        """It is in force at once; nothing that was known is forgotten."""
        node.state("mlx5_0", "1: DOWN", "2: Polling")
        agent.until(lambda: agent.findings("port_down"), "the port is down")
        (before,) = agent.findings("port_down")
        old = configured_hash(agent)
        agent.configure({"kinds": {"link_errors": "off"}})
        agent.signal(signal.SIGHUP)
        agent.until(lambda: configured_hash(agent) != old, "another hash")
        agent.until(
            lambda: len(agent.supervisor.times("READY=1")) == 2, "the reload is over"
        )
        assert len(agent.supervisor.times("RELOADING=1")) == 1
        (line,) = agent.lines("configuration_loaded")
        assert line["hash"] in configured_hash(agent)
        assert line["restart_needed"] == []
        agent.until(lambda: len(agent.check()["ports"]) == 4, "every port is there")
        (after,) = agent.findings("port_down")
        assert (after["id"], after["onset"]) == (before["id"], before["onset"])
        opened = [line["kind"] for line in agent.lines("finding_open")]
        assert opened.count("port_down") == 1

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            ('{"perods": {}}', ["perods", "periods"]),
            ("periods: [", []),
            ('{"periods": {"state_seconds": -1}}', ["periods.state_seconds"]),
        ],
        ids=["unknown key", "no YAML", "wrong value"],
    )
    def test_a_wrong_configuration(
        self, quiet: AgentProcess, text: str, said: list[str]
    ) -> None:
        """The old one stays, and one line names file and key."""
        old = configured_hash(quiet)
        told = len(quiet.lines("configuration_refused"))
        over = len(quiet.supervisor.times("READY=1"))
        quiet.config_file.write_text(text)
        quiet.signal(signal.SIGHUP)
        quiet.until(
            lambda: len(quiet.supervisor.times("READY=1")) > over, "the reload is over"
        )
        (line,) = quiet.lines("configuration_refused")[told:]
        assert all(word in line["err"] for word in [str(quiet.config_file), *said])
        assert "\n" not in line["err"]
        assert configured_hash(quiet) == old
        reads = quiet.metric("firmware_reads_total") or 0
        quiet.until(
            lambda: (quiet.metric("firmware_reads_total") or 0) > reads, "it reads on"
        )

    def test_a_device_that_is_excluded(self, node: Node, agent: AgentProcess) -> None:
        """It is gone from all that is served, and it is not missed."""
        agent.configure({"devices": {"exclude": ["mlx5_0"]}})
        agent.signal(signal.SIGHUP)
        agent.until(lambda: len(agent.check()["ports"]) == 3, "one port less")
        assert agent.findings("device_missing") == []
        assert not any('device="mlx5_0"' in series for series in agent.metrics())

    def test_what_needs_a_restart(self, agent: AgentProcess, free_port: int) -> None:
        """An address is not changed while it is served; that is said."""
        agent.configure({"listen": {"metrics": f"{LOOPBACK}:{free_port}"}})
        agent.signal(signal.SIGHUP)
        agent.until(lambda: agent.lines("configuration_loaded"), "it is taken")
        (line,) = agent.lines("configuration_loaded")
        assert line["restart_needed"] == ["listen"]
        agent.until(lambda: agent.metric("node_verdict") == 0, "served as before")
        agent.configure({})
        agent.signal(signal.SIGHUP)
        agent.until(lambda: len(agent.lines("configuration_loaded")) == 2, "taken back")
        assert agent.lines("configuration_loaded")[1]["restart_needed"] == []

    def test_with_a_device_that_hangs(self, node: Node, agent: AgentProcess) -> None:
        """The old read still hangs; the new configuration is in force all the same."""
        node.hang(node.port("mlx5_0", "counters/symbol_error"))
        agent.until(lambda: agent.check()["errors"], "the read hangs")
        old = configured_hash(agent)
        agent.configure({"kinds": {"link_errors": "off"}})
        agent.signal(signal.SIGHUP)
        agent.until(lambda: configured_hash(agent) != old, "another hash")
        agent.until(lambda: agent.check()["errors"], "the read hangs")
        (error,) = agent.check()["errors"]
        assert error["device"] == "mlx5_0"
        assert agent.check()["verdict"] == "unknown"


class TestHealth:
    def test_while_it_runs(self, quiet: AgentProcess) -> None:
        """A probe gets a plain answer."""
        assert quiet.get("/healthz") == "ok\n"

    def test_not_ready(self, node: Node, make_agent: MakeAgent) -> None:
        """Before the first look a probe is told to wait, with the reason."""
        agent = make_agent()
        agent.start(ready=False)
        statuses: list[Any] = []

        def is_ready() -> bool:
            try:
                statuses.append(agent.get("/readyz"))
            except HTTPError as error:
                statuses.append(error.code)
            except OSError:
                return False
            return bool(statuses[-1] == "ready\n")

        wait_until(is_ready, 20, "it is ready")
        assert set(statuses) <= {503, "ready\n"}


class TestCheck:
    def run(self, agent: AgentProcess, *words: str) -> tuple[int, str]:
        """Call `fabricmon check` as a person would."""
        command = [sys.executable, "-m", "fabricmon", "check"]
        command += ["--config", str(agent.config_file), *words]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.stderr == ""
        return done.returncode, done.stdout

    def test_the_agent_is_asked(self, node: Node, agent: AgentProcess) -> None:
        """It knows of a flap that no look at the files can show."""
        node.put(node.port("mlx5_0", "counters/link_downed"), "1\n")
        agent.until(lambda: agent.findings("port_flap"), "the flap is found")
        status, text = self.run(agent, "--format", "json")
        content = json.loads(text)
        assert (status, content["source"], content["verdict"]) == (
            *(1, "agent", "degraded"),
        )
        assert content["findings"][0]["id"]
        status, line = self.run(agent, "--format", "reason")
        assert status == 1
        assert line.startswith("fabricmon: mlx5_0/1 ")
        assert len(line) <= 81
        assert self.run(agent, "--format", "nagios")[1].startswith("FABRIC WARNING - ")

    def test_without_an_agent(self, agent: AgentProcess) -> None:
        """Killed, it leaves a socket behind that nobody answers: a sample is taken."""
        agent.kill()
        assert list(agent.run_folder.iterdir())
        started = time.monotonic()
        status, text = self.run(agent, "--format", "json")
        assert json.loads(text)["source"] == "sample"
        assert status == 0
        assert time.monotonic() - started < 10


def test_maintenance(node: Node, agent: AgentProcess) -> None:
    """What the command writes silences an agent whose node's root is elsewhere."""
    command = [sys.executable, "-m", "fabricmon", "maintenance"]
    where = ["--config", str(agent.config_file)]
    words = ["set", "--for", "1h", "--ports", "mlx5_0/1"]
    subprocess.run([*command, *words, *where], check=True, capture_output=True)
    series = 'maintenance{device="mlx5_0",port="1"}'
    agent.until(lambda: agent.metric(series) == 1, "the window is known")
    node.state("mlx5_0", "1: DOWN", "2: Polling")
    node.state("mlx5_1", "1: DOWN", "2: Polling")
    agent.until(lambda: agent.findings("port_down"), "the other port is found down")
    (finding,) = agent.findings("port_down")
    assert finding["subject"]["device"] == "mlx5_1"
    subprocess.run([*command, "clear", *where], check=True, capture_output=True)
    agent.until(lambda: len(agent.findings("port_down")) == 2, "both are told")


def test_a_maintenance_file_that_is_wrong(agent: AgentProcess) -> None:
    """It changes no verdict; one line and `check` say that it is ignored."""
    (agent.run_folder / "maintenance.json").write_text("nonsense")
    agent.until(lambda: agent.lines("maintenance_ignored"), "it is said")
    content = agent.check()
    (error,) = content["errors"]
    assert "maintenance.json" in error["message"]
    assert content["verdict"] == "healthy"
