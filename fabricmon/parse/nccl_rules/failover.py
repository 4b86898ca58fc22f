"""Failover inside merged NICs."""

from __future__ import annotations

from fabricmon.parse.log_event import LogSeverity
from fabricmon.parse.nccl_rules.row import LogRow, Wording

_INFO, _WARNING = LogSeverity.INFO, LogSeverity.WARNING
_ERROR, _CRITICAL = LogSeverity.ERROR, LogSeverity.CRITICAL

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
