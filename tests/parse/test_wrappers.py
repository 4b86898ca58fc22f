"""Each wrapper of the recorded cases and of the formats' own pages, and stacks of them."""

import json
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabricmon.parse.log_event import LogLine
from fabricmon.parse.log_told import Told
from fabricmon.parse.wrappers import strip_wrappers
from tests.parse.log_reading import case, one_line, read, read_pieces

NATIVE = (
    "node-7:235:276 [0] transport/net_ib.cc:839 NCCL WARN NET/IB : Got completion "
    "from peer 10.0.0.1<4711> with error 12, opcode 1, len 0, vendor err 129"
)
STAMP = "2026-01-05T08:00:00.500000000Z"
SECONDS = 1767600000.5
WATCHDOG = "[Rank 3] Watchdog caught collective operation timeout"


def plain(line: LogLine) -> LogLine:
    """Return a line without what only wrappers say and where it was."""
    return replace(
        line, line_number=1, offset=0, time=None, rank=None, pod=None, repeats=1
    )


PLAIN = plain(one_line(NATIVE))


@pytest.mark.parametrize(
    ("front", "field", "value"),
    [
        (f"{STAMP} stdout F ", "time", SECONDS),
        (f"{STAMP} stderr F ", "time", SECONDS),
        ("2026-01-05T09:00:00.5+01:00 stderr F ", "time", SECONDS),
        ("Jan  5 08:00:00 node-7 python[77]: ", "time", None),
        ("2026-01-05T08:00:00+0000 node-7 python[77]: ", "time", SECONDS - 0.5),
        ("Mon 2026-01-05 08:00:00 UTC node-7 python[77]: ", "time", SECONDS - 0.5),
        ("1767600000.500000 node-7 python[77]: ", "time", SECONDS),
        ("worker-0  | ", "rank", None),
        ("slurm-12.out:2026-01-05T08:00:00.5Z ", "time", SECONDS),
        ("  3: ", "rank", 3),
        ("127: ", "rank", 127),
        ("[1,12]<stdout>:", "rank", 12),
        ("[1,12]<stderr>: ", "rank", 12),
        ("[prterun-node-7-4711@1,12]<stdout>: ", "rank", 12),
        ("1,12<stddiag>:", "rank", 12),
        ("Fri Aug 11 12:31:45 2023[1,5]<stdout>:", "rank", 5),
        ("[5] ", "rank", 5),
        ("[default0]:", "rank", None),
        ("[rank118]:", "rank", 118),
        ("[rank118]: ", "rank", 118),
        ("10.88.17.34: ", "rank", None),
        ("rivhpc: ", "rank", None),
        ("(RayTrainWorker pid=77, ip=10.0.0.5) ", "rank", None),
        ("\x1b[36m(RayTrainWorker pid=77)\x1b[0m ", "rank", None),
        ("[36m(RayTrainWorker pid=77)[0m ", "rank", None),
        ("[pod/train-0/main] ", "pod", "train-0"),
        ("train-0 main \u203a ", "pod", "train-0"),
        (f"  | {STAMP} | ", "time", SECONDS),
        (f"  | {STAMP}   ", "time", SECONDS),
        ("[0m ", "rank", None),
        ("[80746] [rank5]: ", "rank", 5),
        ("rank_2.node.log:", "rank", None),
        ("./out/slurm-12.out:314:", "rank", None),
        ("> ", "rank", None),
        ("> > `", "rank", None),
        (" 2025-01-18 12:54 ", "time", None),
        ("2026-01-05 08:00:00,500 ", "time", None),
        ("2026-01-05 08:00:00,500 +0000: ", "time", SECONDS),
        ("[2026-01-05 08:00:00.500] ", "time", None),
        ("[2026-01-05T08:00:00.500Z] ", "time", SECONDS),
        ("01/05/2026 08:00:00 ", "time", None),
        ("08:00:00.123 ", "time", None),
        ("2026-01-05T08:00:00.500Z: [1,12]<stdout>:", "rank", 12),
    ],
)
def test_takes_off_each_wrapper(front: str, field: str, value: object) -> None:
    """The message and its head stay, and what the wrapper says is told."""
    line = one_line(front + NATIVE)
    assert plain(line) == PLAIN
    assert getattr(line, field) == value


