"""Targets that read text: of sysfs, of tools, of logs, of the kernel."""

from __future__ import annotations

import json
import re
import time
from dataclasses import dataclass

import msgspec

from fabricmon.cli.document import check_document, dump
from fabricmon.host.process_sights import inner_pid, library_variables, mapped_libraries
from fabricmon.parse import sysfs
from fabricmon.parse.address import is_routable, plain_peer
from fabricmon.parse.cgroup import parse_cgroup
from fabricmon.parse.core_list import parse_cores
from fabricmon.parse.counter_names import file_name, is_saturated
from fabricmon.parse.device_list import parse_device_list
from fabricmon.parse.ibqueryerrors import sweep_summary
from fabricmon.parse.inspector import MAX_RECORD, parse_operations, parse_prometheus
from fabricmon.parse.kmsg import MAX_TEXT, concerns, recognise
from fabricmon.parse.library_settings import (
    debug_pattern,
    library_version,
    named_devices,
    parse_configuration,
)
from fabricmon.parse.log_event import LogEvent
from fabricmon.parse.log_lines import MOST_LINE_OCTETS
from fabricmon.parse.messages import errno_of
from fabricmon.parse.nccl import RuleTable
from fabricmon.parse.nccl_log import NEW_LOG, LogBatch, read_log
from fabricmon.parse.pci_path import host_bridge, pci_address, pci_functions, pci_order
from fabricmon.parse.ras import MOST_EVENTS, ras_events
from fabricmon.parse.rule_pattern import row_fault
from fabricmon.parse.tools import TOOLS, ToolParser
from fabricmon.stories.document import log_event_document
from fabricmon.support.anonymise import Anonymiser
from fabricmon.support.pseudonyms import Pseudonyms
from fabricmon.support.secrets import text_without_secrets
from tests.fuzz.target import Target, files, texts

TABLE = RuleTable.of()
EVERY_LINE = TABLE.for_every_line()
ROW_SECONDS = 0.5
"""A pattern of an operator that was taken may run so long on 20,000 characters."""


def text_of(data: bytes) -> str:
    """Return bytes as the agent takes text that may be none."""
    return data.decode("utf-8", "replace")


def sysfs_values(data: bytes) -> None:
    """Read a value as every file of sysfs, /proc and cgroupfs is read."""
    text = text_of(data)
    for parse in (
        sysfs.parse_state, sysfs.parse_phys_state, sysfs.parse_rate, sysfs.parse_lid,
        sysfs.parse_sm_lid, sysfs.parse_guid, sysfs.parse_link_layer,
        sysfs.parse_pci_speed, sysfs.parse_pci_width, sysfs.parse_uptime,
    ):  # fmt: skip
        assert parse(data) == parse(text)
    value = sysfs.parse_counter(data)
    assert isinstance(value, str) or 0 <= value < 1 << 64
    guid = sysfs.parse_guid(data)
    assert guid is None or len(guid) <= 40
    assert len(sysfs.parse_aer(data).counts) <= len(data)
    for read in (pci_order, pci_address, pci_functions, host_bridge, parse_cgroup):
        read(text)
    plain_peer(text)
    is_routable(text)
    assert file_name(text) is not None
    is_saturated(text, 1)
    parse_device_list(text).chooses("mlx5_0", 1)


def cores(data: bytes) -> None:
    """Read a list of cores; what it names is bounded, however wide its ranges."""
    assert len(parse_cores(text_of(data))) <= 1 << 16


def process_files(data: bytes) -> None:
    """Read environ, maps and status of somebody's process."""
    for variable in library_variables(data):
        assert len(variable.value) <= 4096
        debug_pattern(variable.value, "host", 1)
        named_devices(variable.value)
    for path in mapped_libraries(data):
        library_version(path)
    inner_pid(data, 1)


def settings_file(data: bytes) -> None:
    """Read nccl.conf, and use what its values name."""
    for each in parse_configuration(data):
        debug_pattern(each.value, "host", None)
        named_devices(each.value)
    library_version(text_of(data))


