"""Heads of every version, sites' own, none, and lines that were glued or torn."""

import pytest

from fabricmon.parse.log_event import LogLine
from fabricmon.parse.log_head import MOST_MESSAGES, messages
from fabricmon.parse.log_told import Told
from tests.parse.log_reading import case, one_line, read, read_pieces


def parsed(text: str) -> list[LogLine]:
    """Return the messages of one line without wrappers."""
    return messages(text, Told(1, 0))


def only(text: str) -> LogLine:
    """Return the message of a line that has one."""
    (line,) = parsed(text)
    return line


def facts(line: LogLine) -> tuple[object, ...]:
    """Return what a head says."""
    return line.host, line.pid, line.thread, line.gpu, line.source, line.source_line


@pytest.mark.parametrize(
    ("text", "level", "expected"),
    [
        ("h1:12:34 [5] INFO x", "INFO", ("h1", 12, 34, 5, None, None)),
        ("h1:12:34 [5] a.cu:7 WARN x", "WARN", ("h1", 12, 34, 5, "a.cu", 7)),
        ("h1:12:34 [5] NCCL INFO x", "INFO", ("h1", 12, 34, 5, None, None)),
        ("h1:12:34 [-1] a.cc:7 NCCL WARN x", "WARN", ("h1", 12, 34, -1, "a.cc", 7)),
        ("h1:12:34 [5] a.h 7 NCCL WARN x", "WARN", ("h1", 12, 34, 5, "a.h", 7)),
        ("h1:12:34 [5] a.cc:7 (f) NCCL WARN x", "WARN", ("h1", 12, 34, 5, "a.cc", 7)),
        ("h1:12:34 [5] 1.25 f:7 NCCL TRACE x", "TRACE", ("h1", 12, 34, 5, "f", 7)),
        ("h1:12:34 NCCL CALL x", "CALL", ("h1", 12, 34, None, None, None)),
        (
            "h1.site:12 [5] a.c:7 NCCL WARN x",
            "WARN",
            ("h1.site", 12, None, 5, "a.c", 7),
        ),
        ("[5] a.cc:7 NCCL WARN x", "WARN", (None, None, None, 5, "a.cc", 7)),
        ("a.cc:7 NCCL WARN x", "WARN", (None, None, None, None, "a.cc", 7)),
        ("NCCL INFO x", "INFO", (None, None, None, None, None, None)),
        (
            "04-11-53-180:1:2 [0] NCCL INFO x",
            "INFO",
            ("04-11-53-180", 1, 2, 0, None, None),
        ),
        ("8h200-3:1:2 [0] NCCL INFO x", "INFO", ("8h200-3", 1, 2, 0, None, None)),
    ],
)
def test_says_what_a_head_of_any_version_says(
    text: str, level: str, expected: tuple[object, ...]
) -> None:
    """Host, process, thread, device, file and line come out of each shape."""
    line = only(text)
    assert (line.text, line.level, facts(line)) == ("x", level, expected)


def test_knows_a_head_without_a_message() -> None:
    """Up to 2.6 the library wrote that it aborts, and nothing more."""
    line = only("h1:12:34 [5] init.cu:7 NCCL ABORT")
    assert (line.level, line.text, line.source) == ("ABORT", "", "init.cu")


def test_takes_a_signature_for_the_source() -> None:
    """The OFI plug-in prints its functions with blanks, commas and brackets."""
    *_, line = read(case(30)).lines
    assert line.source_line == 4909
    assert line.source is not None
    assert line.source.startswith("accept_wait_for_connection(nccl_net_ofi_rdma_dom")
    assert line.text.startswith("NET/OFI Unexpected number of remote rails")


def test_takes_an_absolute_path() -> None:
    """RCCL is built with whole paths."""
    line = read(case(44)).lines[0]
    assert line.source == "/usr/src/debug/rccl/build/hipify/src/proxy.cc"


def test_parts_glued_lines_and_their_host() -> None:
    """The end of one message is no beginning of the next one's host."""
    first, second, third, fourth = read(case(30)).lines[:4]
    assert first.text == "cudaDriverVersion 12080"
    assert second.text == "NCCL_SOCKET_IFNAME set by environment to enp"
    assert {line.host for line in (first, second)} == {"h100-st-p548xlarge-147"}
    assert third.text == "Bootstrap: Using enp71s0:10.138.84.29<0>"
    assert (fourth.line_number, third.line_number) == (2, 2)


def test_parts_a_stamped_head() -> None:
    """The stamp of a glued line belongs to its head."""
    first, second = read(
        b"a:1:2 [0] NCCL INFO one[2026-05-23 15:45:07] b:3:4 [1] NCCL WARN two\n"
    ).lines
    assert (first.text, second.text, second.host) == ("one", "two", "b")


