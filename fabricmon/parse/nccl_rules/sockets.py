"""Rows of TCP: bootstrap and out-of-band connections, the proxy, result traces."""

from __future__ import annotations

from fabricmon.parse.log_event import LogSeverity
from fabricmon.parse.nccl_rules.pieces import ERRNO_TEXT, PEER
from fabricmon.parse.nccl_rules.row import LogRow, Wording

_INFO, _WARNING = LogSeverity.INFO, LogSeverity.WARNING
_ERROR, _CRITICAL = LogSeverity.ERROR, LogSeverity.CRITICAL

CONNECTIONS: tuple[LogRow, ...] = (
    LogRow(
        id="S1",
        kind="socket_connect_failed",
        severity=_CRITICAL,
        anchor="onnect to ",
        pattern=rf"onnect to {PEER} (?:failed ?: (?P<errno_text>{ERRNO_TEXT})|"
        r"returned (?P<status>\d+)\((?P<errno_text_2>[^)]*)\) errno \d+\(|"
        rf"returned (?P<errno_text_3>{ERRNO_TEXT}), exceeded error retry count"
        r" after (?P<attempts>\d+))",
        versions="2.3-2.23, 2.27-2.30",
        meaning="A node cannot be reached by TCP: firewall, wrong interface, or "
        "nobody listens there.",
        examples=(
            Wording(
                "NCCL WARN Connect to 10.45.38.182<21724> failed : Connection refused",
                "2.3-2.9",
                peer="10.45.38.182",
                status=111,
            ),
            Wording(
                "NCCL WARN Net : Connect to 10.45.38.182<21724> failed : No route to"
                " host",
                "2.10-2.15",
                peer="10.45.38.182",
                status=113,
            ),
            Wording(
                "NCCL WARN socketStartConnect: Connect to node-3<21724> failed :"
                " Software caused connection abort",
                "2.16-2.23",
                peer="node-3",
                status=103,
            ),
            Wording(
                "NCCL WARN socketPollConnect: Connect to 10.72.0.8<56712> returned"
                " 113(No route to host) errno 115(Operation now in progress)",
                "2.20-2.23",
                peer="10.72.0.8",
                status=113,
            ),
            Wording(
                "NCCL WARN socketPollConnect: connect to fe80::1%ib0<56712> returned"
                " Connection timed out, exceeded error retry count after 35 attempts",
                "2.27-2.30",
                peer="fe80::1%ib0",
                status=110,
            ),
        ),
        near_misses=(
            (
                "NCCL INFO connect to 10.0.0.1<1> returned Connection refused, retrying"
                " (1/34) after sleep for 100 msec"
            ),
        ),
    ),
    LogRow(
        id="S2",
        kind="socket_connect_failed",
        severity=_CRITICAL,
        anchor="onnect returned ",
        pattern=rf"onnect returned (?P<errno_text>{ERRNO_TEXT}), exceeded error retry"
        r" count(?: after (?P<attempts>\d+))?",
        versions="2.24-2.26",
        meaning="A node cannot be reached by TCP; the line does not say which.",
        examples=(
            Wording(
                "NCCL WARN socketPollConnect: connect returned Connection timed out,"
                " exceeded error retry count after 35 attempts",
                "2.24-2.26",
                status=110,
            ),
        ),
        near_misses=(
            (
                "NCCL INFO socketPollConnect: connect returned Connection timed out,"
                " retrying (1/34) after sleep for 100 msec"
            ),
        ),
    ),
    LogRow(
        id="S2b",
        kind="socket_connect_failed",
        severity=_CRITICAL,
        anchor=": exceeded ",
        pattern=r": (?P<what>exceeded (?:retries|timeouts)) \((?P<attempts>\d+)\)",
        versions="2.16-2.23",
        meaning="A node cannot be reached by TCP; the line does not say which.",
        examples=(
            Wording(
                "NCCL WARN socketStartConnect: exceeded retries (20000)", "2.16-2.23"
            ),
            Wording("NCCL WARN socketPollConnect: exceeded timeouts (3)", "2.16-2.23"),
        ),
        near_misses=("NCCL WARN NET/IB: exceeded limit (3)",),
    ),
    LogRow(
        id="S2c",
        kind="socket_connect_failed",
        severity=_CRITICAL,
        anchor="Call to connect ",
        pattern=r"Call to connect (?:failed|timeout)"
        rf"(?: ?: (?P<errno_text>{ERRNO_TEXT}))?",
        versions="2.3-2.23",
        meaning="A node cannot be reached by TCP; the line does not say which.",
        examples=(
            Wording(
                "NCCL WARN Call to connect failed : Connection timed out",
                "2.3-2.15",
                status=110,
            ),
            Wording("NCCL WARN Call to connect timeout", "2.8-2.23"),
        ),
        near_misses=(
            "NCCL INFO Call to connect returned Connection refused, retrying",
        ),
    ),
    LogRow(
        id="S3",
        kind="socket_connect_retry",
        severity=_WARNING,
        anchor=", retrying",
        pattern=r"Call to (?P<call>connect|accept) returned "
        rf"(?P<errno_text>{ERRNO_TEXT}), retrying",
        versions="2.3-2.23",
        meaning="A connection is tried again.",
        examples=(
            Wording(
                "NCCL INFO Call to connect returned Connection refused, retrying",
                "2.3-2.23",
                status=111,
            ),
            Wording(
                "NCCL INFO Call to accept returned Software caused connection abort,"
                " retrying",
                "2.10-2.23",
                status=103,
            ),
        ),
        near_misses=("NCCL WARN Call to connect failed : Connection refused",),
    ),
    LogRow(
        id="S3b",
        kind="socket_connect_retry",
        severity=_WARNING,
        anchor=", retrying (",
        pattern=rf"onnect (?:to {PEER} )?returned (?P<errno_text>{ERRNO_TEXT}), "
        r"retrying \((?P<attempt>\d+)/(?P<attempts>\d+)\) after sleep for "
        r"(?P<sleep_ms>\d+) msec",
        versions="2.24-2.30",
        meaning="A connection is tried again; the status says which try of how many.",
        examples=(
            Wording(
                "NCCL INFO socketPollConnect: connect returned Connection timed out,"
                " retrying (1/34) after sleep for 100 msec",
                "2.24-2.26",
                status="1/34",
            ),
            Wording(
                "NCCL INFO ncclOsSocketPollConnect: connect to 10.0.0.9<4444> returned"
                " Connection refused, retrying (2/34) after sleep for 200 msec",
                "2.27-2.30",
                peer="10.0.0.9",
                status="2/34",
            ),
        ),
        near_misses=(
            "NCCL INFO Call to connect returned Connection refused, retrying",
        ),
    ),
    LogRow(
        id="S4",
        kind="socket_reset",
        severity=_ERROR,
        anchor="Call to ",
        pattern=r"Call to (?P<call>recv|send|write|read)(?: from| to)?"
        rf"(?: (?!failed){PEER})? failed ?: (?P<errno_text>{ERRNO_TEXT})",
        versions="2.3-2.30",
        meaning="A TCP connection broke: the other node or what lies between reset it "
        "or does not answer.",
        examples=(
            Wording(
                "NCCL WARN Call to recv failed : Connection reset by peer.",
                "2.3-2.9",
                status=104,
            ),
            Wording(
                "NCCL WARN Net : Call to recv from 10.0.0.3<4567> failed : Connection"
                " reset by peer",
                "2.10-2.15",
                peer="10.0.0.3",
                status=104,
            ),
            Wording(
                "NCCL WARN socketProgressOpt: Call to send to 10.0.0.3<4567> failed :"
                " Broken pipe",
                "2.16-2.28",
                peer="10.0.0.3",
                status=32,
            ),
            Wording(
                "NCCL WARN ncclOsSocketProgressOpt: Call to recv from 10.0.0.3<4567>"
                " failed : Connection timed out",
                "2.29-2.30",
                peer="10.0.0.3",
                status=110,
            ),
        ),
        near_misses=("NCCL WARN Call to bind failed : Address already in use",),
    ),
    LogRow(
        id="S5",
        kind="socket_closed_by_peer",
        severity=_ERROR,
        anchor="Connection closed by remote peer",
        pattern=rf"Connection closed by remote peer(?: {PEER})?",
        versions="2.3-2.30",
        meaning="The process at the other end is gone: its own log has the reason. "
        "From the same node it is a consequence.",
        examples=(
            Wording("NCCL WARN Connection closed by remote peer", "2.3-2.9"),
            Wording(
                "NCCL WARN Net : Connection closed by remote peer 10.186.177.165"
                "<37411>",
                "2.10-2.15",
                peer="10.186.177.165",
            ),
            Wording(
                "NCCL WARN socketProgress: Connection closed by remote peer"
                " node2<42117>",
                "2.16-2.30",
                peer="node2",
            ),
        ),
        near_misses=("NCCL INFO [Service thread] Connection closed by localRank 0",),
    ),
    LogRow(
        id="S6",
        kind="socket_handshake_mismatch",
        severity=_ERROR,
        anchor="ocketFinalizeAccept",
        pattern=rf"ocketFinalizeAccept(?: from {PEER})?: (?:wrong "
        r"(?P<status>(?:socket )?(?:type|magic)(?: \w{1,20} != \w{1,20})?)|"
        r"(?P<status_2>didn't receive a valid magic|handshake receive|"
        r"socket magic mismatch|peer \S{1,60} closed before magic))",
        versions="2.16-2.30",
        meaning="A connection came from outside the job: a port scan, a health probe, "
        "another job, or two nodes of one name. 2.27 and later drop it.",
        examples=(
            Wording(
                "NCCL WARN socketFinalizeAccept: wrong type 4 != 3",
                "2.16-2.26",
                status="type 4 != 3",
            ),
            Wording(
                "NCCL WARN socketFinalizeAccept from 10.0.0.4<999>: wrong magic"
                " 6d616769 != 1234",
                "2.18-2.26",
                peer="10.0.0.4",
                status="magic 6d616769 != 1234",
            ),
            Wording(
                "NCCL INFO socketFinalizeAccept from 10.0.0.4<999>: didn't receive a"
                " valid magic",
                "2.27-2.30",
                peer="10.0.0.4",
                severity=_INFO,
                unscanned=True,
            ),
        ),
        near_misses=("NCCL INFO socketFinalizeAccept: accepted",),
    ),
    LogRow(
        id="S7",
        kind="socket_poll_error",
        severity=_ERROR,
        anchor="PollConnect",
        pattern=rf"PollConnect(?: to {PEER})? (?:poll\(\) )?(?P<result>failed|returned)"
        r"(?: (?P<returned>-?\d{1,6}))?(?:, ret (?P<returned_2>-?\d{1,6}))?"
        rf"(?:, error (?P<errno_text>{ERRNO_TEXT}))?(?:, revents (?P<revents>\w{{1,10}}))?"
        r"(?:, no POLLOUT events)?(?:, connect to (?P<peer_2>[^\s<,]{1,255})"
        r"(?:<(?P<peer_port_2>\d{1,6})>)?)?",
        versions="2.18-2.30",
        meaning="A connection that was begun got no answer: the other node dropped it.",
        examples=(
            Wording(
                "NCCL WARN socketPollConnect poll() returned 1, no POLLOUT events",
                "2.18-2.26",
            ),
            Wording(
                "NCCL WARN socketPollConnect poll() failed, ret 1, error Connection"
                " timed out, revents 8, connect to 172.19.38.168:39953",
                "2.24-2.26",
                peer="172.19.38.168",
                status=110,
            ),
            Wording(
                "NCCL WARN ncclOsSocketPollConnect to 10.0.0.8<4000> returned 1, no"
                " POLLOUT events",
                "2.27-2.30",
                peer="10.0.0.8",
            ),
        ),
        near_misses=(
            (
                "NCCL INFO socketPollConnect: connect returned Connection timed out,"
                " retrying (1/34) after sleep for 100 msec"
            ),
        ),
        cause="tcp_syn_drop",
    ),
    LogRow(
        id="S9",
        kind="socket_bind_failed",
        severity=_ERROR,
        anchor="Call to bind failed",
        pattern=rf"Call to bind failed ?: (?P<errno_text>{ERRNO_TEXT})",
        versions="2.3-2.30",
        meaning="The address of the interface cannot be used.",
        examples=(
            Wording(
                "NCCL WARN Call to bind failed : Cannot assign requested address",
                "2.3-2.26",
                status=99,
            ),
            Wording(
                "NCCL WARN ncclSocketListen: Call to bind failed: Address already in"
                " use",
                "2.27-2.30",
                status=98,
            ),
        ),
        near_misses=("NCCL WARN Call to listen failed : Address already in use",),
    ),
)


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

