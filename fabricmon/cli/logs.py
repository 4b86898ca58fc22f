"""``fabricmon logs FILE|FOLDER...``: who failed first in the logs of a dead job.

Reads logs of NCCL, RCCL and aws-ofi-nccl, and of frameworks that quote them. Exit status
0 whatever the logs say, 64 where nothing could be read.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain
from pathlib import Path

import msgspec

from fabricmon.cli import USAGE_ERROR
from fabricmon.cli.log_files import Bar, Found, Problems, find, pieces, size_of
from fabricmon.config import Config
from fabricmon.config_load import load
from fabricmon.parse.log_event import LogEvent
from fabricmon.parse.nccl import RuleTable
from fabricmon.parse.nccl_log import NEW_LOG, LogBatch, LogState, read_log
from fabricmon.parse.ras import ras_events
from fabricmon.stories.document import log_event_document
from fabricmon.stories.report import Reading, report
from fabricmon.stories.story import Story

MAX_EARLY = 1000
"""Events kept for the timeline that had to leave memory before the end."""

SMALL_BYTES = 4 << 20
"""Up to this size every line is judged: a second for the slowest of files."""

_LIBRARIES = (b"NCCL", b"libfabric:")
"""One of these is in a log of a collective library, also where no line is an event."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.epilog = (
        "stamps without a zone are taken in this machine's; exit status: 0 whatever the "
        "logs say, 64 if nothing could be read, 78 wrong configuration"
    )
    parser.add_argument(
        "paths",
        nargs="+",
        metavar="FILE|FOLDER",
        help="logs, also compressed by gzip; folders with all below; - standard input",
    )
    parser.add_argument(
        "--format",
        choices=("text", "jsonl"),
        default="text",
        help="text for people, jsonl one event a line (default text)",
    )
    parser.add_argument(
        "--config", type=Path, metavar="FILE", help="rules and thresholds of your own"
    )


def run(options: argparse.Namespace) -> int:
    """Read all logs and tell what happened."""
    config = load(options.config, os.environ).config
    problems = Problems()
    logs = list(find(options.paths, problems))
    teller = Teller(config, jsonl=options.format == "jsonl")
    with Bar(size_of(logs)) as bar:
        for log in logs:
            before = problems.count
            found = teller.read(log, pieces(log.path, problems, bar))
            if found or problems.count == before:
                teller.count(log)
            problems.tell(bar)
    problems.tell()
    if problems.count and not teller.files:
        return USAGE_ERROR
    teller.end(problems.count)
    return 0


class Teller:
    """Reads logs into one story and prints what it tells."""

    def __init__(self, config: Config, *, jsonl: bool) -> None:
        """Print one object per event, or a report at the end."""
        self._reading = Reading()
        self._story = Story(config.logs, tells=True)
        self._table = RuleTable.of(config.logs.rules)
        self._thorough = self._table.for_every_line()
        self._runbooks = config.runbooks.rstrip("/") + "/"
        self._jsonl = jsonl
        self._zone = time.localtime().tm_gmtoff
        self._given = ""
        self._speaks = False
        self._early: deque[LogEvent] = deque(maxlen=MAX_EARLY)

    def read(self, log: Found, content: Iterable[bytes]) -> bool:
        """Read one log as far as it can be read; return whether it held anything."""
        self._given, self._speaks = log.given, False
        name, pieces = log.path, iter(content)
        head, rest = _head(pieces)
        whole = None if rest else b"".join(head)
        if whole is not None and self._take_report(name, whole):
            return True
        table = self._table if rest else self._thorough
        state = NEW_LOG
        for piece in chain(head, rest, pieces):
            state = self._take(name, piece, state, table)
        self._take(name, b"", state, table, final=True)
        return state is not NEW_LOG

    @property
    def files(self) -> int:
        """Logs counted."""
        return self._reading.files

    def count(self, log: Found) -> None:
        """Count the log that was just read, and whether a library speaks in it."""
        silent = self._reading.silent
        if not self._speaks:
            silent = (*silent, log.path)
        self._reading = replace(self._reading, files=self.files + 1, silent=silent)

    def _take_report(self, name: str, content: bytes) -> bool:
        """Take a saved report of NCCL's RAS in JSON; False where it is none."""
        if content.lstrip()[:1] != b"{":
            return False
        events = ras_events(content.decode("utf-8", "replace"), name)
        self._tell(events)
        if events:
            lines = content.count(b"\n")
            batch = LogBatch(events, NEW_LOG, lines, 0, 0)
            self._reading = self._reading.plus(len(content), batch)
        return bool(events)

    def end(self, unread: int) -> None:
        """Print what there is to say once everything was read."""
        events = self._story.finish()
        if self._jsonl:
            self._print_events(events)
        else:
            reading = replace(self._reading, unread=unread)
            every = (*self._early, *events)
            lines = report(self._story, every, reading, self._runbooks)
            _write("".join(f"{line}\n" for line in lines).encode("utf-8", "replace"))
        sys.stdout.buffer.flush()

    def _take(
        self,
        name: str,
        piece: bytes,
        state: LogState,
        table: RuleTable,
        *,
        final: bool = False,
    ) -> LogState:
        batch = read_log(
            piece, state, name, table, final=final, zone_seconds=self._zone
        )
        self._tell(batch.events)
        self._speaks = self._speaks or any(word in piece for word in _LIBRARIES)
        self._reading = self._reading.plus(len(piece), batch)
        return batch.state

    def _tell(self, events: Iterable[LogEvent]) -> None:
        for event in events:
            self._speaks = True
            if early := self._story.add(event, source=self._given):
                self._early.extend(early)
                if self._jsonl:
                    self._print_events(early)

    @staticmethod
    def _print_events(events: Iterable[LogEvent]) -> None:
        for event in events:
            _write(msgspec.json.encode(log_event_document(event)) + b"\n")


def _head(pieces: Iterator[bytes]) -> tuple[list[bytes], list[bytes]]:
    """Return the first pieces, and the next one where there is more than that.

    A small log is read line by line: some rows have no literal that is rare enough to
    find them in a large one.
    """
    head: list[bytes] = []
    size = 0
    for piece in pieces:
        if size + len(piece) > SMALL_BYTES:
            return head, [piece]
        head.append(piece)
        size += len(piece)
    return head, []


def _write(data: bytes) -> None:
    sys.stdout.buffer.write(data)
