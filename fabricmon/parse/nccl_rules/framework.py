"""Rows of what stands around the library: PyTorch's watchdog, and RAS."""

from __future__ import annotations

from fabricmon.parse.log_event import LogSeverity
from fabricmon.parse.nccl_rules.row import LogRow, Wording

_INFO, _WARNING = LogSeverity.INFO, LogSeverity.WARNING
_ERROR, _CRITICAL = LogSeverity.ERROR, LogSeverity.CRITICAL

PYTORCH: tuple[LogRow, ...] = (
    LogRow(
        id="W1",
        kind="pytorch_watchdog_timeout",
        severity=_CRITICAL,
        anchor="Watchdog caught collective operation timeout: ",
        pattern=r"(?:Rank (?P<rank>\d{1,20})\] ?)?Watchdog caught collective operation "
        r"timeout: WorkNCCL\(SeqNum=(?P<sequence>\d{1,20}), OpType=(?P<operation>\w{1,80})"
        r"(?:, NumelIn=(?P<elements_in>\d{1,20}), NumelOut=(?P<elements_out>\d{1,20}))?, "
        r"Timeout\(ms\)=(?P<timeout_ms>\d{1,20})\)(?: ran for (?P<ran_ms>\d{1,20}) milliseconds)?",
        versions="torch 1.8-2.9",
        meaning="A collective did not end in time, minutes after its cause: the rank "
        "that does not report it, or is behind, is the suspect.",
        examples=(
            Wording(
                "[E ProcessGroupNCCL.cpp:737] [Rank 1] Watchdog caught collective"
                " operation timeout: WorkNCCL(SeqNum=469508, OpType=ALLREDUCE,"
                " Timeout(ms)=1800000) ran for 1802212 milliseconds before timing out.",
                "torch 1.8-2.0",
                status="ALLREDUCE seq 469508",
            ),
            Wording(
                "[E ProcessGroupNCCL.cpp:475] [Rank 1] Watchdog caught collective"
                " operation timeout: WorkNCCL(SeqNum=66, OpType=ALLREDUCE, NumelIn=1,"
                " NumelOut=1, Timeout(ms)=600000) ran for 600025 milliseconds before"
                " timing out.",
                "torch 2.1-2.2",
                status="ALLREDUCE seq 66",
            ),
            Wording(
                "[rank118]:[E603 17:48:01.005271823 ProcessGroupNCCL.cpp:632] [Rank"
                " 118] Watchdog caught collective operation timeout: WorkNCCL(SeqNum="
                "2398459, OpType=ALLREDUCE, NumelIn=8652160, NumelOut=8652160,"
                " Timeout(ms)=1800000) ran for 1800068 milliseconds before timing out.",
                "torch 2.3-2.6",
                status="ALLREDUCE seq 2398459",
            ),
            Wording(
                "[rank3]:[E603 17:48:01.005271823 ProcessGroupNCCL.cpp:684] [PG ID 0 PG"
                " GUID 0(default_pg) Rank 3] Watchdog caught collective operation"
                " timeout: WorkNCCL(SeqNum=5, OpType=_ALLGATHER_BASE, NumelIn=1,"
                " NumelOut=8, Timeout(ms)=600000) ran for 600001 milliseconds before"
                " timing out.",
                "torch 2.7-2.9",
                status="_ALLGATHER_BASE seq 5",
            ),
        ),
        near_misses=("[Rank 1] Watchdog caught an exception",),
        library="pytorch",
    ),
    LogRow(
        id="W2",
        kind="pytorch_pg_status",
        severity=_INFO,
        anchor=", last completed NCCL work: ",
        pattern=r"at work: (?P<sequence>\d+), last enqueued NCCL work: "
        r"(?P<last_enqueued>-?\d+), last completed NCCL work: "
        r"(?P<last_completed>-?\d+)",
        versions="torch 2.2-2.5",
        meaning="How far this rank got: all enqueued and none completed is the data "
        "path, one rank behind in enqueueing is the application.",
        examples=(
            Wording(
                "[rank0]:[E321 02:07:08.465150152 ProcessGroupNCCL.cpp:1664] [PG 1 Rank"
                " 0] Exception (either an error or timeout) detected by watchdog at"
                " work: 1580, last enqueued NCCL work: 1582, last completed NCCL work:"
                " 1579.",
                "torch 2.2-2.5",
            ),
        ),
        near_misses=("at work: 1580",),
        library="pytorch",
    ),
    LogRow(
        id="W2b",
        kind="pytorch_pg_status",
        severity=_INFO,
        anchor="work sequence id: ",
        pattern=r"work sequence id: (?P<sequence>\d+) PG status: last enqueued work: "
        r"(?P<last_enqueued>-?\d+), last completed work: (?P<last_completed>-?\d+)",
        versions="torch 2.6-2.9",
        meaning="How far this rank got, as W2.",
        examples=(
            Wording(
                "[rank118]:[E603 17:48:01.005538748 ProcessGroupNCCL.cpp:2268] [PG ID 0"
                " PG GUID 0(default_pg) Rank 118]  failure detected by watchdog at work"
                " sequence id: 2398459 PG status: last enqueued work: 2398578, last"
                " completed work: 2398458",
                "torch 2.6-2.9",
            ),
        ),
        near_misses=("work sequence id: 2398459",),
        library="pytorch",
    ),
    LogRow(
        id="W2c",
        kind="pytorch_pg_status",
        severity=_INFO,
        anchor="Last enqueued NCCL work: ",
        pattern=r"Last enqueued NCCL work: (?P<last_enqueued>-?\d+), last completed "
        r"NCCL work: (?P<last_completed>-?\d+)",
        versions="torch 2.3-2.9",
        meaning="How far this rank got, as W2, when another asked it to dump.",
        examples=(
            Wording(
                "[rank2]:[E321 02:07:08.4 ProcessGroupNCCL.cpp:1316] [PG 0 Rank 2]"
                " Received a dump signal due to a collective timeout from this local"
                " rank. Last enqueued NCCL work: 66, last completed NCCL work: 65.",
                "torch 2.3-2.9",
            ),
        ),
        near_misses=("Last enqueued NCCL work: none",),
        library="pytorch",
    ),
    LogRow(
        id="W3",
        kind="pytorch_nccl_exception",
        severity=_ERROR,
        anchor="nccl",
        pattern=r"(?P<status>nccl(?:Remote|System|Internal|UnhandledCuda|InvalidUsage|"
        r"InvalidArgument)\w{0,20}): ",
        versions="torch 1.8-2.9",
        meaning="An exception of the library reached Python: its own warning, in the "
        "lines behind `Last error:`, says why.",
        examples=(
            Wording(
                "ncclUnhandledCudaError: Call to CUDA function failed.",
                "torch 1.8-2.9",
                status="ncclUnhandledCudaError",
            ),
            Wording(
                "ncclRemoteError: A call failed possibly due to a network error or a"
                " remote process exiting prematurely.",
                "torch 2.0-2.9",
                status="ncclRemoteError",
            ),
            Wording(
                "ncclSystemError: System call (e.g. socket, malloc) or external library"
                " call failed or device error.",
                "torch 1.8-2.9",
                status="ncclSystemError",
            ),
        ),
        near_misses=("ncclSuccess: no error",),
        library="pytorch",
    ),
    LogRow(
        id="W3b",
        kind="pytorch_exception_site",
        severity=_INFO,
        anchor="NCCL error in: ",
        pattern=r"NCCL error in: (?P<file>[^\s:]{1,300}):(?P<line>\d+), "
        r"(?P<text>[^,]{1,200}), NCCL version (?P<version>[\d.]+)",
        versions="torch 1.8-2.9",
        meaning="Where in PyTorch the library failed, and the library's version.",
        examples=(
            Wording(
                "RuntimeError: NCCL error in: ../torch/csrc/distributed/c10d/"
                "ProcessGroupNCCL.cpp:1275, internal error, NCCL version 2.14.3",
                "torch 1.8-2.0",
            ),
            Wording(
                "torch.distributed.DistBackendError: NCCL error in: /var/lib/jenkins/"
                "NCCLUtils.cpp:93, unhandled cuda error (run with NCCL_DEBUG=INFO for"
                " details), NCCL version 2.29.3",
                "torch 2.1-2.9",
            ),
        ),
        near_misses=("NCCL error in: nowhere",),
        library="pytorch",
    ),
    LogRow(
        id="W4",
        kind="pytorch_heartbeat_timeout",
        severity=_ERROR,
        anchor="Heartbeat monitor timed out",
        pattern=r"(?P<status>Heartbeat monitor timed out)",
        versions="torch 2.2-2.9",
        meaning="The watchdog itself hangs: CPU, interpreter lock or driver, not the "
        "network.",
        examples=(
            Wording(
                "[rank0]:[F321 02:17:08.4 ProcessGroupNCCL.cpp:1413] [PG 0 Rank 0]"
                " Heartbeat monitor timed out! Process will be terminated after dumping"
                " debug info. workMetaList_.size()=3",
                "torch 2.2-2.9",
            ),
        ),
        near_misses=("Heartbeat monitor started",),
        library="pytorch",
    ),
    LogRow(
        id="W4b",
        kind="pytorch_heartbeat_timeout",
        severity=_ERROR,
        anchor="watchdog got stuck for ",
        pattern=r"(?P<status>watchdog got stuck) for (?P<seconds>\d+) seconds",
        versions="torch 2.3-2.9",
        meaning="The watchdog itself hangs: CPU, interpreter lock or driver, not the "
        "network.",
        examples=(
            Wording(
                "[rank0]:[F321 02:17:08.4 ProcessGroupNCCL.cpp:1413] [PG 0 Rank 0]"
                " ProcessGroupNCCL's watchdog got stuck for 480 seconds without making"
                " progress in monitoring enqueued collectives.",
                "torch 2.3-2.9",
            ),
        ),
        near_misses=("watchdog thread started",),
        library="pytorch",
    ),
    LogRow(
        id="W5",
        kind="pytorch_flight_recorder",
        severity=_INFO,
        anchor="FlightRecorder",
        pattern=r"(?P<status>Stack trace of the failed collective not found, "
        r"potentially because FlightRecorder is disabled)",
        versions="torch 2.4-2.9",
        meaning="PyTorch's flight recorder is off; TORCH_NCCL_TRACE_BUFFER_SIZE turns "
        "it on.",
        examples=(
            Wording(
                "[rank0]:[E321 02:07:08.4 ProcessGroupNCCL.cpp:667] [PG 0 Rank 0] Stack"
                " trace of the failed collective not found, potentially because"
                " FlightRecorder is disabled. You can enable it by setting"
                " TORCH_NCCL_TRACE_BUFFER_SIZE to a non-zero value.",
                "torch 2.4-2.9",
            ),
        ),
        near_misses=("FlightRecorder is enabled",),
        library="pytorch",
    ),
    LogRow(
        id="W5b",
        kind="pytorch_flight_recorder",
        severity=_INFO,
        anchor=" flight recorder dumps",
        pattern=r"timed out after waiting for (?P<milliseconds>\d+)ms"
        r"(?P<status> flight recorder dumps)",
        versions="torch 2.4-2.9",
        meaning="Not every rank wrote its flight recorder in time.",
        examples=(
            Wording(
                "[rank0]:[E321 02:08:08.4 ProcessGroupNCCL.cpp:1376] [PG 0 Rank 0]"
                " timed out after waiting for 60000ms flight recorder dumps to finish.",
                "torch 2.4-2.9",
            ),
        ),
        near_misses=("waiting for flight recorder dumps",),
        library="pytorch",
    ),
)