PROXY: tuple[LogRow, ...] = (
    LogRow(
        id="X1",
        kind="proxy_error",
        severity=_ERROR,
        anchor="Failed to execute operation ",
        pattern=r"Failed to execute operation (?P<status>\w+) from rank "
        r"(?P<from_rank>\d+), retcode (?P<result>\d+)",
        versions="2.12-2.30",
        meaning="The proxy could not do what its rank asked: the cause was logged "
        "before by the same process. While closing it is part of an abort.",
        examples=(
            Wording(
                "NCCL WARN [Proxy Service 1] Failed to execute operation Connect from"
                " rank 1, retcode 2",
                "2.12-2.30",
                status="Connect",
            ),
            Wording(
                "NCCL WARN [Proxy Service UDS 0] Failed to execute operation Close from"
                " rank 0, retcode 3",
                "2.19-2.30",
                status="Close",
                severity=_INFO,
            ),
        ),
        near_misses=("NCCL WARN Failed to execute kernel",),
    ),
    LogRow(
        id="X2",
        kind="proxy_error",
        severity=_ERROR,
        anchor="Error encountered progressing operation=",
        pattern=r"Error encountered progressing operation=(?P<status>\w+), "
        r"res=(?P<result>\d+)",
        versions="2.12-2.30",
        meaning="The proxy could not do what its rank asked: the cause was logged "
        "before by the same process.",
        examples=(
            Wording(
                "NCCL WARN [Service thread] Error encountered progressing"
                " operation=Connect, res=3, closing connection",
                "2.12-2.30",
                status="Connect",
            ),
        ),
        near_misses=("NCCL INFO progressing operation=Connect",),
    ),
    LogRow(
        id="X2b",
        kind="proxy_error",
        severity=_ERROR,
        anchor="[Service thread] Could not receive type",
        pattern=r"\[Service thread\] Could not (?P<status>receive type)"
        r"(?: from localRank (?P<local_rank>\d+), res=(?P<result>\d+))?",
        versions="2.12-2.30",
        meaning="The proxy lost the connection to its own rank: a consequence.",
        examples=(
            Wording(
                "NCCL WARN [Service thread] Could not receive type from localRank 0,"
                " res=3, closed=0",
                "2.12-2.30",
            ),
        ),
        near_misses=("NCCL INFO [Service thread] receive type",),
    ),
    LogRow(
        id="X2c",
        kind="proxy_error",
        severity=_ERROR,
        anchor="[Service thread] Accept failed",
        pattern=r"\[Service thread\] Accept failed ?"
        rf"(?P<errno_text>{ERRNO_TEXT})?",
        versions="2.12-2.30",
        meaning="The proxy took no connection; `temporarily unavailable` comes with an "
        "abort.",
        examples=(
            Wording(
                "NCCL WARN [Service thread] Accept failed Resource temporarily"
                " unavailable",
                "2.12-2.30",
                status=11,
                severity=_INFO,
            ),
            Wording(
                "NCCL WARN [Service thread] Accept failed Too many open files",
                "2.12-2.30",
                status=24,
            ),
        ),
        near_misses=("NCCL INFO [Service thread] Accepted",),
    ),
    LogRow(
        id="X2d",
        kind="proxy_error",
        severity=_ERROR,
        anchor="Proxy Call to rank ",
        pattern=r"Proxy Call to rank (?P<to_rank>\d+) failed(?: \((?P<status>\w+)\))?",
        versions="2.13-2.30",
        meaning="The proxy could not do what its rank asked: the cause was logged "
        "before by the same process.",
        examples=(
            Wording(
                "NCCL WARN Proxy Call to rank 14 failed (Connect)",
                "2.13-2.30",
                status="Connect",
            ),
        ),
        near_misses=("NCCL INFO Proxy Call to rank 14 done",),
    ),
    LogRow(
        id="X2e",
        kind="proxy_error",
        severity=_ERROR,
        anchor="Socket recv failed while polling for opId",
        pattern=r"Socket recv failed while polling for opId=?(?P<operation>\w+)?",
        versions="2.16-2.30",
        meaning="A rank lost its own proxy: a consequence.",
        examples=(
            Wording(
                "NCCL WARN Socket recv failed while polling for opId=0x7fb1242685e0",
                "2.16-2.30",
                status="recv polling",
            ),
        ),
        near_misses=("NCCL WARN Socket recv failed",),
    ),
    LogRow(
        id="X3",
        kind="proxy_closed",
        severity=_INFO,
        anchor="Connection closed by localRank ",
        pattern=r"Connection closed by localRank (?P<local_rank>\d+)",
        versions="2.12-2.30",
        meaning="A rank closed its proxy, as at every end.",
        examples=(
            Wording(
                "NCCL INFO [Service thread] Connection closed by localRank 0",
                "2.12-2.30",
            ),
        ),
        near_misses=("NCCL WARN Connection closed by remote peer 10.0.0.1<1>",),
    ),
    LogRow(
        id="X5",
        kind="async_error",
        severity=_ERROR,
        anchor="ncclCommSetAsyncError: error comm ",
        pattern=r"ncclCommSetAsyncError: error comm (?P<comm>0x\w+) sets state "
        r"(?P<result>\d+)",
        versions="2.14-2.30",
        meaning="A communicator is in error: a consequence.",
        examples=(
            Wording(
                "NCCL INFO ncclCommSetAsyncError: error comm 0x55dd8aa86c70 sets state"
                " 6",
                "2.14-2.30",
            ),
        ),
        near_misses=("NCCL INFO ncclCommGetAsyncError",),
    ),
    LogRow(
        id="X5b",
        kind="async_error",
        severity=_ERROR,
        anchor="ncclAsyncJobComplete: job ",
        pattern=r"ncclAsyncJobComplete: job \S+ failed, job error (?P<result>\d+)",
        versions="2.14-2.30",
        meaning="An asynchronous call of the library failed: a consequence.",
        examples=(
            Wording(
                "NCCL WARN ncclAsyncJobComplete: job 0x7f00 failed, job error 6",
                "2.14-2.30",
            ),
        ),
        near_misses=("NCCL INFO ncclAsyncJobComplete: job 0x7f00 done",),
    ),
)

# Last of all: any message may name a file and an arrow.
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

ROWS: tuple[LogRow, ...] = (*CONNECTIONS, *BOOTSTRAP, *PROXY)
