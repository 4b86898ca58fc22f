"""NVLink and GPUs: no network."""

from __future__ import annotations

from fabricmon.parse.log_event import LogSeverity
from fabricmon.parse.nccl_rules.row import LogRow, Wording

_INFO, _WARNING = LogSeverity.INFO, LogSeverity.WARNING
_ERROR, _CRITICAL = LogSeverity.ERROR, LogSeverity.CRITICAL

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
