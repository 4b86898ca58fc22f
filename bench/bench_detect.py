"""How well fabricmon and its peers detect what is broken on purpose.

Simulates scenarios at test seeds, lets the agent's own pipeline, the fleet's rules on
a Prometheus and the peers' rules look on, scores all, and writes tables and plots to ``docs/benchmarks.md``. Results are
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

from detect_report import text, write
from detect_runs import FleetBench, Task, run_all, run_all_with_fleet
from detect_scores import Report

from fabricmon.errors import AbsentError
from fabricmon.fleet.programs import find_programs
from fabricmon.fleet.site import DEFAULT, site_of
from fabricmon.fleet.trial import allowance_seconds
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
    bench = _fleet_bench(options)
    if bench is None:
        runs = run_all(tasks, options.cache, options.jobs, _tell)
        report = Report(tuple(runs), _command())
    else:
        runs = run_all_with_fleet(tasks, options.cache, options.jobs, _tell, bench)
        allowance = allowance_seconds(bench.site)
        report = Report(tuple(runs), _command(), allowance)
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


def _fleet_bench(options: argparse.Namespace) -> FleetBench | None:
    """Return what evaluates the fleet's rules, None where that is not wanted."""
    if options.fleet is False:
        return None
    try:
        programs = find_programs()
    except AbsentError as error:
        if options.fleet:
            sys.exit(str(error))
        _tell(f"rules of the fleet are not evaluated: {error}")
        return None
    site = site_of(options.rules)
    return FleetBench(site, programs, options.batch, options.keep_metrics)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scenarios", nargs="+", default=["*"], metavar="GLOB")
    parser.add_argument("--seeds", type=int, metavar="N", help="seeds of each scenario")
    parser.add_argument("--first-seed", type=int, default=FIRST_TEST_SEED)
    parser.add_argument(
        "--quick",
        action="store_true",
        help="one seed, as written only; else half and double magnitudes as well, "
        "which the agents judge alone",
    )
    parser.add_argument(
        "--jobs",
        type=int,
        default=len(os.sched_getaffinity(0)),
        help="runs at a time; 0: run nothing, take what is kept",
    )
    parser.add_argument("--cache", type=Path, default=ROOT / "build/bench-detect")
    parser.add_argument(
        "--out", type=Path, metavar="FILE", help="document to write to; none: print"
    )
    parser.add_argument(
        "--fleet",
        action=argparse.BooleanOptionalAction,
        help="the fleet's rules on a Prometheus (default: where one is installed)",
    )
    parser.add_argument("--rules", default=DEFAULT, metavar="FILE")
    parser.add_argument(
        "--batch", type=int, default=24, metavar="N", help="runs in one Prometheus"
    )
    parser.add_argument(
        "--keep-metrics",
        action="store_true",
        help="keep what was scraped (1 to 3 MiB a run), to tune rules on it",
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
