"""Bars that take hours to measure: what the last long run has left in the document."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from bars import NEVER, NO, OPEN, YES, Row, Stored, stored, verdict

ROOT = Path(__file__).parent.parent
DOCUMENT = ROOT / "docs/benchmarks.md"
FULL = bool(os.environ.get("FULL"))
"""Whether to run what takes long before."""

RULES_SHARE, RULES_NODES = 0.10, "512"
RECALL, VOTE_RECALL, PRECISION, BLAME, FINDINGS = 95, 80, 98, 0.5, 3.0
PAGES = 0.05
LIVES = {"full": "10", "full-no-bursts": "40", "thinned": "110"}
"""Node-days of each way of living through them."""

LIFE_MINUTES = "240"

Rows = Iterator[Row]
Earlier = dict[str, Row]


def _long(*command: str) -> None:
    """Run what takes long, where that is wanted."""
    if FULL:
        subprocess.run(command, cwd=ROOT, check=True)


def kept(earlier: Earlier, bar: str, command: str) -> Row:
    """Return what an earlier run found, where this one does not measure it."""
    known = earlier.get(bar)
    if known is not None:
        return known
    return Row(bar, "not measured yet", OPEN, command, measured=NEVER)


def detection(_: Earlier) -> Rows:
    """Recall, precision and blame on simulated fleets, from the last long run."""
    _long(sys.executable, "bench/bench_detect.py", "--out", str(DOCUMENT))
    command = "make bench-detect"
    found = stored(DOCUMENT, "bench-detect")
    judges = {} if found is None else {r["judge"]: r for r in found.table("judge")}
    if found is None or "fabricmon" not in judges:
        yield Row("detection", "not measured yet", OPEN, command, measured=NEVER)
        return
    measured, agent = found.measured, judges["fabricmon"]
    heard = judges.get("fabricmon fleet", agent)
    for bar, column, enough in (
        ("recall with local evidence: 95 %", "recall, local evidence", RECALL),
        ("recall by vote: 80 %", "recall, by vote", VOTE_RECALL),
        (
            "precision of what is to be acted on: 98 %",
            "actionable precision",
            PRECISION,
        ),
        ("hard negatives that stay silent: 100 %", "negatives passed", 100),
    ):
        met = verdict(met=_number(heard[column]) >= enough)
        told = _both(heard[column], agent[column])
        yield Row(bar, told, met, command, measured=measured)
    for bar, column, most in (
        ("victims blamed: 0.5 %", "victim blame", BLAME),
        ("findings per incident: 3", "findings per incident", FINDINGS),
    ):
        met = verdict(met=_number(heard[column]) <= most)
        told = _both(heard[column], agent[column])
        yield Row(bar, told, met, command, measured=measured)
    peers = sum(not judge.startswith("fabricmon") for judge in judges)
    yield Row(
        "the peers' rules on the same traces: reported beside ours",
        f"{peers} rule sets",
        verdict(met=peers > 0),
        command,
        measured=measured,
    )


def _both(heard: str, agent: str) -> str:
    if heard == agent:
        return heard
    return f"{heard} as people hear it, {agent} by the agent alone"


def _number(cell: str) -> float:
    """Return the first number of a cell such as ``96 % (131/136)``."""
    found = re.search(r"[-+]?\d[\d,]*\.?\d*", cell)
    if found is None:
        raise ValueError(f"no number in {cell!r}")
    return float(found.group().replace(",", ""))


def healthy(_: Earlier) -> Rows:
    """False pages in healthy life, from the last long run."""
    command = "python bench/bench_healthy.py"
    for way, days in LIVES.items():
        lived = ("--way", way, "--seeds", "3000", "--node-days", days)
        limit = ("--minutes", LIFE_MINUTES, "--out", str(DOCUMENT))
        _long(sys.executable, "bench/bench_healthy.py", *lived, *limit)
    bar = "false pages in healthy life: 0.05 per 1,000 node-days"
    found = stored(DOCUMENT, "bench-healthy")
    lives = [] if found is None else found.table("life")
    if found is None or not lives:
        yield Row(bar, "not measured yet", OPEN, command, measured=NEVER)
        return
    told = [f"{row['pages']} in {row['node-days']} ({row['life']})" for row in lives]
    bounds = [re.search(r"below ([\d,.]+)", row["pages"]) for row in lives]
    least = min(_number(each.group(1)) for each in bounds if each is not None)
    none = all(_number(row["pages"]) <= PAGES for row in lives)
    met = YES if none and least <= PAGES else OPEN if none else NO
    why = "" if met != OPEN else "; too few days to show the bar"
    yield Row(bar, "; ".join(told) + why, met, command, measured=found.measured)


def fleet_rules(_: Earlier) -> Rows:
    """Time that the fleet's rules take, from the last long run."""
    out = ("--out", str(DOCUMENT))
    _long(sys.executable, "bench/bench_fleet_rules.py", *out)
    command = "python bench/bench_fleet_rules.py"
    bar = "rules of the fleet at 4,096 ports: 10 % of their interval, linear"
    found = stored(DOCUMENT, "bench-fleet-rules")
    sizes = {} if found is None else {r["nodes"]: r for r in found.table("nodes")}
    if found is None or RULES_NODES not in sizes:
        yield Row(bar, "not measured yet", OPEN, command, measured=NEVER)
        return
    yield _rules_row(bar, command, found, sizes)


def _rules_row(
    bar: str, command: str, found: Stored, sizes: dict[str, dict[str, str]]
) -> Row:
    largest = sizes[RULES_NODES]
    share = largest["a core, rules"]
    busy = largest.get("of their interval", share)
    missed = largest.get("rounds missed", "0")
    growth = [_number(row["ms a node and round"]) for row in sizes.values()]
    each = " to ".join(f"{value:.1f}" for value in (min(growth), max(growth)))
    return Row(
        bar,
        f"{busy}, {share} of a core; {each} ms a node and round, "
        f"rounds missed: {missed}",
        verdict(met=_number(busy) <= RULES_SHARE * 100 and _number(missed) == 0),
        command,
        measured=found.measured,
    )
