"""Lines of recorded logs, one by one, and what earlier lines of a process add."""

import json
import re
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fabricmon.config import LogRule
from fabricmon.parse.log_event import LogEvent, LogLine, LogSeverity
from fabricmon.parse.nccl import EVERY_LINE, LogContext, RuleTable, recognise
from fabricmon.parse.nccl_codes import errno_number
from fabricmon.parse.nccl_context import MOST_NICS, MOST_PROCESSES
from fabricmon.parse.nccl_rules import COARSE, MOST_LITERALS, RULES
from fabricmon.parse.nccl_table import coarse_literals
from fabricmon.parse.pattern_effort import MOST_TEXT

DATA = Path(__file__).parent.parent / "data" / "nccl"
CASES = sorted(DATA.glob("*.json"))
TABLE = RuleTable.of()
HEAD = re.compile(
    r"(?P<host>[A-Za-z0-9][\w.-]*):(?P<pid>\d+):(?P<tid>\d+) \[(?P<gpu>\d+)\] "
    r"(?:(?P<src>\S.*?)[: ]\d+ (?:\(\w+\) )?)?NCCL (?P<level>INFO|WARN) (?P<text>.*)"
)
BARE = re.compile(r"NCCL (?P<level>INFO|WARN) (?P<text>.*)")
INFO, WARNING = LogSeverity.INFO, LogSeverity.WARNING
ERROR, CRITICAL = LogSeverity.ERROR, LogSeverity.CRITICAL


@dataclass(slots=True)
class Told:
    """A log that is being told line by line."""

    context: LogContext = field(default_factory=LogContext)
    table: RuleTable = TABLE

    def line(self, line: LogLine) -> tuple[LogEvent, ...]:
        """Return what a line says."""
        found = recognise(line, "x.log", self.context, self.table)
        self.context = found.context
        return found.events

    def __call__(
        self, text: str, level: str | None = "WARN", pid: int | None = 7
    ) -> tuple[LogEvent, ...]:
        """Return what a message of a process says."""
        return self.line(LogLine(text, 1, 0, level=level, host="n1", pid=pid, thread=8))

    def one(
        self, text: str, level: str | None = "WARN", pid: int | None = 7
    ) -> LogEvent:
        """Return the one event of a message."""
        (event,) = self(text, level, pid)
        return event


def unwrapped(data: str) -> Iterator[LogLine]:
    """Yield the lines of a log out of whatever stands before NCCL's head."""
    glued = re.sub(r"(?<=\S)(?=[\w-]+:\d+:\d+ \[\d+\] NCCL INFO)", "\n", data)
    for number, raw in enumerate(glued.split("\n"), 1):
        text = re.sub(r"^.*<std(?:out|err)>:|^\[rank\d+\]:", "", raw)
        head = HEAD.search(text)
        bare = head or BARE.search(text)
        if head:
            yield LogLine(
                head["text"],
                number,
                0,
                level=head["level"],
                host=head["host"],
                pid=int(head["pid"]),
                thread=int(head["tid"]),
                source=head["src"],
            )
        else:
            level = bare["level"] if bare else None
            yield LogLine(bare["text"] if bare else text, number, 0, level=level)


def holds(expected: dict[str, Any], event: LogEvent) -> bool:
    """Whether an event says what is expected of it, as far as one line can."""
    status = expected["status"]
    number = errno_number(str(status))
    same = status is None or event.status in {status, number}
    if event.kind in {"unclassified_warn", "net_selected"}:
        same = True
    return (
        event.kind == expected["kind"]
        and same
        and all(
            expected[name] is None or getattr(event, name) == expected[name]
            for name in ("device", "port", "peer")
        )
    )


@pytest.mark.parametrize("case", CASES, ids=lambda path: path.stem)
def test_a_recorded_log_yields_its_events_line_by_line(case: Path) -> None:
    """Each expected event is one line's, and no line invents a kind."""
    sidecar = json.loads(case.read_text(encoding="utf-8"))
    told = Told()
    data = case.with_suffix(".log").read_text(encoding="utf-8")
    events = [event for line in unwrapped(data) for event in told.line(line)]
    for expected in sidecar["expected"]:
        assert any(holds(expected, event) for event in events), expected
    kinds = {each["kind"] for each in sidecar["expected"]}
    kinds.update(sidecar.get("allowed", ()))
    invented = [each for each in events if each.severity is not INFO]
    assert [each.kind for each in invented if each.kind not in kinds] == []


