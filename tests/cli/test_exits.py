"""`fabricmon check --exit`: what a scheduler gets, apart from its scripts."""

import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabricmon.cli.deadline import within
from fabricmon.scheduler_advice import (
    Answer,
    Moment,
    reason,
    reasons_to_drain,
    shortened,
)
from tests.deploy.cluster import Cluster, Ran, down, finding


def answer(*findings: object, **content: object) -> Answer:
    """Return what an agent answered."""
    return msgspec.convert(
        {"verdict": "degraded", "findings": findings, **content}, Answer
    )


def check(cluster: Cluster, *words: str) -> Ran:
    """Run the command."""
    own = [sys.executable, "-m", "fabricmon", "check", "--config", str(cluster.config)]
    return cluster.execute([*own, *words])


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    """Return a node whose ports are all well."""
    return Cluster(tmp_path)


class TestReason:
    @pytest.mark.parametrize(
        ("found", "line"),
        [
            (finding(), "fabricmon: mlx5_4/1 FLAP 3x/3h down=41s"),
            (down(), "fabricmon: mlx5_4/1 DOWN down=41s"),
            (
                finding(
                    kind="rate_degraded",
                    evidence=[
                        {
                            "signal": "rate",
                            "value": 200,
                            "unit": "Gb/s",
                            "source": "sysfs",
                            "threshold": 400,
                        }
                    ],
                ),
                "fabricmon: mlx5_4/1 SLOW LINK 200/400Gb/s",
            ),
            (
                finding(kind="module_fell_out", evidence=[], subject={"node": "n"}),
                "fabricmon: MODULE FELL OUT",
            ),
        ],
    )
    def test_says_where_what_and_how_much(
        self, found: dict[str, object], line: str
    ) -> None:
        """In the words that fit into a column of `sinfo`."""
        (document,) = answer(found).findings
        assert reason([document]) == line

    @given(st.text(max_size=200), st.integers(1, 2000))
    def test_is_one_short_printable_line(self, device: str, count: int) -> None:
        """Whatever the names on the node are."""
        subject = {"node": "n", "device": device, "port": 1}
        (document,) = answer(down(subject=subject)).findings
        line = reason([document] * count)
        assert line.startswith("fabricmon: ")
        assert len(line) <= 80
        assert line.isascii()
        assert line.isprintable()

    @given(st.text())
    def test_any_text_can_be_shortened(self, text: str) -> None:
        """Also that of an exception."""
        line = shortened(text)
        assert len(line) <= 80
        assert line.isascii()
        assert not set(line) & set("'\"`$\\\n")


class TestScope:
    def test_drain_now_comes_before_what_waits(self) -> None:
        """The line has room for one."""
        both = answer(finding(), down())
        kinds = [f.kind for f in reasons_to_drain(both, Moment.EPILOG)]
        assert kinds == ["port_down", "port_flapping"]

    def test_a_fault_of_the_node_is_every_job_s(self) -> None:
        """It has no port that could be another's."""
        wide = down(subject={"node": "n"})
        jobs = [{"job": "1", "ports": ["mlx5_0/1"]}]
        assert reasons_to_drain(answer(wide, jobs=jobs), Moment.HEALTH, "1")

    def test_a_job_that_nobody_knows_may_use_all(self) -> None:
        """Slurm gives out whole nodes where there are GPUs."""
        assert reasons_to_drain(answer(down()), Moment.HEALTH, "99")


