"""Build packages that carry their own interpreter: ``python -m tools.package deb``."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from pathlib import Path

from tools.package import deb
from tools.package.commands import BuildError, UnreachableError, run
from tools.package.interpreter import interpreter
from tools.package.stage import ROOT, Build, stage

MAINTAINER = "The fabricmon authors <fabricmon@localhost>"
CACHE = ROOT / "build" / "package"

UNREACHABLE = 75
"""Exit status where packages of others could not be had. (sysexits: try later)"""


def main() -> int:
    """Build what the arguments say; print its path. Returns the exit status."""
    options = _parser().parse_args()
    try:
        for path in _build(options):
            print(path)  # noqa: T201 - the command's result
    except BuildError as error:
        print(f"package: {error}", file=sys.stderr)  # noqa: T201 - and its failure
        return UNREACHABLE if isinstance(error, UnreachableError) else 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tools.package")
    parser.add_argument("kind", choices=("tree", "deb"), help="files alone, or a .deb")
    parser.add_argument("--wheel", type=Path, required=True, help="the agent's wheel")
    parser.add_argument("--out", type=Path, required=True, help="folder, or the tree")
    parser.add_argument("--tree", type=Path, help="a staged tree to make the .deb of")
    parser.add_argument("--architecture", help="Debian's name; default: this machine's")
    parser.add_argument(
        "--revision",
        type=int,
        nargs="+",
        default=[1],
        help="of the package; one file for each",
    )
    return parser


def _build(options: argparse.Namespace) -> list[Path]:
    architecture = options.architecture or run(["dpkg", "--print-architecture"]).strip()
    build = Build(architecture, options.wheel.absolute(), _epoch())
    out: Path = options.out
    if options.kind == "tree":
        shutil.rmtree(out, ignore_errors=True)
        _stage(build, out)
        return [out]
    out.mkdir(parents=True, exist_ok=True)
    maintainer = os.environ.get("MAINTAINER", MAINTAINER)
    releases = [deb.Release(each, maintainer) for each in options.revision]
    with tempfile.TemporaryDirectory() as temporary:
        tree: Path = options.tree or Path(temporary, "tree")
        if not tree.exists():
            _stage(build, tree)
        return [deb.make(build, release, tree, out) for release in releases]


def _stage(build: Build, tree: Path) -> None:
    stage(build, interpreter(build.architecture, CACHE), CACHE / "wheels", tree)


def _epoch() -> int:
    """Return as of when this is built: told, or the last commit, or the sources."""
    told = os.environ.get("SOURCE_DATE_EPOCH")
    if told is not None:
        return int(told)
    if (ROOT / ".git").exists():
        return int(run(["git", "log", "-1", "--format=%ct"], ROOT))
    return int((ROOT / "pyproject.toml").stat().st_mtime)


if __name__ == "__main__":
    sys.exit(main())
