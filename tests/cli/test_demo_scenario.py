"""``fabricmon demo --scenario``: the agent on a node that is simulated as it watches."""

import os
import subprocess
import sys
import urllib.request
from contextlib import suppress
from pathlib import Path

import pytest

from fabricmon.cli import CONFIG_ERROR, main
from tests.support.demo import Demo
from tests.support.servers import LOOPBACK, wait_until

OWN = """
name: own
summary: A port flaps soon.
nodes: 2
duration: 120
inject:
  - {what: F05, node: 1, rail: 3, onset: 30, parameters: {down: 5}}
"""


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """Write a scenario of two minutes."""
    path = tmp_path / "own.yaml"
    path.write_text(OWN, encoding="utf-8")
    return path


def test_the_agent_watches_the_node_that_was_asked_for(own: Path) -> None:
    """It says what it plays, finds the flap on that node, and ends with it."""
    words = ["demo", "--scenario", str(own), "--node", "1", "--speed", "200", "--once"]
    off = {"FABRICMON_LISTEN__METRICS": "null", "FABRICMON_LISTEN__PAGE": "null"}
    done = subprocess.run(
        [sys.executable, "-m", "fabricmon", *words],
        env=os.environ | off,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert f"scenario {own}" in done.stdout
    assert "mlx5_4/1" in done.stderr
    assert "port_flap" in done.stderr


def test_it_watches_where_something_happens(own: Path) -> None:
    """Without a node it is the first fault's, and it says which and what to expect."""
    words = ["demo", "--scenario", str(own), "--speed", "200", "--once"]
    off = {"FABRICMON_LISTEN__METRICS": "null", "FABRICMON_LISTEN__PAGE": "null"}
    done = subprocess.run(
        [sys.executable, "-m", "fabricmon", *words],
        env=os.environ | off,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert f"node001 of scenario {own}" in done.stdout
    assert "A port flaps soon." in done.stdout
    assert "mlx5_4/1" in done.stderr


def test_the_jobs_of_the_node_are_seen(own: Path, tmp_path: Path) -> None:
    """A prolog left a file in the run folder of the node, which is not the demo's."""
    demo = Demo(tmp_path, "--scenario", str(own), "--speed", "20")
    address = f"http://{LOOPBACK}:{demo.metrics_port}/metrics"

    def shows_job() -> bool:
        with suppress(OSError), urllib.request.urlopen(address, timeout=5) as reply:
            return b'fabricmon_job_info{job="train"' in reply.read()
        return False  # it is about to start, again

    demo.start()
    try:
        wait_until(shows_job, 20, "the job is exported")
    finally:
        demo.stop()


def test_a_node_that_is_not_there_is_refused(
    own: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before anything starts, with the numbers that there are."""
    assert main(["demo", "--scenario", str(own), "--node", "9"]) == CONFIG_ERROR
    assert "write 0 to 1" in capsys.readouterr().err


def test_trace_and_scenario_exclude_each_other(
    own: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Only one node can be played."""
    with pytest.raises(SystemExit):
        main(["demo", "--scenario", str(own), "--trace", "x.jsonl"])
    assert "not allowed with" in capsys.readouterr().err
