"""Rows of the InfiniBand and RoCE transport: completions, events, verbs, failover."""

from __future__ import annotations

from fabricmon.parse.log_event import LogSeverity
from fabricmon.parse.nccl_rules.pieces import DEVICE, ERRNO_TEXT, PEER, PORT
from fabricmon.parse.nccl_rules.row import LogRow, Wording

_INFO, _WARNING = LogSeverity.INFO, LogSeverity.WARNING
_ERROR, _CRITICAL = LogSeverity.ERROR, LogSeverity.CRITICAL

COMPLETIONS: tuple[LogRow, ...] = (
    LogRow(
        id="C2",
        kind="gin_completion_error",
        severity=_CRITICAL,
        anchor="NET/IB/GIN: Got completion from peer ",
        pattern=rf"NET/IB/GIN: Got completion from peer {PEER}"
        r" with status=(?:[A-Z]\w*\()?(?P<status>\d+)",
        versions="2.28-2.30",
        meaning="A GPU-initiated transfer failed on its queue pair.",
        examples=(
            Wording(
                "NCCL WARN NET/IB/GIN: Got completion from peer 10.0.0.7<4791> with"
                " status=12 opcode=0 len=0 vendor err 129",
                "2.28-2.29",
                peer="10.0.0.7",
                status=12,
            ),
            Wording(
                "NCCL WARN NET/IB/GIN: Got completion from peer gpu-7<40112> with"
                " status=10 opcode=1 vendor_err=136",
                "2.30",
                peer="gpu-7",
                status=10,
                severity=_ERROR,
            ),
        ),
        near_misses=("NET/IB/GIN: Got completion from peer 10.0.0.7<4791>",),
    ),
    LogRow(
        id="C1",
        kind="ib_completion_error",
        severity=_CRITICAL,
        anchor="Got completion",
        pattern=rf"Got completion(?: from peer {PEER})?(?: [a-z.]+){{0,3}}? (?:error |status=)"
        r"(?:(?P<status_name>[A-Z]\w*)\()?(?P<status>\d+)",
        versions="2.3-2.30",
        meaning="A work request failed: the status says how, the peer is the TCP "
        "address of the other end.",
        examples=(
            Wording(
                "NCCL WARN NET/IB : Got completion with error 12, opcode 1, len 0,"
                " vendor err 129",
                "2.3-2.9",
                status=12,
            ),
            Wording(
                "NCCL WARN NET/IB : Got completion from peer gnode48<37311> with error"
                " 12, opcode 2, len 1, vendor err 129",
                "2.10-2.17",
                peer="gnode48",
                status=12,
            ),
            Wording(
                "NCCL WARN NET/IB : Got completion from peer"
                " fe80::b3d2:ef04:9c:2289%ib0<53102> with error 4, opcode 32564, len"
                " 32564, vendor err 81 (Send)",
                "2.18-2.19",
                peer="fe80::b3d2:ef04:9c:2289%ib0",
                status=4,
            ),
            Wording(
                "NCCL WARN NET/IB : Got completion from peer 10.131.26.70<54310> with"
                " status=12 opcode=0 len=0 vendor err 129 (Recv) localGid fd42:779d::77"
                " remoteGidsfd42:779d::65",
                "2.20-2.21",
                peer="10.131.26.70",
                status=12,
            ),
            Wording(
                "NCCL WARN NET/IB: Got completion from peer 192.168.17.1<53811> with"
                " status=5 opcode=32552 len=32549 vendor err 249 (Recv) localGid"
                " ::ffff:192.168.20.8 remoteGids::ffff:192.168.20.1 hca mlx5_10",
                "2.22-2.28.3",
                device="mlx5_10",
                peer="192.168.17.1",
                status=5,
                severity=_ERROR,
            ),
            Wording(
                "NCCL WARN NET/IB: Got completion from peer 10.1.2.3<40000> with"
                " status=IBV_WC_RETRY_EXC_ERR(12) opcode=IBV_WC_SEND(0) reqSize=4096"
                " vendor_err=129 req_type=Send localGid ::ffff:10.9.0.1"
                " remoteGids::ffff:10.9.0.2 hca mlx5_3",
                "2.28.7-2.28.9",
                device="mlx5_3",
                peer="10.1.2.3",
                status=12,
            ),
            Wording(
                "NCCL WARN NET/IB: Got completion from peer 10.1.2.3<40000> with"
                " status=IBV_WC_REM_OP_ERR(11) opcode=IBV_WC_RDMA_WRITE(1)"
                " vendor_err=137  localGid ::ffff:10.9.0.1"
                " remoteGids::ffff:10.9.0.2 hca mlx5_3",
                "2.29-2.30",
                device="mlx5_3",
                peer="10.1.2.3",
                status=11,
            ),
            Wording(
                "NET/IB : Got completion ... status=IBV_WC_REM_INV_REQ_ERR(9)"
                " opcode=IBV_WC_RECV(128)",
                "2.28.7-2.30",
                status=9,
            ),
        ),
        near_misses=(
            "NCCL INFO NET/IB: Got completion for request 3, opcode 1",
            "NCCL INFO Got completed with error",
        ),
    ),
    LogRow(
        id="C3",
        kind="cqe_error_detail",
        severity=_INFO,
        anchor="Got CQE with error (devIndex=",
        pattern=r"Got CQE with error \(devIndex=(?P<device_index>\d{1,9})"
        r".{0,200}?qp_num=(?P<qp>\d{1,20})",
        versions="2.29-2.30",
        meaning="Which queue pair and which device of a merged NIC a failed completion "
        "came from.",
        examples=(
            Wording(
                "NCCL INFO NET/IB: ncclIbHandleCqe: Got CQE with error (devIndex=1,"
                " qpIndex=0, qp_num=4711, status=12)",
                "2.29-2.30",
            ),
        ),
        near_misses=("NET/IB: Got CQE (devIndex=1, qp_num=4711)",),
    ),
)

