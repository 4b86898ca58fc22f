"""The agent's answer and a sample's, side by side: they must not contradict."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fabricmon.cli import main
from fabricmon.cli.answers import from_pipeline
from tests.fake_host import FakeHost
from tests.manifest import SYSFS, lay_out
from tests.running import Running

Json = dict[str, Any]
CASES = ("sysfs-h100-ndr-bond", "sysfs-dgx-two-init")


def sample(case: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> Json:
    """Return what one look at a recorded node says."""
    lay_out(SYSFS / f"{case}.manifest", folder)
    main(["check", "--root", str(folder), "--format", "json"])
    content: Json = json.loads(capsys.readouterr().out)
    return content


def agent(case: str) -> Running:
    """Return an agent that has just looked at a recorded node, up for long."""
    host = FakeHost(SYSFS / f"{case}.manifest")
    host.put("/proc/uptime", "8640000.00 8640000.00\n")
    return Running(host).settle()


def verdicts(content: Json) -> Json:
    """Return the verdict of each port, and of the node."""
    ports = {f"{p['device']}/{p['port']}": p["verdict"] for p in content["ports"]}
    return {"node": content["verdict"], **ports}


@pytest.mark.parametrize("case", CASES)
def test_the_agent_agrees_with_a_sample(
    case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Once its waits are over, who answers makes no difference to a scheduler."""
    node = agent(case)
    node.run(60)
    told = verdicts(sample(case, tmp_path, capsys))
    assert verdicts(from_pipeline(node.pipeline).content) == told
    assert told["node"] != "healthy"


def test_lifetime_counters() -> None:
    """A counter that is plainly out of proportion is told, and with what."""
    content = from_pipeline(agent("sysfs-h100-ndr-bond").pipeline).content
    port = next(p for p in content["ports"] if p["device"] == "mlx5_1")
    assert port["verdict"] == "degraded"
    assert any("link_downed" in why for why in port["reasons"])


def test_just_started() -> None:
    """A port in INIT is no healthy one while the agent waits for its subnet manager."""
    node = agent("sysfs-dgx-two-init")
    node.run(5)
    content = from_pipeline(node.pipeline).content
    waiting = [p for p in content["ports"] if p["state"] == "INIT"]
    assert waiting
    for port in waiting:
        assert port["verdict"] in {"unknown", "degraded"}
        assert port["reasons"][0] == "INIT for 5 s"


def test_jobs_and_their_ports() -> None:
    """A scheduler asks by job: its ports where a log told them, else none are known."""
    running = agent("sysfs-h100-ndr-bond")
    drop = json.dumps([{"job": "4711"}])
    running.host.put("/run/fabricmon/jobs/4711.json", drop)
    running.run(15)
    content = from_pipeline(running.pipeline).content
    assert content["jobs"] == [{"job": "4711", "ports": []}]


def test_ports_that_a_drop_file_s_settings_choose() -> None:
    """A prolog may know which devices the job was given."""
    running = agent("sysfs-h100-ndr-bond")
    settings = {"NCCL_IB_HCA": "=mlx5_0,mlx5_4"}
    drop = json.dumps([{"job": "4711", "settings": settings}])
    running.host.put("/run/fabricmon/jobs/4711.json", drop)
    running.run(15)
    (job,) = from_pipeline(running.pipeline).content["jobs"]
    assert job["ports"] == ["mlx5_0/1", "mlx5_4/1"]