@pytest.mark.parametrize(
    ("front", "source"),
    [
        ("[rank3]:[E603 17:48:01.005271823 ProcessGroupNCCL.cpp:632] ", 632),
        ("[E ProcessGroupNCCL.cpp:737] ", 737),
        ("[80746] [rank3]:[E321 02:07:08.4 ProcessGroupNCCL.cpp:607] ", 607),
        ("E0603 17:48:01.005271  4711 ProcessGroupNCCL.cpp:632] ", 632),
        (" 2025-01-18 12:54 [rank3]:[E118 04:54:22.06 ProcessGroupNCCL.cpp:616] ", 616),
    ],
)
def test_leaves_what_rules_look_for_behind_a_logger(front: str, source: int) -> None:
    """The head of PyTorch's logger goes, the rank in the message stays."""
    line = one_line(front + WATCHDOG)
    assert (line.text, line.source_line, line.level) == (WATCHDOG, source, None)


@pytest.mark.parametrize(
    "text",
    [
        "[0] misc/socket.cc:71 NCCL WARN x",
        "[0] proxy.cc:71 NCCL WARN x",
        "[C17K43:1:44548 unique id 134] ERROR collect_ports_data: device mlx5_0",
        "libfabric:45:1671204483::efa:cq:rxr_cq():243<warn> err: 20",
        "[1425] rank = 0, world_size = 2",
        "    0         1        32         8       256       256   RUNNING      OK",
        "torch.distributed.DistBackendError: NCCL error in: /a/NCCLUtils.cpp:93",
        "(total)   per node  per process    (total)  (total)",
    ],
)
def test_takes_no_message_for_a_wrapper(text: str) -> None:
    """What libraries print themselves stays whole."""
    assert strip_wrappers(text, Told()) == text


def test_honours_the_repeats_that_ray_counts() -> None:
    """The count comes off the end of the line, with Ray's advice."""
    advice = " (Ray deduplicates logs by default. Set RAY_DEDUP_LOGS=0 to disable.)"
    for end in ("", advice):
        line = one_line(f"(W pid=1) {NATIVE} [repeated 7x across cluster]{end}")
        assert (line.repeats, plain(line)) == (7, PLAIN)


def test_tells_a_process_where_no_head_does() -> None:
    """A wrapper's host and process stand in for those of a head."""
    line = one_line("(Worker pid=77, ip=10.0.0.5) Got completion with error 12")
    assert (line.pid, line.host) == (77, "10.0.0.5")
    line = one_line("Jan  5 08:00:00 node-9 python[78]: Got completion with error 12")
    assert (line.pid, line.host) == (78, "node-9")


def test_prefers_the_outer_stamp_with_a_zone() -> None:
    """A shipper's stamp with a zone counts before any without, and before inner ones."""
    inner = f"[2026-05-23 15:45:07] {NATIVE}"
    assert one_line(f"2026-01-05 08:00:00 {STAMP} {inner}").time == SECONDS
    assert one_line(f"{STAMP} 2020-01-05T08:00:00Z {NATIVE}").time == SECONDS


def test_uses_a_zone_that_is_given() -> None:
    """A date without a zone gives a time only where somebody knows the zone."""
    data = f"[2026-01-05 09:00:00.5] {NATIVE}\n".encode()
    assert read_pieces([data]).lines[0].time is None
    assert read_pieces([data], zone_seconds=3600).lines[0].time == SECONDS


def test_has_no_time_for_a_date_that_is_none() -> None:
    """A stamp of the right shape with an impossible date still comes off."""
    line = one_line(f"2026-13-45T99:00:00Z {NATIVE}")
    assert (plain(line), line.time) == (PLAIN, None)


def docker(text: str, stream: str = "stderr") -> str:
    """Return what Docker's json-file driver writes, which escapes as Go does."""
    body = json.dumps({"log": text, "stream": stream, "time": STAMP})
    body = body.replace('": "', '":"').replace('", "', '","')
    return body.replace("<", "\\u003c").replace(">", "\\u003e")