def test_a_completion_keeps_all_that_its_tail_says() -> None:
    """Also where the remote address is glued to its name."""
    event = Told().one(
        "NET/IB : Got completion from peer 10.1.2.3<54310> with status=12 opcode=0 len=0"
        " vendor err 129 (Recv) localGid fd42::76 remoteGidsfd42::70 hca mlx5_3"
    )
    assert (event.peer, event.peer_port, event.device) == ("10.1.2.3", 54310, "mlx5_3")
    assert event.severity is CRITICAL
    assert event.cause == "transport_retry_exceeded"
    said = {each.name: each.value for each in event.fields}
    assert said == {
        "opcode": 0,
        "length": 0,
        "vendor_err": 129,
        "request": "Recv",
        "local_gid": "fd42::76",
        "remote_gid": "fd42::70",
        "status_name": "RETRY_EXC",
    }


def test_what_a_log_does_not_say_is_not_invented() -> None:
    """The oldest wording has neither peer nor device."""
    event = Told().one("NET/IB : Got completion with error 4, opcode 1, vendor err 81")
    assert (event.device, event.port, event.peer, event.rank) == (None,) * 4
    assert event.cause == "gpu_direct_acs"


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("Call to ibv_modify_qp failed with error Invalid argument", "gid_or_mtu"),
        ("Call to ibv_modify_qp failed with error No such device", "device_gone"),
        ("Call to ibv_modify_qp failed", None),
        ("Call to ibv_reg_mr failed with error Cannot allocate memory", "memory_limit"),
        ("Call to ibv_create_qp failed", None),
        ("Connect to 10.0.0.1<1> failed : No route to host", "routing_unreachable"),
        ("Connect to 10.0.0.1<1> failed : Connection refused", None),
        ("Call to recv failed : Connection reset by peer", "tcp_reset"),
    ],
)
def test_a_cause_is_what_the_errno_proves(text: str, cause: str | None) -> None:
    """And nothing where it proves none."""
    assert Told().one(text).cause == cause


def test_sockets_after_a_device_that_failed_are_critical() -> None:
    """RDMA was there to be used."""
    told = Told()
    told("NET/IB : Unable to open device mlx5_0")
    no_device = told.one("NET/IB : No device found.", "INFO")
    told("NET/Socket : Using [0]eth0:10.0.0.1<0>", "INFO")
    event = told.one("Using network Socket", "INFO")
    assert (no_device.kind, no_device.severity) == ("ib_no_device", CRITICAL)
    assert (event.kind, event.severity) == ("net_fallback_socket", CRITICAL)
    assert (event.device, event.cause) == ("eth0", "silent_slowdown")


def test_sockets_alone_are_a_warning() -> None:
    """The log does not say whether there was anything better."""
    told = Told()
    assert told.one("NET/IB : No device found.", "INFO").severity is INFO
    event = told.one("Using network Socket", "INFO")
    assert (event.severity, event.cause) == (WARNING, None)


def test_another_process_is_judged_by_what_it_said_itself() -> None:
    """Many processes share a file."""
    told = Told()
    told("NET/IB : Unable to open device mlx5_0", pid=7)
    assert told.one("Using network Socket", "INFO", pid=9).severity is WARNING


def test_channels_over_sockets_are_news_only_where_nothing_said_so_before() -> None:
    """The network's name is said once, channels a hundred times."""
    channel = "Channel 00 : 1[0] -> 0[0] [receive] via NET/Socket/0"
    told = Told()
    first = told.one(channel, "INFO")
    assert (first.kind, first.severity) == ("channel_via_socket", WARNING)
    told("Using network Socket", "INFO")
    later = told.one(channel, "INFO")
    assert (later.severity, later.root) == (INFO, False)


def test_a_channel_names_the_nic_that_init_lines_told() -> None:
    """The number is the library's own: only its list says whose it is."""
    told = Told()
    channel = "Channel 00/0 : 1[0] -> 9[0] [send] via NET/IB/1/GDRDMA"
    assert told.one(channel, "INFO").device == "1"
    nics = told(
        "NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_3:2/IB/SHARP [RO]; OOB ib0:10.0.0.1<0>",
        "INFO",
    )
    assert [(each.device, each.port) for each in nics] == [("mlx5_0", 1), ("mlx5_3", 2)]
    assert [each.field("sharp") for each in nics] == [0, 1]
    event = told.one(channel, "INFO")
    assert (event.device, event.port, event.field("nic")) == ("mlx5_3", 2, "1")


