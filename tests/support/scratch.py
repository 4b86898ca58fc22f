"""A small file system with a shell and systemd-sysusers, to install packages in."""

import fcntl
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.packages import FOLDER
from tests.support.programs import MISSING, require

_ARCHIVE = FOLDER.parent / "scratch-bookworm.tar"


def unpack(folder: Path) -> Path:
    """Return a fresh copy in a folder; skip where Debian's packages cannot be had."""
    _ARCHIVE.parent.mkdir(parents=True, exist_ok=True)
    with _ARCHIVE.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not _ARCHIVE.exists():
            _make(_ARCHIVE)
    root = folder / "root"
    root.mkdir()
    # Devices are left out: not everybody may make them, and nobody needs them here.
    words = ("tar", "-xf", str(_ARCHIVE), "-C", str(root), "--exclude=./dev/*")
    subprocess.run(words, check=True)
    (root / "dev/null").touch(mode=0o666)
    return root


def run(root: Path, *words: str) -> str:
    """Run a command in there, as root; return what it printed. It must succeed."""
    box = (require("bwrap"), "--bind", str(root), "/", "--proc", "/proc")
    path = ("--clearenv", "--setenv", "PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
    done = subprocess.run(
        [*box, "--dev", "/dev", *path, "--die-with-parent", *words],
        check=False,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def _make(archive: Path) -> None:
    new = archive.with_suffix(".new.tar")
    done = subprocess.run(
        [
            *(require("mmdebstrap"), "--quiet", "--variant=essential"),
            *("--include=systemd-standalone-sysusers", "bookworm", str(new)),
        ],
        check=False,
        capture_output=True,
        text=True,
    )
    if done.returncode:
        new.unlink(missing_ok=True)
        pytest.skip(f"{MISSING}packages of Debian ({done.stderr[-200:]})")
    shutil.move(new, archive)
