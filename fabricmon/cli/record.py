"""``fabricmon record``: write what this node shows over time to a trace.

It reads what the agent reads, in its rhythm, and judges nothing. `fabricmon replay`
plays the trace; it holds no secrets, but the names of the node and its devices.
"""

from __future__ import annotations

import argparse
import os
import signal
import socket
import sys
from collections.abc import Sequence
from math import inf
from pathlib import Path
from threading import Event

import msgspec

from fabricmon.assembly import make_pipeline, make_poll, moment
from fabricmon.cli import FAILED, USAGE_ERROR, folder, number_up_to
from fabricmon.config_load import Loaded, load
from fabricmon.driving import live_host
from fabricmon.host.record import RecordingHost
from fabricmon.host.trace_write import PART
from fabricmon.registry import SOURCES
from fabricmon.runtime.reader import ThreadReader
from fabricmon.sources.protocol import Source

LONGEST_WAIT = 1.0
"""Seconds after which the clock on the terminal moves on."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("trace", type=Path, metavar="TRACE", help=".gz compresses")
    parser.add_argument(
        "--for",
        dest="seconds",
        type=number_up_to(inf),
        metavar="SECONDS",
        help="else to Ctrl-C",
    )
    parser.add_argument(
        "--root", type=folder, metavar="DIR", help="look at a node's files below DIR"
    )
    parser.add_argument(
        "--force", action="store_true", help="write over a trace that is there"
    )
    parser.add_argument("--config", type=Path, metavar="FILE", help="file to read")


def run(options: argparse.Namespace) -> int:
    """Record until the time is up or SIGINT or SIGTERM comes."""
    loaded = load(options.config, os.environ)
    in_the_way = _in_the_way(options.trace, force=options.force)
    if in_the_way is not None:
        print(f"fabricmon record: {in_the_way}", file=sys.stderr)
        return USAGE_ERROR
    node = loaded.config.node or socket.gethostname()
    host = live_host(loaded.config, options.root, watch_links=True)
    recorder = RecordingHost(
        host, options.trace, node, msgspec.to_builtins(loaded.config)
    )
    stop, news = Event(), Event()

    def end(*_: object) -> None:
        stop.set()
        news.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, end)
    try:
        devices = record_node(
            recorder, loaded, node, seconds=options.seconds, stop=stop, news=news
        )
    finally:
        recorder.close()
        host.close()
    if recorder.error is not None:
        print(f"fabricmon record: {recorder.error}", file=sys.stderr)
        return FAILED
    if not devices:
        print("no RDMA device: nothing but the node was recorded", file=sys.stderr)
    if recorder.unfaithful:
        print(f"{recorder.unfaithful} answers cannot be replayed", file=sys.stderr)
    return 0


def _in_the_way(trace: Path, *, force: bool) -> str | None:
    """Say why nothing may be written there; also a trace that was cut short counts."""
    if trace.is_dir():
        return f"{trace}: this is a folder: name a file in it"
    for path in (trace, trace.with_name(f"{trace.name}{PART}")):
        if path.exists() and not force:
            return (
                f"{path}: this is there: name another file, or write over it: --force"
            )
    return None


def record_node(
    recorder: RecordingHost,
    loaded: Loaded,
    node: str,
    *,
    seconds: float | None,
    stop: Event,
    news: Event,
    sources: Sequence[Source] = SOURCES,
) -> int:
    """Record; return the number of RDMA devices at the end."""
    poll = make_poll(recorder, loaded.config, sources)
    reader = ThreadReader(recorder, poll, news.set)
    pipeline = make_pipeline(recorder, reader, loaded, node, sources)
    start = recorder.monotonic()
    while not stop.is_set() and recorder.error is None:
        now = recorder.monotonic()
        if seconds is not None and now - start >= seconds:
            break
        news.clear()
        pipeline.hasten("link_events")  # else they would be told a minute late
        pipeline.step(moment(recorder))
        _show(now - start, seconds)
        if not stop.is_set():
            news.wait(min(max(pipeline.next_due - now, 0.01), LONGEST_WAIT))
    reader.close(1.0)
    _show(None, seconds)
    return len(pipeline.intake.inventory.hcas())


def _show(passed: float | None, seconds: float | None) -> None:
    """Show on a terminal how far the recording is."""
    if not sys.stderr.isatty():
        return
    if passed is None:
        print(file=sys.stderr)
        return
    goal = "" if seconds is None else f" of {seconds:.0f}"
    print(f"\rrecording: {passed:.0f}{goal} s ", end="", file=sys.stderr, flush=True)