def test_opens_dockers_objects() -> None:
    """The text of a whole line has a line end in it."""
    line = one_line(docker(NATIVE + "\n"))
    assert (plain(line), line.time) == (PLAIN, SECONDS)


def test_joins_dockers_pieces() -> None:
    """A text without a line end goes on in the next object of its stream."""
    pieces = [NATIVE[:60], NATIVE[60:90], NATIVE[90:] + "\n"]
    rows = [docker(piece) for piece in pieces]
    rows.insert(1, docker("other stream\n", "stdout"))
    assert plain(one_line("\n".join(rows))) == PLAIN


def test_joins_cri_pieces_of_two_streams() -> None:
    """Pieces of one stream wait for their last one while the other goes on."""
    cut = NATIVE.index("completion") + 4
    rows = [
        f"{STAMP} stderr P {NATIVE[:cut]}",
        f"{STAMP} stdout F an NCCL line",
        f"{STAMP} stderr F {NATIVE[cut:]}",
    ]
    other, line = read("\n".join(rows).encode()).lines
    assert (other.text, plain(line)) == ("an NCCL line", PLAIN)
    assert (line.line_number, line.offset) == (1, 0)


def test_finds_an_anchor_that_a_piece_cut() -> None:
    """A literal that no physical line holds is in the joined message."""
    word = NATIVE.index("NCCL")
    rows = [
        f"{STAMP} stderr F first line",
        f"{STAMP} stderr P {NATIVE[: word + 2]}",
        f"{STAMP} stderr P {NATIVE[word + 2 : NATIVE.index('ompletion') + 3]}",
        f"{STAMP} stderr F {NATIVE[NATIVE.index('ompletion') + 3 :]}",
    ]
    line = one_line("\n".join(rows))
    assert (plain(line), line.line_number) == (PLAIN, 2)


def test_gives_out_pieces_whose_end_never_comes() -> None:
    """At the end of a file a message is what has come of it."""
    line = one_line(f"{STAMP} stderr P NCCL WARN cut o")
    assert line.text == "cut o"


def test_opens_the_journals_objects() -> None:
    """Text, octets, and the fields beside it."""
    fields = {
        "_HOSTNAME": "node-9",
        "__REALTIME_TIMESTAMP": "1767600000500000",
        "_PID": "4711",
    }
    for message in (NATIVE, list(b"\x1b[31m" + NATIVE.encode())):
        line = one_line(json.dumps(fields | {"MESSAGE": message}))
        assert (plain(line), line.time) == (PLAIN, SECONDS)
    line = one_line(json.dumps(fields | {"MESSAGE": "Got completion"}))
    assert (line.host, line.pid) == ("node-9", 4711)


def exported(message: bytes, *more: bytes) -> bytes:
    """Return an entry as `journalctl -o export` writes it."""
    head = (
        b"__CURSOR=s=1;i=2\n__REALTIME_TIMESTAMP=1767600000500000\n_HOSTNAME=node-9\n"
    )
    return head + message + b"".join(b"\n" + field for field in more) + b"\n_PID=7\n\n"


def binary(value: bytes) -> bytes:
    """Return a binary message of an entry."""
    return b"MESSAGE\n" + len(value).to_bytes(8, "little") + value


def test_reads_entries_of_the_journal() -> None:
    """Fields in any order, values with line ends in them, any number of entries."""
    ansi = b"\x1b[31m" + NATIVE.encode()
    data = exported(b"MESSAGE=" + NATIVE.encode()) + exported(binary(ansi))
    two = binary(b"Last error:\nGot completion\n" + b"x" * 10)
    whole = read(data + exported(two) + exported(b"MESSAGE=nothing"))
    first, second, third, fourth = whole.lines
    assert (plain(first), plain(second), first.time) == (PLAIN, PLAIN, SECONDS)
    assert (third.text, fourth.text) == ("Last error:", "Got completion")
    assert (third.host, third.pid, first.line_number) == ("node-9", 7, 4)


