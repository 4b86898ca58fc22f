"""aws-ofi-nccl, libfabric and EFA."""

from __future__ import annotations

from fabricmon.parse.log_event import LogSeverity
from fabricmon.parse.nccl_rules.row import LogRow, Wording

_INFO, _WARNING = LogSeverity.INFO, LogSeverity.WARNING
_ERROR, _CRITICAL = LogSeverity.ERROR, LogSeverity.CRITICAL

LIBFABRIC: tuple[LogRow, ...] = (
    LogRow(
        id="O1",
        kind="ofi_request_error",
        severity=_CRITICAL,
        anchor="completed with error",
        pattern=r"NET/OFI (?P<what>Request|Remote write|Operation)\b.{0,120}?"
        r"completed with error",
        versions="ofi 1.0-1.21",
        meaning="A transfer over libfabric failed; the code is the provider's where it "
        "has one.",
        examples=(
            Wording(
                "NCCL WARN NET/OFI Request 0x7f2a944701b8 completed with error. RC: 21."
                " Error: unknown error",
                "ofi 1.0-1.2",
                status=21,
            ),
            Wording(
                "NCCL WARN NET/OFI Request 0x7f2a944701b8 completed with error. RC: 20."
                " Error: unknown error. Completed length: 0, Request: { buffer_index:"
                " 255, dev: 1, size: 0, state: CREATED, direction: SEND }",
                "ofi 1.3-1.9",
                device="1",
                status=20,
            ),
            Wording(
                "NCCL WARN NET/OFI Request 0x7f2a944701b8 completed with error. RC:"
                " 103. Error: 4124 (Unresponsive receiver (connection previously"
                " established)). Completed length: 0, Request: { dev: 0, size: 0 }",
                "ofi 1.10-1.16",
                device="0",
                status=4124,
            ),
            Wording(
                "NCCL WARN NET/OFI Request 0x7f2a944701b8 completed with error. RC:"
                " 103. Error: 15 (Unreachable remote (never received a response)). seq"
                " 77. Completed length: 0, Request: { dev: 2 }",
                "ofi 1.17-1.18",
                device="2",
                status=15,
            ),
            Wording(
                "NCCL WARN NET/OFI Remote write completed with error. RC: 103. Error: 9"
                " (Bad queue pair (QP) number). Flags: 0. Completed length: 0",
                "ofi 1.19-1.20",
                status=9,
            ),
            Wording(
                "NCCL WARN NET/OFI Request 0x7f2a (send seq 3 dev: 4) completed with"
                " error: err: 103, flags: 0, prov_errno: 4126, strerror: Unresponsive"
                " receiver (reachable by EFA device but handshake failed)",
                "ofi 1.21",
                status=4126,
            ),
        ),
        near_misses=("NCCL INFO NET/OFI Request 0x7f2a944701b8 completed",),
        library="ofi",
    ),
    LogRow(
        id="O2",
        kind="ofi_init_failed",
        severity=_CRITICAL,
        anchor="NET/OFI Couldn't ",
        pattern=r"NET/OFI Couldn't (?P<operation>(?:open|allocate|bind|enable) "
        r"[^.]{1,60})\. RC: (?P<status>-?\d+)(?:, ERROR: (?P<text>.{0,200}))?",
        versions="ofi 1.0-1.21",
        meaning="libfabric cannot be used: TCP follows, silently.",
        examples=(
            Wording(
                "NCCL WARN NET/OFI Couldn't open CQ. RC: -22, ERROR: Invalid argument",
                "ofi 1.0-1.21",
                status=-22,
            ),
            Wording(
                "NCCL WARN NET/OFI Couldn't allocate endpoint. RC: -12, ERROR: Cannot"
                " allocate memory",
                "ofi 1.0-1.21",
                status=-12,
            ),
        ),
        near_misses=("NCCL WARN NET/OFI Couldn't close CQ.",),
        library="ofi",
    ),
    LogRow(
        id="O2b",
        kind="ofi_init_failed",
        severity=_CRITICAL,
        anchor="initialization failed",
        pattern=r"NET/OFI (?P<status>[\w-]{0,60} ?initialization failed)",
        versions="ofi 1.0-1.21",
        meaning="libfabric cannot be used: TCP follows, silently.",
        examples=(
            Wording(
                "NCCL WARN NET/OFI aws-ofi-nccl initialization failed", "ofi 1.0-1.21"
            ),
        ),
        near_misses=("NCCL INFO NET/OFI Initializing aws-ofi-nccl 1.9.1-aws",),
        library="ofi",
    ),
    LogRow(
        id="O2c",
        kind="ofi_init_failed",
        severity=_CRITICAL,
        anchor="NET/OFI Could not find any optimal provider",
        pattern=r"NET/OFI (?P<status>Could not find any optimal provider)",
        versions="ofi 1.0-1.13",
        meaning="libfabric sees no EFA or other usable device.",
        examples=(
            Wording(
                "NCCL WARN NET/OFI Could not find any optimal provider", "ofi 1.0-1.13"
            ),
        ),
        near_misses=("NCCL INFO NET/OFI Selected Provider is efa",),
        library="ofi",
    ),
    LogRow(
        id="O2d",
        kind="ofi_init_failed",
        severity=_CRITICAL,
        anchor="No eligible providers",
        pattern=r"NET/OFI (?P<status>No eligible providers)",
        versions="ofi 1.14-1.21",
        meaning="libfabric sees no EFA or other usable device.",
        examples=(
            Wording(
                "NCCL WARN NET/OFI No eligible providers were found", "ofi 1.14-1.21"
            ),
        ),
        near_misses=("NCCL INFO NET/OFI Selected provider is efa",),
        library="ofi",
    ),
    LogRow(
        id="O3",
        kind="ofi_rail_mismatch",
        severity=_CRITICAL,
        anchor="NET/OFI Unexpected number of remote ",
        pattern=r"NET/OFI Unexpected number of remote (?P<what>(?:control )?rails) for "
        r"dev (?P<device>\d+)\. Expected (?P<expected>\d+) but got (?P<got>\d+)",
        versions="ofi 1.7-1.21",
        meaning="The other end has another number of NICs: one is missing there.",
        examples=(
            Wording(
                "NCCL WARN NET/OFI Unexpected number of remote rails for dev 3."
                " Expected 4 but got 0",
                "ofi 1.7-1.13",
                device="3",
                status="4/0",
            ),
            Wording(
                "NCCL WARN NET/OFI Unexpected number of remote control rails for dev 0."
                " Expected 4 but got 3",
                "ofi 1.14-1.21",
                device="0",
                status="4/3",
            ),
        ),
        near_misses=("NCCL INFO NET/OFI number of remote rails for dev 3 is 4",),
        library="ofi",
        cause="peer_nic_missing",
    ),
    LogRow(
        id="O4",
        kind="libfabric_error",
        severity=_ERROR,
        anchor="libfabric:",
        pattern=r"libfabric:(?P<process>\d+):(?P<stamp>\d+):\w*:(?P<provider>\w+):"
        r"(?P<subsystem>\w+):(?P<function>\w+)\(\):\d+<warn> (?P<text>.{0,1000})",
        versions="libfabric 1.10-2.0",
        meaning="libfabric warns, in its own format; a code that is the provider's own "
        "is not an errno, whatever text follows it.",
        examples=(
            Wording(
                "libfabric:45:1671204483::efa:cq:rxr_cq_write_tx_error():243<warn>"
                " rxr_cq_write_tx_error: err: 20, prov_err: Not a directory (20)",
                "libfabric 1.10-1.17",
                status=20,
            ),
            Wording(
                "libfabric:81315:1732088551::efa:cq:efa_cq_open():92<warn> Unable to"
                " create extended CQ: Cannot allocate memory",
                "libfabric 1.18-2.0",
                status=12,
            ),
            Wording(
                "libfabric:7:1732088551::efa:ep_ctrl:efa_rdm_ep_x():22<warn> err: 113,"
                " message: Unreachable remote (never received a response), prov_errno:"
                " 15 (Unreachable remote)",
                "libfabric 1.18-2.0",
                status=15,
            ),
        ),
        near_misses=("libfabric:45:1671204483::efa:cq:open():243<info> opened",),
        library="libfabric",
    ),
    LogRow(
        id="O5",
        kind="ofi_selected",
        severity=_INFO,
        anchor="NET/OFI Selected ",
        pattern=r"NET/OFI Selected (?:Provider|provider) is (?P<status>[\w;-]+)"
        r"(?:, fabric is (?P<fabric>[^\s,]+))?(?: \(found (?P<nics>\d+) nics\))?",
        versions="ofi 1.0-1.21",
        meaning="Which libfabric provider is used, and with how many NICs.",
        examples=(
            Wording(
                "NCCL INFO NET/OFI Selected Provider is efa",
                "ofi 1.0-1.6",
                status="efa",
            ),
            Wording(
                "NCCL INFO NET/OFI Selected provider is efa, fabric is efa (found 32"
                " nics)",
                "ofi 1.7-1.21",
                status="efa",
            ),
        ),
        near_misses=("NCCL INFO NET/OFI Selecting provider",),
        library="ofi",
    ),
    LogRow(
        id="O6",
        kind="ofi_hint",
        severity=_INFO,
        anchor="ecurity group",
        pattern=r"(?P<text>.{0,60}[Ss]ecurity group.{0,200})",
        versions="ofi 1.21",
        meaning="The advice that a plugin prints between rows of stars: belongs to the "
        "failed request above it.",
        examples=(
            Wording(
                "NET/OFI Check that the EFA security group allows all traffic to and"
                " from itself",
                "ofi 1.21",
            ),
        ),
        near_misses=("NET/OFI Check the group",),
        library="ofi",
        behind="rror",
    ),
)
