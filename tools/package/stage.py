"""The tree of files that packages of every kind carry."""

from __future__ import annotations

import gzip
import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from tools.package.commands import BuildError, UnreachableError, run
from tools.package.interpreter import HOME, VERSION, Interpreter, compile_files

ROOT = Path(__file__).parent.parent.parent
LOCK = ROOT / "deploy" / "container" / "requirements.lock"
DOCUMENTS = "usr/share/doc/fabricmon"
SCRIPTS = "usr/libexec/fabricmon"

# Wheels for these run wherever the interpreter does. (PEP 600)
_GLIBC = ("2_17", "2_24", "2_26", "2_27", "2_28", "2_31", "2_34")
_MACHINES = {"amd64": "x86_64", "arm64": "aarch64"}


@dataclass(frozen=True, slots=True)
class Build:
    """What is built: for which architecture, of which wheel, as of when.

    ``epoch`` is SOURCE_DATE_EPOCH: Unix seconds; no file is newer.
    """

    architecture: str
    wheel: Path
    epoch: int

    @property
    def version(self) -> str:
        """The version in the wheel's name."""
        return self.wheel.name.split("-")[1]


def stage(build: Build, interpreter: Interpreter, wheels: Path, root: Path) -> None:
    """Make the whole tree at ``root``, which must not exist, byte for byte the same.

    Args:
        build: What is built.
        interpreter: What it runs on.
        wheels: Where locked wheels are kept between builds.
        root: The new tree.

    Raises:
        BuildError: A wheel cannot be had, or is not the one that is locked.
    """
    shutil.copytree(interpreter.root, root, symlinks=True)
    site = root / HOME / "lib" / f"python{VERSION}" / "site-packages"
    _install(build, _download(build, wheels), site)
    compile_files(root, site, interpreter.compile_with)
    _put_files(build, root)
    _put_licences(site, root / DOCUMENTS / "licenses")
    settle(root, build.epoch)


def settle(root: Path, epoch: int) -> None:
    """Give everything the modes and times that it has in a package."""
    for path in sorted(root.rglob("*"), reverse=True):
        if not path.is_symlink():
            runs = path.is_dir() or path.parent == root / HOME
            path.chmod(0o755 if runs or _is_script(path, root) else 0o644)
        os.utime(path, (epoch, epoch), follow_symlinks=False)
    root.chmod(0o755)
    os.utime(root, (epoch, epoch))


def _is_script(path: Path, root: Path) -> bool:
    """Tell a script that is called from one that is only read by others."""
    return root / SCRIPTS in path.parents and path.read_bytes().startswith(b"#!")


def locked() -> dict[str, str]:
    """Return the locked version of everything that the agent needs."""
    lines = LOCK.read_text().splitlines()
    pairs = (
        line.removesuffix("\\").strip().split("==") for line in lines if "==" in line
    )
    return dict(sorted(pairs))


def _pip(build: Build, *words: str | Path) -> None:
    machine = _MACHINES[build.architecture]
    platforms = [f"--platform=manylinux_{each}_{machine}" for each in _GLIBC]
    platforms.append(f"--platform=manylinux2014_{machine}")
    command, *rest = words
    run(
        [
            *(sys.executable, "-m", "pip", command, "--quiet", "--no-deps"),
            *("--disable-pip-version-check", "--only-binary=:all:"),
            *("--implementation=cp", f"--python-version={VERSION}", *platforms),
            *rest,
        ],
        failure=UnreachableError if command == "download" else BuildError,
    )


def _download(build: Build, wheels: Path) -> Path:
    """Return the folder of the locked wheels, which pip holds against their hashes."""
    folder = wheels / build.architecture
    done = folder / "lock"
    if not done.exists() or done.read_bytes() != LOCK.read_bytes():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        _pip(build, "download", "--require-hashes", f"--dest={folder}", f"-r{LOCK}")
        shutil.copy(LOCK, done)
    return folder


def _install(build: Build, wheels: Path, site: Path) -> None:
    names = [f"{name}=={version}" for name, version in locked().items()]
    # By name and from folders: of a path pip would write down where it was.
    sources = (f"--find-links={wheels}", f"--find-links={build.wheel.parent}")
    target = (f"--target={site}", "--no-compile")
    own = f"fabricmon=={build.version}"
    _pip(build, "install", "--no-index", *sources, *target, *names, own)
    shutil.rmtree(site / "bin")
    for tests in [*site.glob("*/test"), *site.glob("*/tests")]:
        shutil.rmtree(tests)


def _put_files(build: Build, root: Path) -> None:
    """Add command, units, users, configurations, manual page and examples."""
    units, own, gate = ROOT / "systemd", ROOT / "deploy/package", ROOT / "deploy/gate"
    documents = root / DOCUMENTS
    copies = {
        gate / "drain-slurm.sh": f"{SCRIPTS}/gate/drain-slurm.sh",
        gate / "gate.yaml": "etc/fabricmon/gate.yaml",
        units
        / "fabricmon-gate.service": "usr/lib/systemd/system/fabricmon-gate.service",
        units / "fabricmon-gate.sysusers": "usr/lib/sysusers.d/fabricmon-gate.conf",
        units / "fabricmon.service": "usr/lib/systemd/system/fabricmon.service",
        units / "fabricmon.sysusers": "usr/lib/sysusers.d/fabricmon.conf",
        units / "fabricmon.yaml": "etc/fabricmon/fabricmon.yaml",
        own / "copyright": f"{DOCUMENTS}/copyright",
    }
    for source, target in copies.items():
        (root / target).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, root / target)
    shutil.copytree(ROOT / "deploy/slurm", root / SCRIPTS / "slurm")
    shutil.copytree(units / "fabricmon.service.d", documents / "examples")
    for name in ("nhc", "npd"):
        shutil.copytree(ROOT / "deploy" / name, documents / "examples" / name)
    _pack(own / "fabricmon.8", root / "usr/share/man/man8/fabricmon.8.gz")
    _pack(ROOT / "CHANGELOG.md", documents / "changelog.gz")
    with (documents / "bundled.txt").open("a") as file:
        file.writelines(f"{name} {version}\n" for name, version in locked().items())
        file.write(f"fabricmon {build.version}\n")
    command = root / "usr/bin/fabricmon"
    command.parent.mkdir(parents=True)
    command.symlink_to(f"../{HOME.removeprefix('usr/')}/fabricmon")


def _put_licences(site: Path, folder: Path) -> None:
    """Keep each wheel's licence where people look for it."""
    for info in sorted(site.glob("*.dist-info")):
        name = info.name.split("-")[0]
        found = sorted(path for path in info.rglob("*") if _is_licence(path))
        if not found:
            raise BuildError(f"{info.name} has no licence to pass on")
        if name != "fabricmon":
            (folder / name).write_bytes(b"\n".join(p.read_bytes() for p in found))


def _is_licence(path: Path) -> bool:
    names = ("licen", "copying", "notice", "edl-", "epl-")
    return path.is_file() and path.name.lower().startswith(names)


def _pack(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(gzip.compress(source.read_bytes(), mtime=0))
