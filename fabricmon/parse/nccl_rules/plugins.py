"""Rows of what is plugged in: SHARP, NVLink, libfabric and EFA, UCX, FastSocket."""

from __future__ import annotations

from fabricmon.parse.log_event import LogSeverity
from fabricmon.parse.nccl_rules.pieces import DEVICE, PORT
from fabricmon.parse.nccl_rules.row import LogRow, Wording

_INFO, _WARNING = LogSeverity.INFO, LogSeverity.WARNING
_ERROR, _CRITICAL = LogSeverity.ERROR, LogSeverity.CRITICAL

SHARP: tuple[LogRow, ...] = (
    LogRow(
        id="N1",
        kind="sharp_error",
        severity=_WARNING,
        anchor="SHARP ",
        pattern=r"SHARP (?P<what>[\w ]{0,60}(?:error|failed|create)[\w ]{0,20}): "
        r"(?P<text>[^(]{1,200})\((?P<status>-?\d{1,20})\)",
        versions="2.6-2.30",
        meaning="In-network reduction cannot be used: slower, the links are healthy.",
        examples=(
            Wording(
                "NCCL WARN NET/IB : SHARP coll init error: Cannot create SHARP"
                " job(-11)",
                "2.6-2.30",
                status=-11,
            ),
        ),
        near_misses=("NCCL INFO SHARP rank 0/2 initialized on mlx5_0:1",),
        library="sharp",
        cause="sharp_unavailable",
    ),
    LogRow(
        id="N1a",
        kind="sharp_error",
        severity=_WARNING,
        anchor="] ERROR ",
        pattern=r"\] ERROR (?P<status>collect_ports_data|sharp_\w{1,60}|"
        r"Failed to lock SAT)(?:: )?"
        rf"(?:device {DEVICE} port {PORT} )?(?P<text>.{{0,300}})",
        versions="2.6-2.30",
        meaning="The SHARP library could not start, in its own format; it may name the "
        "port.",
        examples=(
            Wording(
                "[C17K43:1:44548 unique id 1340726519408862317] ERROR"
                " collect_ports_data: device mlx5_0 port 1 is not valid (port is used"
                " by SM)",
                "2.6-2.30",
                device="mlx5_0",
                port=1,
            ),
            Wording(
                "[node7:0:4454 - comm.c:417] ERROR sharp_get_local_data: error"
                " retrieving local data for process number 1",
                "2.6-2.30",
            ),
        ),
        near_misses=("[node7:0:4454 - comm.c:417] INFO sharp_get_local_data: done",),
        library="sharp",
    ),
    LogRow(
        id="N1b",
        kind="sharp_initialized",
        severity=_INFO,
        anchor=" initialized on ",
        pattern=r"(?:Sharp|SHARP) rank (?P<sharp_rank>\d+)/(?P<sharp_ranks>\d+) initialized on "
        rf"{DEVICE}:{PORT}",
        versions="2.6-2.30",
        meaning="In-network reduction is ready on this port.",
        examples=(
            Wording(
                "NCCL INFO NET/IB: Sharp rank 0/2 initialized on mlx5_0:1",
                "2.6-2.30",
                device="mlx5_0",
                port=1,
            ),
        ),
        near_misses=("NCCL INFO rank 0/2 initialized",),
        library="sharp",
    ),
    LogRow(
        id="N2",
        kind="collnet_fallback",
        severity=_WARNING,
        anchor="Cannot initialize CollNet, using ",
        pattern=r"Cannot initialize CollNet, using (?P<instead>[\w-]+)",
        versions="2.6-2.30",
        meaning="In-network reduction is not used: slower, the links are healthy.",
        examples=(
            Wording(
                "NCCL WARN Cannot initialize CollNet, using point-to-point network"
                " instead",
                "2.6-2.30",
            ),
        ),
        near_misses=("NCCL INFO CollNet initialized",),
        cause="sharp_unavailable",
    ),
)

