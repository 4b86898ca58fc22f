"""Which network a job uses."""

from __future__ import annotations

from fabricmon.parse.log_event import LogSeverity
from fabricmon.parse.nccl_rules.row import LogRow, Wording

_INFO, _WARNING = LogSeverity.INFO, LogSeverity.WARNING
_ERROR, _CRITICAL = LogSeverity.ERROR, LogSeverity.CRITICAL

SELECTION: tuple[LogRow, ...] = (
    LogRow(
        id="T1",
        kind="net_selected",
        severity=_INFO,
        anchor="; OOB ",
        pattern=r"NET/(?P<status>IB\w{0,40}) ?: Using(?P<nics>[^;]{0,3000}); OOB "
        r"(?P<oob_interface>[^:\s]{1,64}):(?P<oob_address>\S{1,200})",
        versions="2.3-2.30",
        meaning="Which ports of which devices are used: one event for each. None at "
        "all is `nic_missing`.",
        examples=(
            Wording(
                "NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [RO]; OOB"
                " eth0:10.124.183.169<0>",
                "2.3-2.19",
                device="mlx5_0",
                port=1,
                status="IB",
            ),
            Wording(
                "NCCL INFO NET/IB : Using [0]={[0] mlx5_0:1/IB, [1] mlx5_1:1/IB} [RO];"
                " OOB eth0:10.0.0.1<0>",
                "2.20-2.23",
                device="mlx5_0",
                port=1,
                status="IB",
            ),
            Wording(
                "NCCL INFO NET/IB : Using [0]mlx5_0:1/RoCE [1]mlx5_1:1/RoCE/SHARP [RO];"
                " OOB primaryip:10.20.10.10<0>",
                "2.22-2.29",
                device="mlx5_0",
                port=1,
            ),
            Wording(
                "NCCL INFO NET/IB: Using [0]mlx5_0:1:0:1/RoCE [RO]; OOB"
                " eth0:10.20.10.10<0>",
                "2.30",
                device="mlx5_0",
                port=1,
            ),
            Wording(
                "NCCL INFO NET/IB : Using [RO]; OOB eth0:10.20.10.10<0>",
                "2.3-2.30",
                kind="nic_missing",
            ),
        ),
        near_misses=("NCCL INFO NET/Socket : Using [0]eth0:10.0.0.1<0>",),
    ),
    LogRow(
        id="T2",
        kind="net_socket_list",
        severity=_INFO,
        anchor="NET/Socket",
        pattern=r"NET/Socket ?: Using(?P<interfaces>(?: \[\d+\]\S+)+)",
        versions="2.3-2.30",
        meaning="The interfaces that the TCP transport would use.",
        examples=(
            Wording(
                "NCCL INFO NET/Socket : Using [0]bond0:10.247.16.3<0>",
                "2.3-2.28",
                device="bond0",
            ),
            Wording(
                "NCCL INFO NET/Socket: Using [0]eth0:10.0.0.1<0> [1]eth1:10.1.0.1<0>",
                "2.29-2.30",
                device="eth0",
            ),
        ),
        near_misses=("NCCL INFO Channel 00 : 1[0] -> 0[0] via NET/Socket/0",),
    ),
    LogRow(
        id="T3",
        kind="net_name",
        severity=_INFO,
        anchor="Using network ",
        pattern=r"Using network (?P<status>\S.{0,60}?)\s{0,8}$",
        versions="2.5-2.30",
        meaning="The network that is used. `Socket` is `net_fallback_socket`: many "
        "times slower than RDMA, and no error is ever printed.",
        examples=(
            Wording("NCCL INFO Using network IB", "2.5-2.30", status="IB"),
            Wording(
                "NCCL INFO Using network AWS Libfabric",
                "2.5-2.30",
                status="AWS Libfabric",
            ),
            Wording(
                "NCCL INFO Using network Socket",
                "2.5-2.30",
                kind="net_fallback_socket",
                status="Socket",
                severity=_WARNING,
            ),
        ),
        near_misses=("NCCL INFO Using non-device net plugin version 0",),
    ),
    LogRow(
        id="T4",
        kind="net_plugin",
        severity=_INFO,
        anchor=" NET plugin ",
        pattern=r"(?P<action>Initialized|Assigned) NET plugin "
        r"(?P<status>\S.{0,60}?)(?: to comm)?\s{0,8}$",
        versions="2.27-2.30",
        meaning="A network plugin was initialised or given to a communicator.",
        examples=(
            Wording("NCCL INFO Initialized NET plugin IB", "2.27-2.30", status="IB"),
            Wording(
                "NCCL INFO Assigned NET plugin Libfabric to comm",
                "2.27-2.30",
                status="Libfabric",
            ),
        ),
        near_misses=("NCCL WARN Failed to initialize any NET plugin",),
    ),
    LogRow(
        id="T4b",
        kind="net_plugin",
        severity=_INFO,
        anchor="Loaded net plugin ",
        pattern=r"NET/Plugin ?: (?P<action>Loaded) net plugin "
        r"(?P<status>\S.{0,60}?)(?: \(v\d{1,20}\))?\s{0,8}$",
        versions="2.12-2.30",
        meaning="A network plugin was loaded.",
        examples=(
            Wording(
                "NCCL INFO NET/Plugin: Loaded net plugin NCCL RDMA Plugin (v5)",
                "2.12-2.28",
                status="NCCL RDMA Plugin",
            ),
            Wording(
                "NCCL INFO NET/Plugin: Loaded net plugin Libfabric (v10)",
                "2.27-2.30",
                status="Libfabric",
            ),
        ),
        near_misses=("NCCL INFO NET/Plugin: Loaded collnet plugin SHARP (v8)",),
    ),
    LogRow(
        id="T4c",
        kind="plugin_missing",
        severity=_INFO,
        anchor="/Plugin",
        pattern=r"(?P<plugin>NET|TUNER|PROFILER|ENV|GIN)/Plugin ?: "
        r"(?P<status>No plugin found|Could not find|Failed to find|dlerror=)",
        versions="2.3-2.30",
        meaning="An optional plugin or one of its symbols is not there: no fault.",
        examples=(
            Wording(
                "NCCL INFO NET/Plugin : No plugin found (libnccl-net.so), using"
                " internal implementation",
                "2.3-2.16",
            ),
            Wording(
                "NCCL INFO NET/Plugin: Failed to find ncclCollNetPlugin_v6 symbol.",
                "2.12-2.25",
            ),
            Wording(
                "NCCL INFO NET/Plugin: Could not find: libnccl-net.so. Using internal"
                " net plugin.",
                "2.24-2.30",
            ),
            Wording(
                "NCCL WARN TUNER/Plugin: Could not find: libnccl-tuner.so.",
                "2.24-2.30",
            ),
        ),
        near_misses=("NCCL INFO NET/Plugin: Loaded net plugin Libfabric (v10)",),
    ),
    LogRow(
        id="T5",
        kind="net_init_failed",
        severity=_CRITICAL,
        anchor="Failed to initialize any NET plugin",
        pattern=r"(?P<status>Failed to initialize any NET plugin)",
        versions="2.27-2.30",
        meaning="No network at all can be used.",
        examples=(
            Wording("NCCL WARN Failed to initialize any NET plugin", "2.27-2.30"),
        ),
        near_misses=("NCCL INFO Initialized NET plugin IB",),
    ),
    LogRow(
        id="T5b",
        kind="net_init_failed",
        severity=_CRITICAL,
        anchor=" not found",
        pattern=r"network (?P<status>[\w-]{1,60}(?: [\w-]{1,60})?) not found",
        versions="2.5-2.30",
        meaning="The network that NCCL_NET asks for is not there.",
        examples=(
            Wording(
                "NCCL WARN Error: network IBext not found.", "2.5-2.30", status="IBext"
            ),
        ),
        near_misses=("NCCL INFO plugin libnccl-net.so not found",),
    ),
)