def test_merged_nics_are_listed_one_by_one() -> None:
    """They share the number that channels name."""
    nics = Told()(
        "NET/IB : Using [0]={[0] mlx5_0:1/RoCE, [1] mlx5_1:1/RoCE} [1]={[0] mlx5_2:1/RoCE"
        "} [RO]; OOB eth0:10.0.0.1<0>",
        "INFO",
    )
    named = [(each.field("nic"), each.device) for each in nics]
    assert named == [("0", "mlx5_0"), ("0", "mlx5_1"), ("1", "mlx5_2")]


def test_data_through_host_memory_is_a_warning_where_gpu_direct_is_on() -> None:
    """The library said that it works for this NIC, and then does not use it."""
    told = Told()
    told("NET/IB : Using [0]mlx5_0:1/IB [RO]; OOB ib0:10.0.0.1<0>", "INFO")
    told("NET/IB : GPU Direct RDMA Enabled for HCA 0 'mlx5_0'", "INFO")
    channel = "Channel 00/0 : 1[0] -> 9[0] [send] via NET/IB/0"
    assert told.one(f"{channel}/GDRDMA", "INFO").severity is INFO
    event = told.one(channel, "INFO")
    assert (event.severity, event.cause) == (WARNING, "gdr_not_used")


def test_proxy_errors_after_a_gpu_failed_are_consequences() -> None:
    """The network is innocent."""
    told = Told()
    error = (
        "[Proxy Service 0] Failed to execute operation Connect from rank 0, retcode 3"
    )
    assert told.one(error).severity is ERROR
    told("Cuda failure 'invalid argument'")
    event = told.one(error)
    assert (event.severity, event.cause, event.root) == (INFO, "consequence", False)


def test_a_gpu_error_of_nvls_is_told_by_its_file() -> None:
    """Before 2.27 the text is that of any GPU error."""
    line = LogLine(
        "Cuda failure 1 'invalid argument'", 1, 0, "WARN", source="transport/nvls.cc"
    )
    (event,) = Told().line(line)
    assert event.kind == "nvls_error"


def test_a_connection_closed_by_this_very_host_is_a_consequence() -> None:
    """It was a thread of the same process."""
    told = Told()
    own = told.one("socketProgress: Connection closed by remote peer n1<41009>")
    other = told.one("socketProgress: Connection closed by remote peer n2<41009>")
    assert (own.severity, own.root) == (INFO, False)
    assert (other.severity, other.root) == (ERROR, True)


def test_an_interface_of_containers_is_suspicious() -> None:
    """The others cannot reach it."""
    text = "Bootstrap : Using [0]ens5:172.20.0.104<0> [1]veth81:fe80::46%veth81<0>"
    using, suspicious = Told()(text, "INFO")
    assert (using.kind, using.device) == ("bootstrap_using", "ens5")
    assert (suspicious.kind, suspicious.device) == ("suspicious_interface", "veth81")
    assert suspicious.severity is WARNING


def test_a_doubtful_name_far_down_a_list_is_no_alarm() -> None:
    """Faster interfaces go first."""
    text = "NET/Socket : Using [0]eth0:10.0.0.1<0> [1]virbr0:192.168.122.1<0>"
    _, doubtful = Told()(text, "INFO")
    assert (doubtful.device, doubtful.severity) == ("virbr0", INFO)


def test_events_have_the_version_of_their_process() -> None:
    """Said once, at its start."""
    told = Told()
    told("NCCL version 2.27.3+cuda12.9", "INFO", pid=7)
    told("RCCL version 2.21.5+hip6.2", "INFO", pid=9)
    seven = told.one("NET/IB : Got async event : port error", pid=7)
    nine = told.one("NET/IB : Got async event : port error", pid=9)
    assert (seven.library, seven.library_version) == ("nccl", "2.27.3")
    assert (nine.library, nine.library_version) == ("rccl", "2.21.5")


def test_a_bare_banner_is_for_the_whole_file() -> None:
    """Old releases print it on standard output without a head."""
    told = Told()
    told.line(LogLine("NCCL version 2.7.8+cuda11.1", 1, 0))
    event = told.one("NET/IB : Got async event : port error")
    assert event.library_version == "2.7.8"


