"""The check for LBNL NHC, sourced and called as its driver does."""

from pathlib import Path

import pytest

from tests.deploy.cluster import DEPLOY, Cluster, Ran, down, finding

CHECK = DEPLOY / "nhc" / "fabricmon.nhc"
# NHC's driver defines die; it notes the message and marks the node with it.
DRIVER = 'die() { echo "die $*"; }; . "$1"; shift; "$@"'


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    """Return a node whose ports are all well."""
    return Cluster(tmp_path)


def check(cluster: Cluster, *words: str) -> Ran:
    """Run the line of nhc.conf."""
    line = ["check_fabricmon", *words]
    return cluster.execute(["bash", "-euc", DRIVER, "nhc", str(CHECK), *line])


def test_a_healthy_node_passes(cluster: Cluster) -> None:
    """Without a word."""
    with cluster.agent():
        assert check(cluster) == Ran(0, "", "")


def test_a_fault_fails(cluster: Cluster) -> None:
    """The reason follows NHC's own prefix: it is NHC's to take back."""
    with cluster.agent(down()):
        result = check(cluster)
    assert result.status == 1
    assert result.out == "die 1 check_fabricmon: mlx5_4/1 DOWN down=41s\n"


def test_options_are_passed_on(cluster: Cluster) -> None:
    """As after the end of a job, when NHC is the epilog."""
    with cluster.agent(finding()):
        assert check(cluster).status == 0
        assert check(cluster, "--at", "epilog").status == 1


@pytest.mark.parametrize("text", ["exit 127\n", "echo Traceback; exit 1\n"])
def test_a_program_that_breaks_down_passes(cluster: Cluster, text: str) -> None:
    """Unknown never drains."""
    cluster.command("fabricmon", text)
    assert check(cluster).status == 0


def test_without_an_agent(cluster: Cluster) -> None:
    """A sample of a node that is well passes."""
    assert check(cluster).status == 0
