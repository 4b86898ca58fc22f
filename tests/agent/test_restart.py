"""A real agent that stops and starts: nothing is forgotten, nothing is told twice."""

from __future__ import annotations

from tests.agent.conftest import MakeAgent
from tests.support.agent import AgentProcess, Json, Node


def told(agent: AgentProcess, kind: str) -> list[Json]:
    """Return the log lines about findings of a kind, over all starts."""
    return [line for line in agent.lines() if line.get("kind") == kind]


def with_port_down(node: Node, agent: AgentProcess) -> Json:
    """Let a port go down and return the finding once it is on disk."""
    node.state("mlx5_0", "1: DOWN", "2: Polling")
    agent.until(lambda: agent.findings("port_down"), "the port is found down")
    (finding,) = agent.findings("port_down")
    file = agent.state_folder / "state.msgpack"
    agent.until(
        lambda: file.exists() and finding["id"].encode() in file.read_bytes(),
        "the finding is saved",
    )
    return finding


def test_an_open_finding(node: Node, agent: AgentProcess) -> None:
    """It goes on under its id, is not opened again, and resolves with a later number."""
    before = with_port_down(node, agent)
    agent.stop()
    agent.start()
    agent.until(lambda: len(agent.check()["ports"]) == 4, "every port is known")
    (after,) = agent.findings("port_down")
    assert (after["id"], after["onset"]) == (before["id"], before["onset"])
    assert agent.check()["verdict"] == "down"
    node.state("mlx5_0", "4: ACTIVE")
    agent.until(lambda: not agent.findings("port_down"), "the port is back")
    lines = [(line["event"], line["id"]) for line in told(agent, "port_down")]
    assert lines == [
        ("finding_open", before["id"]),
        ("finding_resolved", before["id"]),
    ]
    node.state("mlx5_1", "1: DOWN", "2: Polling")
    agent.until(lambda: agent.findings("port_down"), "another port is found down")
    (another,) = agent.findings("port_down")
    assert another["seq"] > after["seq"] >= before["seq"]


def test_a_crash(node: Node, agent: AgentProcess) -> None:
    """Killed without a word, it has saved what it had told."""
    before = with_port_down(node, agent)
    agent.kill()
    agent.start()
    (after,) = agent.findings("port_down")
    assert after["id"] == before["id"]
    assert len(told(agent, "port_down")) == 1


def test_a_flap_while_it_was_away(node: Node, agent: AgentProcess) -> None:
    """Only a counter shows it, and the saved state knows what that was before."""
    agent.stop()
    node.put(node.port("mlx5_0", "counters/link_downed"), "1\n")
    agent.start()
    agent.until(lambda: agent.findings("port_flap"), "the flap is found")
    (finding,) = agent.findings("port_flap")
    assert finding["subject"]["device"] == "mlx5_0"
    evidence = {item["signal"]: item["value"] for item in finding["evidence"]}
    assert evidence["link_downed"] == 1


def test_a_port_that_went_down_meanwhile(node: Node, agent: AgentProcess) -> None:
    """It was up once: that is known, so it is missed."""
    agent.stop()
    node.state("mlx5_0", "1: DOWN", "2: Polling")
    agent.start()
    agent.until(lambda: agent.findings("port_down"), "the port is found down")


def test_a_device_that_went_meanwhile(node: Node, agent: AgentProcess) -> None:
    """The card is remembered by the saved state, and missed."""
    agent.stop()
    node.remove("sys/class/infiniband/mlx5_0")
    agent.start()
    agent.until(lambda: agent.findings("device_missing"), "the device is missed")


def test_nothing_happened(node: Node, make_agent: MakeAgent) -> None:
    """A restart by itself is no event: no finding but those about counters."""
    agent = make_agent().start()
    agent.stop()
    before = len(agent.lines("finding_open"))
    agent.start()
    agent.until(lambda: len(agent.check()["ports"]) == 4, "every port is known")
    assert len(agent.lines("finding_open")) == before
    assert agent.check()["verdict"] == "healthy"
