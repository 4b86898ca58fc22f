"""``fabricmon replay --fleet FOLDER``: its nodes, and the rules over all of them."""

from __future__ import annotations

import argparse
import heapq
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from operator import attrgetter
from pathlib import Path
from typing import BinaryIO

import msgspec

from fabricmon.cli import USAGE_ERROR
from fabricmon.config_load import Loaded
from fabricmon.errors import AbsentError
from fabricmon.finding_document import FindingDocument
from fabricmon.fleet.alert_findings import AlertFinding
from fabricmon.fleet.concluding import Conclusion, Site, conclude, metrics_read
from fabricmon.fleet.playing import (
    NodeTrace,
    PlayedNode,
    Player,
    join_nodes,
    node_traces,
    play_all,
)
from fabricmon.fleet.programs import Programs, find_programs
from fabricmon.fleet.scraping import EVERYTHING
from fabricmon.fleet.site import DEFAULT, site_of
from fabricmon.replaying_fleet import Found, NodeResult, replay_fleet
from fabricmon.sim.score_files import read_fleet

STANDARD_OUTPUT = "-"
NONE, REQUIRED = "none", "required"
CLUSTER = "replay"
"""Value of the cluster label of everything that is replayed."""
Dated = Found | AlertFinding
"""A finding with its time: of a node, or of the rules."""

Results = Sequence[NodeResult]

_OPTIONS = ("rules", "alerts", "openmetrics", "keep_data")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments that go with ``--fleet``."""
    group = parser.add_argument_group("with --fleet")
    group.add_argument(
        "--rules",
        metavar="WHICH",
        help="default: the fleet's rules, where Prometheus is installed; required: "
        "the same, and it is an error where it is not; none; or a file of rules",
    )
    group.add_argument(
        "--alerts",
        metavar="OUT",
        help="what people hear after waiting, grouping and inhibition, as findings",
    )
    group.add_argument(
        "--openmetrics", type=Path, metavar="OUT", help="metrics of all nodes with time"
    )
    group.add_argument(
        "--keep-data",
        type=Path,
        metavar="DIR",
        help="a new folder for the data, to start a Prometheus and Grafana on",
    )


def stray(options: argparse.Namespace) -> str | None:
    """Return the first option that was given and goes with ``--fleet`` only."""
    given = (name for name in _OPTIONS if getattr(options, name) is not None)
    return next((f"--{name.replace('_', '-')}" for name in given), None)


def run(options: argparse.Namespace, loaded: Loaded | None) -> int:
    """Replay every node of a folder and write what is concluded, in order of time."""
    if message := _misuse(options):
        print(f"fabricmon replay: {message}", file=sys.stderr)
        return USAGE_ERROR
    rules = options.rules or DEFAULT
    site = site_of(DEFAULT if rules in {NONE, REQUIRED} else rules)
    programs = _programs(options, rules)
    nodes = node_traces(options.fleet, read_fleet(options.fleet))
    play = _with_scrapes if programs or options.openmetrics else _without_scrapes
    with tempfile.TemporaryDirectory(prefix="fabricmon-replay-") as name:
        results, played = play(options, site, loaded, nodes, Path(name))
        conclusion = _conclude(options, site, programs, played, Path(name))
        _write(options, results, conclusion)
    for problem in (each for result in results for each in result.problems):
        print(f"fabricmon replay: {problem}", file=sys.stderr)
    return 0


def _without_scrapes(
    options: argparse.Namespace,
    _site: Site,
    loaded: Loaded | None,
    nodes: Sequence[NodeTrace],
    _folder: Path,
) -> tuple[Results, Sequence[PlayedNode]]:
    traces, places = [each.trace for each in nodes], [each.places for each in nodes]
    jobs = options.jobs
    results = replay_fleet(traces, loaded, places, jobs=jobs, progress=_show_progress)
    return results, ()


def _with_scrapes(
    options: argparse.Namespace,
    site: Site,
    loaded: Loaded | None,
    nodes: Sequence[NodeTrace],
    folder: Path,
) -> tuple[Results, Sequence[PlayedNode]]:
    """Play nodes; where somebody will look at the metrics, all of them are kept."""
    is_shown = options.openmetrics is not None or options.keep_data is not None
    keep = EVERYTHING if is_shown else metrics_read(site.groups)
    player = Player(folder, site.scraping(CLUSTER, keep=keep), loaded)
    played = play_all(player, nodes, jobs=options.jobs, progress=_show_progress)
    return [each.result for each in played], played


@contextmanager
def output(name: str) -> Iterator[BinaryIO]:
    """Open a file to be written, ``-`` for the screen."""
    if name == STANDARD_OUTPUT:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
    else:
        with Path(name).open("wb") as stream:
            yield stream


def _misuse(options: argparse.Namespace) -> str | None:
    if options.rules == NONE and (options.alerts or options.keep_data):
        return "--alerts and --keep-data need rules"
    kept = options.keep_data
    if kept is not None and kept.exists() and any(kept.iterdir()):
        return f"--keep-data {kept}: is not empty"
    return None


def _programs(options: argparse.Namespace, rules: str) -> Programs | None:
    """Return the programs, None where there are none and that is no error."""
    if rules == NONE:
        return None
    try:
        return find_programs()
    except AbsentError as error:
        if rules == REQUIRED or options.keep_data:
            raise
        print(
            f"fabricmon replay: rules of the fleet were not evaluated: {error}",
            file=sys.stderr,
        )
        return None


def _conclude(
    options: argparse.Namespace,
    site: Site,
    programs: Programs | None,
    played: Sequence[PlayedNode],
    folder: Path,
) -> Conclusion | None:
    if not played:
        return None
    fleet = join_nodes(played, CLUSTER, folder / "fleet.om")
    if options.openmetrics is not None:
        shutil.copyfile(fleet.samples, options.openmetrics)
    if programs is None:
        return None
    return conclude(site, [fleet], programs, options.keep_data)[0]


def _write(
    options: argparse.Namespace,
    results: Results,
    conclusion: Conclusion | None,
) -> None:
    found: list[Sequence[Dated]] = [each.found for each in results]
    found.append(conclusion.found if conclusion else ())
    merged = heapq.merge(*found, key=attrgetter("at"))
    _write_documents(options.findings, (each.document for each in merged))
    if options.alerts is not None:
        told = conclusion.told if conclusion else ()
        _write_documents(options.alerts, (each.document for each in told))


def _write_documents(name: str, documents: Iterable[FindingDocument]) -> None:
    with output(name) as out:
        for document in documents:
            out.write(msgspec.json.encode(document) + b"\n")


def _show_progress(done: int, total: int) -> None:
    """Say how far it is, where somebody may be watching."""
    if sys.stderr.isatty():
        end = "\n" if done == total else ""
        print(f"\r{done} of {total} nodes", end=end, file=sys.stderr, flush=True)
