"""Reads what a scorer needs: truth and fleet of a folder, and files of findings."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

import msgspec

from fabricmon.errors import AbsentError, ParseError
from fabricmon.sim.score_stories import Told
from fabricmon.sim.truth import FleetFile, Truth

TRUTH_FILE = "truth.json"
FLEET_FILE = "fleet.json"
TRACE_ENDINGS = (".trace.jsonl.gz", ".trace.jsonl")

_T = TypeVar("_T")
_decode_told = msgspec.json.Decoder(Told).decode


def read_truth(folder: Path) -> Truth:
    """Read what really happened; raises `ParseError`, `AbsentError` if nobody knows."""
    path = folder / TRUTH_FILE
    if folder.is_dir() and not path.exists():
        message = "is not there: only a simulated fleet knows the truth about itself"
        raise AbsentError(message, source=str(path))
    return _read(path, Truth)


def read_fleet(folder: Path) -> FleetFile:
    """Read nodes, jobs and leafs; raises `ParseError`, `AbsentError` for no fleet."""
    return _read(folder / FLEET_FILE, FleetFile)


def trace_paths(folder: Path, fleet: FleetFile) -> tuple[Path, ...]:
    """Return the trace of each node; raises `ParseError` where one has none."""
    return tuple(_trace_path(folder, node) for node in fleet.nodes)


def read_findings(path: Path) -> Iterator[Told]:
    """Read findings of a replay, one a line; raises `ParseError` at the first bad one."""
    try:
        with path.open("rb") as lines:
            for number, line in enumerate(lines, 1):
                if stripped := line.strip():
                    yield _told(stripped, str(path), number)
    except OSError as error:
        raise _unread(error, path) from None


def _told(line: bytes, source: str, number: int) -> Told:
    try:
        return _decode_told(line)
    except msgspec.ValidationError as error:
        message = f"is no finding of a replay: {error}"
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        message = f"is not JSON: {error}"
    raise ParseError(message, source=source, line=number)


def _read(path: Path, kind: type[_T]) -> _T:
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except OSError as error:
        raise _unread(error, path) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        message = f"cannot be used: {error}"
        raise ParseError(message, source=str(path)) from None


def _trace_path(folder: Path, node: str) -> Path:
    if "/" in node or node in {"", ".", ".."}:
        message = f"{node!r} is no name of a node"
        raise ParseError(message, source=str(folder / FLEET_FILE))
    paths = [folder / f"{node}{ending}" for ending in TRACE_ENDINGS]
    found = next((path for path in paths if path.exists()), None)
    if found is None:
        message = f"node {node} has no trace ({paths[0].name})"
        raise ParseError(message, source=str(folder))
    return found


def _unread(error: OSError, path: Path) -> ParseError:
    absent = isinstance(error, FileNotFoundError | NotADirectoryError)
    kind = AbsentError if absent else ParseError
    return kind(f"cannot be read: {error.strerror}", source=str(path))
