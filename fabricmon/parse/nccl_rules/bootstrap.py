"""Bootstrap, and agreement of ranks."""

from __future__ import annotations

from fabricmon.parse.log_event import LogSeverity
from fabricmon.parse.nccl_rules.pieces import PEER
from fabricmon.parse.nccl_rules.row import LogRow, Wording

_INFO, _WARNING = LogSeverity.INFO, LogSeverity.WARNING
_ERROR, _CRITICAL = LogSeverity.ERROR, LogSeverity.CRITICAL


def _interface_row(
    name: str, text: str, example: str, version: str, more: str = ""
) -> LogRow:
    return LogRow(
        id=name,
        kind="bootstrap_interface_error",
        severity=_ERROR,
        anchor=text,
        pattern=f"(?P<status>{text}{more})",
        versions=version,
        meaning="No interface is usable for the out-of-band connections.",
        examples=(Wording(f"NCCL WARN {example}", version),),
        near_misses=("NCCL INFO Bootstrap : Using eth0:10.0.0.1<0>",),
        cause="wrong_interface",
    )


BOOTSTRAP: tuple[LogRow, ...] = (
    LogRow(
        id="S8",
        kind="bootstrap_interface_error",
        severity=_ERROR,
        anchor="No interface found in the same subnet as remote address ",
        pattern=rf"No interface found in the same subnet as remote address {PEER}",
        versions="2.3-2.30",
        meaning="No interface is in the network of the other end, as from within a "
        "container's bridge.",
        examples=(
            Wording(
                "NCCL WARN Net : No interface found in the same subnet as remote"
                " address 192.168.86.25<27030>",
                "2.3-2.30",
                peer="192.168.86.25",
            ),
        ),
        near_misses=("NCCL WARN No interface found",),
        cause="wrong_interface",
    ),
    _interface_row(
        "S8b",
        "no socket interface found",
        "Bootstrap : no socket interface found",
        "2.3-2.30",
    ),
    _interface_row(
        "S8c",
        "no device found ",
        "NET/Socket : no device found matching eth9",
        "2.3-2.30",
        "(?:matching|after excluding)",
    ),
    _interface_row(
        "S8d",
        "NET/Socket : no interface found",
        "NET/Socket : no interface found",
        "2.3-2.30",
    ),
    _interface_row(
        "S8e",
        "No usable listening interface found",
        "No usable listening interface found",
        "2.24-2.30",
    ),
    _interface_row(
        "S8f",
        "No IP interface found",
        "NET/IB : No IP interface found (starting with eth9).",
        "2.3-2.30",
    ),
    LogRow(
        id="S10",
        kind="bootstrap_using",
        severity=_INFO,
        anchor=": Using ",
        pattern=r"Bootstrap ?: Using (?P<interfaces>(?:\[\d+\])?\S+(?: \[\d+\]\S+)*)",
        versions="2.3-2.30",
        meaning="The interface of the out-of-band connections. A bridge of containers, "
        "a link-local address or the loopback is `suspicious_interface`.",
        examples=(
            Wording(
                "NCCL INFO Bootstrap : Using [0]eth0:172.17.0.3<0>",
                "2.3-2.8",
                device="eth0",
            ),
            Wording(
                "NCCL INFO Bootstrap : Using eth0:10.124.183.169<0>",
                "2.9-2.23",
                device="eth0",
            ),
            Wording(
                "NCCL INFO Bootstrap: Using enp71s0:10.138.84.29<0>",
                "2.24-2.30",
                device="enp71s0",
            ),
        ),
        near_misses=("NCCL INFO NET/Socket : Using [0]eth0:172.17.0.3<0>",),
    ),
    LogRow(
        id="S11",
        kind="bootstrap_mismatch",
        severity=_ERROR,
        anchor="Bootstrap Root : ",
        pattern=r"Bootstrap Root : (?:(?P<status>mismatch in [\w ]{1,60})|"
        r"rank (?P<rank>\d+) of (?P<ranks>\d+) ranks has already checked in)",
        versions="2.3-2.30",
        meaning="Two jobs share a rendezvous, or one rank was started twice.",
        examples=(
            Wording(
                "NCCL WARN Bootstrap Root : mismatch in rank count from procs 16 : 8",
                "2.3-2.30",
            ),
            Wording(
                "NCCL WARN Bootstrap Root : rank 3 of 8 ranks has already checked in",
                "2.3-2.30",
            ),
        ),
        near_misses=("NCCL INFO Bootstrap Root : done",),
    ),
    LogRow(
        id="S12",
        kind="collective_mismatch",
        severity=_WARNING,
        anchor="message truncated",
        pattern=r"message truncated ?: ?receiving (?P<got>\d+) bytes instead of "
        r"(?P<expected>\d+)",
        versions="2.3-2.30",
        meaning="Ranks disagree on an operation: application or environment, not the "
        "fabric.",
        examples=(
            Wording(
                "NCCL WARN NET/Socket : message truncated : receiving 696320 bytes"
                " instead of 32768",
                "2.3-2.30",
                status="696320/32768",
            ),
        ),
        near_misses=("NCCL WARN NET/Socket : message received",),
        cause="application",
    ),
    LogRow(
        id="S12b",
        kind="collective_mismatch",
        severity=_WARNING,
        anchor="collective mismatch error",
        pattern=rf"(?:peer {PEER} )?collective mismatch error"
        r"(?:,? local size (?P<got>\d{1,20}) remote (?:size )?(?P<expected>\d{1,20}))?",
        versions="2.3-2.19",
        meaning="Ranks disagree on an operation: application or environment, not the "
        "fabric.",
        examples=(
            Wording(
                "NCCL WARN NET/IB : collective mismatch error local size 4096 remote"
                " 8192 addr 7f00 rkey 12",
                "2.3-2.11",
                status="4096/8192",
            ),
            Wording(
                "NCCL WARN NET/IB : req 0/1 tag 0 peer 10.88.17.8<58911> collective"
                " mismatch error, local size 496640 remote size 65536",
                "2.12-2.19",
                peer="10.88.17.8",
                status="496640/65536",
            ),
        ),
        near_misses=("NCCL WARN NET/IB : mismatch error",),
        cause="application",
    ),
    LogRow(
        id="S12c",
        kind="collective_mismatch",
        severity=_WARNING,
        anchor="posted incorrect receive info",
        pattern=rf"(?:peer {PEER} )?posted incorrect receive info"
        r"(?:: size (?P<expected>\d{1,20}))?",
        versions="2.12-2.30",
        meaning="Ranks disagree on an operation: application or environment, not the "
        "fabric.",
        examples=(
            Wording(
                "NCCL WARN NET/IB : req 0/1 tag 0 peer 10.88.17.8<58911> posted"
                " incorrect receive info: size 0 addr 0 rkeys[0]=0",
                "2.12-2.30",
                peer="10.88.17.8",
            ),
        ),
        near_misses=("NCCL INFO NET/IB : posted receive",),
        cause="application",
    ),
    LogRow(
        id="S12d",
        kind="collective_mismatch",
        severity=_WARNING,
        anchor="Message truncated : received ",
        pattern=r"Message truncated : received (?P<got>\d+) bytes instead of "
        r"(?P<expected>\d+)",
        versions="2.3-2.30",
        meaning="Ranks disagree on an operation: application or environment, not the "
        "fabric.",
        examples=(
            Wording(
                "NCCL WARN Message truncated : received 128 bytes instead of 256",
                "2.3-2.30",
                status="128/256",
            ),
        ),
        near_misses=("NCCL WARN Message received : 128 bytes",),
        cause="application",
    ),
    LogRow(
        id="S13",
        kind="socket_speed_unknown",
        severity=_INFO,
        anchor="Defaulting to 10 Gbps",
        pattern=r"Could not get speed (?:from|for interface) (?P<interface>\S+) "
        r"Defaulting to 10 Gbps",
        versions="2.12-2.30",
        meaning="An interface does not tell its speed, as virtual ones do not.",
        examples=(
            Wording(
                "NCCL INFO Could not get speed from /sys/class/net/eth0/speed."
                " Defaulting to 10 Gbps.",
                "2.12-2.26",
            ),
            Wording(
                "NCCL INFO Could not get speed for interface eth0. Defaulting to 10"
                " Gbps.",
                "2.27-2.30",
            ),
        ),
        near_misses=("NCCL INFO Could not get speed of eth0",),
        unscanned=True,
    ),
    LogRow(
        id="S13b",
        kind="socket_speed",
        severity=_INFO,
        anchor="Found network interface ",
        pattern=r"Found network interface (?P<device>\S+) with speed "
        r"(?P<speed_mbps>\d+) Mbps",
        versions="2.27-2.30",
        meaning="The speed of an interface as the library sees it.",
        examples=(
            Wording(
                "NCCL INFO Found network interface eth0 with speed 25000 Mbps",
                "2.27-2.30",
                device="eth0",
            ),
        ),
        near_misses=("NCCL INFO Found network interface eth0",),
        unscanned=True,
    ),
)