class TestCommand:
    @pytest.mark.parametrize(
        "words",
        [
            ("--at", "epilog"),
            ("--job", "1"),
            ("--timeout", "3"),
            ("--exit", "npd", "--job", "1"),
            ("--exit", "slurm", "--format", "json"),
            ("--exit", "slurm", "--at", "noon"),
            ("--exit", "slurm", "--job", ""),
            ("--exit", "slurm", "--timeout", "0"),
        ],
    )
    def test_wrong_usage(self, cluster: Cluster, words: tuple[str, ...]) -> None:
        """64, one line, and nothing on standard output."""
        result = check(cluster, *words)
        assert (result.status, result.out) == (64, "")
        assert len(result.err.splitlines()) == 1

    def test_nagios_is_as_before(self, cluster: Cluster) -> None:
        """The same line and status as of --format nagios."""
        cluster.node.state("mlx5_0", "1: DOWN", "2: Polling")
        new, old = (check(cluster, f"--{how}", "nagios") for how in ("exit", "format"))
        assert new.status == 2
        assert new.out.startswith("FABRIC CRITICAL - fabricmon: mlx5_0/1 ")
        assert (new.status, new.out) == (old.status, old.out)

    def test_nagios_hears_unknown_in_time(self, cluster: Cluster) -> None:
        """Nagios would call a plugin that says nothing critical."""
        cluster.configure({"deadlines": {"read_seconds": 300}})
        cluster.node.hang(cluster.node.port("mlx5_0", "state"))
        begun = time.monotonic()
        result = check(cluster, "--exit", "nagios", "--timeout", "1.5")
        assert time.monotonic() - begun < 10
        assert result.status == 3
        assert result.out.startswith("FABRIC UNKNOWN - no answer within 1.5 s")

    def test_a_configuration_that_is_wrong_is_unknown(self, cluster: Cluster) -> None:
        """In each protocol's own way; the reason goes to standard error."""
        cluster.config.write_text("nodes: n1\n")
        statuses = {how: check(cluster, "--exit", how).status for how in
                    ("slurm", "npd", "nagios")}  # fmt: skip
        assert statuses == {"slurm": 0, "npd": 2, "nagios": 3}

    def test_two_samples_drain_as_an_agent_does(self, cluster: Cluster) -> None:
        """A rate that the configuration forbids is local evidence."""
        cluster.configure({"expected_rate_gbps": 800})
        words = ("--exit", "slurm", "--sample", "--at")
        result = check(cluster, *words, "epilog")
        assert result.status == 1
        assert result.out.startswith("fabricmon: mlx5_")
        assert check(cluster, *words, "health").status == 0

    def test_an_answer_of_another_version(self, cluster: Cluster) -> None:
        """What is not understood drains nothing."""
        with cluster.agent({"kind": "port_down"}):
            result = check(cluster, "--exit", "slurm")
        assert (result.status, result.out) == (0, "")
        assert "no answer to use" in result.err


WITHIN = """
import sys, time
from fabricmon.cli.deadline import within
print(within(1.0, lambda: {work}))
"""


class TestDeadline:
    def run(self, work: str) -> str:
        """Run a work within a second, in a process without threads."""
        result = subprocess.run(
            [sys.executable, "-c", WITHIN.format(work=work)],
            capture_output=True, text=True, timeout=20, check=True,
        )  # fmt: skip
        return result.stdout.strip()

    def test_an_answer(self) -> None:
        """Whole, also a long one."""
        assert self.run("b'x' * 10") == "b'xxxxxxxxxx'"
        assert len(self.run("b'x' * 1_000_000")) == 1_000_003

    def test_a_work_that_takes_longer(self) -> None:
        """Nobody waits for it, nor for its output."""
        begun = time.monotonic()
        assert self.run("time.sleep(60)") == "None"
        assert time.monotonic() - begun < 10

    def test_a_work_that_fails(self) -> None:
        """Half an answer is none."""
        assert self.run("1 / 0") == "None"
        assert self.run("sys.exit(3)") == "None"

    def test_without_a_child_left(self) -> None:
        """It is ended with the answer."""
        assert callable(within)
        text = WITHIN.format(work="b''") + "import os; os.wait()"
        result = subprocess.run(
            [sys.executable, "-c", text], capture_output=True, text=True, check=False
        )
        assert "ChildProcessError" in result.stderr
