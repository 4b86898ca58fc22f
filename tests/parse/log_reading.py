"""Reading whole logs in the tests: in one piece, in many, and as their messages."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from fabricmon.parse.log_event import LogLine
from fabricmon.parse.log_lines import START, Anchors, Carry, read_lines

NCCL = Path(__file__).parent.parent / "data" / "nccl"
ANCHORS = Anchors.of(
    [b"NCCL ", b"ompletion", b"Watchdog", b"Last error", b"async", b"libfabric:"],
    following={b"Last error": 1},
)


@dataclass(frozen=True, slots=True)
class Reading:
    """What all pieces gave together."""

    lines: tuple[LogLine, ...]
    lines_seen: int
    skipped_bytes: int
    skipped_lines: int

    @property
    def texts(self) -> list[str]:
        """The messages alone."""
        return [line.text for line in self.lines]


def read_pieces(
    pieces: Iterable[bytes],
    anchors: Anchors = ANCHORS,
    carry: Carry = START,
    zone_seconds: int | None = None,
) -> Reading:
    """Read a file that comes in pieces, to its end."""
    lines: list[LogLine] = []
    seen = octets = long = 0
    for piece, final in [*((piece, False) for piece in pieces), (b"", True)]:
        batch = read_lines(
            carry, piece, anchors, final=final, zone_seconds=zone_seconds
        )
        carry = batch.carry
        lines += batch.lines
        seen += batch.lines_seen
        octets += batch.skipped_bytes
        long += batch.skipped_lines
    return Reading(tuple(lines), seen, octets, long)


def read(data: bytes, anchors: Anchors = ANCHORS) -> Reading:
    """Read a file in one piece."""
    return read_pieces([data], anchors)


def one_line(data: bytes | str) -> LogLine:
    """Return the only line of a log, anchored by what any message here holds."""
    raw = data.encode() if isinstance(data, str) else data
    (line,) = read(raw).lines
    return line


def case(number: int) -> bytes:
    """Return a recorded log."""
    (path,) = NCCL.glob(f"{number:02}-*.log")
    return path.read_bytes()
