"""Fabrics for the tests of this folder, and hosts and agents in them."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.ibsim.fabric import MASTER, Fabric
from tests.ibsim.host import SimulatedHost
from tests.ibsim.netlist import HOSTS
from tests.support.agent import AgentProcess, Json, merged

MakeAgent = Callable[..., AgentProcess]

# The tool runs every second instead of every hour. It is compared with files that are
# read five times a second, and waits of a minute or more take a second. How fast this
# machine is does not matter.
QUICK: Json = {
    "root": "/",
    "periods": {"ibstat_seconds": 1},
    "deadlines": {
        "command_seconds": 30,
        "command_retry_seconds": 1,
        "read_seconds": 10,
    },
    "telemetry": {"gap_polls": 100},
    "link_state": {"not_active_seconds": 0.5, "boot_down_seconds": 0},
}


@pytest.fixture
def bare_fabric(tmp_path: Path) -> Iterator[Fabric]:
    """Return a fabric without a subnet manager."""
    fabric = Fabric(tmp_path / "fabric")
    try:
        fabric.start()
        yield fabric
    finally:
        fabric.close()


@pytest.fixture
def fabric(bare_fabric: Fabric) -> Fabric:
    """Return a fabric with a subnet manager on the second host."""
    bare_fabric.start_manager(MASTER)
    return bare_fabric


@pytest.fixture
def host(fabric: Fabric, tmp_path: Path) -> SimulatedHost:
    """Return the files and the tool of the first host."""
    return SimulatedHost(fabric, HOSTS[0], tmp_path / "host")


@pytest.fixture
def make_agent(host: SimulatedHost, tmp_path: Path) -> Iterator[MakeAgent]:
    """Start agents on the first host: `make_agent(config)`; ends them."""
    made: list[AgentProcess] = []

    def make(config: Json | None = None) -> AgentProcess:
        whole = merged(QUICK, config or {})
        made.append(AgentProcess(tmp_path, whole, host.mounts()))
        search = f"{host.path}:/usr/sbin:/usr/bin:/sbin:/bin"
        return made[-1].start(PATH=search)

    yield make
    for agent in made:
        agent.close()


@pytest.fixture
def agent(make_agent: MakeAgent) -> AgentProcess:
    """Return an agent on the first host that is ready."""
    return make_agent()
