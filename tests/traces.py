"""Traces for tests: made from records, from recorded trees, and replayed."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from fabricmon.host.replay import ReplayHost
from fabricmon.host.trace import TraceRecord
from fabricmon.host.trace_read import TraceReader
from tests.manifest import entries

Json = dict[str, Any]

HEADER: Json = {
    "fabricmon_trace": 1,
    "node": "node01",
    "boot_id": "b0071d",
    "start": "2026-01-05T08:00:00Z",
}
START = 1767600000.0  # the header's start in Unix seconds


def write(folder: Path, lines: Iterable[object], header: object = None) -> Path:
    """Write a trace; a text is a line as it stands."""
    path = folder / "node01.trace.jsonl"
    header = HEADER if header is None else header
    texts = [
        line if isinstance(line, str) else json.dumps(line) for line in (header, *lines)
    ]
    path.write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    return path


def replay(folder: Path, *records: Json, header: Json | None = None) -> ReplayHost:
    """Replay records, from t = 0."""
    return ReplayHost(TraceReader(write(folder, records, header)))


def read_all(path: Path) -> tuple[list[TraceRecord], list[str]]:
    """Return all records, and all problems as `LINE: MESSAGE`."""
    with TraceReader(path) as reader:
        records = list(reader)
    assert {problem.path for problem in reader.problems} <= {str(path)}
    return records, [f"{each.line}: {each.message}" for each in reader.problems]


def of_manifest(manifest: Path) -> TraceRecord:
    """Make one record at t = 0 of a recorded tree."""
    found = [(f"/{entry.path}", entry) for entry in entries(manifest)]
    return TraceRecord(
        t=0,
        dir=[path for path, entry in found if entry.is_folder],
        link={path: entry.link for path, entry in found if entry.link is not None},
        err={path: entry.errno for path, entry in found if entry.errno is not None},
        set={
            path: entry.text
            for path, entry in found
            if not entry.is_folder and entry.link is None and entry.errno is None
        },
    )
