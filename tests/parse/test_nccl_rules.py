"""Each row of the log rule table holds what it claims: its examples are the tests."""

import re
from collections.abc import Iterator

import pytest

from fabricmon.parse.log_event import LogEvent, LogLine
from fabricmon.parse.nccl import LogContext, RuleTable, recognise
from fabricmon.parse.nccl_rules import COARSE, MOST_LITERALS, RULES, SUBJECTS, LogRow
from fabricmon.parse.nccl_rules.row import Wording
from fabricmon.parse.pattern_effort import demands, pattern_fault

TABLE = RuleTable.of()
HEAD = re.compile(r"NCCL (INFO|WARN) ")
# Releases that claims are checked at: each minor one, and patches with new wordings.
RELEASES = {
    "": (
        *((2, minor, 0) for minor in range(3, 31)),
        *((2, 28, 3), (2, 28, 7), (2, 28, 9), (2, 29, 2), (2, 29, 4), (2, 29, 7)),
        *((2, 30, 3), (2, 30, 4), (2, 30, 7)),
    ),
    "ofi": tuple((1, minor, 0) for minor in range(22)),
    "libfabric": (*((1, minor, 0) for minor in range(10, 23)), (2, 0, 0)),
    "torch": (
        *((1, minor, 0) for minor in range(8, 14)),
        *((2, minor, 0) for minor in range(10)),
    ),
}
# Printed at each call or peer: lines of which there are many, and none is wanted.
NOISE = (
    "n1:1:2 [0] NCCL INFO Channel 01/0 : 6[6] -> 7[7] via P2P/IPC/read",
    "n1:1:2 [0] NCCL INFO Channel 00 : 2[1] -> 0[0] via SHM/direct/direct",
    "n1:1:2 [0] NCCL INFO init.cc:1234 Cuda Alloc Size 4194304 pointer 0x7f2a944701b8",
    "n1:1:2 [0] NCCL INFO Mem Realloc old size 0, new size 8 pointer 0x55dd8aa86c70",
    (
        "n1:1:2 [0] NCCL INFO AllReduce: opCount 1a sendbuff 0x7f2a recvbuff 0x7f2a count"
        " 1048576 datatype 7 op 0 root 0 comm 0x55dd8aa86c70 [nranks=8] stream 0x55dd"
    ),
    "n1:1:2 [0] NCCL INFO AllReduce: 4096 Bytes -> Algo RING proto LL channel{Lo..Hi}",
    "n1:1:2 [0] NCCL INFO Channel 00/32 :    0   1   2   3   4   5   6   7",
    "n1:1:2 [0] NCCL INFO Trees [0] 1/-1/-1->0->-1 [1] 1/-1/-1->0->-1",
    "n1:1:2 [0] NCCL INFO P2P Chunksize set to 131072",
    "iter 83592: loss 1.5455, time: 4401.19ms, speed: - toks/s/device",
)

Example = tuple[LogRow, Wording]
EXAMPLES = [(row, wording) for row in RULES for wording in row.examples]
NEAR_MISSES = [(row, text) for row in RULES for text in row.near_misses]
each_row = pytest.mark.parametrize("row", RULES, ids=[row.id for row in RULES])
each_example = pytest.mark.parametrize(
    ("row", "wording"),
    EXAMPLES,
    ids=[f"{row.id}-{one.version}" for row, one in EXAMPLES],
)
each_near_miss = pytest.mark.parametrize(
    ("row", "text"), NEAR_MISSES, ids=[row.id for row, _ in NEAR_MISSES]
)


def line(text: str, source: str | None = None) -> LogLine:
    """Return a line as it is without its head."""
    head = HEAD.search(text)
    message = text[head.end() :] if head else text
    return LogLine(message, 1, 0, level=head[1] if head else None, source=source)


def events(text: str, source: str | None = None) -> tuple[LogEvent, ...]:
    """Return what a line says by itself."""
    return recognise(line(text, source), "x.log", LogContext(), TABLE).events


