"""``python -m tests.campaign``: every fault against a real agent, as one table.

``--mutate N --seed S`` takes the guards of N rows out, one at a time, and shows that
each of these rows then fails.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from tests.campaign.playing import (
    AS_EXPECTED,
    FAILED,
    SKIPPED,
    Outcome,
    play_all,
    play_without_guard,
)
from tests.campaign.row import Fault
from tests.campaign.table import FAULTS

MUTANT_PATIENCE_SECONDS = 8.0
MOST_CHARACTERS = 300


def main() -> int:
    """Play what was asked for; 1 if anything is not as it must be."""
    options = _options()
    chosen = [
        fault
        for fault in FAULTS
        if not options.only or any(word in fault.name for word in options.only)
    ]
    if options.mutate is not None:
        number = min(options.mutate, len(chosen))
        picked = random.Random(options.seed).sample(chosen, number)
        return _mutate(picked, options)
    begun = time.monotonic()
    outcomes = []
    for each in play_all(chosen, options.at_once):
        outcomes.append(each)
        _row(each.fault.name, each.fault.done, each.fault.expected, _told(each))
    return _sum_up(outcomes, AS_EXPECTED, time.monotonic() - begun)


def _mutate(picked: Sequence[Fault], options: argparse.Namespace) -> int:
    """Take guards out; a row that does not notice is worth nothing."""
    begun = time.monotonic()
    patience = options.patience
    print(f"seed {options.seed}: {len(picked)} rows, each with its guard taken out")
    with ThreadPoolExecutor(options.at_once) as pool:
        playing = pool.map(partial(play_without_guard, patience=patience), picked)
        outcomes = [_told_mutant(each) for each in playing]
    return _sum_up(outcomes, FAILED, time.monotonic() - begun)


def _told_mutant(outcome: Outcome) -> Outcome:
    """Print how a row went without its guard."""
    guard = outcome.fault.guard
    old = " ".join(guard.old.split())
    noticed = f"failed, as it must: {outcome.why}"
    told = noticed if outcome.word == FAILED else f"NOT NOTICED ({_told(outcome)})"
    _row(outcome.fault.name, f"{guard.file}: {old}", told[:MOST_CHARACTERS])
    return outcome


def _told(outcome: Outcome) -> str:
    return f"{outcome.word}: {outcome.why}" if outcome.why else outcome.word


def _row(*cells: str) -> None:
    print(" | ".join(cells), flush=True)


def _sum_up(outcomes: Sequence[Outcome], wanted: str, seconds: float) -> int:
    good = sum(each.word == wanted for each in outcomes)
    skipped = sum(each.word == SKIPPED for each in outcomes)
    wrong = len(outcomes) - good - skipped
    print(
        f"{len(outcomes)} rows in {seconds:.0f} s: {good} {wanted}, {skipped} skipped, "
        f"{wrong} not as they must be"
    )
    return 1 if wrong else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.campaign")
    parser.add_argument("only", nargs="*", help="parts of the names of rows")
    parser.add_argument("--mutate", type=int, metavar="N", help="rows without guard")
    parser.add_argument("--seed", type=int, default=0, help="which rows these are")
    parser.add_argument(
        "--patience",
        type=float,
        default=MUTANT_PATIENCE_SECONDS,
        metavar="SECONDS",
        help="how long a row without its guard is waited for; more on a busy machine",
    )
    parser.add_argument(
        "--at-once", type=int, default=2 * (os.cpu_count() or 2), metavar="N"
    )
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
