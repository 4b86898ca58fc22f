"""False pages, tickets and warnings in healthy life, with their upper bounds.

Healthy nodes of all profiles, in proportion, are simulated and judged by the agent's
own pipeline: some node-days in full with burst sampling (``--way full``), some without
(``--way full-no-bursts``), and many thinned to their events (``--way thinned``; what
that assumes stands in ``fabricmon/sim/life.py``, and ``--check`` compares it with full
lives of the same seeds in which events are frequent).

Each life is kept in ``build/bench-healthy`` by seed and package; a later call adds
seeds or goes on where one was interrupted. The figures are of all lives that this
package has lived so far. ``--out`` writes them between the markers of a document.
"""

from __future__ import annotations

import argparse
import os
import platform
import shlex
import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from itertools import count
from math import ceil, inf
from pathlib import Path

from detect_runs import package_hash
from healthy_report import report
from healthy_runs import Order, Way, kept, run_all
from markers import replace_between

ROOT = Path(__file__).parent.parent
NAME = "bench-healthy"
FIRST_SEED = 1000
"""Seeds below are for tuning; nothing of them is ever published."""

_SIZES = {Way.BURSTS: (2, 0.25), Way.PLAIN: (2, 0.25), Way.THINNED: (2, 5.0)}
"""Nodes and days of one life."""
CHECK = Order(Way.PLAIN, 0, 2, 0.25, 20.0)
"""Lives in which what happens once a day happens 20 times."""


def main() -> None:
    """Live, then say what was told wrongly."""
    options = _options()
    of_package = package_hash()
    folder = options.cache / "check" if options.check else options.cache
    limit = inf if options.minutes is None else options.minutes * 60
    run_all(
        _orders(options),
        folder,
        of_package,
        jobs=options.jobs,
        limit=limit,
        tell=_tell,
    )
    text = report(list(kept(folder, of_package)), _head())
    print(text)
    if options.out is not None:
        replace_between(options.out, NAME, text)


def _orders(options: argparse.Namespace) -> Iterator[Order]:
    """Yield the lives that are asked for, in order of their seeds."""
    first, _, end = options.seeds.partition(":")
    seeds = range(int(first), int(end)) if end else count(int(first))
    nodes, days = _SIZES[options.way]
    wanted = None
    if options.node_days is not None:
        wanted = ceil(options.node_days / (nodes * days))
    elif not end:
        wanted = 1
    for number, seed in enumerate(seeds):
        if wanted is not None and number >= wanted:
            return
        if options.check:
            for way in (Way.THINNED, Way.BURSTS):
                yield replace(CHECK, way=way, seed=seed)
        else:
            yield Order(options.way, seed, nodes, days)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--way", type=Way, choices=list(Way), default=Way.THINNED)
    parser.add_argument("--seeds", default=f"{FIRST_SEED}", metavar="A[:B]")
    parser.add_argument("--node-days", type=float, metavar="N", help="from A on")
    parser.add_argument(
        "--minutes", type=float, metavar="LIMIT", help="begin nothing more after it"
    )
    parser.add_argument(
        "--check", action="store_true", help="the same lives thinned and in full"
    )
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--cache", type=Path, default=ROOT / "build/bench-healthy")
    parser.add_argument("--out", type=Path, metavar="FILE")
    return parser.parse_args()


def _head() -> str:
    words = sys.argv[1:]
    pairs = zip(words, ["", *words], strict=False)
    shown = [  # no path of this machine
        word
        for word, before in pairs
        if "--cache" not in {word, before} and not word.startswith("/")
    ]
    command = " ".join(("python bench/bench_healthy.py", *map(shlex.quote, shown)))
    return (
        f"Of {datetime.now(UTC):%Y-%m-%d}, {os.cpu_count()} processors "
        f"({platform.machine()}), CPython {platform.python_version()}; last command "
        f"`{command}`."
    )


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
