"""Whether a pattern may be searched in text that an enemy wrote. Pure.

Python's matcher tries every way in which a pattern can fit before it gives up, from
every place where it can begin. Here the steps are counted in the parsed pattern, as an
upper bound: a repeat that may stop at many places multiplies those of what comes behind
it, unless that cannot be what it repeats.
"""

from __future__ import annotations

import importlib
import re
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

from fabricmon.value import Value

MOST_TEXT = 4096  # characters of a message that patterns are searched in
MOST_PATTERN = 1000  # characters of a pattern
MOST_STEPS = 100_000_000  # of the matcher: up to 1 s, on the worst text there is
_GROUP_STEPS = 4  # what a repeat of a group costs, in those of a character
_MOST_DEPTH = 40  # groups in groups
_LONG = 64  # repeats that make the beginning of a pattern costly
_NO_LIMIT = 1 << 62  # ways of a pattern that has too many to count

_parser: Any = importlib.import_module("re._parser")  # has no types, nor a public name
_Item = tuple[Any, Any]  # an operation and its argument

# A set of characters is a number: a bit for each of ASCII, and one for each class of
# those beyond it (digits, other letters, blanks, all others).
_ASCII = (1 << 128) - 1
_DIGITS_BEYOND, _LETTERS_BEYOND, _BLANKS_BEYOND = 1 << 128, 1 << 129, 1 << 130
_OTHERS_BEYOND = 1 << 131
_ANY = (1 << 132) - 1
_BEYOND = _ANY & ~_ASCII
_DIGIT = sum(1 << n for n in range(ord("0"), ord("9") + 1)) | _DIGITS_BEYOND
_WORD = sum(1 << n for n in range(128) if chr(n).isalnum() or n == ord("_"))
_WORD |= _DIGITS_BEYOND | _LETTERS_BEYOND
_SPACE = sum(1 << ord(each) for each in " \t\n\r\f\v\x1c\x1d\x1e\x1f")
_SPACE |= _BLANKS_BEYOND
_CATEGORIES = {
    "CATEGORY_WORD": _WORD,
    "CATEGORY_NOT_WORD": _ANY & ~_WORD,
    "CATEGORY_DIGIT": _DIGIT,
    "CATEGORY_NOT_DIGIT": _ANY & ~_DIGIT,
    "CATEGORY_SPACE": _SPACE,
    "CATEGORY_NOT_SPACE": _ANY & ~_SPACE,
}
_REPEATS = ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT")
_ONE_CHARACTER = ("LITERAL", "NOT_LITERAL", "ANY", "IN")
_BACK_REFERENCES = ("GROUPREF", "GROUPREF_EXISTS")
_GROUPS = ("SUBPATTERN", "ATOMIC_GROUP")
_ASSERTIONS = ("ASSERT", "ASSERT_NOT")


class Refused(Exception):  # noqa: N818 - it never leaves the check of rows
    """A pattern or its row is refused: why, and what to do."""

    def __init__(self, message: str, remedy: str) -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy


def pattern_fault(pattern: str) -> str | None:
    """Return why a pattern is refused, None if it may be used."""
    try:
        check_steps(parsed(pattern))
    except Refused as fault:
        return f"{fault.message}: {fault.remedy}"
    return None


def demands(pattern: str, text: str) -> bool:
    """Say whether whatever matches a pattern holds this very text."""
    try:
        tree = parsed(pattern)
        return any(text in run for run in _literals(list(tree), 0))
    except Refused:
        return False


def parsed(pattern: str) -> Any:
    """Return the parsed pattern; raises `Refused` for one that cannot be used."""
    if len(pattern) > MOST_PATTERN:
        raise Refused(
            f"its pattern has more than {MOST_PATTERN} characters", "make it shorter"
        )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # what will mean something else one day
            re.compile(pattern)
            tree = _parser.parse(pattern)
    except (re.error, RecursionError, OverflowError, Warning) as error:
        raise Refused(
            f"its pattern is no regular expression: {error}", "correct it"
        ) from None
    if tree.state.flags & re.IGNORECASE:
        raise _any_case()
    return tree


def _any_case() -> Refused:
    return Refused("its pattern takes letters of any case", "write both, as in [Ll]ink")


