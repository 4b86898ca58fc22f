"""The work of reading one piece of a log; see `log_lines`, which has the door to it."""

from __future__ import annotations

import re

from fabricmon.parse.journal_export import (
    FIRST_FIELDS,
    KNOWN_FIELDS,
    LENGTH_OCTETS,
    Entry,
)
from fabricmon.parse.log_carry import (
    MOST_LINE_OCTETS,
    Anchors,
    Carry,
    LineBatch,
    Wrapping,
)
from fabricmon.parse.log_messages import Messages
from fabricmon.parse.log_needles import line_end, line_starts, long_line

# A file's wrapping shows in its first lines, and later where somebody appends to it.
LOOKED_AT_FIRST = 32
LOOK_EVERY_OCTETS = 65536
_CRI = re.compile(rb" std(?:out|err) [FP](?:[: ]|$)")
_CRI_PARTS = (b" stdout P", b" stderr P")
_JSON = re.compile(rb'\{\s{0,8}"|"MESSAGE"\s?:')
_JSON_OCTETS = (b'"MESSAGE":[', b'"MESSAGE": [', b'"MESSAGE" : [')
_DOCKER_STREAM = b'"stream"'
_DOCKER_LINE_ENDS = (rb'\n","stream":"', rb'\n", "stream": "')
_JOURNAL_NAME = re.compile(rb"[A-Z0-9_]{1,64}(?==|$)")


