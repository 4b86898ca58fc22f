"""TCP connections."""

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
