"""What is asked of a reader of log lines, what it keeps between pieces, what it gives."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Flag

from fabricmon.parse.journal_export import Entry
from fabricmon.parse.log_event import LogLine
from fabricmon.parse.log_pieces import Piece
from fabricmon.value import Value

MOST_ANCHORS = 16  # each costs up to half a nanosecond for every octet of log
MOST_LINE_OCTETS = 65536  # what is kept of one line


class Wrapping(Flag):
    """Wrappers of a file that may hide an anchor: seen once, expected ever after."""

    PLAIN = 0
    CRI = 1
    JSON = 2
    JOURNAL = 4


class Carry(Value, frozen=True):
    """What is left of one file between two pieces of it.

    ``offset`` is where the next piece begins, ``lines`` how many lines have ended.
    ``Carry(offset, lines)`` begins anywhere; ``line_start`` is the place to begin at
    when only numbers can be kept: it goes with ``lines``. All else is the reader's own:
    the line that has not ended, whether its rest is skipped, how many lines are wanted
    whatever they hold, the file's wrapping and where to look for it again, messages of
    which pieces are missing, a torn message with what follows it, and an entry of the
    journal. ``hosts`` are names that heads had, the newest last.
    """

    offset: int = 0
    lines: int = 0
    tail: bytes = b""
    skipping: bool = False
    following: int = 0
    wrapping: Wrapping = Wrapping.PLAIN
    looked: int = 0
    look_at: int = 0
    pieces: tuple[Piece, ...] = ()
    torn: tuple[LogLine, ...] = ()
    entry: Entry | None = None
    hosts: tuple[str, ...] = ()

    @property
    def line_start(self) -> int:
        """Where the line that has not ended yet begins."""
        return self.offset - len(self.tail)

    @property
    def waits(self) -> bool:
        """Whether something may come out without more data, by ``final``."""
        return bool(self.tail or self.pieces or self.torn or self.entry)


START = Carry()


class Anchors(Value, frozen=True):
    """Literals that select lines; made by ``of``.

    ``following`` are the literals behind which lines are wanted too, whatever they hold
    (blank ones are not counted), with how many, the most first; ``single`` are all
    others.
    """

    literals: tuple[bytes, ...]
    following: tuple[tuple[str, int], ...]
    single: tuple[str, ...]
    fold_case: bool = False

    @classmethod
    def of(
        cls,
        literals: Iterable[bytes],
        *,
        following: Mapping[bytes, int] | None = None,
        fold_case: bool = False,
    ) -> Anchors:
        """Return anchors; ``following`` says for some how many lines are wanted behind.

        Raises ValueError for none, too many, an empty one, one with a line end or that
        is not UTF-8, and where ``following`` names a literal that is not there.
        """
        counts = dict(following or {})
        found = tuple(dict.fromkeys(literals))
        if not 0 < len(found) <= MOST_ANCHORS:
            message = f"{len(found)} anchors: give 1 to {MOST_ANCHORS}"
            raise ValueError(message)
        for literal in found:
            if not literal or b"\n" in literal or b"\r" in literal:
                message = f"anchor {literal!r}: give text within one line"
                raise ValueError(message)
        if unknown := sorted(counts.keys() - set(found)):
            message = f"lines are wanted behind {unknown[0]!r}, which is no anchor"
            raise ValueError(message)
        ranked = sorted(counts.items(), key=lambda item: -item[1])
        single = [one for one in found if counts.get(one, 0) == 0]
        fold = str.lower if fold_case else str
        return cls(
            tuple(one.lower() if fold_case else one for one in found),
            tuple((fold(one.decode()), count) for one, count in ranked if count > 0),
            tuple(fold(one.decode()) for one in single),
            fold_case,
        )

    def wanted(self, text: str) -> int | None:
        """Return how many lines are wanted behind one, None if it holds no anchor."""
        if self.fold_case:
            text = text.lower()
        for literal, count in self.following:
            if literal in text:
                return count
        for literal in self.single:
            if literal in text:
                return 0
        return None


class LineBatch(Value, frozen=True):
    """What a piece of a file gave.

    ``lines`` are in the order in which they became whole; several have one line number
    where lines were glued. ``lines_seen`` are the lines that ended in this piece.
    ``skipped_bytes`` were dropped unread from lines longer than ``MOST_LINE_OCTETS``,
    ``skipped_lines`` counts those.
    """

    lines: tuple[LogLine, ...]
    carry: Carry
    lines_seen: int
    skipped_bytes: int
    skipped_lines: int