def release(text: str, last: int) -> tuple[int, ...]:
    """Return a release to compare with; what is not said of it is ``last``."""
    numbers = [int(part) for part in text.split(".")]
    return (*numbers, *[last] * (3 - len(numbers)))


def claimed(versions: str) -> Iterator[tuple[int, ...]]:
    """Yield the releases in ranges such as ``2.3-2.9, 2.12`` and ``ofi 1.3-1.9``."""
    for part in versions.split(", "):
        product, _, span = part.rpartition(" ")
        first, _, end = span.partition("-")
        for each in RELEASES[product]:
            if release(first, 0) <= each <= release(end or first, 99):
                yield each


@each_example
def test_an_example_is_recognised(row: LogRow, wording: Wording) -> None:
    """Its row makes the event, of the kind and severity that it has."""
    first, *_ = [
        event
        for event in events(wording.text, wording.source)
        if event.rule == row.id and event.kind != "suspicious_interface"
    ]
    assert first.kind == (wording.kind or row.kind)
    assert first.severity is (wording.severity or row.severity)
    for name in ("device", "port", "peer", "status"):
        expected = getattr(wording, name)
        assert expected is None or getattr(first, name) == expected, name


@each_near_miss
def test_a_near_miss_is_not_this(row: LogRow, text: str) -> None:
    """A text that is much like its examples is another row's or nobody's."""
    assert row.id not in {event.rule for event in events(text, row.source)}


@each_row
def test_each_version_that_is_claimed_has_a_wording(row: LogRow) -> None:
    """The examples together cover all releases of the row and no others."""
    shown = {each for one in row.examples for each in claimed(one.version)}
    assert shown == set(claimed(row.versions))
    assert shown


@each_row
def test_a_pattern_is_held_to_the_rules_for_operators(row: LogRow) -> None:
    """No built-in pattern can take long, and each demands its anchor."""
    assert pattern_fault(row.pattern) is None
    assert demands(row.pattern, row.anchor)


@each_row
def test_a_row_is_whole(row: LogRow) -> None:
    """It has a meaning of one sentence, an example and a near miss."""
    assert row.meaning.endswith(".")
    assert row.examples
    assert row.near_misses
    assert re.fullmatch(r"[a-z][a-z0-9_]*", row.kind)


@each_row
def test_a_row_is_found_in_a_file(row: LogRow) -> None:
    """A coarse literal selects its lines, unless the row says how else it is found."""
    following = {literal: count for literal, count in COARSE if count}
    assert row.behind is None or row.behind in following
    if row.behind is None and not row.unscanned:
        for wording in row.examples:
            held = [text for text, _ in COARSE if text in wording.text]
            assert held or wording.unscanned, wording.text


@each_row
def test_a_row_that_says_it_is_not_scanned_is_not(row: LogRow) -> None:
    """What is said to be out of reach has no literal."""
    if row.unscanned:
        texts = [one.text for one in row.examples]
        assert any(not any(word in text for word, _ in COARSE) for text in texts)


@pytest.mark.parametrize("text", NOISE)
def test_what_is_printed_at_each_call_is_not_selected(text: str) -> None:
    """Or the rate of reading is lost on the bulk of a log."""
    assert [literal for literal, _ in COARSE if literal in text] == []


def test_there_is_room_for_literals_of_an_operator() -> None:
    """The built-in ones leave some of the sixteen."""
    assert len({literal for literal, _ in COARSE}) == len(COARSE) <= MOST_LITERALS - 6


def test_ids_are_unique() -> None:
    """An event names its row, and a configuration may not take the name."""
    ids = [row.id for row in RULES]
    assert len(set(ids)) == len(ids)


def test_subjects_hold_each_row_once() -> None:
    """The reference leaves none out."""
    shown = [row.id for _, rows in SUBJECTS for row in rows]
    assert sorted(shown) == sorted(row.id for row in RULES)
