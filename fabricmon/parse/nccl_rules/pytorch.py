"""PyTorch: watchdogs and exceptions."""

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
