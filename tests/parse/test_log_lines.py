"""Lines that hold an anchor out of a file in pieces: cuts, bounds, numbers, follow-ups."""

import json
import random
import time
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fabricmon.parse.log_lines import (
    MOST_ANCHORS,
    MOST_LINE_OCTETS,
    START,
    Anchors,
    Carry,
    read_lines,
)
from fabricmon.parse.log_needles import line_starts
from tests.parse.log_reading import ANCHORS, NCCL, case, read, read_pieces
from tests.parse.test_wrappers import NATIVE, STAMP, docker, exported

CASES = sorted(NCCL.glob("*.log"))
MEGABYTE = 1_000_000
INFO = "gpu-node-007:2007:3083 [6] NCCL INFO Channel 31/0 : 14[6] -> 293[6] via P2P"


def cut(data: bytes, places: list[int]) -> list[bytes]:
    """Return a file cut at some places."""
    ends = sorted({place % (len(data) + 1) for place in places} | {len(data)})
    return [data[begin:end] for begin, end in zip([0, *ends], ends, strict=False)]


def as_cri(lines: list[str]) -> str:
    """Return lines as a container's runtime writes them, some in pieces."""
    rows = []
    for number, line in enumerate(lines):
        begin = 7 if number % 3 == 0 else 0
        if begin:
            rows.append(f"{STAMP} stdout P {line[:begin]}")
        rows.append(f"{STAMP} stdout F {line[begin:]}")
    return "\n".join(rows)


def as_docker(lines: list[str]) -> str:
    """Return lines as Docker writes them, some without an end."""
    return "\n".join(
        docker(line + "\n" * (number % 3 > 0)) for number, line in enumerate(lines)
    )


def as_journal(lines: list[str]) -> str:
    """Return lines as the journal exports them."""
    return b"".join(exported(b"MESSAGE=" + line.encode()) for line in lines).decode()


SHAPES: tuple[Callable[[list[str]], str], ...] = (
    "\n".join,
    "\r\n".join,
    "\r".join,
    as_cri,
    as_docker,
    as_journal,
)
LINE = st.one_of(
    st.sampled_from([NATIVE, INFO, "", " ", "Last error:", "body", "\x00NCCL \x00"]),
    st.text(st.characters(exclude_characters="\r\n", codec="utf-8"), max_size=40),
)


@given(
    st.lists(LINE, max_size=12),
    st.sampled_from(SHAPES),
    st.lists(st.integers(0, 10_000), max_size=8),
)
def test_gives_the_same_for_any_cuts(
    lines: list[str], shape: Callable[[list[str]], str], places: list[int]
) -> None:
    """How a file comes in pieces makes no difference, in no wrapping."""
    data = shape(lines).encode()
    assert read_pieces(cut(data, places)) == read(data)


@given(st.binary(max_size=400), st.lists(st.integers(0, 400), max_size=6))
def test_gives_the_same_for_any_octets(data: bytes, places: list[int]) -> None:
    """Octets that are no text at all are read without failing, in any pieces."""
    noise = data.replace(b"N", b"NCCL INFO ")
    assert read_pieces(cut(noise, places)) == read(noise)


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem[:12])
def test_gives_the_same_octet_by_octet(path: object) -> None:
    """Recorded logs, one octet at a time."""
    data = case(int(str(path).rsplit("/", 1)[1][:2]))
    assert read_pieces(data[at : at + 1] for at in range(len(data))) == read(data)


