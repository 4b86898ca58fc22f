"""Asynchronous events of devices and ports."""

from __future__ import annotations

from fabricmon.parse.log_event import LogSeverity
from fabricmon.parse.nccl_rules.pieces import DEVICE, PORT
from fabricmon.parse.nccl_rules.row import LogRow, Wording

_INFO, _WARNING = LogSeverity.INFO, LogSeverity.WARNING
_ERROR, _CRITICAL = LogSeverity.ERROR, LogSeverity.CRITICAL

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
