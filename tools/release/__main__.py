"""Make a folder of packages a release: ``python -m tools.release --dist build/dist``.

Asks the advisory service about what is locked, writes a bill of materials beside each
package and the hashes of all.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from tools.package.__main__ import CACHE, UNREACHABLE
from tools.package.commands import BuildError, UnreachableError, run
from tools.package.stage import LOCK, ROOT, locked
from tools.release.audit import audit
from tools.release.bill import Package, bill
from tools.release.parts import debian_parts, digest, wheel_part, wheels

SUMS = "SHA256SUMS"
BILL = ".cdx.json"


def main() -> int:
    """Do all of it; return the exit status."""
    options = _parser().parse_args()
    try:
        for path in bills(options.dist, options.wheels, options.epoch):
            print(path)  # noqa: T201 - the command's result
        print(write_sums(options.dist))  # noqa: T201 - too
        asked = audit(LOCK)
    except BuildError as error:
        print(f"release: {error}", file=sys.stderr)  # noqa: T201 - and its failure
        return UNREACHABLE if isinstance(error, UnreachableError) else 1
    print(f"{asked} dependencies without a known hole")  # noqa: T201
    return 0


def bills(dist: Path, of_wheels: Path, epoch: int) -> list[Path]:
    """Write the bill of each package; raises `BuildError`."""
    own = list(dist.glob("fabricmon-*.whl"))
    if len(own) != 1:
        raise BuildError(f"{dist}: one wheel of fabricmon is needed: make package")
    agent, parts = wheel_part(own[0]), wheels(of_wheels, locked())
    written = []
    for path in (*own, *sorted(dist.glob("fabricmon_*.deb"))):
        debian = debian_parts(path) if path.suffix == ".deb" else ()
        made = Package(path.name, digest(path), agent, epoch)
        text = bill(made, parts, debian)
        target = path.with_name(f"{path.name}{BILL}")
        target.write_text(text, encoding="utf-8")
        written.append(target)
    return written


def write_sums(dist: Path) -> Path:
    """Write the hashes of all files, as ``sha256sum --check`` reads them."""
    target = dist / SUMS
    files = sorted(p for p in dist.iterdir() if p.is_file() and p != target)
    lines = [f"{digest(path)}  {path.name}\n" for path in files]
    target.write_text("".join(lines), encoding="utf-8")
    return target


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tools.release")
    parser.add_argument("--dist", type=Path, required=True, help="the packages")
    parser.add_argument(
        "--wheels",
        type=Path,
        default=CACHE / "wheels" / _architecture(),
        help="the locked wheels that the packages were made of",
    )
    told = os.environ.get("SOURCE_DATE_EPOCH")
    newest = int((ROOT / "pyproject.toml").stat().st_mtime)
    parser.add_argument("--epoch", type=int, default=int(told or newest))
    return parser


def _architecture() -> str:
    return run(["dpkg", "--print-architecture"]).strip()


if __name__ == "__main__":
    sys.exit(main())
