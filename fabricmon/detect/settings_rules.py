"""Every setting that is held against the fabric: one row each, and the judgement.

Pure: settings and what the node shows go in, verdicts come out. ``fabricmon check
--settings`` prints them, the detector makes findings of those that do not fit.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from fabricmon.detect import settings_devices as devices
from fabricmon.detect import settings_host as host
from fabricmon.detect import settings_rdma as rdma
from fabricmon.detect.settings_case import (
    UNSET,
    Case,
    Fit,
    SettingCheck,
)
from fabricmon.model import LibrarySetting
from fabricmon.parse.device_list import DeviceList
from fabricmon.value import Value

Judge = Callable[[Case], Iterator[SettingCheck]]


class Rule(Value, frozen=True):
    """One row: the variables, what the fabric must show for them, and what judges."""

    variables: tuple[str, ...]
    must: str
    judge: Judge


# fmt: off
RULES: tuple[Rule, ...] = (
    Rule(("NCCL_IB_DISABLE",), "no RDMA port is ACTIVE if it is 1", devices.disabled),
    Rule(("NCCL_NET",), "no RDMA port is ACTIVE if it is Socket", devices.network),
    Rule(("NCCL_IB_HCA",), "its ports exist, are ACTIVE, and are all compute rails",
         devices.devices),
    Rule(("NCCL_IB_GID_INDEX",), "a routable RoCE v2 address on each port",
         rdma.gid_index),
    Rule(("NCCL_IB_TC",), "its DSCP lands in a priority with PFC and ECN",
         rdma.traffic_class),
    Rule(("NCCL_IB_TIMEOUT", "NCCL_IB_RETRY_CNT"),
         "together they outlast settings.retrain_seconds", rdma.timeout),
    Rule(("NCCL_SOCKET_IFNAME",), "an interface that is up and leads to other nodes",
         host.socket_interface),
    Rule(("NCCL_NET_GDR_LEVEL", "NCCL_IB_GDR_LEVEL"), "not LOC or 0", host.gpu_direct),
    Rule(("NCCL_CROSS_NIC", "NCCL_PXN_DISABLE"), "0 where settings.rail_only is true",
         host.cross_nic),
    Rule(("NCCL_IB_QPS_PER_CONNECTION", "NCCL_IB_SPLIT_DATA_ON_QPS"),
         "at least settings.queue_pairs, and more than one to split on",
         host.queue_pairs),
    Rule(("NCCL_IB_ADAPTIVE_ROUTING",), "as settings.adaptive_routing says",
         host.adaptive_routing),
    Rule(("nvidia_peermem", "NCCL_DMABUF_ENABLE"), "GPU memory can be shared",
         host.peer_memory),
    Rule(("iommu",), "off or pass-through", host.iommu),
    Rule(("pcie_acs",), "no redirection on switches between GPU and NIC",
         host.access_control),
    Rule(("pcie_placement",), "each rail shares a switch with a GPU, as most do",
         host.placement),
)
# fmt: on

ALIKE = frozenset(
    {
        *(name for rule in RULES for name in rule.variables if name[:5] == "NCCL_"),
        "NCCL_ALGO", "NCCL_BUFFSIZE", "NCCL_COLLNET_ENABLE", "NCCL_IB_MERGE_NICS",
        "NCCL_IB_SL", "NCCL_MAX_NCHANNELS", "NCCL_MIN_NCHANNELS", "NCCL_NVLS_ENABLE",
        "NCCL_P2P_NET_CHUNKSIZE", "NCCL_PROTO",
    }
    - {"NCCL_IB_HCA", "NCCL_SOCKET_IFNAME"}
)  # fmt: skip
"""Variables that every rank of a job must have alike.

A rank may have devices and an interface of its own.
"""

ONE_NODE = 1
MAX_VALUES = 4  # of one variable that are named


def judge_settings(case: Case) -> tuple[SettingCheck, ...]:
    """Hold the settings of one process or job against the fabric.

    A job within one node uses no fabric; nothing is said of it.
    """
    if case.nodes == ONE_NODE:
        return ()
    found = [check for rule in RULES for check in rule.judge(case)]
    return tuple(dict.fromkeys(found))


def judge_all(
    cases: Sequence[Case], elsewhere: Sequence[Case] = ()
) -> tuple[SettingCheck, ...]:
    """Judge every case, and whether the ranks of each job agree; each verdict once.

    Rails that one process leaves to another of its job are not idle. Cases ``elsewhere``
    are ranks on other nodes, which only have to agree.
    """
    told = _with_others(cases)
    found = [check for case in told for check in judge_settings(case)]
    by_job: defaultdict[str | None, list[Case]] = defaultdict(list)
    for case in cases:
        by_job[case.job].append(case)
    for case in elsewhere:
        if case.job in by_job:
            by_job[case.job].append(case)
    for ranks in by_job.values():
        found += disagreements(ranks)
    return tuple(dict.fromkeys(found))


def disagreements(ranks: Sequence[Case]) -> Iterator[SettingCheck]:
    """Yield variables that differ between the processes of one job.

    Where a process's environment is not known, what it does not set says nothing.
    """
    values: defaultdict[str, dict[str, LibrarySetting]] = defaultdict(dict)
    for case in ranks:
        for setting in case.settings:
            if setting.name in ALIKE:
                values[setting.name].setdefault(setting.value, setting)
    for name, known in values.items():
        unset = any(case.complete and case.get(name) is None for case in ranks)
        every = sorted(known) + ([UNSET] if unset else [])
        if len(every) > 1:
            first = known[every[0]]
            shown = "ranks of one job differ: " + ", ".join(every[:MAX_VALUES])
            yield SettingCheck(
                name,
                " / ".join(every[:MAX_VALUES]),
                first.origin,
                shown,
                Fit.MISMATCH,
                "one value on every rank",
            )


def _with_others(cases: Sequence[Case]) -> Iterator[Case]:
    """Tell each case which devices the other ranks of its job use."""
    lists: defaultdict[str | None, dict[DeviceList, None]] = defaultdict(dict)
    for case in cases:
        lists[case.job][case.devices()] = None
    for case in cases:
        yield replace(case, others=tuple(lists[case.job]))
