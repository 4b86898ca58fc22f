import re
import subprocess
from pathlib import Path

import pytest

from fabricmon.config_load import load
from tests.support.programs import require

SYSTEMD = Path(__file__).parent.parent.parent / "systemd"
DROP_INS = sorted((SYSTEMD / "fabricmon.service.d").glob("*.conf.example"))

# How exposed the unit may be with each drop-in, on systemd's scale up to 10.
# Reading every user's files is the one right that goes far beyond 2. All have 0.4 for
# the call that reads the clock, which the scale counts as if it could set it, and 0.1
# for the one by which the agent chooses its own cores.
EXPOSURE = {
    "housekeeping-cores.conf.example": 2.0,
    "idle-class.conf.example": 2.0,
    "kernel-log-journal.conf.example": 2.0,
    "kernel-log.conf.example": 2.2,
    "metrics-everywhere.conf.example": 2.0,
    "mqtt.conf.example": 2.0,
    "nccl-logs.conf.example": 2.7,
    "textfile.conf.example": 2.0,
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Make a file system with the unit, its command, and the units that it names."""
    units = tmp_path / "etc/systemd/system"
    units.mkdir(parents=True)
    for name in ("sysinit", "basic", "shutdown", "network", "multi-user"):
        (units / f"{name}.target").write_text("[Unit]\n")
    (units / "fabricmon.service").write_text(_unit())
    for command in ("usr/bin/fabricmon", "bin/kill"):
        (tmp_path / command).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / command).touch(mode=0o755)
    return tmp_path


def _unit() -> str:
    return (SYSTEMD / "fabricmon.service").read_text()


def _add(root: Path, text: str) -> None:
    folder = root / "etc/systemd/system/fabricmon.service.d"
    folder.mkdir()
    (folder / "test.conf").write_text(text)


def _analyze(root: Path, *arguments: str) -> str:
    """Return what systemd-analyze prints; it exits 0 even for unknown keys."""
    command = [require("systemd-analyze"), *arguments, f"--root={root}"]
    environment = {"SYSTEMD_COLORS": "0", "SYSTEMD_PAGER": "", "LC_ALL": "C.UTF-8"}
    result = subprocess.run(
        [*command, "fabricmon.service"],
        check=False,
        env=environment,
        stderr=subprocess.STDOUT,
        stdout=subprocess.PIPE,
        text=True,
    )
    return result.stdout


def _exposure(root: Path) -> float:
    output = _analyze(root, "security", "--offline=true", "--no-pager")
    level = re.search(r"Overall exposure level for \S+: ([\d.]+)", output)
    assert level, output
    return float(level.group(1))


class TestUnit:
    def test_verifies(self, root: Path) -> None:
        """Systemd has nothing to say about the unit."""
        assert _analyze(root, "verify") == ""

    def test_verification_sees_mistakes(self, root: Path) -> None:
        """The check above would notice a misspelt key."""
        _add(root, "[Service]\nProtectHomes=yes\n")

        assert "Unknown key" in _analyze(root, "verify")

    def test_exposure(self, root: Path) -> None:
        """The sandbox is tight."""
        assert _exposure(root) <= 2.0

    def test_published_exposure(self, root: Path) -> None:
        """What is said of it is so; other versions of systemd weigh a little otherwise."""
        text = " ".join((SYSTEMD.parent / "docs/security.md").read_text().split())
        said = re.search(
            r"the unit has ([\d.]+), with `kernel-log.conf` ([\d.]+)", text
        )

        assert said
        assert _exposure(root) == pytest.approx(float(said[1]), abs=0.1)
        _add(
            root, (SYSTEMD / "fabricmon.service.d/kernel-log.conf.example").read_text()
        )
        assert _exposure(root) == pytest.approx(float(said[2]), abs=0.1)

    def test_tells_systemd_about_itself(self) -> None:
        """Start, reload and liveness go through messages and signals."""
        lines = _unit().splitlines()

        assert "Type=notify" in lines
        assert "WatchdogSec=30" in lines
        assert "ExecReload=/bin/kill -HUP $MAINPID" in lines

    def test_holds_no_capability(self) -> None:
        """Without a drop-in the daemon has no right that any user lacks."""
        lines = _unit().splitlines()

        assert "CapabilityBoundingSet=" in lines
        assert "AmbientCapabilities=" in lines

    def test_may_read_the_clock(self) -> None:
        """The call is allowed last, after the group with it was taken away."""
        lines = [line for line in _unit().splitlines() if "SystemCallFilter" in line]

        assert lines[-1] == "SystemCallFilter=adjtimex clock_adjtime"
        assert not any(line.startswith("ProtectClock") for line in _unit().splitlines())


@pytest.mark.parametrize("path", DROP_INS, ids=lambda path: path.name)
class TestDropIns:
    def test_verifies(self, root: Path, path: Path) -> None:
        """Systemd has nothing to say about the unit with the drop-in."""
        _add(root, path.read_text())

        assert _analyze(root, "verify") == ""

    def test_exposure(self, root: Path, path: Path) -> None:
        """A drop-in opens what it says and little more."""
        _add(root, path.read_text())

        assert _exposure(root) <= EXPOSURE[path.name]

    def test_says_what_it_adds_and_why(self, path: Path) -> None:
        """Whoever installs a drop-in reads what right it adds and for what."""
        text = path.read_text()

        assert re.search(r"^# Rights? added: ", text, re.MULTILINE)
        assert re.search(r"^# Why: ", text, re.MULTILINE)


def test_metrics_everywhere(tmp_path: Path) -> None:
    """The drop-in's environment makes the agent listen on all addresses."""
    text = (SYSTEMD / "fabricmon.service.d/metrics-everywhere.conf.example").read_text()
    (assignment,) = re.findall(r'^Environment="(.*)"$', text, re.MULTILINE)
    name, _, value = assignment.partition("=")
    empty = tmp_path / "fabricmon.yaml"
    empty.touch()

    listen = load(empty, {name: value}).config.listen

    assert listen.metrics == "[::]:9879"
    assert listen.page == "127.0.0.1:9880"
