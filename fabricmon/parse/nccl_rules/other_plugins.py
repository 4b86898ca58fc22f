"""Other plugins."""

from __future__ import annotations

from fabricmon.parse.log_event import LogSeverity
from fabricmon.parse.nccl_rules.row import LogRow, Wording

_INFO, _WARNING = LogSeverity.INFO, LogSeverity.WARNING
_ERROR, _CRITICAL = LogSeverity.ERROR, LogSeverity.CRITICAL

OTHERS: tuple[LogRow, ...] = (
    LogRow(
        id="U1",
        kind="ucx_error",
        severity=_ERROR,
        anchor="Failed: UCX error ",
        pattern=r"Failed: UCX error (?P<file>[^:\s]{1,120}):(?P<line>\d+) "
        r"'(?P<status>[^']{1,80})' ?(?P<text>.{0,300})",
        versions="2.7-2.30",
        meaning="A call of UCX failed.",
        examples=(
            Wording(
                "NCCL WARN Failed: UCX error ucx_plugin.c:417 '-3' Endpoint timeout",
                "2.7-2.30",
            ),
        ),
        near_misses=("NCCL INFO UCX version 1.15",),
    ),
    LogRow(
        id="U2",
        kind="ucx_error",
        severity=_ERROR,
        anchor=" UCX",
        pattern=r" UCX +ERROR (?P<text>.{1,300})",
        versions="2.7-2.30",
        meaning="UCX reports an error, in its own format.",
        examples=(
            Wording(
                "[1700000000.123456] [node7:4242:0] ib_mlx5_log.c:171 UCX  ERROR"
                " Transport retry count exceeded on mlx5_0:1/RoCE (synd 0x15 vend 0x81"
                " hw_synd 0/0)",
                "2.7-2.30",
                device="mlx5_0",
                port=1,
            ),
        ),
        near_misses=("[1700000000.123456] [node7:4242:0] x.c:1 UCX  WARN slow",),
        library="ucx",
        unscanned=True,
    ),
    LogRow(
        id="F1",
        kind="unclassified_warn",
        severity=_INFO,
        anchor="Maximum retry reached for ",
        pattern=r"(?P<status>Maximum retry reached for (?:accept|connect))",
        versions="2.7-2.30",
        meaning="FastSocket gave up placing a queue: the job runs as without it.",
        examples=(
            Wording(
                "NCCL WARN Maximum retry reached for accept 3.",
                "2.7-2.30",
            ),
            Wording("NCCL WARN Maximum retry reached for connect 3.", "2.7-2.30"),
        ),
        near_misses=("NCCL WARN Maximum retry count is 3",),
        cause="tuning",
    ),
    LogRow(
        id="F2",
        kind="unclassified_warn",
        severity=_INFO,
        anchor="Cannot get incoming CPU",
        pattern=r"(?P<status>Cannot get incoming CPU)",
        versions="2.7-2.30",
        meaning="FastSocket cannot place a queue: the job runs as without it.",
        examples=(Wording("NCCL WARN Cannot get incoming CPU.", "2.7-2.30"),),
        near_misses=("NCCL WARN Cannot get CPU affinity",),
        cause="tuning",
    ),
)
