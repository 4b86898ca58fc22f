"""``fabricmon replay TRACE...``: recorded nodes through the agent, as fast as it goes.

``--fleet FOLDER`` plays every node of a recorded or simulated fleet.
"""

from __future__ import annotations

import argparse
import heapq
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import msgspec

from fabricmon import replaying_fleet
from fabricmon.cli import FAILED, USAGE_ERROR
from fabricmon.config_load import Loaded, load
from fabricmon.finding_document import finding_document
from fabricmon.replaying import Change, Replay
from fabricmon.sim.score_files import read_fleet, trace_paths

STANDARD_OUTPUT = "-"
MAX_JOBS = 1024


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "traces",
        nargs="*",
        type=Path,
        metavar="TRACE",
        help="recorded by `fabricmon record`, or simulated",
    )
    parser.add_argument(
        "--fleet",
        type=Path,
        metavar="FOLDER",
        help="every node of a fleet, as `fabricmon simulate --out` writes it",
    )
    parser.add_argument(
        "--jobs",
        type=_count,
        default=1,
        metavar="N",
        help="nodes of a fleet that are played at a time (default 1)",
    )
    parser.add_argument("--config", type=Path, metavar="FILE", help="wins over traces")
    parser.add_argument(
        "--findings", required=True, metavar="OUT", help="JSON Lines; - for the screen"
    )
    parser.add_argument(
        "--metrics", metavar="OUT", help="metrics of the one node at the end"
    )


def run(options: argparse.Namespace) -> int:
    """Replay every trace and write what was found, in order of time."""
    if message := _misuse(options):
        print(f"fabricmon replay: {message}", file=sys.stderr)
        return USAGE_ERROR
    loaded = load(options.config, os.environ) if options.config else None
    if options.fleet:
        return _run_fleet(options, loaded)
    replays: list[Replay] = []
    try:
        # One by one, so that those that are open are closed if another is no trace.
        replays.extend(Replay(path, loaded) for path in options.traces)
        with _output(options.findings) as out:
            for change in in_order(replays):
                document = finding_document(change.incident, change.t)
                out.write(msgspec.json.encode(document) + b"\n")
        if options.metrics:
            _write_metrics(options.metrics, replays[0])
    except BrokenPipeError:
        raise  # whoever reads has seen enough
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        print(f"fabricmon replay: {place}{error.strerror}", file=sys.stderr)
        return FAILED
    finally:
        for replay in replays:
            replay.host.close()
    for replay in replays:
        for problem in replay.problems:
            print(f"fabricmon replay: {problem}", file=sys.stderr)
    return 0


def _misuse(options: argparse.Namespace) -> str | None:
    """Return what is wrong with the arguments together."""
    if options.fleet and options.traces:
        return "give traces or --fleet, not both"
    if not options.fleet and not options.traces:
        return "give a trace, or --fleet FOLDER"
    if options.metrics and (options.fleet or len(options.traces) > 1):
        return "--metrics shows one node: give one trace"
    absent = next((path for path in options.traces if not path.exists()), None)
    return None if absent is None else f"{absent}: there is no such file"


def _run_fleet(options: argparse.Namespace, loaded: Loaded | None) -> int:
    """Replay every node of a folder; what they found goes to one file."""
    traces = trace_paths(options.fleet, read_fleet(options.fleet))
    results = replaying_fleet.replay_fleet(
        traces, loaded, jobs=options.jobs, progress=_show_progress
    )
    with _output(options.findings) as out:
        for document in replaying_fleet.in_order(results):
            out.write(msgspec.json.encode(document) + b"\n")
    for result in results:
        for problem in result.problems:
            print(f"fabricmon replay: {problem}", file=sys.stderr)
    return 0


def _show_progress(done: int, total: int) -> None:
    """Say how far it is, where somebody may be watching."""
    if sys.stderr.isatty():
        end = "\n" if done == total else ""
        print(f"\r{done} of {total} nodes", end=end, file=sys.stderr, flush=True)


def _count(text: str) -> int:
    if not text.isdecimal() or not 0 < int(text) <= MAX_JOBS:
        raise argparse.ArgumentTypeError(f"{text!r} is no number from 1 to {MAX_JOBS}")
    return int(text)


def in_order(replays: Sequence[Replay]) -> Iterator[Change]:
    """Merge what several nodes give, in order of time."""
    return heapq.merge(
        *(replay.changes() for replay in replays), key=lambda change: change.at
    )


@contextmanager
def _output(name: str) -> Iterator[BinaryIO]:
    if name == STANDARD_OUTPUT:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
    else:
        with Path(name).open("wb") as stream:
            yield stream


def _write_metrics(name: str, replay: Replay) -> None:
    from fabricmon.sinks.exposition import Exposition  # noqa: PLC0415 - where asked

    exposition = Exposition(replay.pipeline.config, clock=replay.host.monotonic)
    exposition.publish(replay.pipeline.snapshot)
    with _output(name) as out:
        out.write(exposition.render().body)
