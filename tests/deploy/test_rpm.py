"""The recipe for an RPM, built from the tree that the .deb is made of, and installed."""

import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from fabricmon import __version__
from tests.support import scratch
from tests.support.packages import EPOCH, Packages
from tests.support.programs import require

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

SPEC = Path(__file__).parents[2] / "deploy" / "rpm" / "fabricmon.spec"
UNITS = "/usr/lib/systemd/system"
ONLY_RPM = (f"{UNITS}/fabricmon.service.d", f"{UNITS}/fabricmon-gate.service.d")
CONFIGURATION = ["/etc/fabricmon/fabricmon.yaml", "/etc/fabricmon/gate.yaml"]


@pytest.fixture(scope="module")
def rpms(packages: Packages, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Build two releases, quickly: how well they are compressed is not the question."""
    top = tmp_path_factory.mktemp("rpm")
    for release in ("1", "2"):
        done = subprocess.run(
            [
                *(require("rpmbuild"), "-bb", SPEC),
                *("--define", f"tree {packages.tree}"),
                *("--define", "fabricmon_version 0.1.0"),
                *("--define", f"fabricmon_release {release}"),
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
    first, second = sorted(top.glob("RPMS/*/*.rpm"))
    return [first, second]


@pytest.fixture(scope="module")
def rpm(rpms: list[Path]) -> Path:
    """Return the first of them."""
    return rpms[0]


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
    assert _query(rpm, "--configfiles") == CONFIGURATION


def test_needs_the_c_library_alone(rpm: Path) -> None:
    """A node without a network has all that it needs."""
    needed = {line for line in _query(rpm, "--requires") if "rpmlib" not in line}

    assert needed <= {"/bin/sh", "glibc >= 2.34", "config(fabricmon) = 0.1.0-1"}
    assert "glibc >= 2.34" in needed


def test_belongs_to_root(rpm: Path) -> None:
    """Nobody but root can change anything."""
    for line in _query(rpm, "--queryformat", "[%{FILEUSERNAME}:%{FILEGROUPNAME}\n]"):
        assert line == "root:root"


@dataclass(frozen=True, slots=True)
class Root:
    """A file system that packages are installed in, with their scripts, by rpm."""

    path: Path

    def rpm(self, *words: str | Path) -> str:
        """Run rpm; what it needs is there, but in dpkg's books, not in rpm's."""
        books = () if words[0] == "--query" else ("--nodeps",)
        command = [require("rpm"), "--root", self.path, *words, *books]
        done = subprocess.run(
            command,
            check=False,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert done.returncode == 0 or "--verify" in words, done.stdout
        return done.stdout

    def run(self, *words: str) -> str:
        """Run a command in there."""
        return scratch.run(self.path, *words)

    def text(self, path: str) -> str:
        """Return what a file in there says."""
        return (self.path / path.removeprefix("/")).read_text()

    def left(self) -> list[str]:
        """Return the files in there that bear the name."""
        found = (p for p in self.path.rglob("*fabricmon*/*") if not p.is_dir())
        return sorted(f"/{path.relative_to(self.path)}" for path in found)


@pytest.fixture(scope="module")
def empty_root(tmp_path_factory: pytest.TempPathFactory) -> Root:
    """Make the file system, which has glibc 2.36, a shell and systemd-sysusers."""
    return Root(scratch.unpack(tmp_path_factory.mktemp("scratch")))


@pytest.fixture
def root(empty_root: Root, rpm: Path) -> Iterator[Root]:
    """Install the package; take it away again."""
    empty_root.rpm("--install", rpm)
    yield empty_root
    if empty_root.rpm("--query", "--all", "fabricmon"):
        empty_root.rpm("--erase", "--allmatches", "--noscripts", "fabricmon")
    for path in (empty_root.path / "etc/fabricmon").glob("*"):
        path.unlink()


class TestInstalled:
    def test_runs(self, root: Root) -> None:
        """Program and gate run from where they were installed."""
        assert root.run("/usr/bin/fabricmon", "--version").strip() == __version__
        assert "dry run" in root.run("/usr/bin/fabricmon", "gate", "check")

    def test_files_are_as_packed(self, root: Root) -> None:
        """Modes, owners and digests are those of the package."""
        assert root.rpm("--verify", "fabricmon") == ""

    def test_makes_users(self, root: Root) -> None:
        """Agent and gate have one each, which nobody can log in as."""
        users = [line.split(":") for line in root.text("/etc/passwd").splitlines()]
        shells = {user[0]: user[-1] for user in users}

        assert shells["fabricmon"].endswith("nologin")
        assert shells["fabricmon-gate"].endswith("nologin")

    def test_enables_nothing_without_systemd(self, root: Root) -> None:
        """In a root that is only being made, no service is started or enabled."""
        wants = [*root.path.glob("etc/systemd/system/*.wants/*fabricmon*")]

        assert wants == []

    def test_upgrade_and_rollback(self, root: Root, rpms: list[Path]) -> None:
        """What an administrator changed outlives both; state is not touched."""
        gate = root.path / "etc/fabricmon/gate.yaml"
        gate.write_text("cluster: mine\n")
        state = root.path / "var/lib/fabricmon-gate/journal.sqlite"
        state.parent.mkdir(exist_ok=True)
        state.write_text("journal")
        first, second = rpms
        root.rpm("--upgrade", second)
        assert root.rpm("--query", "fabricmon").startswith("fabricmon-0.1.0-2")
        root.rpm("--upgrade", "--oldpackage", first)

        assert root.rpm("--query", "fabricmon").startswith("fabricmon-0.1.0-1")
        assert gate.read_text() == "cluster: mine\n"
        assert state.read_text() == "journal"

    def test_erase(self, root: Root) -> None:
        """No code is left, and a changed configuration is kept aside."""
        (root.path / "etc/fabricmon/gate.yaml").write_text("cluster: mine\n")
        root.rpm("--erase", "fabricmon")
        left = [path for path in root.left() if not path.startswith("/var/lib/")]

        assert left == ["/etc/fabricmon/gate.yaml.rpmsave"]
        assert root.text(left[0]) == "cluster: mine\n"
