"""Rows that are no events: versions, settings, init lines, hints of the library."""

from __future__ import annotations

from fabricmon.parse.log_event import LogSeverity
from fabricmon.parse.nccl_rules.pieces import DECIMAL
from fabricmon.parse.nccl_rules.row import LogRow, Wording

_INFO, _ERROR = LogSeverity.INFO, LogSeverity.ERROR

SETTINGS: tuple[LogRow, ...] = (
    LogRow(
        id="E1",
        kind="env_setting",
        severity=_INFO,
        anchor="CCL_",
        pattern=r"(?P<name>(?:OFI_)?[NR]CCL_\w{1,80}) set (?:by environment )?to "
        r"(?P<value>.{0,1000})",
        versions="2.3-2.30",
        meaning="A setting of the library. Ranks that differ in one are worth a look.",
        examples=(
            Wording("NCCL INFO NCCL_IB_HCA set to mlx5", "2.3-2.30"),
            Wording("NCCL INFO NCCL_IB_DISABLE set by environment to 0.", "2.3-2.30"),
            Wording(
                "NCCL INFO OFI_NCCL_PROTOCOL set by environment to RDMA", "2.3-2.30"
            ),
        ),
        near_misses=("NCCL INFO Disable NCCL_IB_HCA or set it",),
    ),
    LogRow(
        id="I9",
        kind="version_mismatch",
        severity=_ERROR,
        anchor="Mismatched NCCL version detected",
        pattern=r"Mismatched NCCL version detected : rank (?P<first_rank>\d+) version "
        r"(?P<version>\d+) rank (?P<other_rank>\d+) version (?P<other_version>\d+)",
        versions="2.7-2.30",
        meaning="Ranks use different versions of the library.",
        examples=(
            Wording(
                "NCCL WARN Mismatched NCCL version detected : rank 0 version 21805 rank"
                " 1 version 22005",
                "2.7-2.30",
                status="21805/22005",
            ),
        ),
        near_misses=("NCCL INFO NCCL version 2.18.5+cuda12.2",),
    ),
    LogRow(
        id="E2",
        kind="library_version",
        severity=_INFO,
        anchor="CCL version",
        pattern=r"(?P<name>[NR]CCL) version ?:? (?P<status>\d{1,20}\.\d{1,20}\.\d{1,20})"
        r"(?:\+(?P<toolkit>(?:cuda|hip)[\d.]{1,20}))?",
        versions="2.3-2.30",
        meaning="The library and its version.",
        examples=(
            Wording("NCCL version 2.7.8+cuda11.1", "2.3-2.21", status="2.7.8"),
            Wording(
                "NCCL INFO NCCL version 2.27.3+cuda12.9", "2.22-2.30", status="2.27.3"
            ),
            Wording("RCCL version 2.20.5+hip6.2 HEAD:abc", "2.3-2.20", status="2.20.5"),
            Wording("RCCL version : 2.21.5-develop:abc", "2.21-2.30", status="2.21.5"),
            Wording(
                "NCCL version 2.26.2 compiled with CUDA 12.4",
                "2.24-2.30",
                status="2.26.2",
            ),
        ),
        near_misses=("NCCL INFO NCCL version mismatch",),
        companion=True,
    ),
    LogRow(
        id="E3",
        kind="library_detail",
        severity=_INFO,
        anchor=" version",
        pattern=r"^(?P<name>HIP|ROCm) version {1,4}: (?P<status>\S{1,80})",
        versions="2.21-2.30",
        meaning="A line of RCCL's banner.",
        examples=(
            Wording("HIP version  : 6.2.41133", "2.21-2.30", status="6.2.41133"),
            Wording("ROCm version : 6.2.0.0-66", "2.21-2.30"),
        ),
        near_misses=("CUDA runtime version 12040, driver version 12040",),
        library="rccl",
        behind="CCL version",
    ),
    LogRow(
        id="E3b",
        kind="library_detail",
        severity=_INFO,
        anchor=": ",
        pattern=r"^(?P<name>Hostname|Librccl path) {1,8}: (?P<status>\S{1,300})",
        versions="2.21-2.30",
        meaning="A line of RCCL's banner.",
        examples=(
            Wording("Hostname      : node-7", "2.21-2.30", status="node-7"),
            Wording("Librccl path  : /opt/rocm/lib/librccl.so.1", "2.21-2.30"),
        ),
        near_misses=("Hostname: node-7",),
        library="rccl",
        behind="CCL version",
    ),
    LogRow(
        id="E4",
        kind="host_hint",
        severity=_INFO,
        anchor="NUMA auto balancing enabled",
        pattern=r"(?P<status>NUMA auto balancing enabled)",
        versions="2.3-2.30",
        meaning="RCCL's hint on the host's settings: no fault.",
        examples=(
            Wording(
                "NCCL WARN NUMA auto balancing enabled which can lead to variability in"
                " the RCCL performance! Disable by 'sudo sysctl"
                " kernel.numa_balancing=0'",
                "2.3-2.30",
            ),
        ),
        near_misses=("NCCL INFO NUMA auto balancing disabled",),
        library="rccl",
    ),
    LogRow(
        id="E4b",
        kind="host_hint",
        severity=_INFO,
        anchor='Missing "iommu=pt"',
        pattern=r'(?P<status>Missing "iommu=pt")',
        versions="2.3-2.30",
        meaning="RCCL's hint on the kernel's command line: no fault by itself.",
        examples=(
            Wording(
                'NCCL WARN Missing "iommu=pt" from kernel command line which can lead'
                " to system instablity or hang!",
                "2.3-2.30",
            ),
        ),
        near_misses=("NCCL INFO iommu=pt found",),
        library="rccl",
    ),
    LogRow(
        id="E4c",
        kind="host_hint",
        severity=_INFO,
        anchor="HSA_FORCE_FINE_GRAIN_PCIE",
        pattern=r"(?P<status>Missing \"?HSA_FORCE_FINE_GRAIN_PCIE)",
        versions="2.3-2.30",
        meaning="RCCL's hint on the environment: no fault by itself.",
        examples=(
            Wording(
                'NCCL WARN Missing "HSA_FORCE_FINE_GRAIN_PCIE=1" from environment which'
                " can lead to low RCCL performance!",
                "2.3-2.30",
            ),
        ),
        near_misses=("NCCL INFO HSA_FORCE_FINE_GRAIN_PCIE=1",),
        library="rccl",
    ),
)

