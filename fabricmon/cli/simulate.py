"""``fabricmon simulate SCENARIO``: a fleet that breaks on purpose, as traces.

The folder holds who there is (fleet.json), what is true (truth.json) and a trace of
each node. The same scenario and seed give the same bytes.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec

from fabricmon.cli import CONFIG_ERROR, FAILED, USAGE_ERROR, number_up_to
from fabricmon.errors import ConfigError, ParseError
from fabricmon.sim.folder import FLEET, TRUTH, write_fleet
from fabricmon.sim.load import check, load, shipped
from fabricmon.sim.scenario import Scenario
from fabricmon.sim.score_files import read_truth
from fabricmon.sim.staging import Stage

MOST_NODES = 1024
MOST_SECONDS = 400 * 86400.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "scenario", nargs="?", metavar="SCENARIO", help="its name, or a YAML file"
    )
    parser.add_argument("--list", action="store_true", help="show what is shipped")
    parser.add_argument(
        "--out", type=Path, metavar="FOLDER", help="for one trace a node, and the truth"
    )
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="default 1")
    parser.add_argument(
        "--nodes", type=_whole(MOST_NODES), metavar="N", help="instead of the file's"
    )
    parser.add_argument(
        "--duration",
        type=number_up_to(MOST_SECONDS),
        metavar="SECONDS",
        help="instead of the file's",
    )
    parser.add_argument(
        "--jobs",
        type=_whole(MOST_NODES),
        default=os.cpu_count() or 1,
        metavar="N",
        help="processes (default: one for each core)",
    )
    parser.add_argument(
        "--force", action="store_true", help="write over another fleet that is there"
    )


def run(options: argparse.Namespace) -> int:
    """Write the fleet, or list the scenarios."""
    if options.list:
        return _list()
    if options.scenario is None or options.out is None:
        message = "name a SCENARIO and --out FOLDER, or use --list"
        print(f"fabricmon simulate: {message}", file=sys.stderr)
        return USAGE_ERROR
    try:
        scenario = _changed(load(options.scenario), options)
        stage = Stage(scenario, options.seed)
    except ConfigError as error:
        error.file = error.file or options.scenario
        print(f"fabricmon simulate: {error}", file=sys.stderr)
        return CONFIG_ERROR
    if not options.force and _is_in_the_way(options.out, stage):
        message = "this holds another fleet: name another, or write over it: --force"
        print(f"fabricmon simulate: {options.out}: {message}", file=sys.stderr)
        return USAGE_ERROR
    try:
        write_fleet(stage, options.out, options.jobs)
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        print(f"fabricmon simulate: {place}{error.strerror}", file=sys.stderr)
        return FAILED
    print(f"{options.out}: {_summary(stage)}")
    return 0


def _whole(most: int) -> Callable[[str], int]:
    """Return an argument type: a whole number from 1 to ``most``."""
    convert = number_up_to(most)

    def whole(text: str) -> int:
        number = convert(text)
        if number < 1 or number != int(number):
            raise argparse.ArgumentTypeError(f"{text!r} is no whole number above 0")
        return int(number)

    return whole


def _changed(scenario: Scenario, options: argparse.Namespace) -> Scenario:
    """Return the scenario with what the command line says instead."""
    given = {
        name: getattr(options, name)
        for name in ("nodes", "duration")
        if getattr(options, name) is not None
    }
    if not given:
        return scenario
    changed = msgspec.structs.replace(scenario, **given)
    check(changed)
    return changed


def _is_in_the_way(folder: Path, stage: Stage) -> bool:
    """Tell whether a folder holds a fleet, unless of this scenario and seed."""
    try:
        known = read_truth(folder)
    except ParseError:  # of a recorded fleet nobody knows the truth
        return any((folder / name).exists() for name in (FLEET, TRUTH))
    return (known.scenario, known.seed) != (stage.scenario.name, stage.seed)


def _summary(stage: Stage) -> str:
    truth = stage.truth
    return (
        f"{stage.plan.nodes} nodes, {stage.plan.duration:g} s, "
        f"{len(truth.faults)} faults, seed {stage.seed}"
    )


def _list() -> int:
    names = shipped()
    width = max(map(len, names), default=0)
    for name in names:
        scenario = load(name)
        tags = f" [{', '.join(scenario.tags)}]" if scenario.tags else ""
        print(f"{name:{width}}  {scenario.summary}{tags}")
    return 0
