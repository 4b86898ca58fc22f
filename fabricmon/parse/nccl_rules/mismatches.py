"""Two ends that do not match."""

from __future__ import annotations

from fabricmon.parse.log_event import LogSeverity
from fabricmon.parse.nccl_rules.row import LogRow, Wording

_INFO, _WARNING = LogSeverity.INFO, LogSeverity.WARNING
_ERROR, _CRITICAL = LogSeverity.ERROR, LogSeverity.CRITICAL

MISMATCHES: tuple[LogRow, ...] = (
    LogRow(
        id="T10",
        kind="net_mismatch",
        severity=_ERROR,
        anchor="Detected mixed local ",
        pattern=r"Detected mixed local (?P<what>Net|CollNet) device counts across ranks"
        r" \(min (?P<least>\d+), max (?P<most>\d+)\)",
        versions="2.30.3-2.30",
        meaning="Ranks see different numbers of NICs.",
        examples=(
            Wording(
                "NCCL WARN Detected mixed local Net device counts across ranks (min 7,"
                " max 8)",
                "2.30.3-2.30",
                status="7/8",
            ),
        ),
        near_misses=("NCCL WARN Detected mixed GPU types across ranks",),
    ),
    LogRow(
        id="T11",
        kind="rail_mismatch",
        severity=_WARNING,
        anchor="mismatched physical devices between local (",
        pattern=r"mismatched physical devices between local \((?P<local>[^)]*)\) and "
        r"remote \((?P<remote>[^)]*)\)",
        versions="2.20-2.30",
        meaning="The two ends of a connection use different rails.",
        examples=(
            Wording(
                "NCCL WARN NET/IB : mismatched physical devices between local (mlx5_0)"
                " and remote (mlx5_1)",
                "2.20-2.30",
            ),
        ),
        near_misses=("NCCL INFO physical devices of local (mlx5_0)",),
    ),
    LogRow(
        id="T11b",
        kind="rail_mismatch",
        severity=_WARNING,
        anchor="has a different number of devices=",
        pattern=r"has a different number of devices=(?P<devices>\d+) as remote "
        r"(?P<remote>\S+) (?P<remote_devices>\d+)",
        versions="2.20-2.30",
        meaning="The two ends of a connection merge different numbers of NICs.",
        examples=(
            Wording(
                "NCCL WARN NET/IB : Local mergedDev mlx5_0 has a different number of"
                " devices=1 as remote mlx5_0+mlx5_1 2",
                "2.20-2.30",
                status="1/2",
            ),
        ),
        near_misses=("NCCL INFO NET/IB : Local mergedDev mlx5_0 has 1 devices",),
    ),
    LogRow(
        id="T12",
        kind="link_layer_mismatch",
        severity=_ERROR,
        anchor=" incompatible devices",
        pattern=r"(?P<status>Attempted to (?:connect|merge) incompatible devices)",
        versions="2.20-2.30",
        meaning="InfiniBand and Ethernet ports were to be used together.",
        examples=(
            Wording(
                "NCCL WARN NET/IB : Attempted to connect incompatible devices",
                "2.20-2.30",
            ),
            Wording(
                "NCCL WARN NET/IB : Attempted to merge incompatible devices: [0]"
                "mlx5_0:1/IB and [1]mlx5_1:1/RoCE",
                "2.20-2.30",
            ),
        ),
        near_misses=("NCCL WARN NET/IB : incompatible driver",),
    ),
    LogRow(
        id="T12b",
        kind="link_layer_mismatch",
        severity=_ERROR,
        anchor="different link_layer",
        pattern=r"(?P<status>different link_layer)",
        versions="2.20-2.30",
        meaning="The other end's port is of the other link layer.",
        examples=(
            Wording(
                "NCCL WARN NET/IB : Remote mlx5_0 device has different link_layer than"
                " local mlx5_1",
                "2.20-2.30",
            ),
        ),
        near_misses=("NCCL INFO NET/IB : link_layer is IB",),
    ),
    LogRow(
        id="T12c",
        kind="link_layer_mismatch",
        severity=_ERROR,
        anchor="device is incompatible with the local",
        pattern=r"(?P<status>device is incompatible with the local)",
        versions="2.20-2.30",
        meaning="The other end's port is of the other link layer.",
        examples=(
            Wording(
                "NCCL WARN NET/IB : Remote mlx5_0 device is incompatible with the local"
                " [1]mlx5_1:1/RoCE",
                "2.20-2.30",
            ),
        ),
        near_misses=("NCCL INFO NET/IB : Remote mlx5_0 device is local",),
    ),
    LogRow(
        id="T13",
        kind="remote_flid_zero",
        severity=_WARNING,
        anchor="remote FLID configured as zero",
        pattern=r"(?P<status>remote FLID configured as zero)",
        versions="2.20-2.30",
        meaning="A path through an InfiniBand router has no FLID.",
        examples=(
            Wording(
                "NCCL WARN NET/IB: remote FLID configured as zero even when endpoints"
                " are on different subnets",
                "2.20-2.30",
            ),
        ),
        near_misses=("NCCL INFO NET/IB: remote FLID 12",),
    ),
)