INIT: tuple[LogRow, ...] = (
    LogRow(
        id="I1",
        kind="init_start_complete",
        severity=_INFO,
        anchor=" busId ",
        pattern=r"comm (?P<comm>0x\w{1,18}) rank (?P<rank>\d{1,9}) n[rR]anks (?P<ranks>\d{1,9}) "
        r"cudaDev (?P<gpu_index>\d{1,9})(?: nvmlDev (?P<nvml_index>\d{1,9}))? "
        r"busId (?P<bus_id>\w{1,18})(?: commId (?P<comm_id>0x\w{1,18}))?"
        r"(?: localSize [^-]{0,80}?)? - (?P<status>Init START|Init COMPLETE|Destroy COMPLETE|"
        r"Abort COMPLETE|Abort START|Revoke \w{1,18})",
        versions="2.3-2.30",
        meaning="A rank of a communicator began or ended: its process and GPU, how "
        "many ranks there are.",
        examples=(
            Wording(
                "NCCL INFO comm 0x7f7dbc001060 rank 0 nranks 16 cudaDev 0 busId 1c000 -"
                " Init COMPLETE",
                "2.3-2.16",
                status="Init COMPLETE",
            ),
            Wording(
                "NCCL INFO comm 0x55dd8aa86c70 rank 0 nranks 16 cudaDev 0 nvmlDev 0"
                " busId 1c000 commId 0x65e0bd6ee7449db4 - Init START",
                "2.17-2.30",
                status="Init START",
            ),
            Wording(
                "NCCL INFO ncclCommInitRankConfig comm 0x55dd8aa86c70 rank 3 nRanks 16"
                " cudaDev 3 nvmlDev 3 busId 9a000 commId 0x65e0bd6ee7449db4 - Init"
                " START",
                "2.21-2.30",
                status="Init START",
            ),
            Wording(
                "NCCL INFO comm 0x55dd8aa86c70 rank 0 nranks 16 cudaDev 0 busId c1000"
                " localSize 288 used 92184576 bytes on core 3 - Init COMPLETE",
                "2.10-2.30",
                status="Init COMPLETE",
            ),
        ),
        near_misses=("NCCL INFO comm 0x55dd8aa86c70 rank 0 nranks 16",),
    ),
    LogRow(
        id="I2",
        kind="comm_shape",
        severity=_INFO,
        anchor=" localRanks ",
        pattern=r"comm (?P<comm>0x\w+) rank (?P<rank>\d+) nRanks (?P<ranks>\d+) nNodes "
        r"(?P<nodes>\d+) localRanks (?P<local_ranks>\d+) localRank "
        r"(?P<local_rank>\d+) MNNVL (?P<mnnvl>\d+)",
        versions="2.21-2.30",
        meaning="How many nodes a communicator spans.",
        examples=(
            Wording(
                "NCCL INFO comm 0x55dd8aa86c70 rank 0 nRanks 16 nNodes 2 localRanks 8"
                " localRank 0 MNNVL 0",
                "2.21-2.30",
            ),
        ),
        near_misses=("NCCL INFO comm 0x55dd8aa86c70 rank 0 nRanks 16",),
    ),
    LogRow(
        id="I3",
        kind="init_timings",
        severity=_INFO,
        anchor=" timings",
        pattern=r"(?P<status>Init|Bootstrap) timings.{0,80}?total "
        rf"(?P<total_seconds>{DECIMAL}) "
        r"\((?P<parts>[^)]{0,400})\)",
        versions="2.22-2.30",
        meaning="How long the start took: much longer than on other nodes is a slow "
        "node or network out of band.",
        examples=(
            Wording(
                "NCCL INFO Init timings - ncclCommInitRank: rank 0 nranks 8 total 1.20"
                " (kernels 0.10, bootstrap 0.30, connections 0.30, rest 0.00)",
                "2.22-2.30",
                status="Init",
            ),
            Wording(
                "NCCL INFO Bootstrap timings total 0.103000 (create 0.000040, send"
                " 0.000200, recv 0.001000, ring 0.003000, delay 0.000000), rank 0",
                "2.23-2.30",
                status="Bootstrap",
            ),
        ),
        near_misses=("NCCL INFO Init timings off",),
    ),
    LogRow(
        id="I4",
        kind="graph_search",
        severity=_INFO,
        anchor=", crossNic ",
        pattern=r"Pattern (?P<pattern>\d+), crossNic (?P<cross_nic>\d+), nChannels "
        rf"(?P<channels>\d+), (?:bw|speed) (?P<bandwidth_in>{DECIMAL})/"
        rf"(?P<bandwidth_out>{DECIMAL}), type (?P<type_in>\w+)/(?P<type_out>\w+), "
        r"sameChannels (?P<same_channels>\d+)",
        versions="2.6-2.30",
        meaning="What the library expects of the node: less than on its sisters is a "
        "degraded NIC or slot from the start.",
        examples=(
            Wording(
                "NCCL INFO Pattern 4, crossNic 0, nChannels 2, speed 12.0/12.0, type"
                " PIX/SYS, sameChannels 1",
                "2.6-2.13",
            ),
            Wording(
                "NCCL INFO Pattern 4, crossNic 0, nChannels 8, bw 40.000000/40.000000,"
                " type NVL/PIX, sameChannels 1",
                "2.14-2.30",
            ),
        ),
        near_misses=("NCCL INFO Pattern 4",),
        unscanned=True,
    ),
    LogRow(
        id="I5",
        kind="topo_nic",
        severity=_INFO,
        anchor="+ NET[",
        pattern=rf"\+ NET\[(?P<bandwidth>{DECIMAL})\] - NET/(?P<nic>[0-9A-Fa-f-]+) "
        r"\((?:(?P<index>\d+)/)?(?P<asic>[0-9a-f]+)/(?P<port>\d+)/"
        rf"(?P<gigabytes>{DECIMAL})\)",
        versions="2.6-2.30",
        meaning="A NIC in the library's topology, with its rate in GB/s: half the "
        "usual one is a degraded link at the start.",
        examples=(
            Wording(
                "NCCL INFO + NET[25.0] - NET/0 (e4a3b4000386c410/1/25.000000)",
                "2.6-2.21",
                port=1,
            ),
            Wording(
                "NCCL INFO + NET[48.0] - NET/0-3 (3/e4a3b4000386c410/1/48.000000)",
                "2.22-2.30",
                port=1,
            ),
        ),
        near_misses=("NCCL INFO + PCI[24.0] - NIC/1c000",),
    ),
    LogRow(
        id="I6",
        kind="coll_op",
        severity=_INFO,
        anchor=": opCount ",
        pattern=r"(?P<operation>AllReduce|AllGather|ReduceScatter|Broadcast|Reduce|"
        r"Send|Recv|AlltoAll|Gather|Scatter): opCount (?P<op_count>[0-9a-f]{1,16}) "
        r"sendbuff \S{1,20} recvbuff \S{1,20} count (?P<elements>\d{1,12}) datatype "
        r"(?P<datatype>\d{1,12}) op \d{1,12} root \d{1,12} comm (?P<comm>0x\w{1,18}) \[nranks=(?P<ranks>\d{1,12})\]",
        versions="2.3-2.30",
        meaning="An operation was enqueued. Printed at each call, so it is not looked "
        "for.",
        examples=(
            Wording(
                "NCCL INFO AllReduce: opCount 1a sendbuff 0x7f00 recvbuff 0x7f01 count"
                " 1048576 datatype 7 op 0 root 0 comm 0x55dd8aa86c70 [nranks=8] stream"
                " 0x55dd",
                "2.3-2.30",
            ),
        ),
        near_misses=("NCCL INFO AllReduce: 4096 Bytes -> Algo 1 proto 0 time 11.0",),
        unscanned=True,
    ),
    LogRow(
        id="I7",
        kind="tuning_choice",
        severity=_INFO,
        anchor=" Bytes -> Algo ",
        pattern=r"(?P<operation>\w{1,40}): (?P<bytes>\d+) Bytes -> Algo (?P<algorithm>"
        r"\w+) proto (?P<protocol>\w+)"
        r"(?: channel\{Lo\.\.Hi\}=\{(?P<first_channel>\d+)\.\.(?P<last_channel>\d+)\})?",
        versions="2.20-2.30",
        meaning="Which algorithm an operation uses. Printed at each call, so it is not "
        "looked for.",
        examples=(
            Wording(
                "NCCL INFO AllReduce: 4096 Bytes -> Algo 1 proto 0 time 11.000000",
                "2.20-2.23",
            ),
            Wording(
                "NCCL INFO AllReduce: 4096 Bytes -> Algo RING proto LL channel{Lo..Hi}="
                "{0..3}",
                "2.24-2.30",
            ),
        ),
        near_misses=("NCCL INFO AllReduce: opCount 1a sendbuff 0x7f00",),
        unscanned=True,
    ),
    LogRow(
        id="I8",
        kind="rings_connected",
        severity=_INFO,
        anchor="Connected all rings",
        pattern=r"Connected all rings(?:, use ring PXN (?P<pxn>\d) GDR (?P<gdr>\d))?",
        versions="2.3-2.30",
        meaning="The connections are up; since 2.24 it says whether rings use "
        "GPUDirect.",
        examples=(
            Wording("NCCL INFO Connected all rings", "2.3-2.23"),
            Wording("NCCL INFO Connected all rings, use ring PXN 0 GDR 1", "2.24-2.30"),
        ),
        near_misses=("NCCL INFO Connected rings",),
        unscanned=True,
    ),
    LogRow(
        id="I8b",
        kind="rings_connected",
        severity=_INFO,
        anchor="Connected all trees",
        pattern=r"(?P<status>Connected all trees)",
        versions="2.5-2.30",
        meaning="The connections are up.",
        examples=(Wording("NCCL INFO Connected all trees", "2.5-2.30"),),
        near_misses=("NCCL INFO Connected trees",),
        unscanned=True,
    ),
)

ROWS: tuple[LogRow, ...] = (*SETTINGS, *INIT)