NVLINK: tuple[LogRow, ...] = (
    LogRow(
        id="N3",
        kind="nvls_error",
        severity=_CRITICAL,
        anchor="Failed to bind NVLink SHARP (NVLS) Multicast memory",
        pattern=r"Failed to bind NVLink SHARP \(NVLS\) Multicast memory of size "
        r"(?P<size>\d+) : CUDA error (?P<status>\d+)",
        versions="2.27-2.30",
        meaning="Multicast over NVLink failed: Fabric Manager, NVSwitch or IMEX of "
        "this node, not the network.",
        examples=(
            Wording(
                "NCCL WARN Failed to bind NVLink SHARP (NVLS) Multicast memory of size"
                " 2097152 : CUDA error 401 'the operation cannot be performed in the"
                " present state'.",
                "2.27-2.30",
                status=401,
            ),
        ),
        near_misses=("NCCL INFO NVLS multicast support is available",),
        cause="fabric_manager",
    ),
    LogRow(
        id="N3b",
        kind="nvls_error",
        severity=_CRITICAL,
        anchor="Cuda failure ",
        pattern=r"Cuda failure (?:(?P<status>\d+) )?'(?P<text>[^']{1,200})'",
        versions="2.17-2.26",
        meaning="Multicast over NVLink failed: Fabric Manager, NVSwitch or IMEX of "
        "this node, not the network.",
        examples=(
            Wording(
                "NCCL WARN Cuda failure 1 'invalid argument'",
                "2.17-2.26",
                source="transport/nvls.cc",
                status=1,
            ),
            Wording(
                "NCCL WARN Cuda failure 401 'the operation cannot be performed in the"
                " present state'",
                "2.19-2.26",
                source="/src/transport/nvls.cc",
                status=401,
            ),
        ),
        near_misses=("NCCL WARN Cuda failure",),
        cause="fabric_manager",
        source="transport/nvls.cc",
    ),
    LogRow(
        id="X6",
        kind="cuda_failure",
        severity=_ERROR,
        anchor="Cuda failure ",
        pattern=r"Cuda failure (?:(?P<status>\d+) )?'(?P<text>[^']{1,200})'",
        versions="2.3-2.30",
        meaning="A GPU or its driver failed: what follows from it is not the network.",
        examples=(
            Wording(
                "NCCL WARN Cuda failure 'invalid argument'",
                "2.3-2.18",
                status="invalid argument",
            ),
            Wording(
                "NCCL WARN Cuda failure 700 'an illegal memory access was encountered'",
                "2.19-2.30",
                status=700,
            ),
        ),
        near_misses=("NCCL WARN Cuda failure",),
        cause="gpu_or_driver",
    ),
    LogRow(
        id="N4",
        kind="mnnvl_error",
        severity=_WARNING,
        anchor="MNNVL (cliqueSize ",
        pattern=r"MNNVL \(cliqueSize (?P<clique>\d+)\) is available but not "
        r"(?P<status>working|supported)",
        versions="2.21-2.30",
        meaning="NVLink between nodes is not usable: traffic leaves by the NICs.",
        examples=(
            Wording(
                "NCCL WARN MNNVL (cliqueSize 16) is available but not working on this"
                " system. Check the IMEX configuration",
                "2.21-2.30",
            ),
            Wording(
                "NCCL WARN MNNVL (cliqueSize 16) is available but not supported on this"
                " system.",
                "2.21-2.30",
            ),
        ),
        near_misses=("NCCL INFO MNNVL (cliqueSize 16) is available",),
    ),
    LogRow(
        id="N5",
        kind="p2p_disabled_nvlink",
        severity=_WARNING,
        anchor="P2P is disabled between NVLINK connected GPUs ",
        pattern=r"P2P is disabled between NVLINK connected GPUs (?P<gpu>\d+) and "
        r"(?P<other_gpu>\d+)",
        versions="2.7-2.30",
        meaning="Two GPUs with NVLink cannot reach each other: a fault of the GPUs or "
        "their links.",
        examples=(
            Wording(
                "NCCL WARN P2P is disabled between NVLINK connected GPUs 1 and 0. This"
                " should not be the case given their connectivity",
                "2.7-2.30",
            ),
        ),
        near_misses=("NCCL INFO P2P is disabled between connected GPUs 1 and 0.",),
    ),
    LogRow(
        id="N5b",
        kind="p2p_disabled",
        severity=_INFO,
        anchor="P2P is disabled between connected GPUs ",
        pattern=r"P2P is disabled between connected GPUs (?P<gpu>\d+) and "
        r"(?P<other_gpu>\d+)",
        versions="2.7-2.30",
        meaning="Two GPUs without NVLink do not use peer-to-peer: no fault.",
        examples=(
            Wording(
                "NCCL WARN P2P is disabled between connected GPUs 1 and 0. You can"
                " repress this message with NCCL_IGNORE_DISABLED_P2P=1.",
                "2.7-2.30",
            ),
        ),
        near_misses=(
            "NCCL WARN P2P is disabled between NVLINK connected GPUs 1 and 0",
        ),
    ),
)

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

