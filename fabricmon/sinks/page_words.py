"""Words and numbers of the status page: values in, escaped HTML text out.

Whatever comes from the node passes through `text`: device names, job names and log
lines are hostile input.
"""

from __future__ import annotations

import html
from datetime import UTC, datetime, timedelta

LONGEST = 200
"""Characters shown of one text."""

NOTHING = "\N{EN DASH}"
"""Stands where there is no value, which is not zero."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LAST = 253_402_300_799.0  # the end of the year 9999
_DAY = 86400.0
_THOUSAND = 1000.0
_UNITS = ("b/s", "kb/s", "Mb/s", "Gb/s", "Tb/s")
_SPANS = ((120, 1, "s"), (7200, 60, "min"), (172_800, 3600, "h"))


def text(value: object) -> str:
    """Return a value as HTML text: shortened, escaped, without invisible characters.

    Line breaks, NULs, bidirectional overrides and lone surrogates become U+FFFD.
    """
    shown = str(value)
    if len(shown) > LONGEST:
        shown = shown[: LONGEST - 1] + "\N{HORIZONTAL ELLIPSIS}"
    if not shown.isprintable():
        shown = "".join(c if c.isprintable() else "\ufffd" for c in shown)
    return html.escape(shown)


def number(value: float) -> str:
    """Return a number in as few digits as say it."""
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.3g}"


def quantity(value: float | str | None) -> str:
    """Return a measured value, whatever it is."""
    if value is None:
        return NOTHING
    return text(value) if isinstance(value, str) else number(value)


def bits(bytes_per_second: float) -> str:
    """Return bytes per second as bits per second, as link rates are told."""
    value = bytes_per_second * 8
    for unit in _UNITS[:-1]:
        if value < _THOUSAND:
            return f"{value:.3g} {unit}"
        value /= _THOUSAND
    return f"{value:.3g} {_UNITS[-1]}"


def span(seconds: float) -> str:
    """Return a length of time as a person says it: 0.2 s, 5 s, 3 min, 2 h, 4 d."""
    if 0 < seconds < 1:
        return f"{round(seconds, 2):g} s"
    for limit, size, unit in _SPANS:
        if seconds < limit:
            return f"{max(seconds, 0) / size:.0f} {unit}"
    return f"{seconds / _DAY:.0f} d"


def clock(wall: float, now: float) -> str:
    """Return a Unix time for people: of the day alone, unless that is another day."""
    moment = _moment(wall)
    shown = "%H:%M:%SZ" if moment.date() == _moment(now).date() else "%Y-%m-%d %H:%MZ"
    return f'<time datetime="{moment:%Y-%m-%dT%H:%M:%SZ}">{moment:{shown}}</time>'


def plural(count: int, noun: str) -> str:
    """Return a number with its noun: 1 port, 2 ports."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def listed(words: list[str]) -> str:
    """Join words as in a sentence: a, b and c."""
    return " and ".join(filter(None, (", ".join(words[:-1]), *words[-1:])))


def _moment(wall: float) -> datetime:
    return _EPOCH + timedelta(seconds=min(max(0.0, wall), _LAST))
