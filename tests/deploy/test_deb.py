"""The .deb: its files, its control data, its interpreter."""

import hashlib
import itertools
import pkgutil
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import fabricmon
from fabricmon.cli import COMMANDS
from tests.support.packages import Packages, build
from tests.support.programs import require
from tools.package import elf
from tools.package.__main__ import CACHE
from tools.package.deb import debian_version
from tools.package.interpreter import HOME, VERSION, interpreter

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

GLIBC = (2, 34)
"""What nodes have: RHEL 9 has 2.34, Ubuntu 22.04 2.35, Debian 12 2.36."""


def _field(package: Path, name: str) -> str:
    command = ["dpkg-deb", "--field", str(package), name]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def _listing(package: Path) -> list[tuple[str, str, str]]:
    """Return mode, owner and path of every file."""
    command = ["dpkg-deb", "--contents", str(package)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    rows = [line.split() for line in done.stdout.splitlines()]
    return [(row[0], row[1], row[5].removeprefix(".")) for row in rows]


def _digests(tree: Path) -> dict[str, tuple[int, float, str]]:
    """Return mode, time and digest of every file."""
    return {
        str(path.relative_to(tree)): (
            path.lstat().st_mode,
            path.lstat().st_mtime,
            hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "",
        )
        for path in tree.rglob("*")
    }


class TestControl:
    def test_needs_the_c_library_alone(self, packages: Packages) -> None:
        """A node without a network has all that the package needs."""
        needed = _field(packages.deb, "Depends").strip().split(", ")

        assert needed == [
            f"libc6 (>= {elf.text(GLIBC)})",
            "systemd | systemd-standalone-sysusers | adduser",
        ]

    def test_keeps_configuration(self, packages: Packages, tmp_path: Path) -> None:
        """Dpkg asks before it overwrites what an administrator changed."""
        subprocess.run(["dpkg-deb", "-e", packages.deb, tmp_path / "x"], check=True)

        assert (tmp_path / "x/conffiles").read_text().split() == [
            "/etc/fabricmon/fabricmon.yaml",
            "/etc/fabricmon/gate.yaml",
        ]

    def test_sums(self, packages: Packages, tmp_path: Path) -> None:
        """`dpkg --verify` can tell whether a file was changed."""
        subprocess.run(["dpkg-deb", "-R", packages.deb, tmp_path / "x"], check=True)
        done = subprocess.run(
            ["md5sum", "--quiet", "--check", "DEBIAN/md5sums"],
            check=False,
            cwd=tmp_path / "x",
            capture_output=True,
        )

        assert done.returncode == 0, done.stdout

    def test_lintian(self, packages: Packages) -> None:
        """Debian's checker has nothing to say that is not overridden with a reason."""
        done = subprocess.run(
            [require("lintian"), "--allow-root", "--fail-on=warning", packages.deb],
            check=False,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

        assert done.returncode == 0, done.stdout
        assert "mismatched-override" not in done.stdout

    @pytest.mark.parametrize("name", ["postinst", "prerm", "postrm"])
    def test_scripts(self, name: str) -> None:
        """A shell reads the maintainer scripts, and its checker finds no fault."""
        script = Path(__file__).parents[2] / "deploy/package/deb" / name
        checked = subprocess.run(
            [require("shellcheck"), script],
            check=False,
            stdout=subprocess.PIPE,
            text=True,
        )

        assert checked.returncode == 0, checked.stdout

    def test_order_of_versions(self) -> None:
        """What comes before a release is older to dpkg too."""
        order = ["1.0.dev1", "1.0a1", "1.0rc1", "1.0", "1.0.1"]
        versions = [debian_version(version, 1) for version in order]

        for older, newer in itertools.pairwise(versions):
            command = ["dpkg", "--compare-versions", older, "lt", newer]
            assert subprocess.run(command, check=False).returncode == 0, (older, newer)


class TestFiles:
    def test_belong_to_root(self, packages: Packages) -> None:
        """Nobody but root can change anything, and no file has special rights."""
        for mode, owner, path in _listing(packages.deb):
            assert owner == "root/root", path
            if not mode.startswith("l"):
                assert re.fullmatch(r"[d-]rw[x-]r-[x-]r-[x-]", mode), path

    def test_are_where_they_belong(self, packages: Packages) -> None:
        """Command, unit, user, configuration, manual and examples are there."""
        paths = {path for _, _, path in _listing(packages.deb)}

        assert paths >= {
            "/usr/bin/fabricmon",
            "/usr/lib/systemd/system/fabricmon.service",
            "/usr/lib/systemd/system/fabricmon-gate.service",
            "/usr/lib/sysusers.d/fabricmon.conf",
            "/usr/lib/sysusers.d/fabricmon-gate.conf",
            "/usr/libexec/fabricmon/gate/drain-slurm.sh",
            "/etc/fabricmon/fabricmon.yaml",
            "/etc/fabricmon/gate.yaml",
            "/usr/share/man/man8/fabricmon.8.gz",
            "/usr/share/doc/fabricmon/copyright",
            "/usr/share/doc/fabricmon/bundled.txt",
            "/usr/share/doc/fabricmon/examples/kernel-log.conf.example",
            "/usr/share/doc/fabricmon/examples/nhc/fabricmon.nhc",
            "/usr/share/doc/fabricmon/examples/npd/fabricmon.json",
        }

    def test_leave_room_to_nobody(self, packages: Packages) -> None:
        """Nothing lies where another package might put something."""
        ours = re.compile(
            r"/(usr/(lib|libexec|share)/([a-z./]*/)?|etc/)?fabricmon(\b|/).*|"
            r"/usr/bin/fabricmon|"
            r"/usr/share/(man/man8/fabricmon.*|lintian/overrides/fabricmon)"
        )
        for mode, _, path in _listing(packages.deb):
            if not mode.startswith("d"):
                assert ours.fullmatch(path), path

    def test_name_no_place_of_the_build(self, packages: Packages) -> None:
        """Nothing tells where it was built."""
        place = str(Path(__file__).parents[2]).encode()

        for path in packages.tree.rglob("*"):
            if path.is_file():
                assert place not in path.read_bytes(), path

    def test_enable_nothing(self, packages: Packages) -> None:
        """No link starts a unit: that is for the scripts, and for you."""
        paths = {path for _, _, path in _listing(packages.deb)}

        assert not [path for path in paths if path.endswith((".wants/", ".preset"))]

    def test_gate_is_a_dry_run(self, packages: Packages) -> None:
        """As it comes the gate's configuration is right, and acts on nothing."""
        done = subprocess.run(
            [
                *(packages.tree / "usr/bin/fabricmon", "gate", "check"),
                *("--config", packages.tree / "etc/fabricmon/gate.yaml"),
            ],
            check=False,
            capture_output=True,
            text=True,
        )

        assert done.returncode == 0, done.stderr
        assert "dry run: nothing is called" in done.stdout

    def test_scripts_are_named_where_they_lie(self, packages: Packages) -> None:
        """What configuration and script say of the script's place is so."""
        place = "/usr/libexec/fabricmon/gate/drain-slurm.sh"
        script = packages.tree / place.removeprefix("/")

        assert script.stat().st_mode & 0o777 == 0o755
        assert f"script.path: {place}\n" in script.read_text()
        assert (
            f"as {place}\n" in (packages.tree / "etc/fabricmon/gate.yaml").read_text()
        )

    def test_scripts_of_slurm(self, packages: Packages) -> None:
        """They lie where slurm.conf is told to look, and can be called."""
        names = {"epilog.sh", "healthcheck.sh", "prolog.sh", "resume.sh"}
        slurm = packages.tree / "usr/libexec/fabricmon/slurm"
        runs = {path.name for path in slurm.iterdir() if path.stat().st_mode & 0o111}

        assert runs == names
        assert (slurm / "common.sh").stat().st_mode & 0o777 == 0o644

    @pytest.mark.parametrize("unit", ["fabricmon.service", "fabricmon-gate.service"])
    def test_units_verify(self, packages: Packages, tmp_path: Path, unit: str) -> None:
        """Systemd has nothing against the units as they are installed."""
        shutil.copytree(packages.tree / "usr/lib/systemd", tmp_path / "usr/lib/systemd")
        units = tmp_path / "usr/lib/systemd/system"
        for name in ("sysinit", "basic", "shutdown", "network", "network-online"):
            (units / f"{name}.target").write_text("[Unit]\n")
        (units / "multi-user.target").write_text("[Unit]\n")
        for command in ("usr/bin/fabricmon", "bin/kill"):
            (tmp_path / command).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / command).touch(mode=0o755)
        done = subprocess.run(
            [require("systemd-analyze"), "verify", f"--root={tmp_path}", unit],
            check=False,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

        assert done.stdout == ""

    def test_units_users(self, packages: Packages) -> None:
        """Each unit's user is one that the package makes."""
        for name in ("fabricmon", "fabricmon-gate"):
            unit = packages.tree / f"usr/lib/systemd/system/{name}.service"
            users = packages.tree / f"usr/lib/sysusers.d/{name}.conf"
            assert f"\nUser={name}\n" in unit.read_text()
            assert f"\nu {name} - " in users.read_text()

    def test_manual_has_the_service(self) -> None:
        """The manual page names commands that exist."""
        text = (Path(__file__).parents[2] / "deploy/package/fabricmon.8").read_text()
        named = set(re.findall(r"^\.BR? \"?fabricmon (\w+)", text, re.MULTILINE))

        assert named
        assert named <= {command.name for command in COMMANDS}


class TestReproducible:
    def test_staged_twice(self, packages: Packages, tmp_path: Path) -> None:
        """A second build, from the wheel on, lays out the same files."""
        again = tmp_path / "tree"
        build("tree", "--wheel", packages.wheel, "--out", again)

        assert _digests(again) == _digests(packages.tree)

    def test_packed_twice(self, packages: Packages, tmp_path: Path) -> None:
        """The same files give the same package, also on another day."""
        words = ("--wheel", packages.wheel, "--tree", packages.tree)
        build("deb", *words, "--out", tmp_path)
        (again,) = tmp_path.glob("*.deb")

        assert again.read_bytes() == packages.deb.read_bytes()


class TestInterpreter:
    def test_glibc_floor(self, packages: Packages) -> None:
        """Every program and library runs with the glibc of the nodes."""
        needed = {path.name: elf.needs(path).glibc for path in elf.files(packages.tree)}

        assert len(needed) > 20
        assert {name: v for name, v in needed.items() if v > GLIBC} == {}

    def test_finds_its_libraries(self, packages: Packages) -> None:
        """Everything is linked with what lies beside it, or with glibc."""
        beside = {path.name for path in (packages.tree / HOME / "lib").iterdir()}
        for path in elf.files(packages.tree):
            for name in elf.needs(path).libraries:
                glibc = re.match(r"lib(c|m|dl|rt|pthread)\.so|ld-linux", name)
                assert glibc or name in beside, (path.name, name)

    def test_has_every_module(self, packages: Packages) -> None:
        """Everything of fabricmon can be imported from the package alone."""
        debian = interpreter(_field(packages.deb, "Architecture").strip(), CACHE)
        library = packages.tree / HOME / "lib" / f"python{VERSION}"
        paths = [library, library / "lib-dynload", library / "site-packages"]
        walk = pkgutil.walk_packages(fabricmon.__path__, "fabricmon.")
        names = [each.name for each in walk if not each.name.endswith("__main__")]
        script = (
            f"import sys; sys.path[:] = {[str(path) for path in paths]!r}\n"
            "import importlib\n"
            f"for name in {names!r}: importlib.import_module(name)\n"
            "import asyncio, sqlite3, ssl, hashlib, zoneinfo\n"
            "assert 'site-packages' in sys.modules['fabricmon'].__file__\n"
        )
        done = subprocess.run(
            [*debian.compile_with, "-S", "-B", "-c", script],
            check=False,
            capture_output=True,
            text=True,
        )

        assert done.returncode == 0, done.stderr

    @pytest.mark.parametrize("name", ["PYTHONPATH", "PYTHONHOME"])
    def test_ignores_the_nodes_python(
        self, packages: Packages, tmp_path: Path, name: str
    ) -> None:
        """What a user sets for the node's Python does not reach it."""
        (tmp_path / "yaml.py").write_text("raise SystemExit('the wrong one')")
        done = subprocess.run(
            [packages.tree / "usr/bin/fabricmon", "config", "show"],
            check=False,
            cwd=tmp_path,
            env={name: str(tmp_path)},
            capture_output=True,
            text=True,
        )

        assert done.returncode == 0, done.stderr
        assert "link_state" in done.stdout

    def test_can_lie_anywhere(self, packages: Packages, tmp_path: Path) -> None:
        """The program finds its library beside itself, through links too."""
        shutil.copytree(packages.tree / HOME, tmp_path / "moved", symlinks=True)
        (tmp_path / "command").symlink_to("moved/fabricmon")
        done = subprocess.run(
            [tmp_path / "command", "--version"],
            check=False,
            capture_output=True,
            text=True,
        )

        assert done.stdout.strip().endswith(fabricmon.__version__)

    def test_reads_names_of_any_bytes(self, packages: Packages) -> None:
        """Text is UTF-8 also where a service has no locale."""
        done = subprocess.run(
            [packages.tree / "usr/bin/fabricmon", "explain", "kabel-\u00e4"],
            check=False,
            env={"LC_ALL": "C"},
            capture_output=True,
        )

        assert "kabel-\u00e4".encode() in done.stderr
