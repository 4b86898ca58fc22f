"""Rows that say which network is used and how: selection, channels, GPUDirect."""

from __future__ import annotations

from fabricmon.parse.log_event import LogSeverity
from fabricmon.parse.nccl_rules.pieces import DEVICE, PORT
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

CHANNELS: tuple[LogRow, ...] = (
    LogRow(
        id="T6",
        kind="channel_via_net",
        severity=_INFO,
        anchor="via NET/",
        pattern=r"(?:Channel|Ring) (?P<channel>\d+)(?:/(?P<connection>\d+))? : "
        r"(?P<from_rank>\d+)(?:\[(?P<from_gpu>\w+)\])? -> "
        r"(?P<to_rank>\d+)(?:\[(?P<to_gpu>\w+)\])? "
        r"(?:\[(?P<direction>send|receive)\] )?"
        r"via NET/(?P<status>[^/]{1,60})/(?P<device>\d+)"
        r"(?:\((?P<pxn_rank>\d+)\))?(?P<gdr>/GDRDMA(?P<gdr_over_pci>\(PCI\))?)?"
        r"(?P<shared>/Shared)?",
        versions="2.3-2.30",
        meaning="A channel leaves by this NIC. Over sockets it is `channel_via_socket`; "
        "without GDRDMA the data goes through host memory.",
        examples=(
            Wording(
                "NCCL INFO Ring 00 : 7 -> 0 [receive] via NET/IB/0/GDRDMA",
                "2.3-2.4",
                device="0",
                status="IB",
            ),
            Wording(
                "NCCL INFO Channel 00 : 192[e7000] -> 128[e7000] [receive] via"
                " NET/IB/6/GDRDMA/Shared",
                "2.5-2.11",
                device="6",
                status="IB",
            ),
            Wording(
                "NCCL INFO Channel 01/0 : 9[1] -> 0[0] [receive] via NET/Socket/0",
                "2.12-2.30",
                kind="channel_via_socket",
                status="Socket",
                severity=_WARNING,
            ),
            Wording(
                "NCCL INFO Channel 03/0 : 1[1] -> 8[0] [send] via NET/IBext_v8/3(2)"
                "/GDRDMA(PCI)/Shared",
                "2.27-2.30",
                device="3",
                status="IBext_v8",
            ),
        ),
        near_misses=("NCCL INFO Channel 01/0 : 6[6] -> 7[7] via P2P/IPC/read",),
    ),
    LogRow(
        id="T8",
        kind="collnet_channel",
        severity=_INFO,
        anchor="via COLLNET/",
        pattern=r"CollNet (?P<channel>\d+)(?:/(?P<connection>\d+))? : "
        r"(?P<from_rank>\d+) \[(?P<direction>send|receive)\] via "
        r"COLLNET/(?P<status>\w+)/(?P<device>\d+)(?P<gdr>/GDRDMA)?",
        versions="2.6-2.30",
        meaning="A channel uses in-network reduction.",
        examples=(
            Wording(
                "NCCL INFO CollNet 00 : 0 [send] via COLLNET/SHARP/0/GDRDMA",
                "2.6-2.11",
                device="0",
                status="SHARP",
            ),
            Wording(
                "NCCL INFO CollNet 00/0 : 0 [receive] via COLLNET/SHARP/1",
                "2.12-2.30",
                device="1",
                status="SHARP",
            ),
        ),
        near_misses=("NCCL INFO Channel 00 : 1[0] -> 0[0] via NET/IB/0",),
    ),
    LogRow(
        id="T7",
        kind="gdr_state",
        severity=_INFO,
        anchor=" : GPU Direct RDMA ",
        pattern=r"NET/(?P<network>[^:]{1,40}) : GPU Direct RDMA "
        r"(?P<state>Enabled|Disabled) for (?:GPU (?P<gpu_index>\S{1,200}) / )?"
        r"HCA (?P<nic>\w{1,80})(?: '(?P<device>[^']{1,63})')?",
        versions="2.3-2.30",
        meaning="Whether the NIC reads GPU memory itself. Disabled is `gdr_disabled`: "
        "peer memory module or dma-buf is missing.",
        examples=(
            Wording(
                "NCCL INFO NET/IB : GPU Direct RDMA Enabled for GPU 0[17000] / HCA 0"
                " (distance 1 <= 2), read 0",
                "2.3-2.12",
            ),
            Wording(
                "NCCL INFO NET/IB : GPU Direct RDMA Enabled for HCA 0 'mlx5_0'",
                "2.13-2.30",
                device="mlx5_0",
            ),
            Wording(
                "NCCL INFO NET/IB : GPU Direct RDMA Disabled for HCA 1 'mlx5_1'",
                "2.13-2.30",
                kind="gdr_disabled",
                device="mlx5_1",
                severity=_WARNING,
            ),
        ),
        near_misses=("NCCL INFO NET/IB : GPU Direct RDMA level 5",),
    ),
    LogRow(
        id="T7b",
        kind="gdr_disabled",
        severity=_WARNING,
        anchor="GDRDMA not enabled",
        pattern=r"GDRDMA not enabled\. (?P<status>Could not find \w+)",
        versions="2.3-2.30",
        meaning="RCCL found no peer memory support: data goes through host memory.",
        examples=(
            Wording(
                "NCCL INFO GDRDMA not enabled. Could not find memory_peers directory or"
                " peer_memory symbol",
                "2.3-2.30",
            ),
        ),
        near_misses=("NCCL INFO GDRDMA enabled",),
        library="rccl",
        cause="peermem_missing",
        unscanned=True,
    ),
    LogRow(
        id="T7c",
        kind="gdr_state",
        severity=_INFO,
        anchor="DMA_BUF Support Enabled",
        pattern=r"(?P<state>DMA_BUF Support Enabled)",
        versions="2.18-2.30",
        meaning="RCCL may use dma-buf for GPUDirect.",
        examples=(Wording("NCCL INFO DMA_BUF Support Enabled", "2.18-2.30"),),
        near_misses=("NCCL INFO DMA_BUF Support Failed",),
        library="rccl",
        unscanned=True,
    ),
    LogRow(
        id="T7d",
        kind="gdr_state",
        severity=_INFO,
        anchor="Dmabuf feature disabled",
        pattern=r"(?P<state>Dmabuf feature disabled) without NCCL_DMABUF_ENABLE=1",
        versions="2.18-2.30",
        meaning="RCCL does not use dma-buf unless it is asked to.",
        examples=(
            Wording(
                "NCCL INFO Dmabuf feature disabled without NCCL_DMABUF_ENABLE=1",
                "2.18-2.30",
            ),
        ),
        near_misses=("NCCL INFO Dmabuf feature enabled",),
        library="rccl",
    ),
    LogRow(
        id="T9",
        kind="qp_created",
        severity=_INFO,
        anchor=" mtu ",
        pattern=r"Dev (?P<device_index>\d{1,20}) Port (?P<port>\d{1,3}) "
        r"qp(?:n|_num) (?P<qp>\d{1,20}) mtu (?P<mtu>\d{1,5}).{0,60}?"
        r"(?:GID (?P<gid_index>\d{1,20}) \((?P<gid_prefix>[0-9A-Fa-f]{1,16})/"
        r"(?P<gid>[0-9A-Fa-f]{1,16})\)|LID (?P<lid>\d{1,20}))",
        versions="2.3-2.30",
        meaning="Which queue pair belongs to which port, and the MTU it was given "
        "(1 to 5 for 256 to 4096).",
        examples=(
            Wording(
                "NCCL INFO NET/IB: Dev 0 Port 1 qpn 4711 mtu 5 LID 12",
                "2.3-2.19",
                port=1,
            ),
            Wording(
                "NCCL INFO NET/IB: NCCL Dev 0 IbDev 0 Port 1 qpn 4711 mtu 3 query_ece="
                "{supported=0} GID 3 (80FE/21E140AFFFF0000) fifoRkey=0x1",
                "2.20-2.29.4",
                port=1,
            ),
            Wording(
                "NCCL INFO NET/IB: IbDev 1 Port 1 qp_num 4711 mtu 5 GID 3"
                " (0/21E140AFFFF0000)",
                "2.29.7-2.30",
                port=1,
            ),
        ),
        near_misses=("NCCL INFO NET/IB: Dev 0 Port 1 mtu 5",),
    ),
    LogRow(
        id="T14",
        kind="vnic_made",
        severity=_INFO,
        anchor="Made virtual device [",
        pattern=r"Made virtual device \[(?P<nic>\d+)\] name=(?P<device>\S+) "
        r"speed=(?P<speed_mbps>\d+) ndevs=(?P<devices>\d+)",
        versions="2.24-2.30",
        meaning="NICs are merged into one; its name joins theirs with a plus.",
        examples=(
            Wording(
                "NCCL INFO NET/IB : Made virtual device [4] name=mlx5_0+mlx5_1"
                " speed=400000 ndevs=2",
                "2.24-2.30",
                device="mlx5_0+mlx5_1",
            ),
        ),
        near_misses=("NCCL INFO NET/IB : Made device [4]",),
    ),
    LogRow(
        id="T15",
        kind="ib_dev_detail",
        severity=_INFO,
        anchor=" provider=",
        pattern=rf"NET/IB ?: \[(?P<nic>\d{{1,20}})\] {DEVICE}:(?P<uverbs>\w{{1,80}}):{PORT}/"
        r"(?P<link_layer>IB|RoCE) provider=(?P<provider>\w{1,80}) "
        r"speed=(?P<speed_mbps>\d{1,20}) .{0,300}?pciPath=(?P<pci_path>\S{1,200}) "
        r"ar=(?P<adaptive_routing>-?\d{1,20})",
        versions="2.27-2.30",
        meaning="A port as the library sees it: half the usual speed is a degraded "
        "link from the start.",
        examples=(
            Wording(
                "NCCL INFO NET/IB: [0] mlx5_0:uverbs0:1/RoCE provider=Mlx5 speed=400000"
                " context=0x7f00 pciPath=/sys/devices/pci0000:15/0000:16:00.0 ar=0",
                "2.27-2.30",
                device="mlx5_0",
                port=1,
            ),
        ),
        near_misses=("NCCL INFO NET/IB: [0] mlx5_0:1/RoCE",),
    ),
)

