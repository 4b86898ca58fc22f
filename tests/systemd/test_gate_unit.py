"""The unit of the gate: systemd has nothing against it, and it is tight."""

import re
import subprocess
from pathlib import Path

import pytest

from tests.support.programs import require

SYSTEMD = Path(__file__).parent.parent.parent / "systemd"
UNIT = "fabricmon-gate.service"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Make a file system with the unit, its command, and the units that it names."""
    units = tmp_path / "etc/systemd/system"
    units.mkdir(parents=True)
    for name in ("sysinit", "basic", "shutdown", "network-online", "multi-user"):
        (units / f"{name}.target").write_text("[Unit]\n")
    (units / UNIT).write_text((SYSTEMD / UNIT).read_text())
    for command in ("usr/bin/fabricmon", "bin/kill"):
        (tmp_path / command).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / command).touch(mode=0o755)
    return tmp_path


def analyze(root: Path, *arguments: str) -> str:
    """Return what systemd-analyze prints; it exits 0 even for unknown keys."""
    result = subprocess.run(
        [require("systemd-analyze"), *arguments, f"--root={root}", UNIT],
        check=False,
        env={"SYSTEMD_COLORS": "0", "SYSTEMD_PAGER": "", "LC_ALL": "C.UTF-8"},
        stderr=subprocess.STDOUT,
        stdout=subprocess.PIPE,
        text=True,
    )
    return result.stdout


def test_verifies(root: Path) -> None:
    """Systemd has nothing to say about the unit."""
    assert analyze(root, "verify") == ""


def test_verification_sees_mistakes(root: Path) -> None:
    """The check above would notice a misspelt key."""
    unit = root / "etc/systemd/system" / UNIT
    unit.write_text(unit.read_text().replace("ProtectHome=", "ProtectHomes="))

    assert "Unknown key" in analyze(root, "verify")


def test_exposure(root: Path) -> None:
    """The sandbox is tight."""
    output = analyze(root, "security", "--offline=true", "--no-pager")
    level = re.search(r"Overall exposure level for \S+: ([\d.]+)", output)

    assert level, output
    assert float(level.group(1)) <= 1.5


def test_state_survives() -> None:
    """The unit's state folder is where the journal is by default."""
    lines = (SYSTEMD / UNIT).read_text().splitlines()
    example = SYSTEMD.parent / "deploy" / "gate" / "gate.yaml"

    assert "StateDirectory=fabricmon-gate" in lines
    assert "folder: /var/lib/fabricmon-gate" in example.read_text()
    assert "CapabilityBoundingSet=" in lines
    assert "Type=notify" in lines
