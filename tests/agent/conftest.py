"""Agents for the tests of this folder: real processes on trees of files."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from tests.support.agent import AgentProcess, Json, Node

MakeAgent = Callable[..., AgentProcess]


@pytest.fixture
def node(tmp_path: Path) -> Node:
    """Return the files of a node with four HCAs whose ports are all well."""
    return Node(tmp_path)


@pytest.fixture
def make_agent(tmp_path: Path) -> Iterator[MakeAgent]:
    """Prepare agents of that node: `make_agent(config, prefix, name)`; ends all."""
    made: list[AgentProcess] = []

    def make(
        config: Json | None = None, prefix: Sequence[str] = (), name: str = "agent"
    ) -> AgentProcess:
        made.append(AgentProcess(tmp_path, config, prefix, name))
        return made[-1]

    yield make
    for agent in made:
        agent.close()


@pytest.fixture
def agent(node: Node, make_agent: MakeAgent) -> AgentProcess:
    """Return an agent of that node that is ready."""
    return make_agent().start()