MISMATCHES: tuple[LogRow, ...] = (
    LogRow(
        id="T10",
        kind="net_mismatch",
        severity=_ERROR,
        anchor="Detected mixed local ",
        pattern=r"Detected mixed local (?P<what>Net|CollNet) device counts across ranks"
        r" \(min (?P<least>\d+), max (?P<most>\d+)\)",
        versions="2.30.3-2.30",
        meaning="Ranks see different numbers of NICs.",
        examples=(
            Wording(
                "NCCL WARN Detected mixed local Net device counts across ranks (min 7,"
                " max 8)",
                "2.30.3-2.30",
                status="7/8",
            ),
        ),
        near_misses=("NCCL WARN Detected mixed GPU types across ranks",),
    ),
    LogRow(
        id="T11",
        kind="rail_mismatch",
        severity=_WARNING,
        anchor="mismatched physical devices between local (",
        pattern=r"mismatched physical devices between local \((?P<local>[^)]*)\) and "
        r"remote \((?P<remote>[^)]*)\)",
        versions="2.20-2.30",
        meaning="The two ends of a connection use different rails.",
        examples=(
            Wording(
                "NCCL WARN NET/IB : mismatched physical devices between local (mlx5_0)"
                " and remote (mlx5_1)",
                "2.20-2.30",
            ),
        ),
        near_misses=("NCCL INFO physical devices of local (mlx5_0)",),
    ),
    LogRow(
        id="T11b",
        kind="rail_mismatch",
        severity=_WARNING,
        anchor="has a different number of devices=",
        pattern=r"has a different number of devices=(?P<devices>\d+) as remote "
        r"(?P<remote>\S+) (?P<remote_devices>\d+)",
        versions="2.20-2.30",
        meaning="The two ends of a connection merge different numbers of NICs.",
        examples=(
            Wording(
                "NCCL WARN NET/IB : Local mergedDev mlx5_0 has a different number of"
                " devices=1 as remote mlx5_0+mlx5_1 2",
                "2.20-2.30",
                status="1/2",
            ),
        ),
        near_misses=("NCCL INFO NET/IB : Local mergedDev mlx5_0 has 1 devices",),
    ),
    LogRow(
        id="T12",
        kind="link_layer_mismatch",
        severity=_ERROR,
        anchor=" incompatible devices",
        pattern=r"(?P<status>Attempted to (?:connect|merge) incompatible devices)",
        versions="2.20-2.30",
        meaning="InfiniBand and Ethernet ports were to be used together.",
        examples=(
            Wording(
                "NCCL WARN NET/IB : Attempted to connect incompatible devices",
                "2.20-2.30",
            ),
            Wording(
                "NCCL WARN NET/IB : Attempted to merge incompatible devices: [0]"
                "mlx5_0:1/IB and [1]mlx5_1:1/RoCE",
                "2.20-2.30",
            ),
        ),
        near_misses=("NCCL WARN NET/IB : incompatible driver",),
    ),
    LogRow(
        id="T12b",
        kind="link_layer_mismatch",
        severity=_ERROR,
        anchor="different link_layer",
        pattern=r"(?P<status>different link_layer)",
        versions="2.20-2.30",
        meaning="The other end's port is of the other link layer.",
        examples=(
            Wording(
                "NCCL WARN NET/IB : Remote mlx5_0 device has different link_layer than"
                " local mlx5_1",
                "2.20-2.30",
            ),
        ),
        near_misses=("NCCL INFO NET/IB : link_layer is IB",),
    ),
    LogRow(
        id="T12c",
        kind="link_layer_mismatch",
        severity=_ERROR,
        anchor="device is incompatible with the local",
        pattern=r"(?P<status>device is incompatible with the local)",
        versions="2.20-2.30",
        meaning="The other end's port is of the other link layer.",
        examples=(
            Wording(
                "NCCL WARN NET/IB : Remote mlx5_0 device is incompatible with the local"
                " [1]mlx5_1:1/RoCE",
                "2.20-2.30",
            ),
        ),
        near_misses=("NCCL INFO NET/IB : Remote mlx5_0 device is local",),
    ),
    LogRow(
        id="T13",
        kind="remote_flid_zero",
        severity=_WARNING,
        anchor="remote FLID configured as zero",
        pattern=r"(?P<status>remote FLID configured as zero)",
        versions="2.20-2.30",
        meaning="A path through an InfiniBand router has no FLID.",
        examples=(
            Wording(
                "NCCL WARN NET/IB: remote FLID configured as zero even when endpoints"
                " are on different subnets",
                "2.20-2.30",
            ),
        ),
        near_misses=("NCCL INFO NET/IB: remote FLID 12",),
    ),
)

ROWS: tuple[LogRow, ...] = (*SELECTION, *CHANNELS, *MISMATCHES)
