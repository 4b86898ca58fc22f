"""Messages out of the lines that a log's reader cut, as far as they are wanted."""

from __future__ import annotations

import re
from copy import copy
from dataclasses import replace

from fabricmon.parse.journal_export import Entry
from fabricmon.parse.log_carry import Anchors, Carry
from fabricmon.parse.log_event import LogLine
from fabricmon.parse.log_head import messages
from fabricmon.parse.log_pieces import Pieces
from fabricmon.parse.log_told import Told
from fabricmon.parse.wrappers import strip_wrappers

MOST_FOLLOWING = 256  # lines that are wanted unseen, in a storm of their anchor
MOST_HOSTS = 64  # whose lines may be glued: the nodes of a job, in turn
_ENDS = re.compile(r"[\r\n]+")


class Messages:
    """What lines said: ``found``, and what must wait for lines to come.

    ``following`` lines are wanted whatever they hold. ``torn`` are the messages of a
    line in which another message was glued into a WARN: the next line may be its rest.
    """

    def __init__(
        self, carry: Carry, anchors: Anchors, zone_seconds: int | None
    ) -> None:
        """Take up what the last piece of the file left."""
        self.anchors = anchors
        self.zone_seconds = zone_seconds
        self.following = carry.following
        self.torn = list(carry.torn)
        self.pieces = Pieces({piece.key: piece for piece in carry.pieces})
        self.hosts = dict.fromkeys(carry.hosts)
        self.found: list[LogLine] = []

    @property
    def hungry(self) -> bool:
        """Whether the next line is wanted whatever it holds."""
        return bool(self.following or self.torn or self.pieces.waiting)

    def line(self, raw: bytes, number: int, offset: int, *, is_hit: bool) -> None:
        """Take a line; ``is_hit`` says that it holds what a wanted one does."""
        if not raw or raw.isspace():
            self._release()
            return
        told = Told(number, offset, self.zone_seconds)
        text = strip_wrappers(_decoded(raw), told, self.pieces)
        if text is not None:
            self._message(text, told, is_hit=is_hit or told.line_number != number)
        if self.pieces.waiting or self.pieces.done:
            self.pieces.give_up(number)
            self._given_up()

    def entry(self, entry: Entry) -> None:
        """Take the message of an entry of the journal."""
        if entry.message is None:
            return
        if not (entry.more or self.hungry) and not self._may_hold(entry.message):
            return
        told = entry.told(self.zone_seconds)
        key = f"journal {entry.host} {entry.pid}"
        text = _decoded(entry.message)
        if entry.more:
            self.pieces.add(key, text, told)
        else:
            text = self.pieces.complete(key, text, told)
            whole = strip_wrappers(text, told, self.pieces)
            if whole is not None:
                self._message(whole, told, is_hit=True)
        self.pieces.give_up(entry.line_number)
        self._given_up()

    def _may_hold(self, message: bytes) -> bool:
        """Whether a message may hold an anchor; colours may part one."""
        shown = message.lower() if self.anchors.fold_case else message
        return b"\x1b" in message or any(
            literal in shown for literal in self.anchors.literals
        )

    def finish(self) -> None:
        """Give out all that waits, at the end of a file."""
        self.pieces.give_up_all()
        self._given_up()
        self._release()
        self.following = 0

    def _given_up(self) -> None:
        """Take messages whose last piece did not come."""
        for piece in self.pieces.done:
            told = copy(piece.told)  # the piece is somebody's carry, to be kept
            text = strip_wrappers(piece.text, told)
            if text is not None:
                self._message(text, told, is_hit=True)
        self.pieces.done.clear()

    def _message(self, text: str, told: Told, *, is_hit: bool) -> None:
        """Take what is wanted of a text out of its wrappers."""
        text = _safe(text)
        if not text or text.isspace():
            self._release()
        for part in _ENDS.split(text) if "\n" in text or "\r" in text else (text,):
            if not part or part.isspace():
                continue
            behind = self.anchors.wanted(part) if is_hit else None
            if behind is None and not self.following and not self.torn:
                continue
            lines = messages(part, told, self.hosts)
            if self._mended(lines) or (behind is None and not self.following):
                continue
            if behind:
                # Lines of several processes may be mixed: each has its own behind it.
                self.following = min(MOST_FOLLOWING, self.following + behind)
            else:
                self.following = max(0, self.following - 1)
            self._give(lines)

    def _give(self, lines: list[LogLine]) -> None:
        """Give out the messages of one line."""
        for line in lines:
            if line.pid is not None and line.host and line.host not in self.hosts:
                self._know(line.host)
        if len(lines) == 1:
            self.found += lines
            return
        kept = [
            line
            for line in lines
            if line.level or self.anchors.wanted(line.text) is not None
        ]
        if len(kept) > 1 and kept[-2].level == "WARN":
            self.torn = kept
        else:
            self.found += map(_trimmed, kept)

    def _know(self, host: str) -> None:
        """Keep the name of a host."""
        if len(self.hosts) == MOST_HOSTS:
            del self.hosts[next(iter(self.hosts))]
        self.hosts[host] = None

    def _mended(self, lines: list[LogLine]) -> bool:
        """Whether a line was the rest of a message that another one was glued into."""
        if not self.torn:
            return False
        first, cut = lines[0], self.torn[-2]
        if first.level is None and len(lines) == 1:
            self.torn[-2] = replace(cut, text=cut.text + first.text)
            self._release()
            return True
        self._release()
        return False

    def _release(self) -> None:
        """Give out the messages of a line that waited for what follows."""
        self.found += map(_trimmed, self.torn)
        self.torn = []


def _decoded(raw: bytes) -> str:
    """Return a text; octets that are not UTF-8 stay what they are until it is whole."""
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw.decode("utf-8", "surrogateescape")


def _safe(text: str) -> str:
    """Return a text that encodes to UTF-8, octets that are none replaced."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    return text


def _trimmed(line: LogLine) -> LogLine:
    """Return a line without blanks at the end."""
    text = line.text.rstrip()
    return line if text == line.text else replace(line, text=text)