EVENTS: tuple[LogRow, ...] = (
    LogRow(
        id="A1",
        kind="ib_async_event",
        severity=_WARNING,
        anchor="Got async ",
        pattern=rf"(?:{DEVICE}:{PORT} )?Got async (?:error )?event ?: "
        r"(?P<status>[A-Za-z_]{1,40}(?: [A-Za-z_]{1,40}){0,8})",
        versions="2.3-2.28.3",
        meaning="The device reported an event; its text says how bad it is.",
        examples=(
            Wording(
                "NCCL WARN NET/IB : Got async event : port error",
                "2.3-2.19",
                status="port error",
                severity=_CRITICAL,
            ),
            Wording(
                "NCCL WARN NET/IB : mlx5_0:1 Got async event : local access violation"
                " work queue error",
                "2.20-2.22",
                device="mlx5_0",
                port=1,
                status="local access violation work queue error",
                severity=_CRITICAL,
            ),
            Wording(
                "NCCL WARN NET/IB : mlx5_bond_0:1 Got async error event: port active",
                "2.23-2.28.3",
                device="mlx5_bond_0",
                port=1,
                status="port active",
                severity=_INFO,
            ),
        ),
        near_misses=("NET/IB : mlx5_0:1 Got non-fatal async event: port active(9)",),
    ),
    LogRow(
        id="A2",
        kind="ib_async_event",
        severity=_CRITICAL,
        anchor=" async fatal event",
        pattern=rf"{DEVICE}:{PORT} async fatal event"
        r"(?: on (?P<object>QP|CQ|SRQ)(?:, unused for now)?(?: \((?P<pointer>\w{1,80})\))?"
        r"(?P<attributes>(?:,? \w{1,40}=\w{1,40}){0,4}))?: (?P<status>[^()]{1,80})",
        versions="2.23-2.30",
        meaning="A queue or the device is broken: the next call fails.",
        examples=(
            Wording(
                "NCCL WARN NET/IB : mlx5_1:1 async fatal event on QP (0x73a1dc3bb338):"
                " invalid request local work queue error",
                "2.23-2.30.4",
                device="mlx5_1",
                port=1,
                status="invalid request local work queue error",
            ),
            Wording(
                "NCCL WARN NET/IB : mlx5_1:1 async fatal event: local catastrophic"
                " error",
                "2.23-2.30",
                device="mlx5_1",
                port=1,
                status="local catastrophic error",
            ),
            Wording(
                "NCCL WARN NET/IB : mlx5_4:1 async fatal event on SRQ, unused for now"
                " (0x7f00): SRQ catastrophic error",
                "2.23-2.30",
                device="mlx5_4",
                port=1,
            ),
            Wording(
                "NCCL WARN NET/IB : mlx5_1:1 async fatal event on QP (0x7f00) qpn=4711"
                " psn=12: local work queue catastrophic error",
                "2.30.7",
                device="mlx5_1",
                port=1,
                status="local work queue catastrophic error",
            ),
            Wording(
                "NET/IB : bnxt_re0:1 async fatal event on QP: invalid request local"
                " work queue error",
                "2.30",
                device="bnxt_re0",
                port=1,
            ),
        ),
        near_misses=("NET/IB : mlx5_1:1 Got non-fatal async event: SM change(13)",),
    ),
    LogRow(
        id="A3",
        kind="ib_async_event",
        severity=_WARNING,
        anchor="Got non-fatal async event: ",
        pattern=rf"(?:{DEVICE}:{PORT} )?Got non-fatal async event: "
        r"(?P<status>[^(]{1,80})\((?P<code>\d+)\)",
        versions="2.28.7-2.30",
        meaning="The device reported an event; its text and code say how bad it is.",
        examples=(
            Wording(
                "NCCL WARN NET/IB : mlx5_3:1 Got non-fatal async event: port error(10)",
                "2.28.7-2.30",
                device="mlx5_3",
                port=1,
                status="port error",
                severity=_CRITICAL,
            ),
            Wording(
                "NCCL WARN NET/IB : mlx5_3:1 Got non-fatal async event: client"
                " reregistration(17)",
                "2.28.7-2.30",
                device="mlx5_3",
                port=1,
                status="client reregistration",
            ),
        ),
        near_misses=("NET/IB : mlx5_3:1 Got non-fatal async event: ",),
    ),
    LogRow(
        id="A4",
        kind="ib_async_event",
        severity=_WARNING,
        anchor=" GID table changed",
        pattern=rf"{DEVICE}:{PORT} (?P<status>GID table changed)",
        versions="2.28.3-2.30",
        meaning="An address of the port changed: later connections may use a stale "
        "index.",
        examples=(
            Wording(
                "NCCL WARN NET/IB : mlx5_2:1 GID table changed",
                "2.28.3-2.30",
                device="mlx5_2",
                port=1,
            ),
        ),
        near_misses=("NET/IB : GID table changed",),
        cause="gid_change",
    ),
    LogRow(
        id="A5",
        kind="ib_async_event",
        severity=_WARNING,
        anchor=" unknown event type (",
        pattern=rf"{DEVICE}:{PORT} unknown event type \((?P<code>\d+)\)",
        versions="2.23-2.30",
        meaning="An event that the library does not know; until 2.27 also a changed "
        "GID table (18).",
        examples=(
            Wording(
                "NCCL WARN NET/IB : mlx5_2:1 unknown event type (18)",
                "2.23-2.27",
                device="mlx5_2",
                port=1,
                status="GID table change",
            ),
            Wording(
                "NCCL WARN NET/IB : mlx5_2:1 unknown event type (99)",
                "2.28-2.30",
                device="mlx5_2",
                port=1,
                status=99,
            ),
        ),
        near_misses=("NET/IB : mlx5_2:1 unknown event type",),
    ),
    LogRow(
        id="A6",
        kind="link_speed_change",
        severity=_WARNING,
        anchor=" speed change detected: ",
        pattern=rf"{DEVICE}:{PORT} speed change detected: (?P<old_mbps>\d+) -> "
        r"(?P<new_mbps>\d+|N/A) Mbps",
        versions="2.30.7",
        meaning="The port trained to another rate.",
        examples=(
            Wording(
                "NCCL WARN NET/IB : mlx5_2:1 speed change detected: 400000 -> 200000"
                " Mbps",
                "2.30.7",
                device="mlx5_2",
                port=1,
                status="400000/200000",
            ),
        ),
        near_misses=("NET/IB : mlx5_2:1 speed 400000 Mbps",),
        cause="link_retrained",
    ),
    LogRow(
        id="A7",
        kind="ib_comm_fatal",
        severity=_CRITICAL,
        anchor="communicator encountered a fatal error (detected in ",
        pattern=r"communicator encountered a fatal error "
        r"\(detected in (?P<function>\w+)\)",
        versions="2.23-2.30",
        meaning="A call failed because of a fatal event that was logged before.",
        examples=(
            Wording(
                "NCCL WARN NET/IB: communicator encountered a fatal error (detected in"
                " ncclIbTest)",
                "2.23-2.30",
            ),
        ),
        near_misses=("NCCL WARN communicator encountered an error",),
    ),
)

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