OTHERS: tuple[LogRow, ...] = (
    LogRow(
        id="U1",
        kind="ucx_error",
        severity=_ERROR,
        anchor="Failed: UCX error ",
        pattern=r"Failed: UCX error (?P<file>[^:\s]{1,120}):(?P<line>\d+) "
        r"'(?P<status>[^']{1,80})' ?(?P<text>.{0,300})",
        versions="2.7-2.30",
        meaning="A call of UCX failed.",
        examples=(
            Wording(
                "NCCL WARN Failed: UCX error ucx_plugin.c:417 '-3' Endpoint timeout",
                "2.7-2.30",
            ),
        ),
        near_misses=("NCCL INFO UCX version 1.15",),
    ),
    LogRow(
        id="U2",
        kind="ucx_error",
        severity=_ERROR,
        anchor=" UCX",
        pattern=r" UCX +ERROR (?P<text>.{1,300})",
        versions="2.7-2.30",
        meaning="UCX reports an error, in its own format.",
        examples=(
            Wording(
                "[1700000000.123456] [node7:4242:0] ib_mlx5_log.c:171 UCX  ERROR"
                " Transport retry count exceeded on mlx5_0:1/RoCE (synd 0x15 vend 0x81"
                " hw_synd 0/0)",
                "2.7-2.30",
                device="mlx5_0",
                port=1,
            ),
        ),
        near_misses=("[1700000000.123456] [node7:4242:0] x.c:1 UCX  WARN slow",),
        library="ucx",
        unscanned=True,
    ),
    LogRow(
        id="F1",
        kind="unclassified_warn",
        severity=_INFO,
        anchor="Maximum retry reached for ",
        pattern=r"(?P<status>Maximum retry reached for (?:accept|connect))",
        versions="2.7-2.30",
        meaning="FastSocket gave up placing a queue: the job runs as without it.",
        examples=(
            Wording(
                "NCCL WARN Maximum retry reached for accept 3.",
                "2.7-2.30",
            ),
            Wording("NCCL WARN Maximum retry reached for connect 3.", "2.7-2.30"),
        ),
        near_misses=("NCCL WARN Maximum retry count is 3",),
        cause="tuning",
    ),
    LogRow(
        id="F2",
        kind="unclassified_warn",
        severity=_INFO,
        anchor="Cannot get incoming CPU",
        pattern=r"(?P<status>Cannot get incoming CPU)",
        versions="2.7-2.30",
        meaning="FastSocket cannot place a queue: the job runs as without it.",
        examples=(Wording("NCCL WARN Cannot get incoming CPU.", "2.7-2.30"),),
        near_misses=("NCCL WARN Cannot get CPU affinity",),
        cause="tuning",
    ),
)

ROWS: tuple[LogRow, ...] = (*SHARP, *NVLINK, *LIBFABRIC, *OTHERS)
