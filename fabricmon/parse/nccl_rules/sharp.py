"""SHARP and CollNet."""

from __future__ import annotations

from fabricmon.parse.log_event import LogSeverity
from fabricmon.parse.nccl_rules.pieces import DEVICE, PORT
from fabricmon.parse.nccl_rules.row import LogRow, Wording

_INFO, _WARNING = LogSeverity.INFO, LogSeverity.WARNING
_ERROR, _CRITICAL = LogSeverity.ERROR, LogSeverity.CRITICAL

SHARP: tuple[LogRow, ...] = (
    LogRow(
        id="N1",
        kind="sharp_error",
        severity=_WARNING,
        anchor="SHARP ",
        pattern=r"SHARP (?P<what>[\w ]{0,60}(?:error|failed|create)[\w ]{0,20}): "
        r"(?P<text>[^(]{1,200})\((?P<status>-?\d{1,20})\)",
        versions="2.6-2.30",
        meaning="In-network reduction cannot be used: slower, the links are healthy.",
        examples=(
            Wording(
                "NCCL WARN NET/IB : SHARP coll init error: Cannot create SHARP"
                " job(-11)",
                "2.6-2.30",
                status=-11,
            ),
        ),
        near_misses=("NCCL INFO SHARP rank 0/2 initialized on mlx5_0:1",),
        library="sharp",
        cause="sharp_unavailable",
    ),
    LogRow(
        id="N1a",
        kind="sharp_error",
        severity=_WARNING,
        anchor="] ERROR ",
        pattern=r"\] ERROR (?P<status>collect_ports_data|sharp_\w{1,60}|"
        r"Failed to lock SAT)(?:: )?"
        rf"(?:device {DEVICE} port {PORT} )?(?P<text>.{{0,300}})",
        versions="2.6-2.30",
        meaning="The SHARP library could not start, in its own format; it may name the "
        "port.",
        examples=(
            Wording(
                "[C17K43:1:44548 unique id 1340726519408862317] ERROR"
                " collect_ports_data: device mlx5_0 port 1 is not valid (port is used"
                " by SM)",
                "2.6-2.30",
                device="mlx5_0",
                port=1,
            ),
            Wording(
                "[node7:0:4454 - comm.c:417] ERROR sharp_get_local_data: error"
                " retrieving local data for process number 1",
                "2.6-2.30",
            ),
        ),
        near_misses=("[node7:0:4454 - comm.c:417] INFO sharp_get_local_data: done",),
        library="sharp",
    ),
    LogRow(
        id="N1b",
        kind="sharp_initialized",
        severity=_INFO,
        anchor=" initialized on ",
        pattern=r"(?:Sharp|SHARP) rank (?P<sharp_rank>\d+)/(?P<sharp_ranks>\d+) initialized on "
        rf"{DEVICE}:{PORT}",
        versions="2.6-2.30",
        meaning="In-network reduction is ready on this port.",
        examples=(
            Wording(
                "NCCL INFO NET/IB: Sharp rank 0/2 initialized on mlx5_0:1",
                "2.6-2.30",
                device="mlx5_0",
                port=1,
            ),
        ),
        near_misses=("NCCL INFO rank 0/2 initialized",),
        library="sharp",
    ),
    LogRow(
        id="N2",
        kind="collnet_fallback",
        severity=_WARNING,
        anchor="Cannot initialize CollNet, using ",
        pattern=r"Cannot initialize CollNet, using (?P<instead>[\w-]+)",
        versions="2.6-2.30",
        meaning="In-network reduction is not used: slower, the links are healthy.",
        examples=(
            Wording(
                "NCCL WARN Cannot initialize CollNet, using point-to-point network"
                " instead",
                "2.6-2.30",
            ),
        ),
        near_misses=("NCCL INFO CollNet initialized",),
        cause="sharp_unavailable",
    ),
)