def check_steps(tree: Any) -> None:
    """Raise `Refused` for a parsed pattern that may take long."""
    items = list(tree)
    _check_beginning(items, 0)
    if _starts(items) * _effort(items, 0, 0).steps > MOST_STEPS:
        raise Refused(
            "its pattern may take too long: repeats without a limit follow each other,"
            " or are inside each other, and may match the same text",
            "write limits as in .{0,80}, or what cannot match as in [^,]* before a ,",
        )


def _check_beginning(items: Sequence[_Item], depth: int) -> bool:
    """Refuse a long repeat before anything else; True if something is certain."""
    _check_depth(depth)
    for item in items:
        name, body = _name(item), item[1]
        if name in _REPEATS:
            if body[1] > _LONG:
                raise Refused(
                    "its pattern begins with a long repeat",
                    "leave it out (the pattern is found anywhere) or give it a limit"
                    f" of {_LONG}",
                )
            if _check_beginning(list(body[2]), depth + 1) and body[0]:
                return True
        elif name in _GROUPS:
            if _check_beginning(_inside(item), depth + 1):
                return True
        elif name == "BRANCH":
            each = [_check_beginning(list(one), depth + 1) for one in body[1]]
            if all(each):
                return True
        elif name in _ONE_CHARACTER or (name == "AT" and _at_start(body)):
            return True
    return False


def _at_start(place: Any) -> bool:
    return str(place) in {"AT_BEGINNING", "AT_BEGINNING_STRING"}


def _check_depth(depth: int) -> None:
    if depth > _MOST_DEPTH:
        raise Refused("its pattern has too many groups in groups", "make it simpler")


def _name(item: _Item) -> str:
    return str(item[0])


def _inside(item: _Item) -> list[_Item]:
    """Return the items of a group of any sort."""
    body = item[1]
    return list(body[-1] if isinstance(body, tuple) else body)


class _Effort(Value, frozen=True):
    """In how many ways something can fit, and the steps of trying one after another."""

    ways: int
    steps: int


def _effort(items: Sequence[_Item], follow: int, depth: int) -> _Effort:
    """Return the effort of a sequence; ``follow`` may come behind it."""
    _check_depth(depth)
    efforts = []
    for item in reversed(items):
        efforts.append(_effort_of(item, follow, depth))
        first, empty = _first(item, depth)
        follow = first | follow if empty else first
    return _added(efforts[::-1])


def _added(efforts: Sequence[_Effort]) -> _Effort:
    """Return that of efforts one after another.

    Those with one way share the text between them: the longest counts for all.
    """
    ways, steps, longest = 1, 0, 0
    for each in efforts:
        if each.ways == 1:
            longest = max(longest, each.steps)
            steps += ways
            continue
        steps += ways * (longest + each.steps)
        ways, longest = ways * each.ways, 0
    return _Effort(min(ways, _NO_LIMIT), min(steps + ways * longest, _NO_LIMIT))


def _effort_of(item: _Item, follow: int, depth: int) -> _Effort:
    name = _name(item)
    if name in _BACK_REFERENCES:
        raise Refused("its pattern refers back to a group", "write it without")
    if name in _REPEATS:
        return _effort_of_repeat(item, follow, depth)
    if name == "BRANCH":
        return _effort_of_branch(item, follow, depth)
    if name in _ASSERTIONS:
        return _effort(_inside(item), 0, depth + 1)
    if name in _GROUPS:
        if name == "SUBPATTERN" and item[1][1] & re.IGNORECASE:
            raise _any_case()
        return _effort(_inside(item), follow, depth + 1)
    return _Effort(1, 1)


def _effort_of_branch(item: _Item, follow: int, depth: int) -> _Effort:
    """Return that of alternatives: the ways of one where none begins like another."""
    branches = [list(each) for each in item[1][1]]
    efforts = [_effort(each, follow, depth + 1) for each in branches]
    steps = sum(each.steps for each in efforts)
    taken = 0
    for branch in branches:
        first, empty = _first_of(branch, depth + 1)
        first |= follow if empty else 0
        if first & taken:
            return _Effort(sum(each.ways for each in efforts), steps)
        taken |= first
    return _Effort(max(each.ways for each in efforts), steps)