_GROUP = (
    r"^[ \t]{0,20}(?P<group>[0-9]+)[ \t]+(?P<comms>[0-9]+)[ \t]+(?P<nodes>[0-9]+)"
    r"[ \t]+(?P<ranks_per_node>[0-9-]+)[ \t]+(?P<ranks>[0-9-]+)[ \t]+"
    r"(?P<ranks_in_group>[0-9]+)[ \t]+(?P<state>[A-Z,]+)[ \t]+"
)
_COMM = r"^\s{0,20}#(?P<group>\d+)-(?P<index>\d+) \((?P<comm>[0-9a-f]{16})\) "

RAS: tuple[LogRow, ...] = (
    LogRow(
        id="Q1",
        kind="ras_peer_dead",
        severity=_CRITICAL,
        anchor="RAS declaring peer ",
        pattern=r"RAS declaring peer (?P<peer>[^\s<]{1,255})(?:<(?P<peer_port>\d+)>)? as DEAD",
        versions="2.24-2.30",
        meaning="A process was not reachable by TCP for 60 s and is given up.",
        examples=(
            Wording(
                "NCCL INFO RAS declaring peer 10.0.0.5<41000> as DEAD; rasDeadPeersHash"
                " 0x1234",
                "2.24-2.30",
                peer="10.0.0.5",
            ),
        ),
        near_misses=("NCCL INFO RAS declaring peer 10.0.0.5<41000> as alive",),
        library="ras",
        unscanned=True,
    ),
    LogRow(
        id="Q1b",
        kind="ras_peer_dead",
        severity=_CRITICAL,
        anchor="DEAD",
        pattern=r"(?P<status>PEER_(?:TIMEOUT_)?DEAD)\b(?:: Process (?P<process>\d+) on "
        r"node (?P<peer>\S+) managing GPUs? (?P<gpu_index>[\d,-]+))?",
        versions="2.29.2-2.30",
        meaning="RAS, watched as it goes: a process was given up.",
        examples=(
            Wording(
                "[2026-05-01 10:00:00] PEER_DEAD: Process 3487984 on node 172.16.64.213"
                " managing GPU 5",
                "2.29.2-2.30",
                peer="172.16.64.213",
                status="PEER_DEAD",
            ),
            Wording(
                "[2026-05-01 10:00:00] PEER_TIMEOUT_DEAD: Process 7 on node gpu-5"
                " managing GPU 0",
                "2.29.2-2.30",
                peer="gpu-5",
                status="PEER_TIMEOUT_DEAD",
            ),
        ),
        near_misses=("[2026-05-01 10:00:00] PEER_NEW: Process 7",),
        library="ras",
        unscanned=True,
    ),
    LogRow(
        id="Q2",
        kind="ras_peer_slow",
        severity=_WARNING,
        anchor="RAS ",
        pattern=r"RAS (?P<status>(?:keep-alive|connect|peer connect|send stuck|init) "
        r"(?:retry )?timeout(?: (?:warning|error))?) ?\((?P<seconds>\d{1,6})s\)"
        r".{0,60}?(?:with|from) (?P<peer>[^\s<]{1,255})(?:<(?P<peer_port>\d{1,6})>)?",
        versions="2.24-2.30",
        meaning="A process answers late by TCP: 5 s is a warning, 20 s an error.",
        examples=(
            Wording(
                "NCCL INFO RAS keep-alive timeout warning (5s) on socket connection"
                " with 10.0.0.5<41000>",
                "2.24-2.30",
                peer="10.0.0.5",
            ),
            Wording(
                "NCCL INFO RAS send stuck timeout error (20s) on socket connection with"
                " 10.0.0.5<41000>",
                "2.24-2.30",
                peer="10.0.0.5",
            ),
        ),
        near_misses=("NCCL INFO RAS keep-alive sent to 10.0.0.5<41000>",),
        library="ras",
        unscanned=True,
    ),
    LogRow(
        id="Q2b",
        kind="ras_peer_slow",
        severity=_WARNING,
        anchor="PEER_",
        pattern=r"(?P<status>PEER_(?:UNRESPONSIVE|SEND_STUCK|KEEPALIVE_TIMEOUT|RETRY|"
        r"DISCONNECTED|INIT_TIMEOUT))\b(?:: Process (?P<process>\d+) on "
        r"node (?P<peer>\S+) managing GPUs? (?P<gpu_index>[\d,-]+))?",
        versions="2.29.2-2.30",
        meaning="RAS, watched as it goes: a process answers late or not.",
        examples=(
            Wording(
                "[2026-05-01 10:00:00] PEER_UNRESPONSIVE: Process 7 on node gpu-5"
                " managing GPU 0 5s",
                "2.29.2-2.30",
                peer="gpu-5",
                status="PEER_UNRESPONSIVE",
            ),
            Wording('"event": "PEER_SEND_STUCK",', "2.29.2-2.30"),
        ),
        near_misses=("[2026-05-01 10:00:00] PEER_CONNECTED: Process 7",),
        library="ras",
        unscanned=True,
    ),
    LogRow(
        id="Q2c",
        kind="ras_peer_state",
        severity=_INFO,
        anchor="PEER_",
        pattern=r"(?P<status>PEER_(?:NEW|CONNECTING|CONNECTED|RECOVERED))\b"
        r"(?:: Process (?P<process>\d+) on node (?P<peer>\S+) managing GPUs? "
        r"(?P<gpu_index>[\d,-]+))?",
        versions="2.29.2-2.30",
        meaning="RAS, watched as it goes: a process joined or is back.",
        examples=(
            Wording(
                "[2026-05-01 10:00:00] PEER_RECOVERED: Process 7 on node gpu-5 managing"
                " GPU 0",
                "2.29.2-2.30",
                peer="gpu-5",
            ),
        ),
        near_misses=("[2026-05-01 10:00:00] PEER_DEAD: Process 7",),
        library="ras",
        unscanned=True,
    ),
    LogRow(
        id="Q3",
        kind="ras_summary",
        severity=_INFO,
        anchor="OK",
        pattern=_GROUP + r"(?P<errors>OK)\s*$",
        versions="2.24-2.30",
        meaning="RAS compares how many operations ranks have launched, over TCP: OK "
        "says nothing of data that is stuck.",
        examples=(
            Wording(
                "    0         1        32         8       256       256   RUNNING"
                "      OK",
                "2.24-2.30",
                status="RUNNING/OK",
            ),
        ),
        near_misses=(
            (
                "    0         1         4       7-8        32        32   RUNNING "
                " INCOMPLETE"
            ),
        ),
        library="ras",
        behind="CCL version",
    ),
    LogRow(
        id="Q3b",
        kind="ras_incomplete",
        severity=_WARNING,
        anchor="INCOMPLETE",
        pattern=_GROUP + r"(?P<errors>INCOMPLETE)\s*$",
        versions="2.24-2.30",
        meaning="Ranks of a communicator do not answer RAS.",
        examples=(
            Wording(
                "    0         1         4       7-8        32        32   RUNNING "
                " INCOMPLETE",
                "2.24-2.30",
                status="RUNNING/INCOMPLETE",
            ),
        ),
        near_misses=("    0         1  32  8  256  256   RUNNING      OK",),
        library="ras",
        behind="CCL version",
    ),
    LogRow(
        id="Q3c",
        kind="ras_mismatch",
        severity=_WARNING,
        anchor="MISMATCH",
        pattern=_GROUP + r"(?P<errors>[A-Z,]{0,40}MISMATCH)\s*$",
        versions="2.24-2.30",
        meaning="Ranks of a communicator have launched different operations: one is "
        "behind, or just on its way.",
        examples=(
            Wording(
                "    0         1         4         8        32        32   RUNNING "
                " MISMATCH",
                "2.24-2.30",
                status="RUNNING/MISMATCH",
            ),
        ),
        near_misses=("    0         1  32  8  256  256   RUNNING      OK",),
        library="ras",
        behind="CCL version",
    ),
    LogRow(
        id="Q4",
        kind="ras_incomplete",
        severity=_WARNING,
        anchor="INCOMPLETE",
        pattern=_COMM + r"(?P<status>INCOMPLETE)",
        versions="2.24-2.30",
        meaning="Ranks of this communicator do not answer RAS.",
        examples=(Wording("#0-0 (cf264af53edbe986) INCOMPLETE", "2.24-2.30"),),
        near_misses=("#0-0 (cf264af53edbe986) MISMATCH",),
        library="ras",
        behind="CCL version",
    ),
    LogRow(
        id="Q4b",
        kind="ras_incomplete",
        severity=_WARNING,
        anchor="Missing communicator data from ",
        pattern=r"Missing communicator data from (?P<missing>\d+) "
        r"(?P<status>job process|rank)",
        versions="2.24-2.30",
        meaning="How many processes or ranks do not answer RAS.",
        examples=(
            Wording("  Missing communicator data from 1 job process", "2.24-2.30"),
            Wording("  Missing communicator data from 3 ranks", "2.24-2.30"),
        ),
        near_misses=("  Missing data",),
        library="ras",
        behind="CCL version",
    ),
    LogRow(
        id="Q5",
        kind="ras_mismatch",
        severity=_WARNING,
        anchor=") MISMATCH",
        pattern=_COMM + r"(?P<status>MISMATCH)",
        versions="2.24-2.30",
        meaning="Ranks of this communicator have launched different operations.",
        examples=(Wording("#0-1 (cf264af53edbe986) MISMATCH", "2.24-2.30"),),
        near_misses=("#0-1 (cf264af53edbe986) INCOMPLETE",),
        library="ras",
        behind="CCL version",
    ),
    LogRow(
        id="Q5b",
        kind="ras_mismatch",
        severity=_WARNING,
        anchor=" launched up to operation ",
        pattern=r"(?P<ranks>\d{1,9}) ranks? ha(?:s|ve) launched up to operation "
        r"(?P<operation>\d+)",
        versions="2.24-2.30",
        meaning="How far some ranks have come.",
        examples=(
            Wording("  26 ranks have launched up to operation 6650", "2.24-2.30"),
            Wording("  1 rank has launched up to operation 6649", "2.24-2.30"),
        ),
        near_misses=("  26 ranks are idle",),
        library="ras",
        behind="CCL version",
    ),
    LogRow(
        id="Q6",
        kind="ras_dead",
        severity=_CRITICAL,
        anchor="considered dead",
        pattern=r"(?P<processes>\d{1,9}) job process(?:es)? (?:is |are )?considered "
        r"dead",
        versions="2.24-2.30",
        meaning="Processes of the job are gone.",
        examples=(
            Wording(
                "  1 job process is considered dead (unreachable via the RAS network)",
                "2.24-2.30",
            ),
            Wording("  2 job processes are considered dead", "2.24-2.30"),
        ),
        near_misses=("  1 job process is alive",),
        library="ras",
        behind="CCL version",
    ),
    LogRow(
        id="Q7",
        kind="ras_process",
        severity=_INFO,
        anchor=" managing GPU",
        pattern=r"^\s{0,20}Process (?P<process>\d+) on node (?P<peer>\S+) managing "
        r"GPUs? (?P<gpu_index>[\d,-]+)",
        versions="2.24-2.30",
        meaning="Which process the lines above are about.",
        examples=(
            Wording(
                "  Process 3487984 on node 172.16.64.213 managing GPU 5",
                "2.24-2.30",
                peer="172.16.64.213",
            ),
        ),
        near_misses=("  Process 3487984 on node 172.16.64.213",),
        library="ras",
        behind="CCL version",
    ),
)

ROWS: tuple[LogRow, ...] = (*PYTORCH, *RAS)