_MERGED = "the index is that inside a merged NIC"
FAILOVER: tuple[LogRow, ...] = (
    LogRow(
        id="R1",
        kind="resiliency_device_failed",
        severity=_CRITICAL,
        anchor=" marked as failed.",
        pattern=r"Device (?P<device>\d+) marked as failed\."
        r"(?: Initiating recovery\? (?P<recovery>Yes|No))?"
        r"(?: \((?:(?P<direction>send|recv) )?comm=(?P<net_comm>0x\w+))?",
        versions="2.29.7-2.30",
        meaning="A NIC of a merged pair failed and its traffic moved to the other: the "
        f"job goes on at less bandwidth; {_MERGED}.",
        examples=(
            Wording(
                "NCCL WARN NET/IB: ncclIbResiliencyHandleDeviceFailure: Device 0 marked"
                " as failed. (send comm=0x7f03e8086000)",
                "2.29.7-2.30.2",
                device="0",
            ),
            Wording(
                "NCCL WARN NET/IB: ncclIbResiliencyHandleDeviceFailure: Device 0 marked"
                " as failed. Initiating recovery? Yes (send comm=0x7f03e8086000,"
                " outstandingRecovery=0)",
                "2.30.3-2.30.4",
                device="0",
                status="recovery=Yes",
            ),
            Wording(
                "NCCL WARN NET/IB: Device 1 marked as failed. Initiating recovery? No"
                " (recv comm=0x7f03e8086000, outstandingRecovery=0)",
                "2.30.7",
                device="1",
                status="recovery=No",
            ),
        ),
        near_misses=("NCCL WARN NET/IB: Device 0 marked as permanently failed",),
        cause="link_down",
    ),
    LogRow(
        id="R2",
        kind="resiliency_qp_replaced",
        severity=_WARNING,
        anchor="Replacing QP: qpIndex=",
        pattern=r"Replacing QP: qpIndex=(?P<qp_index>\d+) \(qp_num=(?P<qp>\d+), "
        r"devIndex=(?P<device>\d+)\) to qpIndex=\d+ \(qp_num=(?P<new_qp>\d+), "
        r"devIndex=(?P<new_device>\d+)\)",
        versions="2.29.7-2.30",
        meaning=f"A queue pair moved to the other NIC of a merged pair; {_MERGED}.",
        examples=(
            Wording(
                "NCCL INFO NET/IB: ncclIbResiliencyReplaceQp: Replacing QP: qpIndex=0"
                " (qp_num=11, devIndex=0) to qpIndex=1 (qp_num=12, devIndex=1)",
                "2.29.7-2.30",
                device="0",
            ),
        ),
        near_misses=("NCCL INFO NET/IB: Replacing QP 11 by 12",),
    ),
    LogRow(
        id="R3",
        kind="resiliency_fatal",
        severity=_CRITICAL,
        anchor="The error is fatal (",
        pattern=r"The error is fatal \((?P<status>[^)]*)\)",
        versions="2.29.7-2.30",
        meaning="A failed NIC could not be replaced by the other of its pair.",
        examples=(
            Wording(
                "NCCL WARN NET/IB: ncclIbResiliencyHandleCompletionError: The error is"
                " fatal (status=4)",
                "2.29.7-2.30",
            ),
        ),
        near_misses=("NCCL WARN NET/IB: The error is not fatal",),
    ),
    LogRow(
        id="R3b",
        kind="resiliency_fatal",
        severity=_CRITICAL,
        anchor="Fatal error. Detected ",
        pattern=r"Fatal error\. Detected (?P<failed>\d+) failed devices out of "
        r"(?P<devices>\d+)",
        versions="2.29.7-2.30",
        meaning="All NICs of a merged pair have failed.",
        examples=(
            Wording(
                "NCCL WARN NET/IB: Fatal error. Detected 2 failed devices out of 2",
                "2.29.7-2.30",
                status="2/2",
            ),
        ),
        near_misses=("NCCL WARN NET/IB: Detected 2 devices",),
    ),
    LogRow(
        id="R3c",
        kind="resiliency_fatal",
        severity=_CRITICAL,
        anchor="Could not find a ",
        pattern=r"(?P<status>Could not find a (?:replacement QP|functional device))",
        versions="2.29.7-2.30",
        meaning="No NIC of a merged pair is left to move traffic to.",
        examples=(
            Wording(
                "NCCL WARN NET/IB: Could not find a replacement QP (qpIndex=0)",
                "2.29.7-2.30",
            ),
            Wording(
                "NCCL WARN NET/IB: Could not find a functional device", "2.29.7-2.30"
            ),
        ),
        near_misses=("NCCL WARN Could not find a path for pattern 4",),
    ),
    LogRow(
        id="R3d",
        kind="resiliency_fatal",
        severity=_CRITICAL,
        anchor="Maximum number of probing attempts",
        pattern=r"(?P<status>Maximum number of probing attempts)",
        versions="2.29.7-2.30",
        meaning="The other end did not answer probes after a failure.",
        examples=(
            Wording(
                "NCCL WARN NET/IB: Maximum number of probing attempts (5) reached",
                "2.29.7-2.30",
            ),
        ),
        near_misses=("NCCL INFO NET/IB: probing attempt 1",),
    ),
    LogRow(
        id="R4",
        kind="resiliency_retransmit",
        severity=_INFO,
        anchor="NET/IB",
        pattern=r"NET/IB ?: (?:\w+: )?(?P<status>Retransmitting|Reposting|"
        r"Skipping retransmission|Missing data from QP)",
        versions="2.29.7-2.30",
        meaning="Transfers of a failed NIC are sent again over the other.",
        examples=(
            Wording(
                "NCCL INFO NET/IB: ncclIbResiliencyRetransmit: Retransmitting request"
                " 12",
                "2.29.7-2.30.4",
                status="Retransmitting",
            ),
            Wording(
                "NCCL INFO NET/IB: Reposting request 12 on qp 3",
                "2.30.7",
                status="Reposting",
            ),
        ),
        near_misses=("NCCL INFO NET/IB: Transmitting request 12",),
    ),
    LogRow(
        id="R5",
        kind="resiliency_recovered",
        severity=_WARNING,
        anchor=" has been recovered",
        pattern=r"Device (?P<device>\d+) has been recovered",
        versions="2.30.3-2.30",
        meaning=f"A failed NIC of a merged pair is in use again; {_MERGED}.",
        examples=(
            Wording(
                "NCCL INFO NET/IB: Device 0 has been recovered",
                "2.30.3-2.30",
                device="0",
            ),
        ),
        near_misses=("NCCL INFO NET/IB: Device 0 has failed",),
    ),
    LogRow(
        id="R5b",
        kind="resiliency_recovered",
        severity=_WARNING,
        anchor="Port recovery succeeded for devIndex=",
        pattern=r"Port recovery succeeded for devIndex=(?P<device>\d+)",
        versions="2.30.3-2.30",
        meaning=f"The port of a failed NIC works again; {_MERGED}.",
        examples=(
            Wording(
                "NCCL INFO NET/IB: Port recovery succeeded for devIndex=1",
                "2.30.3-2.30",
                device="1",
            ),
        ),
        near_misses=("NCCL INFO NET/IB: Port recovery started for devIndex=1",),
    ),
    LogRow(
        id="R5c",
        kind="resiliency_recovered",
        severity=_WARNING,
        anchor=" as recovered",
        pattern=r"Marking device (?P<device>\d+) as recovered",
        versions="2.30.3-2.30",
        meaning=f"A failed NIC of a merged pair is in use again; {_MERGED}.",
        examples=(
            Wording(
                "NCCL INFO NET/IB: Marking device 0 as recovered",
                "2.30.3-2.30",
                device="0",
            ),
        ),
        near_misses=("NCCL INFO NET/IB: Marking device 0 as permanently failed",),
    ),
    LogRow(
        id="R6",
        kind="resiliency_recovery_failed",
        severity=_CRITICAL,
        anchor="Port recovery ",
        pattern=r"Port recovery (?:attempt #(?P<attempt>\d+) )?failed for"
        r"(?: devIndex=(?P<device>\d+))?",
        versions="2.30.3-2.30",
        meaning="The port of a failed NIC did not come back: half the bandwidth stays "
        "lost.",
        examples=(
            Wording(
                "NCCL INFO NET/IB: Port recovery attempt #5 failed for devIndex=0",
                "2.30.3-2.30",
                device="0",
            ),
            Wording(
                "NCCL INFO NET/IB: Port recovery failed for comm 0x7f00", "2.30.3-2.30"
            ),
        ),
        near_misses=("NCCL INFO NET/IB: Port recovery succeeded for devIndex=0",),
    ),
    LogRow(
        id="R6b",
        kind="resiliency_recovery_failed",
        severity=_CRITICAL,
        anchor=" as permanently failed",
        pattern=r"Marking device (?P<device>\d+) as permanently failed",
        versions="2.30.3-2.30",
        meaning="A failed NIC is given up until the communicator is made anew.",
        examples=(
            Wording(
                "NCCL INFO NET/IB: Marking device 0 as permanently failed",
                "2.30.3-2.30",
                device="0",
            ),
        ),
        near_misses=("NCCL INFO NET/IB: Marking device 0 as recovered",),
    ),
    LogRow(
        id="R6c",
        kind="resiliency_recovery_failed",
        severity=_CRITICAL,
        anchor="Recovery for device ",
        pattern=r"Recovery for device (?P<device>\d+) failed",
        versions="2.30.3-2.30",
        meaning="A failed NIC did not come back.",
        examples=(
            Wording(
                "NCCL INFO NET/IB: Recovery for device 1 failed",
                "2.30.3-2.30",
                device="1",
            ),
        ),
        near_misses=("NCCL INFO NET/IB: Recovery for device 1 started",),
    ),
    LogRow(
        id="R6d",
        kind="resiliency_recovery_failed",
        severity=_CRITICAL,
        anchor="will not be attempted to be recovered",
        pattern=r"(?P<status>will not be attempted to be recovered)",
        versions="2.30.3-2.30",
        meaning="A failed NIC is given up.",
        examples=(
            Wording(
                "NCCL INFO NET/IB: Device 1 will not be attempted to be recovered",
                "2.30.3-2.30",
            ),
        ),
        near_misses=("NCCL INFO NET/IB: Device 1 will be attempted to be recovered",),
    ),
)

ROWS: tuple[LogRow, ...] = (*COMPLETIONS, *EVENTS, *VERBS, *FAILOVER)
