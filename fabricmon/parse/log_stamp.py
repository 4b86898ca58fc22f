"""Time stamps in front of log lines, of any usual shape.

A stamp is told by its shape and gives Unix seconds only where it has a date and a zone;
one with a date and no zone gives them for a zone that somebody else knows.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone

from fabricmon.value import Value

_NAMES = "Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec"
_MONTHS = _NAMES.split("|")
_MONTH = f"(?P<month>{_NAMES})"
_DAY = "(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)"
_CLOCK = r"(?P<h>\d\d):(?P<m>\d\d)(?::(?P<s>\d\d)(?:[.,](?P<f>\d{1,9}))?)?"
_ZONE = r"(?P<zone>Z|UTC|GMT|[+-]\d\d:?\d\d(?!\d))"

ISO = re.compile(
    rf"(?:{_DAY},? )?(?P<year>\d{{4}})[-/](?P<mon>\d\d)[-/](?P<day>\d\d)[T _]"
    rf"{_CLOCK}(?: ?{_ZONE})?",
    re.ASCII,
)
_CTIME = re.compile(
    rf"{_DAY} {_MONTH} {{1,2}}(?P<day>\d{{1,2}}) {_CLOCK}"
    rf"(?: (?:{_ZONE}|[A-Z]{{3,5}}))? (?P<year>\d{{4}})",
    re.ASCII,
)
_EPOCH = re.compile(r"(?P<epoch>(?:1[2-9]|2[01])\d{8})(?:\.(?P<f>\d{1,9}))?", re.ASCII)
_UNDATED = re.compile(
    rf"(?:(?:{_DAY},? )?{_MONTH} [ \d]?\d|\d\d[/.-]\d\d[/.-]\d{{2,4}},?)[ T]{_CLOCK}"
    r"(?: ?[AP]M)?|\d\d:\d\d:\d\d(?:[.,]\d{1,9})?",
    re.ASCII,
)
# What may stand between a stamp and the rest; nothing behind a year or before a bracket.
_END = re.compile(r":?[ \t]+|:?$|(?=[\[({|])|: ?(?=[\[({])")
_SHAPES = (ISO, _CTIME, _EPOCH, _UNDATED)


class Stamp(Value, frozen=True):
    """A stamp: where the text behind it begins, and the time if it tells one.

    ``local`` says that it has a date and no zone: ``time`` is then what UTC would make
    of it.
    """

    end: int
    time: float | None
    local: bool = False


def stamp_at(text: str, start: int = 0) -> Stamp | None:
    """Return the stamp at a place of a line, in brackets or not, None if none is."""
    bracket = text.startswith("[", start)
    for shape in _SHAPES:
        if found := shape.match(text, start + bracket):
            end = found.end()
            if bracket:
                if not text.startswith("]", end):
                    continue
                end += 1
            if (bracket or shape is ISO) and text.startswith("_", end):
                end += 1  # as NCCL_DEBUG_TIMESTAMP_FORMAT has it
            elif gap := _END.match(text, end):
                end = gap.end()
            elif not bracket and shape is not _CTIME:
                continue
            return _told(found, end)
    return None


def unix_seconds(text: str) -> float | None:
    """Return the time of a stamp that is the whole text, None without date and zone."""
    found = ISO.match(text)
    if found is None:
        return None
    stamp = _told(found, 0)
    return None if stamp.local else stamp.time


def _told(found: re.Match[str], end: int) -> Stamp:
    """Return what a match of one of the shapes says."""
    parts = found.groupdict()
    fraction = float(f"0.{parts['f']}") if parts.get("f") else 0.0
    if parts.get("epoch"):
        return Stamp(end, int(parts["epoch"]) + fraction)
    if parts.get("year") is None:
        return Stamp(end, None)
    month = int(parts["mon"]) if parts.get("mon") else 1 + _MONTHS.index(parts["month"])
    zone = parts["zone"]
    try:
        moment = datetime(
            int(parts["year"]),
            month,
            int(parts["day"]),
            int(parts["h"]),
            int(parts["m"]),
            min(59, int(parts["s"] or 0)),
            tzinfo=_zone(zone),
        )
        return Stamp(end, moment.timestamp() + fraction, local=zone is None)
    except (ValueError, OverflowError):
        return Stamp(end, None)


def _zone(text: str | None) -> timezone:
    """Return a zone; ValueError for an offset of a day or more."""
    if text is None or text in {"Z", "UTC", "GMT"}:
        return UTC
    offset = timedelta(hours=int(text[1:3]), minutes=int(text[-2:]))
    return timezone(-offset if text[0] == "-" else offset)