def test_joins_lines_that_the_journal_parted() -> None:
    """A line that was too long for the journal goes on in the next entry."""
    text = NATIVE.encode()
    data = exported(b"MESSAGE=" + text[:50], b"_LINE_BREAK=line-max")
    (line,) = read(data + exported(b"MESSAGE=" + text[50:])).lines
    assert plain(line) == PLAIN


def test_opens_a_shippers_object() -> None:
    """Fluent Bit adds what Kubernetes knows."""
    line = one_line(
        json.dumps(
            {
                "log": NATIVE,
                "time": STAMP,
                "kubernetes": {"pod_name": "train-0", "namespace_name": "ml"},
            }
        )
    )
    assert (line.pod, line.namespace, line.time) == ("train-0", "ml", SECONDS)


@pytest.mark.parametrize(
    "text",
    ['{"log": "x', '{"log":' + "[" * 5000, '{"a": 1}', '{"log": 1}', '{"log": []}'],
)
def test_leaves_objects_that_hold_no_text(text: str) -> None:
    """Broken, deep and foreign JSON stays as it is."""
    assert strip_wrappers(text, Told()) == text


def test_follows_an_exception_inside_one_object() -> None:
    """Lines within one message are lines: the one behind is wanted too."""
    lines = read(docker("Last error:\nbody of it\nnot this\n").encode())
    assert lines.texts == ["Last error:", "body of it"]


def test_takes_wrappers_off_recorded_logs() -> None:
    """Ranks, times and hosts of the public cases."""
    assert [line.rank for line in read(case(3)).lines] == [12, 12, 14, 14]
    assert read(case(3)).lines[0].time == 1615710171.417
    assert {line.rank for line in read(case(42)).lines} == {0}
    assert {line.rank for line in read(case(28)).lines} == {13}
    assert [line.rank for line in read(case(45)).lines] == [0, 1, 1, 2, 0]
    assert {line.host for line in read(case(21)).lines if line.pid} == {
        "ip-172-20-0-104"
    }
    assert {line.host for line in read(case(27)).lines} == {"st-lab-10-88-17-34"}
    assert [line.rank for line in read(case(39)).lines] == [0, 4, 0, 3]


Wrap = Callable[[str], str]
WRAPS: tuple[Wrap, ...] = (
    lambda text: f"{STAMP} stdout F {text}",
    lambda text: docker(text + "\n"),
    lambda text: json.dumps(
        {"MESSAGE": text, "__REALTIME_TIMESTAMP": "1767600000500000"}
    ),
    lambda text: f"Jan  5 08:00:00 node-1 python[77]: {text}",
    lambda text: f"  3: {text}",
    lambda text: f"[1,12]<stdout>:{text}",
    lambda text: f"[prterun-n-1@1,12]<stderr>: {text}",
    lambda text: f"Fri Aug 11 12:31:45 2023[1,0]<stdout>:{text}",
    lambda text: f"[default3]:{text}",
    lambda text: f"[rank12]:{text}",
    lambda text: f"\x1b[36m(Worker pid=9, ip=10.0.0.9)\x1b[0m {text}",
    lambda text: f"[pod/train-0/main] {text}",
    lambda text: f"train-0 main \u203a {text}",
    lambda text: f"  | {STAMP} | {text}",
    lambda text: f"slurm-12.out:{text}",
    lambda text: f"> {text}",
    lambda text: f"2026-01-05 08:00:00,123 {text}",
    lambda text: f"[2026-01-05 08:00:00] {text}",
    lambda text: f"[0m {text}",
)


@given(st.lists(st.sampled_from(WRAPS), max_size=6))
def test_takes_off_stacks_of_wrappers(stack: list[Wrap]) -> None:
    """In any order and number the same message is left."""
    text = NATIVE
    for wrap in stack:
        text = wrap(text)
    assert plain(one_line(text)) == PLAIN


@given(st.text(max_size=300))
def test_never_fails_on_any_text(text: str) -> None:
    """Any text gives a text that encodes."""
    stripped = strip_wrappers(text, Told())
    assert stripped is not None
    assert stripped.encode("utf-8", "surrogatepass") is not None
