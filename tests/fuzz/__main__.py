"""``python -m tests.fuzz --seconds 30 [TARGET...]``: campaigns, one after the other."""

from __future__ import annotations

import argparse
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from tests.fuzz.campaign import run
from tests.fuzz.target import Target

ROW = "{:<18} {:>12} {:>12} {}"


def known() -> dict[str, Target]:
    """Return the targets, watched by what leads campaigns if it is there."""
    if find_spec("atheris") is None:
        text = "without atheris (pip install --group fuzz): nothing leads the campaigns"
        print(f"MISSING {text}", file=sys.stderr)
        from tests.fuzz.targets import BY_NAME  # noqa: PLC0415

        return BY_NAME
    atheris = import_module("atheris")  # of the group `fuzz`
    atheris.enabled_hooks.add("str")
    with atheris.instrument_imports(include=["fabricmon"]):
        from tests.fuzz.targets import BY_NAME  # noqa: PLC0415
    return BY_NAME


def main() -> int:
    """Print a table; 1 if anything failed."""
    parser = argparse.ArgumentParser(prog="tests.fuzz", description=__doc__)
    parser.add_argument("targets", nargs="*", metavar="TARGET", help="default: all")
    parser.add_argument(
        "--seconds", type=float, default=30.0, help="of the CPU, for each target"
    )
    parser.add_argument(
        "--work", type=Path, default=Path("build/fuzz"), help="corpus and findings"
    )
    options = parser.parse_args()
    targets = known()
    unknown = [name for name in options.targets if name not in targets]
    if unknown:
        parser.error(f"no such target: {unknown[0]}; there are {', '.join(targets)}")
    print(ROW.format("target", "executions", "new coverage", "failures"), flush=True)
    failed = False
    for name in options.targets or targets:
        found = run(targets[name], options.seconds, options.work)
        failed = failed or bool(found.failures)
        cover = "-" if found.coverage is None else found.coverage
        what = ", ".join(found.failures) or "none"
        print(ROW.format(name, found.executions, cover, what), flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
