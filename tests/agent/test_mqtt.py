"""A real agent and a real broker: last will, kill -9, reload, memory not paid for."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from tests.agent.conftest import MakeAgent
from tests.conftest import StartServer
from tests.support.agent import AgentProcess, Json, Node
from tests.support.mqtt import Listener, retained
from tests.support.servers import LOOPBACK, Server, free_port, wait_until

pytestmark = pytest.mark.server

ROOT = "fabricmon/v1/c1/node01/"
STOP_SECONDS = 3.0  # two are promised, on a machine that does nothing else


def sending_to(port: int, **mqtt: object) -> Json:
    """Return the configuration of an agent that sends to this broker."""
    quick = {"retry_seconds": 0.05, "retry_cap_seconds": 0.2}
    return {"cluster": "c1", "mqtt": {"host": LOOPBACK, "port": port, **quick, **mqtt}}


class TestLife:
    def test_online_and_offline(
        self, node: Node, make_agent: MakeAgent, mosquitto: Server
    ) -> None:
        """Another client sees it come, what it has, and its orderly end."""
        with Listener(mosquitto.port) as listener:
            agent = make_agent(sending_to(mosquitto.port)).start()
            listener.until("/status")
            listener.until("/port/mlx5_0/1")
            listener.until("/summary")
            node.state("mlx5_0", "1: DOWN", "2: Polling")
            wait_until(
                lambda: (
                    "port_down" in {f.json["kind"] for f in listener.of("/finding")}
                ),
                20,
                "the finding comes",
            )
            assert agent.metric('sink_connected{sink="mqtt"}') == 1
            agent.stop()
            wait_until(lambda: listener.state() == "offline", 10, "it is offline")

    def test_last_will(
        self, node: Node, make_agent: MakeAgent, mosquitto: Server
    ) -> None:
        """Of an agent that is killed the broker tells that it is offline."""
        with Listener(mosquitto.port) as listener:
            agent = make_agent(sending_to(mosquitto.port)).start()
            wait_until(lambda: listener.state() == "online", 20, "it is online")
            agent.kill()
            wait_until(lambda: listener.state() == "offline", 10, "the will comes")
        will = json.loads(retained(mosquitto.port)[f"{ROOT}status"])
        assert set(will) == {"state", "since", "version"}

    def test_kill_keeps_what_waits(
        self, node: Node, make_agent: MakeAgent, start_mosquitto: StartServer
    ) -> None:
        """Findings of an agent that was killed come with the next one, in order."""
        port = free_port()
        agent = make_agent(sending_to(port)).start()
        node.state("mlx5_0", "1: DOWN", "2: Polling")
        agent.until(lambda: agent.findings("port_down"), "the port is down")
        agent.until(
            lambda: agent.metrics()['sink_waiting_findings{sink="mqtt"}'] >= 5,
            "its findings wait",
        )
        waiting = agent.metrics()['sink_waiting_findings{sink="mqtt"}']
        agent.kill()
        broker = start_mosquitto("", port)
        with Listener(broker.port) as listener:
            agent.start()
            listener.until("/finding", int(waiting))
        assert listener.seqs == sorted(set(listener.seqs))
        assert listener.seqs[0] == 1

    def test_stop_with_a_dead_broker(self, node: Node, make_agent: MakeAgent) -> None:
        """It ends in time, whatever the broker does not do."""
        agent = make_agent(sending_to(free_port())).start()
        agent.until(lambda: agent.lines("broker_unreachable"), "it tried")
        assert agent.stop() < STOP_SECONDS
        assert agent.lines("sink_abandoned") == []

    def test_a_broker_that_is_killed(
        self, node: Node, make_agent: MakeAgent, mosquitto: Server
    ) -> None:
        """The agent says so once, goes on, and is there again with the broker."""
        agent = make_agent(sending_to(mosquitto.port)).start()
        agent.until(lambda: agent.lines("broker_connected"), "it is connected")
        mosquitto.kill()
        agent.until(lambda: agent.lines("broker_unreachable"), "it is said")
        mosquitto.start()
        agent.until(lambda: len(agent.lines("broker_connected")) == 2, "it is back")
        assert agent.check()["verdict"] == "healthy"
        assert all(isinstance(line, dict) for line in agent.lines())


class TestReload:
    def test_turned_on(
        self, node: Node, make_agent: MakeAgent, mosquitto: Server
    ) -> None:
        """SIGHUP connects an agent that was not; before, it had loaded none of it."""
        agent = make_agent().start()
        assert not any("sink_" in series for series in agent.metrics())
        assert not _loads(agent, "sqlite3")
        agent.configure(sending_to(mosquitto.port))
        agent.signal(signal.SIGHUP)
        agent.until(lambda: agent.lines("broker_connected"), "it is connected")

    def test_a_file_that_cannot_be_read(
        self, node: Node, agent: AgentProcess, mosquitto: Server
    ) -> None:
        """Such a configuration is refused, with the key and the file."""
        wrong = sending_to(mosquitto.port, user_file="/nowhere/user")
        agent.configure(wrong)
        agent.signal(signal.SIGHUP)
        agent.until(lambda: agent.lines("configuration_refused"), "it is refused")
        (line,) = agent.lines("configuration_refused")
        assert "mqtt.user_file: /nowhere/user" in line["err"]


def _loads(agent: AgentProcess, library: str) -> bool:
    """Tell whether a process has a shared library of Python's loaded."""
    return library in Path(f"/proc/{agent.pid}/maps").read_text()
