"""The recipe for an RPM, built from the tree that the .deb is made of."""

import subprocess
from pathlib import Path

import pytest

from tests.support.packages import EPOCH, Packages
from tests.support.programs import require

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

SPEC = Path(__file__).parents[2] / "deploy" / "rpm" / "fabricmon.spec"
ONLY_RPM = "/usr/lib/systemd/system/fabricmon.service.d"


@pytest.fixture(scope="module")
def rpm(packages: Packages, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the package, quickly: how well it is compressed is not the question."""
    top = tmp_path_factory.mktemp("rpm")
    done = subprocess.run(
        [
            *(require("rpmbuild"), "-bb", SPEC),
            *("--define", f"tree {packages.tree}"),
            *("--define", "fabricmon_version 0.1.0"),
            *("--define", f"_topdir {top}"),
            *("--define", "_binary_payload w1.gzdio"),
        ],
        check=False,
        env={"PATH": "/usr/bin:/bin", "SOURCE_DATE_EPOCH": EPOCH, "HOME": str(top)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-3000:]
    (made,) = top.glob("RPMS/*/*.rpm")
    return made


def _query(package: Path, *words: str) -> list[str]:
    command = [require("rpm"), "--query", "--package", *words, str(package)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return done.stdout.splitlines()


def test_has_the_files_of_the_deb(packages: Packages, rpm: Path) -> None:
    """Both packages have the same files."""
    tree = packages.tree
    wanted = {f"/{p.relative_to(tree)}" for p in tree.rglob("*") if not p.is_dir()}
    found = {
        line.split()[-1].split(" -> ")[0]
        for line in _query(rpm, "--queryformat", "[%{FILEMODES:perms} %{FILENAMES}\n]")
        if not line.startswith("d")
    }

    assert {f for f in found if not f.startswith(ONLY_RPM)} == wanted


def test_keeps_configuration(rpm: Path) -> None:
    """An upgrade leaves what an administrator changed."""
    assert _query(rpm, "--configfiles") == ["/etc/fabricmon/fabricmon.yaml"]


def test_needs_the_c_library_alone(rpm: Path) -> None:
    """A node without a network has all that it needs."""
    needed = {line for line in _query(rpm, "--requires") if "rpmlib" not in line}

    assert needed <= {"/bin/sh", "glibc >= 2.34", "config(fabricmon) = 0.1.0-1"}
    assert "glibc >= 2.34" in needed


def test_belongs_to_root(packages: Packages, rpm: Path) -> None:
    """Nobody but root can change anything."""
    for line in _query(rpm, "--queryformat", "[%{FILEUSERNAME}:%{FILEGROUPNAME}\n]"):
        assert line == "root:root"
