"""The proxy, and errors that follow others."""

from __future__ import annotations

from fabricmon.parse.log_event import LogSeverity
from fabricmon.parse.nccl_rules.pieces import ERRNO_TEXT
from fabricmon.parse.nccl_rules.row import LogRow, Wording

_INFO, _WARNING = LogSeverity.INFO, LogSeverity.WARNING
_ERROR, _CRITICAL = LogSeverity.ERROR, LogSeverity.CRITICAL

PROXY: tuple[LogRow, ...] = (
    LogRow(
        id="X1",
        kind="proxy_error",
        severity=_ERROR,
        anchor="Failed to execute operation ",
        pattern=r"Failed to execute operation (?P<status>\w+) from rank "
        r"(?P<from_rank>\d+), retcode (?P<result>\d+)",
        versions="2.12-2.30",
        meaning="The proxy could not do what its rank asked: the cause was logged "
        "before by the same process. While closing it is part of an abort.",
        examples=(
            Wording(
                "NCCL WARN [Proxy Service 1] Failed to execute operation Connect from"
                " rank 1, retcode 2",
                "2.12-2.30",
                status="Connect",
            ),
            Wording(
                "NCCL WARN [Proxy Service UDS 0] Failed to execute operation Close from"
                " rank 0, retcode 3",
                "2.19-2.30",
                status="Close",
                severity=_INFO,
            ),
        ),
        near_misses=("NCCL WARN Failed to execute kernel",),
    ),
    LogRow(
        id="X2",
        kind="proxy_error",
        severity=_ERROR,
        anchor="Error encountered progressing operation=",
        pattern=r"Error encountered progressing operation=(?P<status>\w+), "
        r"res=(?P<result>\d+)",
        versions="2.12-2.30",
        meaning="The proxy could not do what its rank asked: the cause was logged "
        "before by the same process.",
        examples=(
            Wording(
                "NCCL WARN [Service thread] Error encountered progressing"
                " operation=Connect, res=3, closing connection",
                "2.12-2.30",
                status="Connect",
            ),
        ),
        near_misses=("NCCL INFO progressing operation=Connect",),
    ),
    LogRow(
        id="X2b",
        kind="proxy_error",
        severity=_ERROR,
        anchor="[Service thread] Could not receive type",
        pattern=r"\[Service thread\] Could not (?P<status>receive type)"
        r"(?: from localRank (?P<local_rank>\d+), res=(?P<result>\d+))?",
        versions="2.12-2.30",
        meaning="The proxy lost the connection to its own rank: a consequence.",
        examples=(
            Wording(
                "NCCL WARN [Service thread] Could not receive type from localRank 0,"
                " res=3, closed=0",
                "2.12-2.30",
            ),
        ),
        near_misses=("NCCL INFO [Service thread] receive type",),
    ),
    LogRow(
        id="X2c",
        kind="proxy_error",
        severity=_ERROR,
        anchor="[Service thread] Accept failed",
        pattern=r"\[Service thread\] Accept failed ?"
        rf"(?P<errno_text>{ERRNO_TEXT})?",
        versions="2.12-2.30",
        meaning="The proxy took no connection; `temporarily unavailable` comes with an "
        "abort.",
        examples=(
            Wording(
                "NCCL WARN [Service thread] Accept failed Resource temporarily"
                " unavailable",
                "2.12-2.30",
                status=11,
                severity=_INFO,
            ),
            Wording(
                "NCCL WARN [Service thread] Accept failed Too many open files",
                "2.12-2.30",
                status=24,
            ),
        ),
        near_misses=("NCCL INFO [Service thread] Accepted",),
    ),
    LogRow(
        id="X2d",
        kind="proxy_error",
        severity=_ERROR,
        anchor="Proxy Call to rank ",
        pattern=r"Proxy Call to rank (?P<to_rank>\d+) failed(?: \((?P<status>\w+)\))?",
        versions="2.13-2.30",
        meaning="The proxy could not do what its rank asked: the cause was logged "
        "before by the same process.",
        examples=(
            Wording(
                "NCCL WARN Proxy Call to rank 14 failed (Connect)",
                "2.13-2.30",
                status="Connect",
            ),
        ),
        near_misses=("NCCL INFO Proxy Call to rank 14 done",),
    ),
    LogRow(
        id="X2e",
        kind="proxy_error",
        severity=_ERROR,
        anchor="Socket recv failed while polling for opId",
        pattern=r"Socket recv failed while polling for opId=?(?P<operation>\w+)?",
        versions="2.16-2.30",
        meaning="A rank lost its own proxy: a consequence.",
        examples=(
            Wording(
                "NCCL WARN Socket recv failed while polling for opId=0x7fb1242685e0",
                "2.16-2.30",
                status="recv polling",
            ),
        ),
        near_misses=("NCCL WARN Socket recv failed",),
    ),
    LogRow(
        id="X3",
        kind="proxy_closed",
        severity=_INFO,
        anchor="Connection closed by localRank ",
        pattern=r"Connection closed by localRank (?P<local_rank>\d+)",
        versions="2.12-2.30",
        meaning="A rank closed its proxy, as at every end.",
        examples=(
            Wording(
                "NCCL INFO [Service thread] Connection closed by localRank 0",
                "2.12-2.30",
            ),
        ),
        near_misses=("NCCL WARN Connection closed by remote peer 10.0.0.1<1>",),
    ),
    LogRow(
        id="X5",
        kind="async_error",
        severity=_ERROR,
        anchor="ncclCommSetAsyncError: error comm ",
        pattern=r"ncclCommSetAsyncError: error comm (?P<comm>0x\w+) sets state "
        r"(?P<result>\d+)",
        versions="2.14-2.30",
        meaning="A communicator is in error: a consequence.",
        examples=(
            Wording(
                "NCCL INFO ncclCommSetAsyncError: error comm 0x55dd8aa86c70 sets state"
                " 6",
                "2.14-2.30",
            ),
        ),
        near_misses=("NCCL INFO ncclCommGetAsyncError",),
    ),
    LogRow(
        id="X5b",
        kind="async_error",
        severity=_ERROR,
        anchor="ncclAsyncJobComplete: job ",
        pattern=r"ncclAsyncJobComplete: job \S+ failed, job error (?P<result>\d+)",
        versions="2.14-2.30",
        meaning="An asynchronous call of the library failed: a consequence.",
        examples=(
            Wording(
                "NCCL WARN ncclAsyncJobComplete: job 0x7f00 failed, job error 6",
                "2.14-2.30",
            ),
        ),
        near_misses=("NCCL INFO ncclAsyncJobComplete: job 0x7f00 done",),
    ),
)

# Last of all: any message may name a file and an arrow.