def _effort_of_repeat(item: _Item, follow: int, depth: int) -> _Effort:
    least, most, body = item[1]
    times = min(int(most), MOST_TEXT)
    inside = list(body)
    first, _ = _first_of(inside, depth + 1)
    stops = 1 + max(0, times - min(int(least), times)) if first & follow else 1
    if len(inside) == 1 and _name(inside[0]) in _ONE_CHARACTER:
        return _Effort(stops, times + stops)
    behind = first | follow if times > 1 else follow
    each = _effort(inside, behind, depth + 1)
    if times <= 1:
        return _Effort(stops * each.ways, each.steps + stops)
    if each.ways == 1:  # however often, it takes no more than the whole text
        steps = min(times * each.steps, MOST_TEXT + each.steps)
        return _Effort(stops, _GROUP_STEPS * steps + stops)
    if times > _LONG:
        return _Effort(_NO_LIMIT, _NO_LIMIT)
    ways = min(stops * each.ways**times, _NO_LIMIT)
    steps = each.ways ** (times - 1) * times * each.steps
    return _Effort(ways, min(_GROUP_STEPS * steps, _NO_LIMIT))


def _starts(items: Sequence[_Item]) -> int:
    """Return at how many places of a text the pattern can get beyond its beginning."""
    flat = list(_flat(items, 0))
    if flat and _name(flat[0]) == "AT" and _at_start(flat[0][1]):
        return 1
    if flat and _name(flat[0]) == "BRANCH":
        return min(MOST_TEXT, sum(_starts(list(each)) for each in flat[0][1][1]))
    text = ""
    for item in flat:
        if _name(item) != "LITERAL":
            break
        text += chr(item[1])
    period = next((n for n in range(1, len(text)) if text.startswith(text[n:])), 0)
    return MOST_TEXT // max(1, period or len(text))


def _first_of(items: Sequence[_Item], depth: int) -> tuple[int, bool]:
    """Return the characters a sequence can begin with; True if it can be empty."""
    _check_depth(depth)
    found = 0
    for item in items:
        first, empty = _first(item, depth)
        found |= first
        if not empty:
            return found, False
    return found, True


def _first(item: _Item, depth: int) -> tuple[int, bool]:
    name, body = _name(item), item[1]
    if name in _ONE_CHARACTER:
        return _characters(name, body), False
    if name in _REPEATS:
        first, empty = _first_of(list(body[2]), depth + 1)
        return first, empty or body[0] == 0
    if name == "BRANCH":
        each = [_first_of(list(one), depth + 1) for one in body[1]]
        found = 0
        for first, _ in each:
            found |= first
        return found, any(empty for _, empty in each)
    if name in _GROUPS:
        return _first_of(_inside(item), depth + 1)
    # A place takes no character; an assertion may fail whatever comes behind it.
    return (_ANY if name in _ASSERTIONS else 0), True


def _characters(name: str, body: Any) -> int:
    if name == "ANY":
        return _ANY
    if name == "IN":
        return _set(body)
    one = _range(int(body), int(body))
    # A class beyond ASCII stands for many: excluding one of them excludes none.
    return one if name == "LITERAL" else _ANY & ~(one & _ASCII)


def _range(low: int, high: int) -> int:
    """Return the characters from one to another; any class beyond ASCII as a whole."""
    ascii_part = (1 << min(high, 127) + 1) - (1 << min(low, 128))
    if high < 128:  # noqa: PLR2004 - the first beyond ASCII
        return ascii_part
    return max(ascii_part, 0) | _BEYOND


def _set(parts: Sequence[_Item]) -> int:
    single = classes = 0
    negated = False
    for part in parts:
        kind, value = _name(part), part[1]
        if kind == "NEGATE":
            negated = True
        elif kind == "LITERAL":
            single |= _range(int(value), int(value))
        elif kind == "RANGE":
            single |= _range(int(value[0]), int(value[1]))
        else:
            classes |= _CATEGORIES[str(value)]
    if negated:
        return _ANY & ~(classes | single & _ASCII)
    return classes | single


def _literals(items: Sequence[_Item], depth: int) -> Iterator[str]:
    """Yield the pieces of plain text that every match holds."""
    _check_depth(depth)
    run = ""
    for item in _flat(items, depth):
        if _name(item) == "LITERAL":
            run += chr(item[1])
            continue
        if run:
            yield run
        run = ""
        if _name(item) in _REPEATS and item[1][0]:
            yield from _literals(list(item[1][2]), depth + 1)
    if run:
        yield run


def _flat(items: Sequence[_Item], depth: int) -> Iterator[_Item]:
    """Yield the items with those of plain groups in their place."""
    _check_depth(depth)
    for item in items:
        if _name(item) == "SUBPATTERN":
            yield from _flat(_inside(item), depth + 1)
        else:
            yield item
