"""RAS: reports and log lines."""

from __future__ import annotations

from fabricmon.parse.log_event import LogSeverity
from fabricmon.parse.nccl_rules.row import LogRow, Wording

_INFO, _WARNING = LogSeverity.INFO, LogSeverity.WARNING
_ERROR, _CRITICAL = LogSeverity.ERROR, LogSeverity.CRITICAL

_GROUP = (
    r"^[ \t]{0,20}(?P<group>[0-9]+)[ \t]+(?P<comms>[0-9]+)[ \t]+(?P<nodes>[0-9]+)"
    r"[ \t]+(?P<ranks_per_node>[0-9-]+)[ \t]+(?P<ranks>[0-9-]+)[ \t]+"
    r"(?P<ranks_in_group>[0-9]+)[ \t]+(?P<state>[A-Z,]+)[ \t]+"
)
_COMM = r"^\s{0,20}#(?P<group>\d+)-(?P<index>\d+) \((?P<comm>[0-9a-f]{16})\) "

RAS: tuple[LogRow, ...] = (
    LogRow(
        id="Q1",
        kind="ras_peer_dead",
        severity=_CRITICAL,
        anchor="RAS declaring peer ",
        pattern=r"RAS declaring peer (?P<peer>[^\s<]{1,255})(?:<(?P<peer_port>\d+)>)? as DEAD",
        versions="2.24-2.30",
        meaning="A process was not reachable by TCP for 60 s and is given up.",
        examples=(
            Wording(
                "NCCL INFO RAS declaring peer 10.0.0.5<41000> as DEAD; rasDeadPeersHash"
                " 0x1234",
                "2.24-2.30",
                peer="10.0.0.5",
            ),
        ),
        near_misses=("NCCL INFO RAS declaring peer 10.0.0.5<41000> as alive",),
        library="ras",
        unscanned=True,
    ),
    LogRow(
        id="Q1b",
        kind="ras_peer_dead",
        severity=_CRITICAL,
        anchor="DEAD",
        pattern=r"(?P<status>PEER_(?:TIMEOUT_)?DEAD)\b(?:: Process (?P<process>\d+) on "
        r"node (?P<peer>\S+) managing GPUs? (?P<gpu_index>[\d,-]+))?",
        versions="2.29.2-2.30",
        meaning="RAS, watched as it goes: a process was given up.",
        examples=(
            Wording(
                "[2026-05-01 10:00:00] PEER_DEAD: Process 3487984 on node 172.16.64.213"
                " managing GPU 5",
                "2.29.2-2.30",
                peer="172.16.64.213",
                status="PEER_DEAD",
            ),
            Wording(
                "[2026-05-01 10:00:00] PEER_TIMEOUT_DEAD: Process 7 on node gpu-5"
                " managing GPU 0",
                "2.29.2-2.30",
                peer="gpu-5",
                status="PEER_TIMEOUT_DEAD",
            ),
        ),
        near_misses=("[2026-05-01 10:00:00] PEER_NEW: Process 7",),
        library="ras",
        unscanned=True,
    ),
    LogRow(
        id="Q2",
        kind="ras_peer_slow",
        severity=_WARNING,
        anchor="RAS ",
        pattern=r"RAS (?P<status>(?:keep-alive|connect|peer connect|send stuck|init) "
        r"(?:retry )?timeout(?: (?:warning|error))?) ?\((?P<seconds>\d{1,6})s\)"
        r".{0,60}?(?:with|from) (?P<peer>[^\s<]{1,255})(?:<(?P<peer_port>\d{1,6})>)?",
        versions="2.24-2.30",
        meaning="A process answers late by TCP: 5 s is a warning, 20 s an error.",
        examples=(
            Wording(
                "NCCL INFO RAS keep-alive timeout warning (5s) on socket connection"
                " with 10.0.0.5<41000>",
                "2.24-2.30",
                peer="10.0.0.5",
            ),
            Wording(
                "NCCL INFO RAS send stuck timeout error (20s) on socket connection with"
                " 10.0.0.5<41000>",
                "2.24-2.30",
                peer="10.0.0.5",
            ),
        ),
        near_misses=("NCCL INFO RAS keep-alive sent to 10.0.0.5<41000>",),
        library="ras",
        unscanned=True,
    ),
    LogRow(
        id="Q2b",
        kind="ras_peer_slow",
        severity=_WARNING,
        anchor="PEER_",
        pattern=r"(?P<status>PEER_(?:UNRESPONSIVE|SEND_STUCK|KEEPALIVE_TIMEOUT|RETRY|"
        r"DISCONNECTED|INIT_TIMEOUT))\b(?:: Process (?P<process>\d+) on "
        r"node (?P<peer>\S+) managing GPUs? (?P<gpu_index>[\d,-]+))?",
        versions="2.29.2-2.30",
        meaning="RAS, watched as it goes: a process answers late or not.",
        examples=(
            Wording(
                "[2026-05-01 10:00:00] PEER_UNRESPONSIVE: Process 7 on node gpu-5"
                " managing GPU 0 5s",
                "2.29.2-2.30",
                peer="gpu-5",
                status="PEER_UNRESPONSIVE",
            ),
            Wording('"event": "PEER_SEND_STUCK",', "2.29.2-2.30"),
        ),
        near_misses=("[2026-05-01 10:00:00] PEER_CONNECTED: Process 7",),
        library="ras",
        unscanned=True,
    ),
    LogRow(
        id="Q2c",
        kind="ras_peer_state",
        severity=_INFO,
        anchor="PEER_",
        pattern=r"(?P<status>PEER_(?:NEW|CONNECTING|CONNECTED|RECOVERED))\b"
        r"(?:: Process (?P<process>\d+) on node (?P<peer>\S+) managing GPUs? "
        r"(?P<gpu_index>[\d,-]+))?",
        versions="2.29.2-2.30",
        meaning="RAS, watched as it goes: a process joined or is back.",
        examples=(
            Wording(
                "[2026-05-01 10:00:00] PEER_RECOVERED: Process 7 on node gpu-5 managing"
                " GPU 0",
                "2.29.2-2.30",
                peer="gpu-5",
            ),
        ),
        near_misses=("[2026-05-01 10:00:00] PEER_DEAD: Process 7",),
        library="ras",
        unscanned=True,
    ),
    LogRow(
        id="Q3",
        kind="ras_summary",
        severity=_INFO,
        anchor="OK",
        pattern=_GROUP + r"(?P<errors>OK)\s*$",
        versions="2.24-2.30",
        meaning="RAS compares how many operations ranks have launched, over TCP: OK "
        "says nothing of data that is stuck.",
        examples=(
            Wording(
                "    0         1        32         8       256       256   RUNNING"
                "      OK",
                "2.24-2.30",
                status="RUNNING/OK",
            ),
        ),
        near_misses=(
            (
                "    0         1         4       7-8        32        32   RUNNING "
                " INCOMPLETE"
            ),
        ),
        library="ras",
        behind="CCL version",
    ),
    LogRow(
        id="Q3b",
        kind="ras_incomplete",
        severity=_WARNING,
        anchor="INCOMPLETE",
        pattern=_GROUP + r"(?P<errors>INCOMPLETE)\s*$",
        versions="2.24-2.30",
        meaning="Ranks of a communicator do not answer RAS.",
        examples=(
            Wording(
                "    0         1         4       7-8        32        32   RUNNING "
                " INCOMPLETE",
                "2.24-2.30",
                status="RUNNING/INCOMPLETE",
            ),
        ),
        near_misses=("    0         1  32  8  256  256   RUNNING      OK",),
        library="ras",
        behind="CCL version",
    ),
    LogRow(
        id="Q3c",
        kind="ras_mismatch",
        severity=_WARNING,
        anchor="MISMATCH",
        pattern=_GROUP + r"(?P<errors>[A-Z,]{0,40}MISMATCH)\s*$",
        versions="2.24-2.30",
        meaning="Ranks of a communicator have launched different operations: one is "
        "behind, or just on its way.",
        examples=(
            Wording(
                "    0         1         4         8        32        32   RUNNING "
                " MISMATCH",
                "2.24-2.30",
                status="RUNNING/MISMATCH",
            ),
        ),
        near_misses=("    0         1  32  8  256  256   RUNNING      OK",),
        library="ras",
        behind="CCL version",
    ),
    LogRow(
        id="Q4",
        kind="ras_incomplete",
        severity=_WARNING,
        anchor="INCOMPLETE",
        pattern=_COMM + r"(?P<status>INCOMPLETE)",
        versions="2.24-2.30",
        meaning="Ranks of this communicator do not answer RAS.",
        examples=(Wording("#0-0 (cf264af53edbe986) INCOMPLETE", "2.24-2.30"),),
        near_misses=("#0-0 (cf264af53edbe986) MISMATCH",),
        library="ras",
        behind="CCL version",
    ),
    LogRow(
        id="Q4b",
        kind="ras_incomplete",
        severity=_WARNING,
        anchor="Missing communicator data from ",
        pattern=r"Missing communicator data from (?P<missing>\d+) "
        r"(?P<status>job process|rank)",
        versions="2.24-2.30",
        meaning="How many processes or ranks do not answer RAS.",
        examples=(
            Wording("  Missing communicator data from 1 job process", "2.24-2.30"),
            Wording("  Missing communicator data from 3 ranks", "2.24-2.30"),
        ),
        near_misses=("  Missing data",),
        library="ras",
        behind="CCL version",
    ),
    LogRow(
        id="Q5",
        kind="ras_mismatch",
        severity=_WARNING,
        anchor=") MISMATCH",
        pattern=_COMM + r"(?P<status>MISMATCH)",
        versions="2.24-2.30",
        meaning="Ranks of this communicator have launched different operations.",
        examples=(Wording("#0-1 (cf264af53edbe986) MISMATCH", "2.24-2.30"),),
        near_misses=("#0-1 (cf264af53edbe986) INCOMPLETE",),
        library="ras",
        behind="CCL version",
    ),
    LogRow(
        id="Q5b",
        kind="ras_mismatch",
        severity=_WARNING,
        anchor=" launched up to operation ",
        pattern=r"(?P<ranks>\d{1,9}) ranks? ha(?:s|ve) launched up to operation "
        r"(?P<operation>\d+)",
        versions="2.24-2.30",
        meaning="How far some ranks have come.",
        examples=(
            Wording("  26 ranks have launched up to operation 6650", "2.24-2.30"),
            Wording("  1 rank has launched up to operation 6649", "2.24-2.30"),
        ),
        near_misses=("  26 ranks are idle",),
        library="ras",
        behind="CCL version",
    ),
    LogRow(
        id="Q6",
        kind="ras_dead",
        severity=_CRITICAL,
        anchor="considered dead",
        pattern=r"(?P<processes>\d{1,9}) job process(?:es)? (?:is |are )?considered "
        r"dead",
        versions="2.24-2.30",
        meaning="Processes of the job are gone.",
        examples=(
            Wording(
                "  1 job process is considered dead (unreachable via the RAS network)",
                "2.24-2.30",
            ),
            Wording("  2 job processes are considered dead", "2.24-2.30"),
        ),
        near_misses=("  1 job process is alive",),
        library="ras",
        behind="CCL version",
    ),
    LogRow(
        id="Q7",
        kind="ras_process",
        severity=_INFO,
        anchor=" managing GPU",
        pattern=r"^\s{0,20}Process (?P<process>\d+) on node (?P<peer>\S+) managing "
        r"GPUs? (?P<gpu_index>[\d,-]+)",
        versions="2.24-2.30",
        meaning="Which process the lines above are about.",
        examples=(
            Wording(
                "  Process 3487984 on node 172.16.64.213 managing GPU 5",
                "2.24-2.30",
                peer="172.16.64.213",
            ),
        ),
        near_misses=("  Process 3487984 on node 172.16.64.213",),
        library="ras",
        behind="CCL version",
    ),
)
