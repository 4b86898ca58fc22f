"""Entries of `journalctl -o export`: lines NAME=value, some values binary, then a blank.

https://systemd.io/JOURNAL_EXPORT_FORMATS: a value with octets below a blank stands
behind its name and a line end as a 64-bit little-endian length, the octets, a line end.
"""

from __future__ import annotations

from dataclasses import replace

from fabricmon.parse.log_told import Told
from fabricmon.parse.wrapper_json import journal_time, whole_number
from fabricmon.value import Value

FIRST_FIELDS = (b"__CURSOR=", b"__REALTIME_TIMESTAMP=")
KNOWN_FIELDS = frozenset(
    {b"MESSAGE", b"__REALTIME_TIMESTAMP", b"_HOSTNAME", b"_PID", b"_LINE_BREAK"}
)
LENGTH_OCTETS = 8


class Entry(Value, frozen=True):
    """What is known of an entry so far; ``message`` None until it comes.

    ``line_number`` and ``offset`` are those of the message. ``more`` says that the
    journal parted the line there, and that the next entry goes on.
    """

    message: bytes | None = None
    line_number: int = 0
    offset: int = 0
    time: float | None = None
    host: str | None = None
    pid: int | None = None
    more: bool = False

    def told(self, zone_seconds: int | None) -> Told:
        """Return what the entry tells of its message."""
        return Told(
            self.line_number,
            self.offset,
            zone_seconds,
            time=self.time,
            host=self.host,
            pid=self.pid,
        )

    def with_field(self, name: bytes, value: bytes, line: int, offset: int) -> Entry:
        """Return the entry with one more field."""
        if name == b"MESSAGE":
            return replace(self, message=value, line_number=line, offset=offset)
        if name == b"__REALTIME_TIMESTAMP":
            return replace(self, time=journal_time(_word(value)))
        if name == b"_HOSTNAME":
            return replace(self, host=_word(value))
        if name == b"_PID":
            return replace(self, pid=whole_number(_word(value)))
        if name == b"_LINE_BREAK":
            return replace(self, more=value == b"line-max")
        return self


def _word(value: bytes) -> str:
    """Return the text of a short field."""
    return value[:255].decode("utf-8", "replace").strip()
