"""Lines of a collective library's log that hold an anchor, out of pieces of a file.

A file comes in pieces of any size; what they say does not depend on the cuts. Most
lines are only counted: a few literals are looked for in whole pieces, and only lines
that hold one, or were asked for behind one, are cut out, unwrapped and parsed.
"""

from __future__ import annotations

from fabricmon.parse.log_carry import (
    MOST_ANCHORS,
    MOST_LINE_OCTETS,
    START,
    Anchors,
    Carry,
    LineBatch,
)
from fabricmon.parse.log_reader import Reader

__all__ = [
    "MOST_ANCHORS",
    "MOST_LINE_OCTETS",
    "START",
    "Anchors",
    "Carry",
    "LineBatch",
    "read_lines",
]


def read_lines(
    carry: Carry,
    data: bytes,
    anchors: Anchors,
    *,
    final: bool = False,
    zone_seconds: int | None = None,
) -> LineBatch:
    """Return what the next piece of a file adds.

    ``final`` ends the last line and gives out what waits for more: at the end of a file,
    and where a file that is followed has been still for a while (with no data). A
    message waits while its wrapper says that more of it comes, and a torn WARN until the
    next line. ``zone_seconds`` (east of UTC) is the zone of stamps that have a date and
    no zone; without it these give no time.
    """
    reader = Reader(carry, data, anchors, zone_seconds)
    return reader.read(final=final)