class Reader:
    """Reads one piece; made anew for each."""

    def __init__(
        self, carry: Carry, data: bytes, anchors: Anchors, zone_seconds: int | None
    ) -> None:
        """Take up what the last piece left."""
        self.carry = carry
        self.anchors = anchors
        self.data = carry.tail + data
        self.shown = self.data.lower() if anchors.fold_case else self.data
        self.base = carry.line_start
        self.end_offset = carry.offset + len(data)
        self.counted, self.lines = 0, carry.lines
        self.wrapping = carry.wrapping
        self.looked, self.look_at = carry.looked, carry.look_at
        self.entry = carry.entry
        self.messages = Messages(carry, anchors, zone_seconds)
        self.skipping = carry.skipping
        self.skipped_bytes = self.skipped_lines = 0

    @property
    def returns(self) -> bool:
        """Whether a carriage return ends a line: not inside a wrapper that has ends."""
        return not self.wrapping

    def read(self, *, final: bool) -> LineBatch:
        """Return what the piece gives."""
        place = self._read_lines(self._skip(0), final=final)
        tail = self.data[place:]
        # What waits may hold line ends: they are counted when it is read again.
        self._number(len(self.data) if final else place)
        if final:
            self._finish()
            tail = b""
        carry = Carry(
            self.end_offset,
            self.lines,
            tail,
            self.skipping,
            self.messages.following,
            self.wrapping,
            self.looked,
            self.look_at,
            tuple(self.messages.pieces.waiting.values()),
            tuple(self.messages.torn),
            self.entry,
            tuple(self.messages.hosts),
        )
        return LineBatch(
            tuple(self.messages.found),
            carry,
            self.lines - self.carry.lines,
            self.skipped_bytes,
            self.skipped_lines,
        )

    def _skip(self, place: int) -> int:
        """Return where the rest of a line that is too long has ended."""
        if not self.skipping:
            return place
        end = line_end(self.data, place, len(self.data), returns=self.returns)
        self.skipped_bytes += end - place
        if end == len(self.data):
            return end
        self.skipping = False
        return end + 1

    def _read_lines(self, place: int, *, final: bool) -> int:
        """Read all lines that have ended, and return where the last one begins."""
        while not self.skipping:
            if self.wrapping & Wrapping.JOURNAL:
                place = self._journal(place, final=final)
                end = len(self.data) if final else place
            else:
                end = len(self.data) if final else self._last_end(place)
            stop = self._look(place, end)
            self._span(place, stop)
            place = stop
            if stop < end or self._too_long(place):
                continue
            return place
        return len(self.data)

    def _last_end(self, place: int) -> int:
        """Return where the last line begins that has not ended."""
        end = max(place, self.data.rfind(b"\n", place) + 1)
        if self.returns:
            end = max(end, self.data.rfind(b"\r", end) + 1)
        return end

    def _too_long(self, place: int) -> bool:
        """Read the head of a line that is too long already, and skip the rest."""
        rest = len(self.data) - place
        if rest <= MOST_LINE_OCTETS or self.data.find(b"\n", place) >= 0:
            return False  # with a line end it is a binary value, of which more comes
        if self._look(place, place + 1) == place:
            return True
        if self.wrapping & Wrapping.JOURNAL:
            self._journal_line(place, len(self.data))
        else:
            self._lines(place, place + MOST_LINE_OCTETS)
        self.skipping = True
        self.skipped_lines += 1
        self.skipped_bytes += rest - MOST_LINE_OCTETS
        return True

    def _look(self, place: int, stop: int) -> int:
        """Return the first line that shows a wrapping not seen before, else ``stop``."""
        while self.look_at - self.base < stop:
            at = max(self.look_at - self.base, place)
            if at > place:
                at = line_end(self.data, at - 1, stop, returns=self.returns) + 1
            if at >= stop:
                break
            end = line_end(self.data, at, at + MOST_LINE_OCTETS, returns=self.returns)
            self.looked += 1
            start = self.base + at
            step = 1 if self.looked < LOOKED_AT_FIRST else LOOK_EVERY_OCTETS
            self.look_at = (start // step + 1) * step
            shown = _wrapping(self.data[at:end])
            if shown & ~self.wrapping:
                self.wrapping |= shown
                return at
        return stop

    def _span(self, place: int, stop: int) -> None:
        """Read lines, of one that is too long only its head."""
        while place < stop:
            long = long_line(
                self.data, place, stop, MOST_LINE_OCTETS, returns=self.returns
            )
            self._lines(place, long)
            if long == stop:
                return
            self._lines(long, long + MOST_LINE_OCTETS)
            end = line_end(self.data, long, stop, returns=self.returns)
            self.skipped_lines += 1
            self.skipped_bytes += end - long - MOST_LINE_OCTETS
            place = end + 1

    def _lines(self, place: int, stop: int) -> None:
        """Read the lines between two places that are wanted."""
        if place >= stop:
            return
        returns = self.returns
        hits = line_starts(self.shown, place, stop, self._needles(), returns=returns)
        ordered = sorted(hits, reverse=True)
        partial = self._has_parts(place, stop)
        while place < stop:
            if not (partial or self.messages.hungry):
                while ordered and ordered[-1] < place:
                    ordered.pop()
                if not ordered:
                    return
                place = ordered.pop()
            end = line_end(self.data, place, stop, returns=returns)
            if (
                self.messages.hungry
                or place in hits
                or not any(
                    self.data.find(whole, place, end) >= 0
                    for whole in _DOCKER_LINE_ENDS
                )
            ):
                self.messages.line(
                    self.data[place:end],
                    self._number(place),
                    self.base + place,
                    is_hit=place in hits,
                )
            place = end + 1

    def _needles(self) -> tuple[bytes, ...]:
        """Return what a wanted line holds at least, in the file's wrapping."""
        needles = self.anchors.literals
        if self.wrapping & Wrapping.CRI:
            needles += _CRI_PARTS
        if self.wrapping & Wrapping.JSON:
            needles += _JSON_OCTETS
            for literal in self.anchors.literals:
                needles += _escaped(literal)
        if self.anchors.fold_case:
            return tuple(needle.lower() for needle in needles)
        return needles

    def _has_parts(self, place: int, stop: int) -> bool:
        """Whether a line may be part of a message, of which no literal tells."""
        if not self.wrapping & Wrapping.JSON:
            return False
        texts = self.data.count(_DOCKER_STREAM, place, stop)
        whole = (self.data.count(end, place, stop) for end in _DOCKER_LINE_ENDS)
        return texts > 0 and texts != sum(whole)

    def _number(self, place: int) -> int:
        """Return the number of the line at a place, counting on from the last one."""
        self.lines += self.data.count(b"\n", self.counted, place)
        self.counted = max(self.counted, place)
        return self.lines + 1

    def _finish(self) -> None:
        """Give out all that waits, at the end of a file."""
        if self.entry is not None:
            self.messages.entry(self.entry)
        self.messages.finish()
        ends = b"\r\n" if self.returns else b"\n"
        if self.skipping or (self.data and self.data[-1] not in ends):
            self.lines += 1
        self.entry, self.skipping = None, False

    def _journal(self, place: int, *, final: bool) -> int:
        """Read fields of journal entries, and return where an unfinished one begins."""
        while place < len(self.data):
            end = self.data.find(b"\n", place)
            if end < 0:
                if not final:
                    break
                end = len(self.data)
            name = _JOURNAL_NAME.match(self.data, place, end)
            if name and name.end() == end and end > place:
                after = self._binary(name[0], end + 1, final=final)
                if after is None:
                    break
                place = after
            else:
                self._journal_line(place, end)
                self.skipped_lines += end - place > MOST_LINE_OCTETS
                self.skipped_bytes += max(0, end - place - MOST_LINE_OCTETS)
                place = end + 1
        return min(place, len(self.data))

    def _journal_line(self, place: int, end: int) -> None:
        """Read a line of an entry: a field, its end, or something else's line."""
        name = _JOURNAL_NAME.match(self.data, place, end)
        stop = min(end, place + MOST_LINE_OCTETS)
        if end == place:
            if self.entry is not None:
                self.messages.entry(self.entry)
            self.entry = None
        elif name is None:
            self._lines(place, stop)
        elif name[0] in KNOWN_FIELDS:
            self._field(name[0], name.end() + 1, stop)

    def _binary(self, name: bytes, place: int, *, final: bool) -> int | None:
        """Take a binary field, and return where it has ended; None if more must come.

        A value that is too long to keep is none: what follows is read as lines.
        """
        start = place + LENGTH_OCTETS
        size = int.from_bytes(self.data[place:start], "little")
        if not final and len(self.data) < start:
            return None
        if size > MOST_LINE_OCTETS or start + size >= len(self.data) + final:
            return place if final or size > MOST_LINE_OCTETS else None
        self._field(name, start, start + size)
        return start + size + 1

    def _field(self, name: bytes, start: int, end: int) -> None:
        """Take one field of an entry."""
        self.entry = (self.entry or Entry()).with_field(
            name, self.data[start:end], self._number(start), self.base + start
        )


def _wrapping(line: bytes) -> Wrapping:
    """Return the wrapping that a line shows."""
    if line.startswith(FIRST_FIELDS):
        return Wrapping.JOURNAL
    shown = Wrapping.PLAIN
    if _CRI.search(line, 0, 512):
        shown |= Wrapping.CRI
    if _JSON.search(line):
        shown |= Wrapping.JSON
    return shown


def _escaped(literal: bytes) -> tuple[bytes, ...]:
    """Return how JSON may spell a literal, if not as it is."""
    plain = literal.replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\t", b"\\t")
    html = plain.replace(b"<", b"\\u003c").replace(b">", b"\\u003e")
    html = html.replace(b"&", b"\\u0026")
    return tuple({plain, html} - {literal})
