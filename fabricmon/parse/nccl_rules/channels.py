"""Channels between ranks, and GPUDirect."""

from __future__ import annotations

from fabricmon.parse.log_event import LogSeverity
from fabricmon.parse.nccl_rules.pieces import DEVICE, PORT
from fabricmon.parse.nccl_rules.row import LogRow, Wording

_INFO, _WARNING = LogSeverity.INFO, LogSeverity.WARNING
_ERROR, _CRITICAL = LogSeverity.ERROR, LogSeverity.CRITICAL

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
