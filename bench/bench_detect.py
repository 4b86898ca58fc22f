"""How well fabricmon and its peers detect what is broken on purpose.

Simulates scenarios at test seeds, lets the agent's own pipeline and the peers' rules
look on, scores all, and writes tables and plots to ``docs/benchmarks.md``. Results are
kept in ``build/bench-detect``: what is interrupted goes on where it was.
"""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from fnmatch import fnmatch
from importlib.resources import files
from pathlib import Path

from detect_report import Report, text, write
from detect_runs import Task, run_all

from fabricmon.sim.load import load_file

ROOT = Path(__file__).parent.parent
FIRST_TEST_SEED = 1000
"""Seeds 0 to 99 are for tuning; nothing of them is ever published."""
QUICK_SEEDS, SEEDS = 1, 5
OTHER_MAGNITUDES = (0.5, 2.0)


def main() -> None:
    """Run, then write or print."""
    options = _options()
    found = [Path(str(each)) for each in files("fabricmon.sim.scenarios").iterdir()]
    scenarios = sorted(
        path
        for path in found
        if path.suffix == ".yaml"
        and any(fnmatch(path.stem, pattern) for pattern in options.scenarios)
    )
    if not scenarios:
        sys.exit(f"no scenario is called {' or '.join(options.scenarios)}")
    tasks = _tasks(scenarios, options)
    done = tuple(run_all(tasks, options.cache, options.jobs, _tell))
    report = Report(done, _command())
    if options.out is None:
        print(text(report, ROOT / "build/bench-detect"))
    else:
        write(report, options.out, options.out.parent / "plots")
        print(f"written to {options.out}")


def _tasks(scenarios: list[Path], options: argparse.Namespace) -> list[Task]:
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    tasks = [Task(path, seed) for path in scenarios for seed in seeds]
    if not options.quick:
        broken = [path for path in scenarios if not load_file(path).negative]
        tasks += [
            Task(path, seed, magnitude, with_peers=False)
            for path in broken
            for seed in seeds
            for magnitude in OTHER_MAGNITUDES
        ]
    return tasks


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scenarios", nargs="+", default=["*"], metavar="GLOB")
    parser.add_argument("--seeds", type=int, metavar="N", help="seeds of each scenario")
    parser.add_argument("--first-seed", type=int, default=FIRST_TEST_SEED)
    parser.add_argument(
        "--quick", action="store_true", help="one seed, as written only"
    )
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--cache", type=Path, default=ROOT / "build/bench-detect")
    parser.add_argument(
        "--out", type=Path, metavar="FILE", help="document to write to; none: print"
    )
    options = parser.parse_args()
    if options.seeds is None:
        options.seeds = QUICK_SEEDS if options.quick else SEEDS
    return options


def _command() -> str:
    words = [shlex.quote(word) for word in sys.argv[1:]]
    return " ".join(("python bench/bench_detect.py", *words))


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
