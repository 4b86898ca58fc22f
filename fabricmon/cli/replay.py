"""``fabricmon replay TRACE...``: recorded nodes through the agent, as fast as it goes.

``--fleet FOLDER`` plays every node of a recorded or simulated fleet, and evaluates the
rules of the fleet on a Prometheus of its own, where one is installed.
"""

from __future__ import annotations

import argparse
import heapq
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from fabricmon.cli import FAILED, USAGE_ERROR, replay_fleet
from fabricmon.cli.replay_fleet import output as _output
from fabricmon.config_load import load
from fabricmon.finding_document import finding_document
from fabricmon.replaying import Change, Replay
from fabricmon.support.bundle import trace_in

MAX_JOBS = 1024


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "traces",
        nargs="*",
        type=Path,
        metavar="TRACE",
        help="recorded by `fabricmon record`, in a bundle of `fabricmon support`, or "
        "simulated",
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
    replay_fleet.add_arguments(parser)


def run(options: argparse.Namespace) -> int:
    """Replay every trace and write what was found, in order of time."""
    if message := _misuse(options):
        print(f"fabricmon replay: {message}", file=sys.stderr)
        return USAGE_ERROR
    loaded = load(options.config, os.environ) if options.config else None
    if options.fleet:
        return replay_fleet.run(options, loaded)
    replays: list[Replay] = []
    bundles = tempfile.TemporaryDirectory(prefix="fabricmon-replay-")
    try:
        # One by one, so that those that are open are closed if another is no trace.
        folder = Path(bundles.name)
        traces = (trace_in(path, folder) or path for path in options.traces)
        replays.extend(Replay(path, loaded) for path in traces)
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
        bundles.cleanup()
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
    if not options.fleet and (stray := replay_fleet.stray(options)):
        return f"{stray} is for --fleet FOLDER"
    if options.metrics and (options.fleet or len(options.traces) > 1):
        return "--metrics shows one node: give one trace"
    absent = next((path for path in options.traces if not path.exists()), None)
    return None if absent is None else f"{absent}: there is no such file"


def _count(text: str) -> int:
    if not text.isdecimal() or not 0 < int(text) <= MAX_JOBS:
        raise argparse.ArgumentTypeError(f"{text!r} is no number from 1 to {MAX_JOBS}")
    return int(text)


def in_order(replays: Sequence[Replay]) -> Iterator[Change]:
    """Merge what several nodes give, in order of time."""
    return heapq.merge(
        *(replay.changes() for replay in replays), key=lambda change: change.at
    )


def _write_metrics(name: str, replay: Replay) -> None:
    from fabricmon.sinks.exposition import Exposition  # noqa: PLC0415 - where asked

    exposition = Exposition(replay.pipeline.config, clock=replay.host.monotonic)
    exposition.publish(replay.pipeline.snapshot)
    with _output(name) as out:
        out.write(exposition.render().body)
