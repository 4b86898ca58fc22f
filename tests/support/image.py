"""The container image of the code under test, built by a real builder, as files."""

import fcntl
import hashlib
import json
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support.packages import EPOCH, FOLDER, ROOT, Packages
from tests.support.programs import MISSING, require

RECIPE = ROOT / "deploy" / "container"


@dataclass(frozen=True, slots=True)
class Image:
    """The root file system, and what a runtime is told about it."""

    root: Path
    config: dict[str, Any]


class Builder:
    """buildah, with a store of its own, which goes with its folder."""

    def __init__(self, folder: Path) -> None:
        self._words = [
            require("buildah"),
            *("--root", str(folder / "store"), "--runroot", str(folder / "run")),
            *("--storage-driver", "vfs"),
        ]

    def run(self, *words: str | Path, cwd: Path | None = None) -> str:
        """Run a command of buildah; return what it printed."""
        command = [*self._words, *map(str, words)]
        done = subprocess.run(
            command, check=False, capture_output=True, text=True, cwd=cwd
        )
        assert not done.returncode, f"{words}\n{done.stdout}\n{done.stderr[-2000:]}"
        return done.stdout.strip()

    def can_run(self) -> bool:
        """Tell whether this process may do what a build does."""
        done = subprocess.run(
            [*self._words, "from", "scratch"], check=False, capture_output=True
        )
        return done.returncode == 0


def image(packages: Packages) -> Image:
    """Return the image, built before or now; skip where it cannot be."""
    folder = FOLDER.parent / "image"
    folder.mkdir(parents=True, exist_ok=True)
    digest = hashlib.sha256(packages.deb.read_bytes())
    for path in sorted(RECIPE.iterdir()):
        digest.update(path.read_bytes())
    made = folder / digest.hexdigest()[:12]
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        base = _base(folder / "base.tar")
        if not made.exists():
            for old in folder.glob("*/"):
                shutil.rmtree(old)
            _build(packages, base, folder / "new")
            (folder / "new").rename(made)
    config = json.loads((made / "config.json").read_text())
    return Image(made / "root", config["OCIv1"]["config"])


def _base(path: Path) -> Path:
    """Return what stands for debian:bookworm-slim, made before or now."""
    if not path.exists():
        new = path.with_name("new.tar")
        command = [
            require("mmdebstrap"),
            "--quiet",
            "--variant=apt",
            "bookworm",
            str(new),
        ]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        if done.returncode:
            pytest.skip(f"{MISSING}packages of Debian ({done.stderr[-200:]})")
        new.rename(path)
    return path


def _build(packages: Packages, base: Path, folder: Path) -> None:
    context = folder / "context"
    (context / "build/dist").mkdir(parents=True)
    shutil.copy(packages.deb, context / "build/dist")
    shutil.copytree(RECIPE, context / "deploy/container")
    builder = Builder(folder)
    if not builder.can_run():
        pytest.skip(f"{MISSING}right to build an image")
    container = builder.run("from", "scratch")
    builder.run("add", container, base, "/")
    builder.run("commit", container, "localhost/base")
    builder.run(
        *("build", "--isolation", "chroot", "--network", "host", "--format", "docker"),
        *("--build-arg", "BASE=localhost/base"),
        *("--build-arg", f"SOURCE_DATE_EPOCH={EPOCH}"),
        *("--build-arg", f"TARGETARCH={packages.deb.stem.rpartition('_')[2]}"),
        *("-f", context / "deploy/container/Containerfile"),
        *("-t", "localhost/fabricmon", context),
    )
    container = builder.run("from", "localhost/fabricmon")
    shutil.copytree(builder.run("mount", container), folder / "root", symlinks=True)
    for name in ("var/lib/fabricmon", "run/fabricmon"):
        shutil.chown(folder / "root" / name, 65534, 65534)
    inspected = builder.run("inspect", "--type", "image", "localhost/fabricmon")
    (folder / "config.json").write_text(inspected)
    shutil.rmtree(folder / "store", ignore_errors=True)
    shutil.rmtree(folder / "run", ignore_errors=True)
    shutil.rmtree(context)