@given(st.integers(0, 3), st.lists(st.integers(0, 300_000), max_size=5))
@settings(max_examples=25, deadline=None)
def test_cuts_long_lines_the_same_everywhere(kind: int, places: list[int]) -> None:
    """What is kept and skipped of a long line does not depend on the pieces."""
    filler = [b"x", b"a:1:2 ", b"NCCL INFO ", b"<"][kind]
    long = filler * (150_000 // len(filler))
    data = b"first NCCL \n" + long + b"\nlast NCCL \n" + long
    assert read_pieces(cut(data, places)) == read(data)


def test_selects_lines_that_hold_an_anchor() -> None:
    """Numbers and offsets are those of the file, all lines are counted."""
    data = f"one\ntwo\n{NATIVE}\n\nthree\n{INFO}".encode()
    reading = read(data, Anchors.of([b"completion"]))
    (line,) = reading.lines
    assert (line.line_number, line.offset) == (3, data.index(NATIVE.encode()))
    assert reading.lines_seen == 6


def test_gives_lines_that_are_wanted_behind_an_anchor() -> None:
    """Blank lines do not count, and an anchor among them begins anew."""
    anchors = Anchors.of([b"Last error", b"other"], following={b"Last error": 2})
    data = (
        b"no\nLast error:\n\none\nother\ntwo\nthree\nLast error: x\nLast error: y\nz\n"
    )
    texts = ["Last error:", "one", "other", "Last error: x", "Last error: y", "z"]
    assert read(data, anchors).texts == texts


def test_gives_lines_behind_mixed_ones() -> None:
    """Two processes' lines that alternate each have their own line behind."""
    anchors = Anchors.of([b"Last error"], following={b"Last error": 1})
    data = b"a: Last error:\nb: Last error:\na: one\nb: two\nthree\n"
    assert read(data, anchors).texts[2:] == ["a: one", "b: two"]


def test_gives_the_body_behind_an_exception() -> None:
    """PyTorch quotes the last warning on the next line."""
    texts = read(
        case(35), Anchors.of([b"Last error"], following={b"Last error": 1})
    ).texts
    assert texts[0] == "Last error:"
    assert texts[1].startswith("Failed to bind NVLink SHARP")
    assert len(texts) == 2


def test_waits_for_the_end_of_a_line() -> None:
    """A line without an end is none yet; at the end of the file it is one."""
    batch = read_lines(START, NATIVE.encode(), ANCHORS)
    assert (batch.lines, batch.lines_seen, batch.carry.waits) == ((), 0, True)
    batch = read_lines(batch.carry, b"", ANCHORS, final=True)
    assert (len(batch.lines), batch.lines_seen, batch.carry.waits) == (1, 1, False)


def test_begins_where_it_is_told() -> None:
    """A follower that kept two numbers goes on with the line that had not ended."""
    data = f"{INFO}\n{NATIVE}\n".encode()
    first = read_lines(START, data[:-9], ANCHORS).carry
    again = Carry(first.line_start, first.lines)
    rest = read_lines(again, data[first.line_start :], ANCHORS)
    (line,) = rest.lines
    assert (line.line_number, line.offset) == (2, len(INFO) + 1)


def test_never_changes_a_carry() -> None:
    """The same piece may be read twice from the same carry."""
    rows = [f"{STAMP} stderr P Slurm NCCL one", f"{STAMP} stdout P 2026-01-05 NCCL x"]
    carry = read_lines(START, ("\n".join(rows) + "\n").encode(), ANCHORS).carry
    first = read_lines(carry, b"", ANCHORS, final=True)
    assert first.lines
    assert read_lines(carry, b"", ANCHORS, final=True) == first


def test_keeps_the_beginning_of_a_long_line() -> None:
    """An anchor near its begin counts, one behind the bound does not, skips are told."""
    begin = b"NCCL INFO begin "
    long = begin + b"x" * (2 * MEGABYTE) + b"NCCL WARN end"
    reading = read(long + b"\n" + NATIVE.encode() + b"\n")
    assert [line.line_number for line in reading.lines] == [1, 2]
    assert len(reading.lines[0].text) <= MOST_LINE_OCTETS
    assert reading.skipped_bytes == len(long) - MOST_LINE_OCTETS
    assert (reading.skipped_lines, reading.lines_seen) == (1, 2)


@given(st.lists(st.integers(0, 200_000), max_size=4))
@settings(max_examples=10, deadline=None)
def test_cuts_long_fields_of_the_journal_the_same_everywhere(places: list[int]) -> None:
    """A message that is too long, in an entry among others."""
    long = exported(b"MESSAGE=NCCL INFO " + b"x" * 150_000)
    data = exported(b"MESSAGE=NCCL one") + long + exported(b"MESSAGE=NCCL INFO last")
    reading = read(data)
    assert read_pieces(cut(data, places)) == reading
    assert (len(reading.lines), reading.skipped_lines) == (3, 1)
    assert reading.skipped_bytes > 80_000


def test_holds_no_more_than_a_line_between_pieces() -> None:
    """A line without an end does not pile up."""
    carry = START
    for _ in range(8):
        batch = read_lines(carry, b"x" * 50_000, ANCHORS)
        carry = batch.carry
        assert len(carry.tail) <= MOST_LINE_OCTETS
    assert read_lines(carry, b"\nNCCL INFO on\n", ANCHORS).lines[0].text == "on"


def test_holds_no_more_than_a_message_of_pieces() -> None:
    """Pieces whose last one never comes are given out when they are too long or old."""
    piece = f"{STAMP} stdout P NCCL INFO {'x' * 16_000}\n".encode()
    reading = read(piece * 20)
    assert 4 <= len(reading.lines) <= 80
    lone = f"{STAMP} stdout P NCCL INFO lone\n".encode()
    batch = read_lines(START, lone + f"{STAMP} stderr F x\n".encode() * 300, ANCHORS)
    assert [line.text for line in batch.lines] == ["lone"]
    assert not batch.carry.pieces


@pytest.mark.parametrize(
    "filler",
    [
        *("x", " ", "a:1:2 ", "[1] NCCL INFO ", "<", "1.", "[[((", "fe80::"),
        *("NCCL WARN ", "h:1:2 [0] NCCL INFO a", "(pid=1 ip=", "2026-01-05T08:00:00Z "),
        *('{"log":"', "\x1b[", "a.log:", "host: ", "[rank1]:", "\x00", "::ffff:<"),
    ],
)
def test_spends_little_on_a_hostile_line(filler: str) -> None:
    """A megabyte of anything takes a small part of a second."""
    long = (filler * (MEGABYTE // len(filler)) + "\n").encode()
    lines = (filler * 90 + " NCCL WARN x\n") * 20
    begun = time.process_time()
    read(long + lines.encode())
    assert time.process_time() - begun < 0.5


@pytest.mark.parametrize(
    "octets",
    [b"\xff\xfe", b"\x80", b"\xed\xa0\x80", b"\xe2\x80\xa8", b"\x00", b"\xc0\xaf"],
)
def test_gives_text_that_can_be_sent(octets: bytes) -> None:
    """Octets that are no UTF-8 are replaced, not dropped, and the rest is read."""
    line = read(b"n1:1:2 [0] NCCL WARN a" + octets + b"b completion\n").lines[0]
    assert json.loads(json.dumps(line.text, ensure_ascii=False).encode()) == line.text
    assert line.text.startswith("a")
    assert line.text.endswith("b completion")


def test_joins_characters_that_a_piece_cut() -> None:
    """A runtime cuts at octets, also within a character."""
    word = "NCCL INFO é".encode()
    head = f"{STAMP} stdout ".encode()
    data = head + b"P " + word[:-1] + b"\n" + head + b"F " + word[-1:] + b" NCCL end\n"
    assert read(data).texts[0].startswith("é")


@pytest.mark.parametrize("end", ["\r\n", "\r", "\r\r\n", "\n\n"])
def test_knows_all_line_ends(end: str) -> None:
    """The texts are the same, whatever ends a line."""
    lines = [INFO, "Last error:", "body", NATIVE, "else"]
    usual = read("\n".join(lines).encode())
    assert len(usual.lines) == 4
    assert read(end.join(lines).encode()).texts == usual.texts


def test_folds_case_where_it_is_told() -> None:
    """An anchor then matches in any letters."""
    data = b"one\nan ERROR here\nan Error there\n"
    assert len(read(data, Anchors.of([b"Error"])).lines) == 1
    assert len(read(data, Anchors.of([b"eRRor"], fold_case=True)).lines) == 2


@pytest.mark.parametrize(
    ("literals", "following"),
    [
        ([], {}),
        ([str(number).encode() for number in range(MOST_ANCHORS + 1)], {}),
        ([b""], {}),
        ([b"a\nb"], {}),
        ([b"\xff"], {}),
        ([b"a"], {b"b": 1}),
    ],
)
def test_refuses_anchors_that_cannot_be(
    literals: list[bytes], following: dict[bytes, int]
) -> None:
    """Too many, none, empty, more than a line, no text, or counts for another."""
    with pytest.raises(ValueError, match=r"anchor|UTF-8|utf-8"):
        Anchors.of(literals, following=following)


@given(
    needles=st.lists(
        st.text("abWy ", min_size=1, max_size=4).map(str.encode),
        min_size=1,
        max_size=8,
        unique=True,
    ),
    seed=st.integers(0, 1000),
    returns=st.booleans(),
)
@settings(max_examples=30, deadline=None)
def test_finds_the_same_lines_as_a_plain_search(
    needles: list[bytes], seed: int, *, returns: bool
) -> None:
    """Rare octets are a shortcut, not another answer."""
    rng = random.Random(seed)
    weights = rng.choice([(90, 8, 1, 1), (400, 40, 1, 0), (1, 1, 1, 1)])
    lines = [
        "".join(rng.choices("a bW", weights, k=40)) + rng.choice(["", "y", "Wy"])
        for _ in range(2500)
    ]
    data = rng.choice(["\n", "\r"]).join(lines).encode()
    ends = (b"\n", b"\r") if returns else (b"\n",)
    starts, begin = set(), 0
    for at in range(len(data) + 1):
        if at == len(data) or data[at : at + 1] in ends:
            if any(needle in data[begin:at] for needle in needles):
                starts.add(begin)
            begin = at + 1
    assert line_starts(data, 0, len(data), needles, returns=returns) == starts