def test_rccl_is_told_by_its_files() -> None:
    """Its lines say NCCL."""
    source = "/usr/src/debug/rccl/build/hipify/src/proxy.cc"
    text = "Socket recv failed while polling for opId=0x7d9f"
    (event,) = Told().line(LogLine(text, 1, 0, "WARN", "n1", 7, source=source))
    assert event.library == "rccl"


def test_an_event_has_the_rank_of_its_process() -> None:
    """Init lines say it."""
    told = Told()
    init = "comm 0x55 rank {} nranks 16 cudaDev 0 busId 1c000 - Init COMPLETE"
    started = told.one(init.format(3), "INFO")
    assert (started.rank, started.comm) == (3, "0x55")
    assert told.one("NET/IB : Got async event : port error").rank == 3


def test_a_process_with_several_ranks_has_none() -> None:
    """It may be rank 3 of one communicator and 0 of another."""
    told = Told()
    init = "comm 0x55 rank {} nranks 16 cudaDev 0 busId 1c000 - Init COMPLETE"
    for rank in (3, 0, 3):
        told(init.format(rank), "INFO")
    assert told.one("NET/IB : Got async event : port error").rank is None


def test_the_rank_of_a_wrapper_goes_before_that_of_the_process() -> None:
    """It is the one that printed the line."""
    told = Told()
    told("comm 0x55 rank 3 nranks 16 cudaDev 0 busId 1c000 - Init COMPLETE", "INFO")
    text = "NET/IB : Got async event : port error"
    (event,) = told.line(LogLine(text, 1, 0, "WARN", "n1", 7, rank=5, repeats=4))
    assert (event.rank, event.count) == (5, 4)


def test_a_warning_that_no_row_knows_is_shown() -> None:
    """A new release may say something new."""
    event = Told().one("The flux capacitor is empty")
    assert (event.kind, event.severity) == ("unclassified_warn", WARNING)
    assert event.text == "The flux capacitor is empty"
    assert Told()("The flux capacitor is empty", "INFO") == ()


def test_the_body_of_an_exception_is_on_the_next_line() -> None:
    """It is the library's warning, also where its own log is off."""
    told = Told()
    assert told("Last error: ", None, None) == ()
    assert told("", None, None) == ()
    (event,) = told("The flux capacitor is empty", None, None)
    assert event.kind == "unclassified_warn"
    assert told("This usually is the weather.", None, None) == ()


def test_the_body_of_an_exception_on_the_same_line_is_read_too() -> None:
    """Both ways occur."""
    event = Told().one("Last error: Call to ibv_create_qp failed", None, None)
    assert event.status == "ibv_create_qp"
    other = Told().one("Last error: The flux capacitor is empty", None, None)
    assert other.kind == "unclassified_warn"


MINE = LogRule(
    id="mine",
    anchor="flux capacitor",
    pattern=r"flux capacitor (?P<device>\w+):(?P<port>\d+) of rank (?P<rank>\d+) is"
    r" (?P<level>\d+) % full",
    kind="flux_low",
    severity="critical",
)


def test_a_row_of_an_operator_makes_events() -> None:
    """Named groups are the event's values or its fields."""
    told = Told(table=RuleTable.of([MINE]))
    event = told.one("The flux capacitor mlx5_0:1 of rank 4 is 12 % full")
    assert (event.kind, event.severity, event.rule) == ("flux_low", CRITICAL, "mine")
    assert (event.device, event.port, event.rank) == ("mlx5_0", 1, 4)
    assert event.field("level") == 12


def test_a_row_of_an_operator_hides_none() -> None:
    """What is known of a line stays known."""
    own = LogRule(id="own", anchor="port error", pattern="port error")
    told = Told(table=RuleTable.of([own]))
    found = told("NET/IB : Got async event : port error")
    assert [event.rule for event in found] == ["A1", "own"]


def test_an_anchor_with_a_number_is_held_to_it() -> None:
    """Rows are remembered by the message without its numbers."""
    own = LogRule(id="own", anchor="unit 5", pattern="unit 5", severity="info")
    told = Told(table=RuleTable.of([own]))
    assert [event.rule for event in told("unit 4 is bad")] == ["unclassified"]
    assert [event.rule for event in told("unit 5 is bad")] == ["own"]


