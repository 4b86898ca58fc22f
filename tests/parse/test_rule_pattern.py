"""Patterns that could take long, or never match, are refused with the reason."""

import re
import time
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fabricmon.parse.pattern_effort import (
    MOST_PATTERN,
    MOST_TEXT,
    demands,
    pattern_fault,
)
from fabricmon.parse.rule_pattern import MOST_ROWS, RowFault, row_fault


@dataclass(frozen=True, slots=True)
class Row:
    """A row of an operator."""

    id: str = "mine"
    anchor: str = "link down"
    pattern: str = r"link down on (?P<device>\w+)"


def fault(*rows: Row) -> RowFault:
    """Return why rows are refused."""
    found = row_fault(rows, {"C1"})
    assert found is not None
    return found


def seconds(pattern: str, text: str) -> float:
    """Return how long a search takes."""
    compiled = re.compile(pattern)
    begin = time.perf_counter()
    compiled.search(text)
    return time.perf_counter() - begin


def test_a_plain_row_is_taken() -> None:
    """Most rows are."""
    assert row_fault([Row(), Row("other")], {"C1"}) is None


@pytest.mark.parametrize(
    "pattern",
    [
        r"(?P<peer>[^\s<]+)? link",
        r"on (?P<device>[A-Za-z][\w.-]*):(?P<port>\d+)(?:, state (\w+))?\s*$",
        r"retry .*, then .{0,1} end",
        r"key=[^,]*, key=[^,]*, key=[^,]*, end",
        r"attributes(?: \w+=\w+)*: text",
        r"a(?:b|cd|[e-g])+h",
        r"^\s+failed (?!twice)\S+",
        "x(?:" * 30 + "y" + ")?" * 30,
    ],
)
def test_a_pattern_that_ends_soon_is_taken(pattern: str) -> None:
    """One repeat without a limit, or several that cannot match the same text."""
    if pattern.startswith("("):
        pattern = "from " + pattern
    assert pattern_fault(pattern) is None


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        (r"x(a+)+b", "too long"),
        (r"x(a|a)*b", "too long"),
        (r"x(\w+\s*)+:", "too long"),
        (r"x.*y.*z", "too long"),
        (r"x\s*\s*\s*y", "too long"),
        (r"x\d+[0-9a-f]+\w+!", "too long"),
        (r"x(?:a{1,30}){1,30}b", "too long"),
        (r"x(?:.?){60}y", "too long"),
        (r"x(?=.*y.*z)", "too long"),
        (r"b.*(?:b*a)", "too long"),
        (r"a{1,9}a(?:a|ab)*\d", "too long"),
        (r"\w+(?=b*a)", "begins with a long repeat"),
        (r"\w\w+(?=b*a)", "too long"),
        (r".*link down", "begins with a long repeat"),
        (r"(?:\w*)link down", "begins with a long repeat"),
        (r"(?:link|.*) down", "begins with a long repeat"),
        (r"(?:a|b)?\S{1,500} down", "begins with a long repeat"),
        (r"link (\w+) is \1", "refers back"),
        (r"(a)?link(?(1)b|c)", "refers back"),
        (r"link (down", "no regular expression"),
        (r"link down)", "no regular expression"),
        ("x" * (MOST_PATTERN + 1), "more than"),
        ("x" + "(?:" * 45 + "y" + ")?" * 45, "groups in groups"),
        ("(" * 330 + "x" + ")" * 330, "no regular expression|groups in groups"),
    ],
)
def test_a_pattern_that_may_take_long_is_refused(pattern: str, reason: str) -> None:
    """The reason is in words."""
    said = pattern_fault(pattern)
    assert said is not None
    assert re.search(reason, said)


def test_what_is_refused_does_take_long() -> None:
    """A check that refused everything would be no check."""
    assert pattern_fault("x(a+)+b") is not None
    assert seconds("x(a+)+b", "x" + "a" * 20) > 20 * seconds("x(a+)+b", "x" + "a" * 10)


@pytest.mark.parametrize(
    ("row", "key", "reason"),
    [
        (Row(id=""), "id", "no id"),
        (Row(id="C1"), "id", "built-in"),
        (Row(anchor="lin"), "anchor", "fewer than 4"),
        (Row(anchor="link\ndown"), "anchor", "line end"),
        (Row(anchor="Link down"), "pattern", "without its anchor"),
        (Row(pattern=r"(?:link down)? on"), "pattern", "without its anchor"),
        (Row(pattern=r"link down|link up"), "pattern", "without its anchor"),
        (Row(pattern=r"(?i)link down"), "pattern", "any case"),
        (Row(pattern=r"link down(?i:a)"), "pattern", "any case"),
        (Row(pattern=r"link down (a+)+b"), "pattern", "too long"),
    ],
)
def test_a_row_is_refused_with_who_why_and_what_to_do(
    row: Row, key: str, reason: str
) -> None:
    """One clear error: the row, its key, the reason and a way out."""
    found = fault(Row("good"), row)
    assert (found.number, found.key) == (1, key)
    assert repr(row.id) in found.message
    assert reason in found.message
    assert found.remedy


def test_two_rows_of_one_name_are_refused() -> None:
    """An event names its row."""
    assert "two rows" in fault(Row(), Row()).message


def test_too_many_rows_are_refused() -> None:
    """Each costs time for every line that is looked at."""
    rows = [Row(f"row{number}") for number in range(MOST_ROWS + 1)]
    assert "more than" in fault(*rows).message


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("link down", "link down"),
        (r"a (?:link down)+ b", "link down"),
        (r"(?P<what>link) (?P<how>down)", "link down"),
        (r"link\ down", "link down"),
        (r"x.{0,9}link down\d*", "link down"),
    ],
)
def test_plain_text_of_a_pattern_is_what_it_demands(pattern: str, text: str) -> None:
    """Groups and escapes do not part it."""
    assert demands(pattern, text)


@pytest.mark.parametrize("pattern", [r"link d?own", r"link (?:down|up)", "("])
def test_text_that_may_be_missing_is_not_demanded(pattern: str) -> None:
    """What is optional or one of several cannot select lines."""
    assert not demands(pattern, "link down")


PARTS = st.sampled_from(
    [
        *("a", "b", "ab", ".", r"\w", r"\d", r"\s", "[ab]", "[^a]", "a*", "b+", ".*"),
        *(r"\w+", "(", ")", "(?:", "|", "?", "*", "+", "{1,9}", "{2,}", "*?", "^", "$"),
        *(r"\1", "(?=", "(?!", "(?<=", "(?>", "*+", r"\b", "[", "]", "é", "[^é]", "x"),
    ]
)
PATTERNS = st.lists(PARTS, min_size=1, max_size=14).map("".join)


@given(PATTERNS)
def test_no_pattern_makes_the_check_fail(pattern: str) -> None:
    """Whatever it is, there is an answer."""
    assert isinstance(pattern_fault(pattern), str | None)


@settings(max_examples=300, deadline=None)
@given(
    PATTERNS,
    st.sampled_from(["a", "ab", "b", "a ", "1", "é", "aab"]),
    st.sampled_from(["", "!"]),
)
def test_a_pattern_that_is_taken_ends_soon(pattern: str, piece: str, end: str) -> None:
    """On text as long as patterns are given, whatever the text."""
    if pattern_fault(pattern) is not None:
        return
    text = (piece * MOST_TEXT)[: MOST_TEXT - 1] + end
    assert seconds(pattern, text) < 2
