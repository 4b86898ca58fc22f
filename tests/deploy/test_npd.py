"""node-problem-detector's plugin, run as its custom plugin monitor runs it."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.deploy.cluster import DEPLOY, Cluster, Ran, down, finding
from tests.support.agent import CLASS

CONFIG: dict[str, Any] = json.loads((DEPLOY / "npd" / "fabricmon.json").read_text())
OK, PROBLEM, UNKNOWN = 0, 1, 2


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    """Return a node whose ports are all well."""
    return Cluster(tmp_path)


def plugin(cluster: Cluster) -> Ran:
    """Run the rule of the configuration; its output must fit the monitor's limit."""
    (rule,) = CONFIG["rules"]
    script = DEPLOY / "npd" / Path(rule["path"]).name
    result = cluster.execute([str(script), *rule.get("args", [])])
    (line,) = result.out.splitlines()
    assert 0 < len(line) <= CONFIG["pluginConfig"]["max_output_length"]
    assert line.isascii()
    return result


class TestConfiguration:
    def test_condition_of_the_rule_is_declared(self) -> None:
        """Else the monitor refuses to start."""
        declared = {condition["type"] for condition in CONFIG["conditions"]}
        assert {rule["condition"] for rule in CONFIG["rules"]} <= declared
        assert {rule["type"] for rule in CONFIG["rules"]} <= {"temporary", "permanent"}

    def test_it_waits_longer_than_the_check_takes(self) -> None:
        """A monitor that gives up first would never hear that it is unknown."""
        assert CONFIG["pluginConfig"]["timeout"] == "15s"
        script = (DEPLOY / "npd" / "fabricmon.sh").read_text()
        assert "--timeout 10 " in script


class TestProtocol:
    def test_no_fault(self, cluster: Cluster) -> None:
        """The condition is cleared by what an agent says only."""
        with cluster.agent():
            assert plugin(cluster).status == OK

    @pytest.mark.parametrize("found", [down(), finding(), finding(action="inspect")])
    def test_a_fault_here(self, cluster: Cluster, found: dict[str, Any]) -> None:
        """Whatever somebody should do about it, and when."""
        with cluster.agent(found):
            result = plugin(cluster)
        assert result.status == PROBLEM
        assert result.out.startswith("fabricmon: mlx5_4/1 ")

    def test_the_worst_comes_first(self, cluster: Cluster) -> None:
        """And how many more there are."""
        with cluster.agent(finding(action="inspect", severity="warning"), down()):
            assert plugin(cluster).out == "fabricmon: mlx5_4/1 DOWN down=41s (+1)\n"

    def test_a_victim_is_no_problem_here(self, cluster: Cluster) -> None:
        """Who reads the condition would replace the wrong node."""
        with cluster.agent(finding(role="victim", action="none")):
            assert plugin(cluster).status == OK

    def test_unknown(self, cluster: Cluster) -> None:
        """Neither a problem nor health."""
        with cluster.agent(verdict="unknown"):
            assert plugin(cluster).status == UNKNOWN

    def test_without_an_agent(self, cluster: Cluster) -> None:
        """One sample that finds nothing would clear what the agent has found."""
        assert plugin(cluster).status == UNKNOWN

    def test_without_a_driver(self, cluster: Cluster) -> None:
        """Nothing to look at."""
        cluster.node.remove(CLASS)
        assert plugin(cluster).status == UNKNOWN

    @pytest.mark.parametrize(
        "text", ["exit 127\n", "echo Traceback; exit 1\n", "exit 1\n", "exit 64\n"]
    )
    def test_a_program_that_breaks_down(self, cluster: Cluster, text: str) -> None:
        """Python leaves a status of 1 too when it fails."""
        cluster.command("fabricmon", text)
        assert plugin(cluster).status == UNKNOWN

    def test_a_long_name_is_cut(self, cluster: Cluster) -> None:
        """The monitor would cut it anywhere."""
        subject = {"node": "n", "device": "rdmap" * 40, "port": 1}
        with cluster.agent(down(subject=subject)):
            assert plugin(cluster).status == PROBLEM