def test_ten_rows_of_an_operator_need_sixteen_literals_at_most() -> None:
    """Those alike share one, those that hold a built-in one need none."""
    rows = [
        LogRule(id=f"r{n}", anchor=f"site rule {n} says", pattern="x") for n in range(8)
    ]
    rows += [LogRule(id="net", anchor="NET/IB : site", pattern="x")]
    rows += [LogRule(id="own", anchor="gremlin", pattern="x")]
    table = RuleTable.of(rows)
    assert len(table.anchors) == len(table.following) <= MOST_LITERALS
    for row in rows:
        assert any(each.decode() in row.anchor for each in table.anchors)
    assert b"gremlin" in table.anchors


def test_too_many_unrelated_anchors_are_refused() -> None:
    """Each costs time for every octet of every log."""
    words = ("alpha", "bravo", "charlie", "delta", "foxtrot", "golf!", "hotel", "india")
    assert coarse_literals(words[:6]) is not None
    assert coarse_literals(words) is None
    with pytest.raises(ValueError, match="in common"):
        RuleTable.of([LogRule(id=word, anchor=word, pattern=word) for word in words])


def test_a_table_for_every_line_selects_what_no_literal_finds() -> None:
    """The rows are the same."""
    every = TABLE.for_every_line()
    assert every.anchors == EVERY_LINE
    assert every.rows == TABLE.rows
    assert len(every.following) == 1


def test_a_context_is_bounded() -> None:
    """A log of any length may name any number of processes."""
    told = Told()
    for pid in range(3 * MOST_PROCESSES):
        told("NET/IB : Unable to open device mlx5_0", pid=pid)
    nics = " ".join(f"[{n}]mlx5_{n}:1/IB" for n in range(100))
    told(f"NET/IB : Using {nics}; OOB ib0:10.0.0.1<0>", "INFO")
    assert len(told.context.processes) == MOST_PROCESSES
    assert len(told.context.process("n1", 7).nics) <= MOST_NICS


def test_a_context_is_not_changed() -> None:
    """A replay may read a line twice."""
    told = Told()
    told("NET/IB : Unable to open device mlx5_0")
    before = told.context
    line = LogLine("Using network Socket", 1, 0, "INFO", "n1", 7)
    first = recognise(line, "x.log", before, TABLE)
    assert recognise(line, "x.log", before, TABLE) == first
    assert first.context != before


def test_text_behind_the_limit_is_not_looked_at() -> None:
    """A message is never that long."""
    text = "x" * MOST_TEXT + " Got async event : port error"
    assert [event.kind for event in Told()(text)] == ["unclassified_warn"]


SEEDS = sorted(
    {row.anchor for row in RULES} | {one.text for row in RULES for one in row.examples}
)
PIECES = st.one_of(
    st.sampled_from(SEEDS),
    st.tuples(st.sampled_from(SEEDS), st.integers(0, 200)).map(
        lambda cut: cut[0][: cut[1]]
    ),
    st.text(max_size=20),
    st.sampled_from(
        ["<1>", "\0", "\ud800", "9" * 400, "fe80::", "((", " ", "0x", "-1", "²"]
    ),
)
TEXTS = st.lists(PIECES, max_size=6).map("".join)
LEVELS = st.sampled_from([None, "INFO", "WARN", "ABORT"])


@given(st.lists(st.tuples(TEXTS, LEVELS, st.sampled_from([None, 7, 9])), max_size=5))
def test_no_text_makes_it_fail(
    lines: Iterable[tuple[str, str | None, int | None]],
) -> None:
    """Log text is hostile: an answer comes whatever it is, and can be written."""
    told = Told()
    for text, level, pid in lines:
        for event in told(text, level, pid):
            assert event.port is None or event.port >= 0
            assert len(event.text) <= 1000
            json.dumps([(each.name, each.value) for each in event.fields])


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(SEEDS), st.sampled_from(["", "a", "0", " ", ".", "0x", "a b "]))
def test_hostile_text_takes_little_time(seed: str, filler: str) -> None:
    """The beginnings of a message, over and over, or with much behind it."""
    text = (seed + filler * MOST_TEXT if filler else seed * MOST_TEXT)[:MOST_TEXT]
    begin = time.perf_counter()
    Told()(text)
    assert time.perf_counter() - begin < 1


def test_coarse_literals_are_in_the_table() -> None:
    """In their order, with the lines wanted behind each."""
    assert TABLE.anchors == tuple(text.encode() for text, _ in COARSE)
    assert TABLE.following == tuple(count for _, count in COARSE)
