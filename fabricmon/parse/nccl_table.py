"""The rows of the log rule table, compiled, and the literals that select lines."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Protocol

from fabricmon.parse.log_event import LogSeverity
from fabricmon.parse.nccl_rules import COARSE, MOST_LITERALS, RULES, LogRow
from fabricmon.parse.rule_pattern import LEAST_ANCHOR
from fabricmon.value import Value

MOST_ANCHOR = 80  # characters of an operator's anchor that are compared
_SHAPES = 512  # messages, numbers aside, whose rows are remembered
_MOST_SHAPE = 512  # characters of such a message
_NO_DIGITS = str.maketrans("0123456789", "0000000000")
EVERY_LINE = (b" ",)  # a message without a blank says nothing


class OperatorRow(Protocol):
    """A row of the operator's own, as the configuration has it."""

    @property
    def id(self) -> str:
        """Return the row's name."""

    @property
    def anchor(self) -> str:
        """Return the text that selects lines."""

    @property
    def pattern(self) -> str:
        """Return the regular expression."""

    @property
    def kind(self) -> str:
        """Return the kind of its events."""

    @property
    def severity(self) -> str:
        """Return how bad they are."""


class Compiled(Value, frozen=True):
    """A row with its place in the table and its pattern."""

    place: int
    row: LogRow
    pattern: re.Pattern[str]


@dataclass(frozen=True, slots=True)
class RuleTable:
    """The rows, ready to be used.

    ``anchors`` are the coarse literals that select lines in a file, 16 at most;
    ``following`` says, in the same order, how many lines behind such a line are wanted
    too: ``Anchors.of(table.anchors, following=dict(zip(table.anchors,
    table.following)))``.
    """

    rows: tuple[LogRow, ...]
    anchors: tuple[bytes, ...]
    following: tuple[int, ...]
    _by_shape: Callable[[str], tuple[Compiled, ...]] = field(repr=False, compare=False)

    @classmethod
    def of(cls, operator_rows: Sequence[OperatorRow] = ()) -> RuleTable:
        """Return the built-in rows and the operator's.

        An operator's row is looked for besides the others: it hides none. Raises
        ValueError for rows with too many unrelated anchors, and `re.error`; a
        configuration that was checked has neither.
        """
        rows = (*RULES, *map(_operator_row, operator_rows))
        literals = coarse_literals(row.anchor for row in operator_rows)
        if literals is None:
            raise ValueError("the anchors of the rows have too little in common")
        counts = dict(COARSE)
        return cls(
            rows,
            tuple(each.encode() for each in literals),
            tuple(counts.get(each, 0) for each in literals),
            _chooser(rows),
        )

    def candidates(self, text: str) -> tuple[Compiled, ...]:
        """Return the rows whose anchor a message may hold, in their order.

        Messages differ most in their numbers, and storms are of few messages: the rows
        are remembered by the message without its numbers.
        """
        shape = text.translate(_NO_DIGITS)
        if len(shape) > _MOST_SHAPE:
            return self._by_shape.__wrapped__(shape)  # type: ignore[attr-defined,no-any-return]
        return self._by_shape(shape)

    def for_every_line(self) -> RuleTable:
        """Return the same table with literals that select all lines.

        For logs that are read once and are not large: rows that no coarse literal
        finds, and text without any head, are recognised too.
        """
        return replace(self, anchors=EVERY_LINE, following=(0,) * len(EVERY_LINE))


def coarse_literals(anchors: Iterable[str]) -> tuple[str, ...] | None:
    """Return the literals that select every line of the built-in and of these rows.

    An anchor that holds a built-in literal needs none of its own. Where there are too
    many, those that share the longest text are replaced by it. None if 16 are not
    enough.
    """
    built_in = tuple(literal for literal, _ in COARSE)
    own = {each[:MOST_ANCHOR] for each in anchors}
    rest = sorted(each for each in own if not _holds_one(each, built_in))
    while len(built_in) + len(rest) > MOST_LITERALS:
        shared = _most_shared(rest)
        if len(shared) < LEAST_ANCHOR:
            return None
        rest = sorted({shared, *(each for each in rest if shared not in each)})
    return (*built_in, *rest)


def _holds_one(text: str, literals: Iterable[str]) -> bool:
    return any(literal in text for literal in literals)


def _most_shared(texts: Sequence[str]) -> str:
    """Return the longest text that two of these share."""
    best = ""
    for number, one in enumerate(texts):
        for other in texts[number + 1 :]:
            best = max(best, _shared(one, other, len(best) + 1), key=len)
    return best


def _shared(one: str, other: str, least: int) -> str:
    """Return the longest text of both, of at least this length; empty without."""
    found = ""
    for start in range(len(one)):
        while (end := start + max(least, len(found) + 1)) <= len(one):
            if one[start:end] not in other:
                break
            found = one[start:end]
    return found


def _operator_row(row: OperatorRow) -> LogRow:
    return LogRow(
        id=row.id,
        kind=row.kind,
        severity=LogSeverity(row.severity),
        anchor=row.anchor,
        pattern=row.pattern,
        versions="",
        meaning="",
        examples=(),
        near_misses=(),
        library="",
        companion=True,
    )


def _chooser(rows: Sequence[LogRow]) -> Callable[[str], tuple[Compiled, ...]]:
    """Return what finds the rows for a message whose digits are all 0."""
    groups: dict[str, list[Compiled]] = {}
    for place, row in enumerate(rows):
        compiled = Compiled(place, row, re.compile(row.pattern))
        groups.setdefault(row.anchor.translate(_NO_DIGITS), []).append(compiled)

    @lru_cache(maxsize=_SHAPES)
    def choose(shape: str) -> tuple[Compiled, ...]:
        found = [
            each
            for anchor, group in groups.items()
            if anchor in shape
            for each in group
        ]
        return tuple(sorted(found, key=_place))

    return choose


def _place(compiled: Compiled) -> int:
    return compiled.place
