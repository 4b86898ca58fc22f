"""Recorded nodes through the whole agent: what it concludes of their links."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from fabricmon.model import Finding, Verdict
from fabricmon.replaying import Replay
from tests.manifest import SYSFS
from tests.traces import of_manifest, write

SECOND = 60.0  # when the second tree of a pair begins to hold


def tree(name: str) -> dict[str, Any]:
    """Return one recorded tree as a record at t = 0."""
    record: dict[str, Any] = msgspec.to_builtins(of_manifest(SYSFS / name))
    return record


def pair(name: str) -> list[dict[str, Any]]:
    """Return two recorded trees: the first, and what became of it."""
    first, second = tree(f"{name}.t0.manifest"), tree(f"{name}.t1.manifest")
    gone = [path for key in ("link", "set") for path in first[key].keys() - second[key]]
    changed = {
        path: text
        for path, text in second["set"].items()
        if first["set"].get(path) != text
    }
    return [first, {"t": SECOND, "del": sorted(gone), "set": changed}]


def conclude(folder: Path, *records: dict[str, Any]) -> Replay:
    """Replay records for five minutes."""
    played = Replay(write(folder, [*records, {"t": 300}]))
    for _change in played.changes():
        pass
    return played


def findings(played: Replay) -> list[Finding]:
    """Return what is open at the end."""
    return [incident.finding for incident in played.pipeline.snapshot.incidents]


def verdicts(played: Replay) -> dict[str, Verdict]:
    """Return the verdict of every device's port."""
    ports = played.pipeline.snapshot.ports
    return {port.info.id.device: port.verdict for port in ports}


def test_twelve_downs_that_no_sample_saw(tmp_path: Path) -> None:
    """Both samples show ACTIVE; the counter tells of mlx5_3 and of it alone."""
    played = conclude(tmp_path, *pair("sysfs-flap-pair"))
    (finding,) = findings(played)
    assert finding.kind == "port_flapping"
    assert finding.subject.device == "mlx5_3"
    assert "12 times" in finding.summary
    assert verdicts(played)["mlx5_0"] is Verdict.HEALTHY


def test_a_device_that_was_lost(tmp_path: Path) -> None:
    """Nothing says down, the folder is gone; the other device goes on."""
    played = conclude(tmp_path, *pair("sysfs-device-lost-pair"))
    (finding,) = findings(played)
    assert finding.kind == "device_missing"
    assert finding.subject.device == "rocep1s0f1"
    assert verdicts(played) == {"rocep1s0f0": Verdict.HEALTHY}
    assert played.pipeline.snapshot.verdict is Verdict.DOWN


def test_two_ports_in_init(tmp_path: Path) -> None:
    """LinkUp and 200 Gb/s, but nobody activated mlx5_6 and mlx5_8."""
    played = conclude(tmp_path, tree("sysfs-dgx-two-init.manifest"))
    told = findings(played)
    assert {f.kind for f in told} == {"port_not_active"}
    assert {f.subject.device for f in told} == {"mlx5_6", "mlx5_8"}
    assert [d for d, v in verdicts(played).items() if v is Verdict.DOWN] == [
        "mlx5_6",
        "mlx5_8",
    ]


def test_an_interface_that_is_down_beside_an_active_port(tmp_path: Path) -> None:
    """ib4 of mlx5_6 lost its carrier 49 times; the port itself is not down."""
    played = conclude(tmp_path, tree("sysfs-dgx-netdev-down-flaps.manifest"))
    (finding,) = findings(played)
    assert finding.kind == "config_mismatch"
    assert finding.subject.device == "mlx5_6"
    assert "ib4 is down after 49 carrier losses" in finding.summary
    assert verdicts(played)["mlx5_6"] is Verdict.DEGRADED
