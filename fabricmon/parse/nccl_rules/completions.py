"""Work completions that ended in an error."""

from __future__ import annotations

from fabricmon.parse.log_event import LogSeverity
from fabricmon.parse.nccl_rules.pieces import PEER
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
