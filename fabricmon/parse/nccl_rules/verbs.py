"""Verbs calls, and connections that could not be made."""

from __future__ import annotations

from fabricmon.parse.log_event import LogSeverity
from fabricmon.parse.nccl_rules.pieces import DEVICE, ERRNO_TEXT, PORT
from fabricmon.parse.nccl_rules.row import LogRow, Wording

_INFO, _WARNING = LogSeverity.INFO, LogSeverity.WARNING
_ERROR, _CRITICAL = LogSeverity.ERROR, LogSeverity.CRITICAL

VERBS: tuple[LogRow, ...] = (
    LogRow(
        id="V1",
        kind="ib_modify_qp_failed",
        severity=_CRITICAL,
        anchor="Call to ibv_modify_qp failed",
        pattern=r"Call to ibv_modify_qp failed(?: with (?:error )?(?:(?P<status>\d{1,20}) )?"
        rf"(?P<errno_text>{ERRNO_TEXT}))?(?: errno (?P<status_2>\d{{1,20}}))?"
        rf"(?:, on dev {DEVICE}:{PORT}, curr state (?P<state>\w{{1,80}}), next state "
        r"(?P<next_state>\w{1,80}), local GID index (?P<gid_index>-?\d{1,20}), local GID "
        r"(?P<local_gid>[^\s,]+), remote GID (?P<peer>[^\s,]+))?"
        r"(?:, retrying (?P<attempt>\d{1,20})/(?P<attempts>\d{1,20}) after "
        r"(?P<sleep_ms>\d{1,20}) msec of sleep)?",
        versions="2.3-2.30",
        meaning="A queue pair was not connected: no route, wrong GID index or MTU, "
        "device gone, or no resources, as the errno says.",
        examples=(
            Wording("NCCL WARN Call to ibv_modify_qp failed", "2.3-2.12"),
            Wording(
                "NCCL WARN Call to ibv_modify_qp failed with error Network is"
                " unreachable",
                "2.13-2.18",
                status=101,
            ),
            Wording(
                "NCCL WARN Call to ibv_modify_qp failed with error Invalid argument"
                " errno 22",
                "2.19-2.23",
                status=22,
            ),
            Wording(
                "NCCL WARN Call to ibv_modify_qp failed with 110 Connection timed out,"
                " on dev mlx5_6:1, curr state INIT, next state RTR, local GID index 3,"
                " local GID ::ffff:10.67.59.35, remote GID ::ffff:10.67.163.38",
                "2.24-2.30",
                device="mlx5_6",
                port=1,
                peer="::ffff:10.67.163.38",
                status=110,
            ),
            Wording(
                "NCCL INFO NET/IB: Call to ibv_modify_qp failed with 110 Connection"
                " timed out, on dev mlx5_6:1, curr state INIT, next state RTR, local"
                " GID index 3, local GID ::ffff:10.67.59.35, remote GID"
                " ::ffff:10.67.163.38, retrying 3/35 after 300 msec of sleep",
                "2.24-2.30",
                device="mlx5_6",
                port=1,
                status=110,
                severity=_WARNING,
            ),
        ),
        near_misses=("NCCL WARN Call to ibv_create_qp failed",),
    ),
    LogRow(
        id="V2",
        kind="ib_verbs_failed",
        severity=_CRITICAL,
        anchor="Call to ",
        pattern=r"Call to (?P<status>(?!ibv_modify_qp|ibv_open_device)"
        r"(?:ibv|mlx5dv)_\w{1,80})(?:\(\))? (?:failed(?: with error "
        rf"(?:(?P<errno>\d{{1,20}}) )?(?P<errno_text>{ERRNO_TEXT}))?"
        r"(?: errno (?P<errno_2>\d{1,20}))?|returned (?P<returned>-?\d{1,20}))",
        versions="2.3-2.30",
        meaning="A verbs call failed: locked memory, queue pair or memory region "
        "limits, or the device is gone.",
        examples=(
            Wording(
                "NCCL WARN Call to ibv_create_qp failed",
                "2.3-2.12",
                status="ibv_create_qp",
            ),
            Wording(
                "NCCL WARN Call to ibv_get_async_event failed",
                "2.3-2.12",
                status="ibv_get_async_event",
                severity=_ERROR,
            ),
            Wording(
                "NCCL WARN Call to ibv_reg_mr_iova2 failed with error Cannot allocate"
                " memory",
                "2.13-2.18",
                status="ibv_reg_mr_iova2",
            ),
            Wording(
                "NCCL WARN Call to ibv_create_cq failed with error Cannot allocate"
                " memory errno 12",
                "2.19-2.30",
                status="ibv_create_cq",
            ),
            Wording(
                "NCCL WARN Call to ibv_poll_cq() returned -1",
                "2.3-2.30",
                status="ibv_poll_cq",
            ),
        ),
        near_misses=(
            "NCCL WARN Call to ibv_modify_qp failed",
            "NCCL WARN Call to connect failed : Connection refused",
        ),
    ),
    LogRow(
        id="V3",
        kind="ib_verbs_failed",
        severity=_CRITICAL,
        anchor="() failed with error ",
        pattern=r"(?P<status>ibv_post_(?:send|recv))\(\) failed with error "
        rf"(?P<errno_text>{ERRNO_TEXT})(?:, Bad WR (?P<request>\w+))?",
        versions="2.3-2.30",
        meaning="A work request was not accepted: queue full, or the queue pair is in "
        "error.",
        examples=(
            Wording(
                "NCCL WARN ibv_post_send() failed with error Cannot allocate memory,"
                " Bad WR 0x7f00, First WR 0x7f00",
                "2.3-2.30",
                status="ibv_post_send",
            ),
        ),
        near_misses=("NCCL WARN ibv_post_srq() failed with error Invalid argument",),
    ),
    LogRow(
        id="V4",
        kind="ib_device_open_failed",
        severity=_CRITICAL,
        anchor="Unable to ",
        pattern=r"NET/IB ?: Unable to (?P<operation>open device|query device|"
        r"query port(?:_num)?) (?P<device>[^\s,]+)",
        versions="2.3-2.30",
        meaning="A device is visible but cannot be opened: no /dev/infiniband in the "
        "container, or no rights.",
        examples=(
            Wording(
                "NCCL WARN NET/IB : Unable to open device mlx5_bond_0",
                "2.3-2.28",
                device="mlx5_bond_0",
            ),
            Wording(
                "NCCL WARN NET/IB: Unable to query port_num 1",
                "2.29-2.30",
                device="1",
            ),
            Wording(
                "NCCL WARN NET/IB : Unable to query device mlx5_1",
                "2.3-2.30",
                device="mlx5_1",
            ),
        ),
        near_misses=("NCCL WARN Unable to open file /etc/nccl.conf",),
    ),
    LogRow(
        id="V4b",
        kind="ib_device_open_failed",
        severity=_CRITICAL,
        anchor="Call to ibv_open_device failed",
        pattern=r"Call to ibv_open_device failed"
        rf"(?: with error (?P<errno_text>{ERRNO_TEXT}))?(?: errno (?P<errno>\d{{1,20}}))?",
        versions="2.3-2.30",
        meaning="A device is visible but cannot be opened; the next line names it.",
        examples=(
            Wording("NCCL WARN Call to ibv_open_device failed", "2.3-2.12"),
            Wording(
                "NCCL WARN Call to ibv_open_device failed with error Permission denied"
                " errno 13",
                "2.13-2.30",
            ),
        ),
        near_misses=("NCCL WARN Call to ibv_close_device failed",),
    ),
    LogRow(
        id="V5",
        kind="ib_no_device",
        severity=_INFO,
        anchor=": No device found",
        pattern=r"NET/IB ?: No device found",
        versions="2.3-2.30",
        meaning="No RDMA device is usable: normal on a node without one, a fault where "
        "one was to be used.",
        examples=(
            Wording("NCCL INFO NET/IB : No device found.", "2.3-2.28"),
            Wording("NCCL INFO NET/IB: No device found.", "2.29-2.30"),
        ),
        near_misses=("NCCL WARN no device found matching eth0",),
    ),
    LogRow(
        id="V6",
        kind="ib_library_missing",
        severity=_INFO,
        anchor="Failed to open lib",
        pattern=r"Failed to open (?P<status>lib(?:ibverbs|mlx5)\.so)",
        versions="2.3-2.30",
        meaning="The verbs library is not installed: normal on a node without RDMA.",
        examples=(
            Wording(
                "NCCL WARN Failed to open libibverbs.so[.1]",
                "2.3-2.30",
                status="libibverbs.so",
            ),
            Wording(
                "NCCL INFO NET/IB : Failed to open libmlx5.so[.1]",
                "2.27-2.30",
                status="libmlx5.so",
            ),
        ),
        near_misses=("NCCL WARN Failed to open libcudart.so",),
        cause="no_rdma_device",
    ),
    LogRow(
        id="V6b",
        kind="ib_library_missing",
        severity=_INFO,
        anchor="Failed to open mlx5dv symbols",
        pattern=r"(?P<status>Failed to open mlx5dv symbols)",
        versions="2.27-2.30",
        meaning="The installed verbs library is older than Data Direct: no fault.",
        examples=(
            Wording("NCCL INFO NET/IB : Failed to open mlx5dv symbols", "2.27-2.30"),
        ),
        near_misses=("NCCL INFO NET/IB : opened mlx5dv symbols",),
    ),
    LogRow(
        id="V6c",
        kind="ib_library_missing",
        severity=_INFO,
        anchor="dlvsym failed on ",
        pattern=r"dlvsym failed on (?P<status>(?:mlx5dv|ibv)_\w+)",
        versions="2.27-2.30",
        meaning="The installed verbs library lacks an optional call: no fault.",
        examples=(
            Wording(
                "NCCL WARN dlvsym failed on mlx5dv_get_data_direct_sysfs_path -"
                " /usr/lib/libmlx5.so: undefined symbol",
                "2.27-2.30",
                status="mlx5dv_get_data_direct_sysfs_path",
            ),
        ),
        near_misses=("NCCL WARN dlvsym failed on cuGetProcAddress",),
    ),
    LogRow(
        id="V7",
        kind="rccl_ib_count",
        severity=_INFO,
        anchor="RCCL: Detected ",
        pattern=r"RCCL: Detected (?P<devices>\d+) IB devices",
        versions="2.30",
        meaning="How many RDMA devices RCCL sees; none is the same as `ib_no_device`.",
        examples=(
            Wording("NCCL WARN RCCL: Detected 8 IB devices", "2.30"),
            Wording(
                "NCCL WARN RCCL: Detected 0 IB devices",
                "2.30",
                kind="ib_no_device",
            ),
        ),
        near_misses=("NCCL WARN RCCL: Detected 8 GPUs",),
        library="rccl",
    ),
)
