"""The packages of the code under test, built once for what they are made of."""

import fcntl
import hashlib
import importlib.metadata
import os
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

import fabricmon
from tests.support.programs import MISSING, require

ROOT = Path(__file__).parent.parent.parent
FOLDER = ROOT / "build" / "packages"
UNREACHABLE = 75
IN_USE_SECONDS = 1800
"""Packages of other sources are kept so long: another run may be testing them."""

EPOCH = "1700000000"

_SOURCES = (
    *("deploy/package", "deploy/container", "deploy/gate", "deploy/slurm"),
    *("deploy/nhc", "deploy/npd"),
    *("systemd", "tools/package"),
)
_FILES = ("CHANGELOG.md", "LICENSE", "README.md", "pyproject.toml")


@dataclass(frozen=True, slots=True)
class Packages:
    """A wheel, the staged tree made of it, and two builds of one version's .deb."""

    wheel: Path
    tree: Path
    deb: Path
    next_deb: Path


def packages() -> Packages:
    """Return the packages, built before or now; skip where they cannot be."""
    for program in ("mmdebstrap", "gcc", "dpkg-deb"):
        require(program)
    if os.geteuid():
        pytest.skip(f"{MISSING}root (unpacks Debian's interpreter)")
    folder = FOLDER / _key()
    FOLDER.mkdir(parents=True, exist_ok=True)
    with (FOLDER / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "done").exists():
            for old in FOLDER.glob("*/"):
                if time.time() - old.stat().st_mtime > IN_USE_SECONDS:
                    shutil.rmtree(old)
            _build(folder)
    first, second = sorted(folder.glob("*.deb"))
    (wheel,) = folder.glob("*.whl")
    return Packages(wheel, folder / "tree", first, second)


def build(*words: str | Path) -> None:
    """Run the builder; skip where it cannot reach packages of others."""
    done = subprocess.run(
        [sys.executable, "-m", "tools.package", *words],
        check=False,
        cwd=ROOT,
        env={**os.environ, "SOURCE_DATE_EPOCH": EPOCH, "PYTHONSAFEPATH": ""},
        capture_output=True,
        text=True,
    )
    if done.returncode == UNREACHABLE:
        pytest.skip(f"{MISSING}packages of Debian and PyPI ({done.stderr[-200:]})")
    assert not done.returncode, done.stderr


def make_wheel(folder: Path, kind: str = "wheel") -> Path:
    """Build the wheel or the source archive of the working tree."""
    folder.mkdir(parents=True, exist_ok=True)
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", folder],
        check=True,
        cwd=ROOT,
        env={**os.environ, "SOURCE_DATE_EPOCH": EPOCH},
        capture_output=True,
    )
    (made,) = folder.glob("*.whl" if kind == "wheel" else "*.tar.gz")
    return made


def _build(folder: Path) -> None:
    wheel = make_wheel(folder)
    common = ("--wheel", wheel, "--out")
    build("tree", *common, folder / "tree")
    build("deb", *common, folder, "--tree", folder / "tree", "--revision", "1", "2")
    (folder / "done").touch()


def _key() -> str:
    """Return a digest of everything that goes into the packages."""
    digest = hashlib.sha256(importlib.metadata.version("fabricmon").encode())
    package = Path(fabricmon.__file__).parent
    folders = [package, *(ROOT / name for name in _SOURCES)]
    files = [p for f in folders for p in f.rglob("*") if "__pycache__" not in p.parts]
    for path in sorted([*files, *(ROOT / name for name in _FILES)]):
        if path.is_file():
            digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:12]
