"""The scripts for Slurm, called by a real one, with a real agent on the node."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.deploy.cluster import NODE_NAME, Cluster
from tests.support.agent import AgentProcess
from tests.support.servers import wait_until
from tests.support.slurm import Slurm

pytestmark = [pytest.mark.server, pytest.mark.slow, pytest.mark.timeout(180)]

PATIENCE_SECONDS = 40.0
OFTEN, NEVER = 2, 65535
"""Seconds between health checks."""

DOWN = "fabricmon: mlx5_0/1 DOWN"


class Site:
    """A node of a real Slurm, with an agent, and what was set up on it."""

    def __init__(self, folder: Path, health: int) -> None:
        self.cluster = Cluster(folder)
        own, tools = folder / "real", folder / "bin"
        own.mkdir()
        self.slurm = Slurm(own, NODE_NAME, folder / "slurm", tools, health)
        self.agent = AgentProcess(folder)
        self.jobs = self.agent.run_folder / "jobs"
        self.cluster.configure({"run_folder": str(self.agent.run_folder)})
        self.cluster.settings(f"jobs={self.jobs}\nPATH={tools}:$PATH\n")

    def start(self) -> None:
        """Start all; the node is idle then."""
        self.agent.start()
        self.jobs.mkdir(exist_ok=True)
        self.slurm.start()
        self.until("idle", "none")

    def stop(self) -> None:
        """End all."""
        self.slurm.stop()
        self.agent.close()

    def until(self, state: str, reason: str) -> None:
        """Wait until Slurm has the node in a state for a reason that begins so."""

        def stands() -> bool:
            now = self.slurm.node()
            return now[0] == state and now[1].startswith(reason)

        wait_until(stands, PATIENCE_SECONDS, f"the node is {state}: {reason}")

    def break_port(self) -> None:
        """Let a link go down; return when the agent has found it."""
        self.cluster.node.state("mlx5_0", "1: DOWN", "2: Polling")
        self.agent.until(lambda: self.agent.findings("port_down"), "the port is down")

    def mend_port(self) -> None:
        """Let it come back; return when the agent has nothing against it."""
        self.cluster.node.state("mlx5_0", "4: ACTIVE")
        self.agent.until(lambda: not self.agent.findings("port_down"), "it is up")

    def take_back(self) -> None:
        """Run the script that an operator or a timer runs."""
        assert self.cluster.run("resume.sh").status == 0


@pytest.fixture
def site(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Site]:
    """Return a site that runs."""
    made = Site(tmp_path, request.param)
    try:
        made.start()
        yield made
    finally:
        made.stop()


@pytest.mark.parametrize("site", [OFTEN], indirect=True)
def test_from_fault_to_repair(site: Site) -> None:
    """Slurm's health check drains with a reason; what a human drained stays out."""
    site.break_port()
    site.until("drained", DOWN)
    site.take_back()
    site.until("drained", DOWN)
    site.mend_port()
    site.take_back()
    site.until("idle", "none")
    site.slurm.update("state=drain", "reason=INC-4711")
    site.take_back()
    site.until("drained", "INC-4711")


@pytest.mark.parametrize("site", [NEVER], indirect=True)
def test_jobs(site: Site) -> None:
    """One is named to the agent while it runs; none begins on a dead port."""
    first = site.slurm.submit("sleep 2")
    named = site.jobs / f"{first}.json"
    wait_until(named.exists, PATIENCE_SECONDS, "the job is named")
    assert json.loads(named.read_text()) == [{"job": first, "logs": []}]
    wait_until(lambda: not named.exists(), PATIENCE_SECONDS, "the job has ended")

    site.break_port()
    second = site.slurm.submit("true")
    site.until("drained", DOWN)
    back = "Reason=launch_failed_requeued_held"
    wait_until(lambda: back in site.slurm.job(second), PATIENCE_SECONDS, "it is back")
    assert not (site.jobs / f"{second}.json").exists()
