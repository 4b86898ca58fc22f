"""The .deb installed, removed and purged by dpkg, in a small root without systemd."""

from pathlib import Path

import pytest

from tests.support import scratch
from tests.support.packages import Packages

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

INSTALL = ("dpkg", "--force-unsafe-io", "--install", "/package.deb")
UNITS = "etc/systemd/system"


@pytest.fixture
def root(packages: Packages, tmp_path: Path) -> Path:
    """Return a file system with the package installed in it."""
    made = scratch.unpack(tmp_path)
    (made / "package.deb").write_bytes(packages.deb.read_bytes())
    scratch.run(made, *INSTALL)
    return made


def _left(root: Path) -> list[str]:
    """Return what bears the name, by its path."""
    found = (path for path in root.rglob("*") if "fabricmon" in str(path))
    return sorted(f"/{path.relative_to(root)}" for path in found)


def test_makes_two_users(root: Path) -> None:
    """Agent and gate have one each, whom nobody can log in as."""
    lines = (root / "etc/passwd").read_text().splitlines()
    shells = {line.split(":")[0]: line.split(":")[-1] for line in lines}

    assert shells["fabricmon"].endswith("nologin")
    assert shells["fabricmon-gate"].endswith("nologin")


def test_enables_the_agent_alone(root: Path) -> None:
    """Which node runs the gate is yours to say."""
    wanted = {path.name for path in (root / UNITS).glob("*.wants/fabricmon*")}

    assert wanted == {"fabricmon.service"}


def test_runs(root: Path) -> None:
    """The gate as it was installed is right, and a dry run."""
    said = scratch.run(root, "fabricmon", "gate", "check")

    assert "/etc/fabricmon/gate.yaml; dry run" in said


def test_enabled_gate_stays_so(root: Path) -> None:
    """Neither an upgrade nor a removal with a new installation forgets it."""
    link = root / UNITS / "multi-user.target.wants/fabricmon-gate.service"
    # As systemctl does it.
    link.symlink_to("/usr/lib/systemd/system/fabricmon-gate.service")
    scratch.run(root, *INSTALL)
    kept = link.is_symlink()
    scratch.run(root, "dpkg", "--remove", "fabricmon")
    scratch.run(root, *INSTALL)

    assert kept
    assert link.is_symlink()
    assert not (root / UNITS / "fabricmon-gate.service").exists()


def test_remove_keeps_what_is_the_sites(root: Path) -> None:
    """Configuration and journal stay until the purge, which takes both."""
    gate = root / "etc/fabricmon/gate.yaml"
    gate.write_text("cluster: mine\n")
    journal = root / "var/lib/fabricmon-gate/journal.sqlite"
    journal.parent.mkdir()
    journal.write_text("journal")
    scratch.run(root, "dpkg", "--remove", "fabricmon")
    kept = (gate.read_text(), journal.read_text())
    scratch.run(root, "dpkg", "--purge", "fabricmon")

    assert kept == ("cluster: mine\n", "journal")
    assert _left(root) == []