@pytest.mark.parametrize("end", ["] ", "]_"])
def test_takes_the_end_of_a_stamp_for_no_host(end: str) -> None:
    """Formats of one's own join stamp and head: one process stays one, glued too."""
    head = "n1:7:8 [0] NCCL WARN"
    stamp = f"[2026-01-05_12:00:00.250000{end}"
    data = f"{stamp}{head} a\n{head} b{stamp}{head} c\n".encode()
    first, second, third = read_pieces([data], zone_seconds=0).lines
    assert {line.host for line in (first, second, third)} == {"n1"}
    assert [line.text for line in (first, second, third)] == ["a", "b", "c"]
    assert first.time == 1767614400.25


def test_parts_a_stamp_without_brackets_from_the_host() -> None:
    """Also where only ``_`` stands between them."""
    data = b"2026-01-05_12:00:00.250000_n1:7:8 [0] NCCL WARN a\n"
    (line,) = read_pieces([data], zone_seconds=0).lines
    assert (line.host, line.time) == ("n1", 1767614400.25)


def test_mines_a_sites_own_head() -> None:
    """Rank, process and source stand in brackets of a fork."""
    line = read(case(18)).lines[0]
    assert facts(line) == ("r07kd2195", 1279696, None, None, "misc/socket.cc", 586)
    assert (line.rank, line.level) == (211, "WARN")
    assert line.text == "socketPollConnect poll() returned 1, no POLLOUT events"


def test_keeps_text_without_any_head() -> None:
    """Prefixless text is a message as it stands, without a level."""
    line = one_line(b"Got completion ... status=IBV_WC_REM_INV_REQ_ERR(9)\n")
    assert (line.level, line.text[:14]) == (None, "Got completion")


def test_takes_no_stamp_for_a_process() -> None:
    """Times have colons as well."""
    for stamp in ("2025-01-18T12:54:22", "12:54:22"):
        line = one_line(f"{stamp} [0] a.cc:3 NCCL WARN x")
        assert (line.host, line.gpu, line.source) == (None, 0, "a.cc")


def test_mends_a_torn_warning() -> None:
    """What another process wrote into a WARN is taken out of its middle."""
    lines = read(
        b"a:1:2 [0] x.cc:3 NCCL WARN NET/IB : Got completion b:3:4 [1] NCCL INFO other\n"
        b"from peer 10.0.0.1<5> with error 12\n"
        b"a:1:2 [0] NCCL INFO next\n"
    ).lines
    assert [line.text for line in lines] == [
        "NET/IB : Got completion from peer 10.0.0.1<5> with error 12",
        "other",
        "next",
    ]
    assert lines[0].host == "a"


def test_mends_nothing_where_the_next_line_has_a_head() -> None:
    """Two lines that were only glued stay what they are."""
    lines = read(
        b"a:1:2 [0] x.cc:3 NCCL WARN one b:3:4 [1] NCCL INFO two\n"
        b"a:1:2 [0] NCCL INFO three\n"
    )
    assert lines.texts == ["one", "two", "three"]


def test_knows_hosts_that_were_seen_before() -> None:
    """The last word of a message is not the beginning of another host's name."""
    lines = read(
        b"b-2:3:4 [1] NCCL INFO first\n"
        b"a:1:2 [0] x.cc:3 NCCL WARN vendor err 129b-2:3:4 [1] NCCL INFO two\n"
    ).lines
    assert [line.text for line in lines] == ["first", "vendor err 129", "two"]
    assert lines[2].host == "b-2"


def test_takes_no_longer_name_for_a_known_one() -> None:
    """A host whose name ends like another's is itself where a line begins."""
    lines = read(b"n1:1:2 [0] NCCL INFO a\ngpu-n1:1:2 [0] 1.5 f:2 NCCL TRACE b\n").lines
    assert [line.host for line in lines] == ["n1", "gpu-n1"]


def test_drops_what_a_site_puts_in_front() -> None:
    """Text before a bare head is no message."""
    line = one_line("?? any site ?? NCCL WARN x")
    assert (line.text, line.level, facts(line)) == ("x", "WARN", (None,) * 6)


def test_reads_the_rest_of_a_head_that_was_cut() -> None:
    """A line end in the middle of a head costs the process, not the message."""
    (line,) = read(b"node7:12\n3:456 [3] x.cc:5 NCCL WARN Call to connect\n").lines
    assert (line.text, line.gpu, line.source) == ("Call to connect", 3, "x.cc")


def test_parts_a_line_only_so_often() -> None:
    """A line of heads alone ends in one message."""
    assert len(parsed("[1] NCCL INFO " * 5000)) == MOST_MESSAGES
