"""Messages that a wrapper cut into pieces, until their last piece comes."""

from __future__ import annotations

from msgspec import field

from fabricmon.parse.log_told import Told
from fabricmon.value import State, Value

MOST_CHARACTERS = 65536  # of one message, as of one line
MOST_MESSAGES = 16  # cut at the same time: streams times ranks of one file
MOST_LINES = 256  # until the next piece; the writer of what is older has gone


class Piece(Value, frozen=True):
    """The pieces of one message so far; ``key`` tells the streams of a file apart.

    ``told`` is what the first one told, ``newest_line`` where the last one was.
    """

    key: str
    text: str
    told: Told
    newest_line: int


class Pieces(State):
    """All messages of a file that wait for more; ``done`` have waited long enough."""

    waiting: dict[str, Piece] = field(default_factory=dict)
    done: list[Piece] = field(default_factory=list)

    def add(self, key: str, text: str, told: Told) -> None:
        """Keep a piece that is not the last one of its message."""
        first = self.waiting.pop(key, None)
        if first is None:
            if len(self.waiting) >= MOST_MESSAGES:
                self.done.append(self.waiting.pop(next(iter(self.waiting))))
            piece = Piece(key, text, told, told.line_number)
        else:
            piece = Piece(key, first.text + text, first.told, told.line_number)
        if len(piece.text) > MOST_CHARACTERS:
            self.done.append(piece)
        else:
            self.waiting[key] = piece

    def complete(self, key: str, text: str, told: Told) -> str:
        """Return a message whose last piece this is; it is where its first one was."""
        first = self.waiting.pop(key, None) if self.waiting else None
        if first is None:
            return text
        told.line_number, told.offset = first.told.line_number, first.told.offset
        return first.text + text

    def give_up(self, line_number: int) -> None:
        """Be done with messages whose next piece should have come by now."""
        for key, piece in list(self.waiting.items()):
            if piece.newest_line < line_number - MOST_LINES:
                self.done.append(self.waiting.pop(key))

    def give_up_all(self) -> None:
        """Be done with all messages."""
        self.done += self.waiting.values()
        self.waiting.clear()
