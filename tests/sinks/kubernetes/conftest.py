"""API servers, faked and, where the machine has one, real; and agents that tell them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.kube_agent import Agent, Server, agents
from tests.support.kube_faked import FakedApi
from tests.support.kube_real import RealApi


@pytest.fixture
def faked(tmp_path: Path) -> Iterator[FakedApi]:
    """Return a faked server that serves."""
    server = FakedApi(tmp_path).start()
    yield server
    server.stop()


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealApi]:
    """Return a real server."""
    server = RealApi(tmp_path_factory.mktemp("kube"))
    try:
        yield server.start()
    finally:
        server.stop()


@pytest.fixture(params=["faked", pytest.param("real", marks=pytest.mark.server)])
def server(request: pytest.FixtureRequest) -> Server:
    """Return each kind of server."""
    found: Server = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def agent(server: Server, tmp_path: Path) -> Iterator[Agent]:
    """Return an agent on a node that the server knows."""
    yield from agents(server, tmp_path)


@pytest.fixture
def lone(faked: FakedApi, tmp_path: Path) -> Iterator[Agent]:
    """Return an agent whose server can be put into trouble."""
    yield from agents(faked, tmp_path)