def _report(parse: ToolParser, data: bytes) -> None:
    """Read both streams of a tool; what comes out is strict JSON."""
    stdout, _, stderr = text_of(data).partition("\x1e")
    json.loads(dump(check_document(parse(stdout, stderr, None))))


def messages(data: bytes) -> None:
    """Read errors of tools, and the summary of a sweep."""
    text = text_of(data)
    errno_of(text)
    sweep_summary(text)


def kernel_line(data: bytes) -> None:
    """Read lines of the kernel's log."""
    for line in data.split(b"\n"):
        concerns(line)
        event = recognise(text_of(line), 1.0)
        assert event is None or (
            len(event.text) <= MAX_TEXT and event.text.isprintable()
        )


def _in_pieces(data: bytes, sizes: bytes, table: RuleTable) -> LogBatch:
    events: tuple[LogEvent, ...] = ()
    state, skipped, lines, place = NEW_LOG, 0, 0, 0
    for size in (*(each + 1 for each in sizes), len(data)):
        piece = data[place : place + size]
        place += size
        batch = read_log(piece, state, "log", table)
        state, events = batch.state, events + batch.events
        skipped, lines = skipped + batch.skipped_bytes, lines + batch.lines
        assert len(state.carry.tail) <= MOST_LINE_OCTETS + 16_384
    last = read_log(b"", state, "log", table, final=True)
    return LogBatch(events + last.events, last.state, lines + last.lines, skipped, 0)


def collective_log(data: bytes) -> None:
    """Read a log whole and in pieces: the events are the same, and are documents."""
    whole = read_log(data, NEW_LOG, "log", TABLE, final=True)
    assert len(whole.events) <= len(data) // 8 + 1
    for event in whole.events:
        msgspec.json.encode(log_event_document(event))
    cut = _in_pieces(data, data[:3], TABLE)
    assert cut.events == whole.events
    assert cut.lines == whole.lines


def every_line(data: bytes) -> None:
    """Read every line with every row, as `fabricmon logs` does."""
    read_log(data, NEW_LOG, "log", EVERY_LINE, final=True)
    assert len(ras_events(text_of(data), "log")) <= MOST_EVENTS


@dataclass(frozen=True, slots=True)
class _Row:
    id: str
    anchor: str
    pattern: str
    kind: str = "nccl_error"
    severity: str = "error"


