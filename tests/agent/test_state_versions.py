"""An upgrade and a rollback: real agents on states that others wrote.

``version-1.msgpack`` is what the first agent with a saved state wrote when mlx5_0 was
down; it must stay readable as long as `fabricmon.saved.VERSION` reaches back so far.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from fabricmon.saved import VERSION
from tests.agent.conftest import MakeAgent
from tests.support.agent import AgentProcess, Json, Node

STATE = Path(__file__).parent.parent / "data" / "state" / "version-1.msgpack"
PORT_DOWN = "2614a00bda9d39ee"


def _start_on(node: Node, make_agent: MakeAgent, state: bytes) -> AgentProcess:
    agent = make_agent()
    agent.state_folder.mkdir()
    (agent.state_folder / "state.msgpack").write_bytes(state)
    node.state("mlx5_0", "1: DOWN", "2: Polling")
    return agent.start()


def _later(**fields: object) -> bytes:
    """Return the state as a later version might write it."""
    tree: Json = msgspec.msgpack.decode(STATE.read_bytes())
    return msgspec.msgpack.encode({**tree, **fields})


def test_of_the_version_before(node: Node, make_agent: MakeAgent) -> None:
    """What was open goes on under its id, and is not told again."""
    agent = _start_on(node, make_agent, STATE.read_bytes())
    agent.until(lambda: len(agent.check()["ports"]) == 4, "every port is known")

    (finding,) = agent.findings("port_down")
    assert finding["id"] == PORT_DOWN
    assert agent.lines("state_ignored") == []
    assert [x for x in agent.lines("finding_open") if x["kind"] == "port_down"] == []


def test_of_a_later_version_that_says_more(node: Node, make_agent: MakeAgent) -> None:
    """After a rollback what is known is kept, and what is not known is passed over."""
    agent = _start_on(node, make_agent, _later(forecast={"mlx5_0": [1, 2]}))

    (finding,) = agent.findings("port_down")
    assert finding["id"] == PORT_DOWN
    assert agent.lines("state_ignored") == []


def test_of_a_later_version_that_means_more(node: Node, make_agent: MakeAgent) -> None:
    """A state that would be misunderstood is passed over, said, and replaced."""
    agent = _start_on(node, make_agent, _later(version=VERSION + 1, seq="many"))
    agent.until(lambda: agent.findings("port_down"), "the port is found down")

    (finding,) = agent.findings("port_down")
    assert finding["id"] != PORT_DOWN
    (line,) = agent.lines("state_ignored")
    assert "written by a newer fabricmon" in line["err"]
    agent.stop()
    saved = msgspec.msgpack.decode((agent.state_folder / "state.msgpack").read_bytes())
    assert saved["version"] == VERSION
