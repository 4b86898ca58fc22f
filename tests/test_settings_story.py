"""A job whose settings are wrong, from its drop file to the finding and back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from fabricmon.model import Incident
from fabricmon.replaying import Replay
from tests import traces
from tests.manifest import SYSFS

Json = dict[str, Any]
PORT = "/sys/class/infiniband/mlx5_0/ports/1"
MAPPED = "0000:0000:0000:0000:0000:ffff:0a14:1e02"
DROP = "/run/fabricmon/jobs/4711.json"
BRIDGING = {"pfc_enabled": [3], "ecn": {"3": True}, "dscp_to_priority": {"26": 3}}
RIGHT: dict[str, str | int] = {
    "NCCL_IB_HCA": "=mlx5_0:1",
    "NCCL_IB_GID_INDEX": 1,
    "NCCL_IB_TC": 106,
    "NCCL_IB_TIMEOUT": 22,
    "NCCL_SOCKET_IFNAME": "ens6np0",
}
WRONG = RIGHT | {"NCCL_IB_GID_INDEX": 0, "NCCL_IB_TIMEOUT": 12, "NCCL_IB_TC": 0}


def job(settings: dict[str, str | int]) -> Json:
    """Return the drop file of a job with these settings."""
    return {"set": {DROP: json.dumps([{"job": "4711", "settings": settings}])}}


def replay(folder: Path, *events: tuple[float, Json], end: float) -> list[Incident]:
    """Return what is told of settings on a RoCE node with one port."""
    record = traces.of_manifest(SYSFS / "sysfs-roce-retrans-heavy.manifest")
    files = {
        **record.set,
        "/proc/uptime": "8640000.00 8640000.00\n",
        f"{PORT}/gids/1": f"{MAPPED}\n",
        f"{PORT}/gid_attrs/types/1": "RoCE v2\n",
        f"{PORT}/gid_attrs/ndevs/1": "ens6np0\n",
    }
    start = {
        "t": 0, "dir": record.dir, "link": record.link, "err": record.err, "set": files,
        "dcb": {"ens6np0": BRIDGING},
    }  # fmt: skip
    lines = [start, *({"t": t, **what} for t, what in events), {"t": end}]
    run = Replay(traces.write(folder, lines))
    told = [change.incident for change in run.changes()]
    return [each for each in told if each.finding.kind == "config_mismatch"]


def test_wrong_then_mended(tmp_path: Path) -> None:
    """Three wrong settings are two stories, the port's and the node's, and both end."""
    told = replay(
        tmp_path,
        (60, job(WRONG)),
        (300, job(RIGHT)),
        end=600,
    )
    states = [(each.finding.subject.device, each.state) for each in told]
    assert set(states[:2]) == {(None, "open"), ("mlx5_0", "open")}
    assert set(states[2:]) == {(None, "resolved"), ("mlx5_0", "resolved")}
    opened = {each.finding.subject.device: each.finding for each in told[:2]}
    node, port = opened[None], opened["mlx5_0"]
    assert [item.signal for item in node.evidence] == ["NCCL_IB_TIMEOUT"]
    assert {item.signal: item.threshold for item in port.evidence} == {
        "NCCL_IB_GID_INDEX": "1",
        "NCCL_IB_TC": "106",
    }
    assert {item.source for item in port.evidence} == {"job"}


def test_right_from_the_start(tmp_path: Path) -> None:
    """A job that is set up well is never told of."""
    assert replay(tmp_path, (60, job(RIGHT)), end=300) == []


def test_one_setting_one_finding(tmp_path: Path) -> None:
    """A drop file with one wrong value gives one finding, which its end resolves."""
    wrong = RIGHT | {"NCCL_IB_TIMEOUT": 12}
    told = replay(tmp_path, (60, job(wrong)), (200, {"del": [DROP]}), end=400)
    assert [each.state for each in told] == ["open", "resolved"]
    assert "survives 0.1 s" in told[0].finding.summary
    assert told[0].finding.evidence[0].threshold == "20"


def test_a_line_of_a_log(tmp_path: Path) -> None:
    """What a library prints of its settings at the start is held against the fabric."""
    log = "/var/log/nccl/nccl.node01.77.log"
    lines = (
        "node01:77:77 [0] NCCL INFO NCCL_IB_TIMEOUT set by environment to 12.\n"
        "node01:77:77 [0] NCCL INFO NCCL_IB_GID_INDEX set by environment to 1.\n"
    )
    told = replay(tmp_path, (60, {"append": {log: lines}}), end=300)
    assert [each.state for each in told] == ["open"]
    (item,) = told[0].finding.evidence
    assert (item.signal, item.value, item.source) == ("NCCL_IB_TIMEOUT", "12", "log")
