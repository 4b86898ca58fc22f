"""Result traces behind a warning."""

from __future__ import annotations

from fabricmon.parse.log_event import LogSeverity
from fabricmon.parse.nccl_rules.row import LogRow, Wording

_INFO, _WARNING = LogSeverity.INFO, LogSeverity.WARNING
_ERROR, _CRITICAL = LogSeverity.ERROR, LogSeverity.CRITICAL

TRACES: tuple[LogRow, ...] = (
    LogRow(
        id="X4",
        kind="error_trace",
        severity=_INFO,
        anchor="->",
        pattern=r"(?P<file>[\w.-]{1,36}\.(?:c(?:c|u|pp)?|h)):(?P<line>\d{1,7})"
        r"(?: \((?P<function>\w{1,36})\))? ?-> ?(?P<result>\d{1,7})"
        r"(?: \[(?P<thread_name>[^\]]{0,40})\])?",
        versions="2.3-2.30",
        meaning="Where an error passed through: belongs to the warning above it, of "
        "the same thread.",
        examples=(
            Wording("NCCL INFO transport/net.cc:1008 -> 6", "2.3-2.29"),
            Wording("NCCL INFO proxy.cc:858 -> 6 [Proxy Thread]", "2.8-2.29"),
            Wording("NCCL WARN transport.cu:153 ->2 [Proxy thread error]", "2.3-2.4"),
            Wording("NCCL INFO transport/net.cc:1008 (sendSetup) -> 6", "2.30"),
        ),
        near_misses=("NCCL INFO Channel 01/0 : 6[6] -> 7[7] via P2P/IPC/read",),
        behind="NCCL WARN",
    ),
)