def operator_rows(data: bytes) -> None:
    """Check a row of an operator; one that is taken is quick on any text."""
    anchor, _, pattern = text_of(data).partition("\n")
    row = _Row("own", anchor, pattern)
    if row_fault([row], ()) is not None:
        return
    compiled = re.compile(pattern)
    table = RuleTable.of([row])
    letters = list(dict.fromkeys(pattern))[:8]
    for text in (anchor, *letters, "a", "1", " ", anchor + "".join(letters)):
        hostile = (anchor + text * (20_000 // max(1, len(text))))[:20_000]
        before = time.thread_time()
        compiled.search(hostile)
        took = time.thread_time() - before
        assert took < ROW_SECONDS, f"{pattern!r} took {took:.2f} s"
    read_log(f"{anchor}\n".encode(), NEW_LOG, "log", table, final=True)


def inspector(data: bytes) -> None:
    """Read what NCCL's Inspector writes, in both of its forms."""
    found = parse_operations(data)
    assert len(found.rest) <= MAX_RECORD + 1
    for each in (*found.found, *parse_prometheus(data, 3).found):
        assert each.seconds is None or each.seconds > 0
        assert each.bus_bandwidth is None or each.bus_bandwidth > 0


def anonymised(data: bytes) -> None:
    """Take secrets and names out of a text."""
    text = text_of(data)
    anonymiser = Anonymiser(Pseudonyms(bytes(16)))
    anonymiser.learn("host", ("node01.example.org",))
    shown = anonymiser.text(text_without_secrets(text))
    assert re.search(r"(?<![\w.-])node01\.example\.org(?![\w.-])", shown) is None


NCCL_WORDS = (
    *sorted({row.anchor.encode() for row in TABLE.rows} | set(TABLE.anchors))[:300],
    b'{"log":"', b'\\n","stream":"stdout","time":"', b" stdout P ", b" stderr F ",
    b"__CURSOR=", b"__REALTIME_TIMESTAMP=", b"MESSAGE\n\x10\0\0\0\0\0\0\0", b"\x1b[31m",
    b'{"MESSAGE":[78,67],"_PID":"', b"[1,0]<stdout>:", b"[rank3]:", b"NCCL WARN ",
)  # fmt: skip
JOURNAL = (
    b"__CURSOR=s=1\n__REALTIME_TIMESTAMP=1700000000000000\n_HOSTNAME=n1\n_PID=77\n"
    b"MESSAGE=n1:77:80 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB\n\n"
    b"__CURSOR=s=2\n__REALTIME_TIMESTAMP=1700000000000001\n_LINE_BREAK=line-max\n"
    b"MESSAGE\n\x2f\0\0\0\0\0\0\0n1:77:80 [0] NCCL WARN Call to connect returned\n\n"
)
WRAPPED = (
    b'{"log":"n1:77:80 [0] NCCL WARN NET/IB : Got completion from peer '
    b'10.0.0.1<4791> with status=12 opcode=0 len=0 vendor err 129\\n",'
    b'"stream":"stderr","time":"2026-01-05T08:00:00.5Z"}\n'
    b"2026-01-05T08:00:00.5Z stdout P n1:77:80 [0] NCCL WARN NET/IB : Got \n"
    b"2026-01-05T08:00:00.6Z stdout F async fatal event on mlx5_0: port error\n"
)
KERNEL = (
    b"mlx5_core 0000:1a:00.0 eth0: Link down\n"
    b"mlx5_core 0000:1a:00.0: poll_health:825:(pid 0): device's health compromised\n"
    b"pcieport 0000:17:01.0: AER: Corrected error received: 0000:1a:00.0\n"
    b"mlx5_core 0000:1a:00.0: 126.024 Gb/s available PCIe bandwidth, limited by 16.0 "
    b"GT/s PCIe x8 link at 0000:17:01.0 (capable of 252.048 Gb/s with 16.0 GT/s x16)\n"
    b"infiniband mlx5_0: create_qp: failed\nNETDEV WATCHDOG: eth0 (mlx5_core): tx 1\n"
)
INSPECTED = (
    b'{"header":{"id":"0x9e","rank":31,"n_ranks":32,"nnodes":4},"metadata":'
    b'{"dump_timestamp_us":1748030377748202,"hostname":"n"},"coll_perf":{"coll":'
    b'"AllReduce","coll_sn":1,"coll_msg_size_bytes":17179869184,"coll_exec_time_us":'
    b'61974,"coll_timing_source":"kernel_gpu","coll_busbw_gbs":537.09}}\n'
    b'nccl_bus_bandwidth_gbs{comm_name="x",collective="AllReduce",n_nodes="2",'
    b'nranks="16",message_size="4-5GB"} 33.5\n'
)
VALUES = (
    "4: ACTIVE\n", "5: LinkUp\n", "400 Gb/sec (4X NDR)\n", "0xffff\n", "InfiniBand\n",
    "fe80:0000:0000:0000:b8ce:f603:0012:34ab\n", "18446744073709551615\n", "N/A (no)\n",
    "32.0 GT/s PCIe\n", "16\n", "RxErr 0\nBadTLP 12\nTOTAL_ERR_COR 12\n", "12.5 8\n",
    "0::/kubepods.slice/kubepods-pod1234_5678.slice/cri-containerd-ab.scope\n",
    "/sys/devices/pci0000:17/0000:17:01.0/0000:1a:00.0/infiniband/mlx5_0",
    "0-3,8-11\n", "^=mlx5_0:1,mlx5_1\n", "::ffff:10.0.0.1", "10.0.0.1<4791>",
)  # fmt: skip
PROCESS = (
    b"PATH=/bin\0NCCL_DEBUG_FILE=/tmp/nccl.%h.%p.log\0NCCL_IB_HCA=^=mlx5_0:1\0",
    b"7f0-7f1 r-xp 0 08:01 1 /usr/lib/libnccl.so.2.21.5\n",
    b"Name:\tpython\nNSpid:\t77\t1\n",
)
ROWS = (
    "Fabric\nFabric (\\d{1,4}) down", "abcd\nabcd(?:x|y){0,9}z", "abcd\n(a+)+abcd",
    "lost link\n^.{0,80}lost link on ([a-z0-9_]{1,16})", "abcd\n[^ ]*abcd[^ ]*$",
)  # fmt: skip
PRIVATE = (
    "job=77 user=alice host node01.example.org 10.1.2.3 fe80::1 00:11:22:33:44:55\n"
    "https://me:secret@example.org password: 'x y' token=abc guid 0x1234567890abcdef\n"
)

_TOOL_FILES = {
    "ibstat": ("fabric/ibstat-*.txt", "ibsim/*/*ibstat*"),
    "ibstatus": ("fabric/ibstatus-*.txt", "ibsim/*/*ibstatus*"),
    "ibv_devinfo": ("fabric/devinfo-*.txt",),
    "ethtool": ("fabric/ethtool-*.txt",),
    "ibcheckerrors": ("fabric/ibcheckerrors-*.txt",),
    "iblinkinfo": ("ibsim/*/*iblinkinfo*",),
    "ibnetdiscover": ("fabric/ibnetdiscover-*.txt",),
    "ibqueryerrors": ("fabric/ibqueryerrors-*.txt",),
    "mlxlink": ("fabric/mlxlink-*.json", "fabric/mlxlink-*.txt"),
    "perfquery": ("fabric/perfquery-*.txt",),
    "rdma_link": ("fabric/rdmalink-*.txt",),
    "rdma_statistic": ("fabric/rdmastat-*.txt",),
}


def _tools() -> tuple[Target, ...]:
    words = (b"\x1e", b"CA '", b"Port 1:\n", b"ibpanic: [1] main: ", b'{"ifname":"a"')

    def target(kind: str, parse: ToolParser) -> Target:
        def run(data: bytes) -> None:
            _report(parse, data)

        return Target(kind, run, files(*_TOOL_FILES[kind]), words=words)

    return tuple(target(each.kind, each.parse) for each in TOOLS)


TEXT_TARGETS = (
    Target("sysfs", sysfs_values, texts(*VALUES)),
    Target("cores", cores, texts("0-3,8-11\n", "0-4294967295", "1,1"), (ValueError,)),
    Target("process_files", process_files, texts(*PROCESS)),
    Target("library_settings", settings_file, texts("NCCL_DEBUG_FILE=/a.%h.%p\n#x\n")),
    *_tools(),
    Target("tool_messages", messages, files("fabric/*.stderr.txt")),
    Target("kernel_line", kernel_line, texts(KERNEL, *KERNEL.splitlines())),
    Target("nccl_log", collective_log, files("nccl/*.log"), words=NCCL_WORDS, slack=3),
    Target(
        "journal", collective_log, texts(JOURNAL, WRAPPED), words=NCCL_WORDS, slack=3
    ),
    Target("nccl_lines", every_line, files("nccl/*.log"), words=NCCL_WORDS, slack=4),
    Target("log_rows", operator_rows, texts(*ROWS), slack=20),
    Target("inspector", inspector, texts(INSPECTED, *INSPECTED.splitlines())),
    Target("anonymise", anonymised, texts(PRIVATE), slack=3),
)
