"""A real agent and an API server: the condition follows the node, whatever else."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.agent.conftest import MakeAgent
from tests.support.agent import Json, Node
from tests.support.kube_faked import FakedApi
from tests.support.servers import wait_until

pytest.importorskip("lightkube", reason="MISSING lightkube (pip install --group chart)")

SOON = 20.0
STOP_SECONDS = 3.0  # two are promised, on a machine that does nothing else
MEBIBYTES = 20
"""Measured: 12, of which the library itself takes half, TLS most of the rest."""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[FakedApi]:
    """Return an API server that knows the node."""
    folder = tmp_path / "kube"
    folder.mkdir()
    made = FakedApi(folder).start()
    made.add_node("node01")
    yield made
    made.stop()


def telling(server: FakedApi, **settings: object) -> Json:
    """Return the configuration of an agent that tells this server."""
    quick = {"settle_seconds": 0, "retry_seconds": 0.05, "retry_cap_seconds": 0.2}
    more = {"enabled": True, "kubeconfig": str(server.kubeconfig), **quick, **settings}
    return {"kubernetes": more}


def status(server: FakedApi) -> str | None:
    """Return the status of the condition, None if there is none."""
    found = server.node_conditions("node01").get("FabricHealthy")
    return None if found is None else str(found["status"])


class TestAgent:
    def test_condition_follows_the_node(
        self, node: Node, make_agent: MakeAgent, server: FakedApi
    ) -> None:
        """True, False when a port goes down, and an event that says so."""
        agent = make_agent(telling(server, condition_from="inspect")).start()
        wait_until(lambda: status(server) == "True", SOON, "it is healthy")
        node.state("mlx5_0", "1: DOWN", "2: Polling")
        wait_until(lambda: status(server) == "False", SOON, "it is not")
        wait_until(lambda: bool(server.events("node01")), SOON, "an event comes")
        (event, *_) = server.events("node01")
        assert event["reason"] == "PortDown"
        assert "mlx5_0/1" in event["note"]
        assert agent.metric('sink_connected{sink="kubernetes"}') == 1
        agent.stop()
        assert status(server) == "False"

    def test_reload_turns_it_off(
        self, node: Node, make_agent: MakeAgent, server: FakedApi
    ) -> None:
        """And the condition goes with it."""
        agent = make_agent(telling(server)).start()
        wait_until(lambda: status(server) == "True", SOON, "it is healthy")
        agent.configure(telling(server, enabled=False))
        agent.signal(signal.SIGHUP)
        wait_until(lambda: status(server) is None, SOON, "it is removed")
        wait_until(
            lambda: agent.metric('sink_connected{sink="kubernetes"}') is None,
            SOON,
            "it has no metrics",
        )

    def test_server_that_is_away_costs_nothing(
        self, node: Node, make_agent: MakeAgent, server: FakedApi
    ) -> None:
        """The agent starts, judges, serves and stops as ever."""
        server.stop()
        agent = make_agent(telling(server)).start()
        node.state("mlx5_0", "1: DOWN", "2: Polling")
        wait_until(lambda: agent.check()["verdict"] == "down", SOON, "the agent judges")
        assert agent.metric('sink_connected{sink="kubernetes"}') == 0
        assert agent.stop() < STOP_SECONDS

    def test_cost(self, node: Node, make_agent: MakeAgent, server: FakedApi) -> None:
        """Some memory while it is on."""
        agent = make_agent(telling(server)).start()
        wait_until(lambda: status(server) == "True", SOON, "it is healthy")
        on = _resident(agent.pid)
        agent.stop()
        plain = make_agent(name="plain").start()
        assert on - _resident(plain.pid) < MEBIBYTES << 20

    def test_is_not_paid_for_while_it_is_off(self) -> None:
        """Nothing of the library is loaded."""
        code = (
            "import sys, fabricmon.agent\n"
            "loaded = {'lightkube', 'httpx2'} & set(sys.modules)\n"
            "sys.exit(str(loaded) if loaded else 0)"
        )
        command = [sys.executable, "-c", code]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


def _resident(pid: int) -> int:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")
