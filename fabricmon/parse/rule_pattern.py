"""Whether the rows of an operator may join the log rule table. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Protocol

from fabricmon.parse.pattern_effort import Refused, check_steps, demands, parsed
from fabricmon.value import Value

MOST_ROWS = 64  # of an operator's own
LEAST_ANCHOR = 4  # characters; a shorter one selects too many lines


class RowToCheck(Protocol):
    """What the check needs of a row."""

    @property
    def id(self) -> str:
        """Return the row's name."""

    @property
    def anchor(self) -> str:
        """Return the text that selects lines."""

    @property
    def pattern(self) -> str:
        """Return the regular expression."""


class RowFault(Value, frozen=True):
    """Why a row is refused: its number, which key of it, and what to do."""

    number: int
    key: str
    message: str
    remedy: str


def row_fault(rows: Sequence[RowToCheck], taken: Collection[str]) -> RowFault | None:
    """Return what is wrong with the first row that must be refused.

    ``taken`` are the ids that rows may not have.
    """
    if len(rows) > MOST_ROWS:
        return RowFault(
            MOST_ROWS, "id", f"more than {MOST_ROWS} rows", "say more in one pattern"
        )
    seen: set[str] = set()
    for number, row in enumerate(rows):
        for key, check in _CHECKS.items():
            try:
                check(row, taken, seen)
            except Refused as fault:
                who = f"row {row.id!r}: {fault.message}"
                return RowFault(number, key, who, fault.remedy)
        seen.add(row.id)
    return None


def _check_id(row: RowToCheck, taken: Collection[str], seen: set[str]) -> None:
    if not row.id:
        raise Refused("has no id", "give it a name of its own")
    if row.id in taken:
        raise Refused("a built-in row has this id", "give it another name")
    if row.id in seen:
        raise Refused("two rows have this id", "give each a name of its own")


def _check_anchor(row: RowToCheck, _taken: Collection[str], _seen: set[str]) -> None:
    if len(row.anchor) < LEAST_ANCHOR:
        raise Refused(
            f"its anchor has fewer than {LEAST_ANCHOR} characters",
            "take a longer piece of the message, or lines of all kinds are looked at",
        )
    if "\n" in row.anchor or "\r" in row.anchor:
        raise Refused("its anchor has a line end", "take a piece of one line")


def _check_pattern(row: RowToCheck, _taken: Collection[str], _seen: set[str]) -> None:
    check_steps(parsed(row.pattern))
    if not demands(row.pattern, row.anchor):
        raise Refused(
            f"its pattern matches text without its anchor {row.anchor!r}",
            "take as anchor a piece of the pattern that is plain text and not optional",
        )


_CHECKS: dict[str, Callable[[RowToCheck, Collection[str], set[str]], None]] = {
    "id": _check_id,
    "anchor": _check_anchor,
    "pattern": _check_pattern,
}
