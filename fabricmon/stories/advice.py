"""What to do about a trouble, by where its cause lies. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from fabricmon.stories.nature import COMPLETION, SET_UP, Nature, Phase
from fabricmon.stories.story import Trouble
from fabricmon.value import Value


class Advice(Value, frozen=True):
    """Where to look and what to do; ``runbook`` is a page of the documentation."""

    verdict: str
    steps: tuple[str, ...]
    runbook: str = "nccl_error"


_ADVICE: Mapping[Nature, Advice] = {
    Nature.LINK: Advice(
        "link: cable, optics or port of this node, or its leaf port",
        (
            "look at the state, link_downed and symbol errors of that port on both ends",
            "reseat and clean the cable after the job; swap it if it comes again",
        ),
        "port_flap",
    ),
    Nature.PATH: Advice(
        "link or peer, after traffic: no answer to all retries",
        (
            "look at the ports of both nodes in the minutes before: state, link_downed",
            "see whether the peer died first: its own log, its kernel log",
            "more nodes that name the same peer accuse it or its leaf link",
        ),
    ),
    Nature.PEER: Advice(
        "the peer: its process or its HCA failed first",
        ("read the log of the peer for its own first error",),
    ),
    Nature.DEVICE: Advice(
        "device: the HCA of this node is in a fatal state",
        (
            "look at the kernel log of this node, at PCIe errors and firmware",
            "reset or replace the HCA; no cable",
        ),
        "device_missing",
    ),
    Nature.HOST: Advice(
        "host memory path: GPUDirect, ACS, IOMMU or peer memory; no cable",
        (
            "check that ACS is off, nvidia_peermem loaded or dma-buf in use",
            "NCCL_NET_GDR_LEVEL=0 proves it: the error goes, so does the speed",
        ),
    ),
    Nature.CONFIGURATION: Advice(
        "configuration: GID index, route, rail or device set-up; no cable",
        (
            "check NCCL_IB_GID_INDEX, NCCL_IB_HCA and NCCL_CROSS_NIC of the job",
            "ping and ib_send_bw between these two ports, by these GIDs",
            "fabricmon check --settings on both nodes",
        ),
        "config_mismatch",
    ),
    Nature.RESOURCES: Advice(
        "host limits: locked memory, queue pairs or registrations; no cable",
        ("check ulimit -l, the limits of the container and of the device",),
    ),
    Nature.SUBNET: Advice(
        "subnet manager: addresses or partitions changed; many nodes at once are one",
        ("look at the log of the subnet manager at that time",),
    ),
    Nature.SOCKETS: Advice(
        "host network: TCP of the start-up, nothing of RDMA",
        (
            "check NCCL_SOCKET_IFNAME, firewalls and routes between the two hosts",
            "a stale rendezvous or a scanner looks alike",
        ),
    ),
    Nature.SOFTWARE: Advice(
        "software: library, plugin, driver or firmware; never a cable",
        ("compare versions with a job that works; fails it on every NIC?",),
    ),
    Nature.GPU: Advice(
        "GPU, NVLink or CUDA: no network",
        ("check Fabric Manager, NVLink and the CUDA versions of that node",),
    ),
    Nature.APPLICATION: Advice(
        "application: ranks disagree about an operation; no network",
        ("compare code and environment of the ranks",),
    ),
    Nature.OFFLOAD: Advice(
        "in-network reduction is not available: slower, links healthy",
        ("check SHARP's aggregation manager, or leave it off",),
    ),
    Nature.SPEED: Advice(
        "transport: TCP sockets instead of RDMA",
        (
            "see whether the RDMA devices are there, ACTIVE and open to the container",
            "check NCCL_IB_DISABLE, NCCL_NET and the plugin of the job",
        ),
        "nccl_fallback",
    ),
    Nature.UNKNOWN: Advice(
        "the log does not tell",
        ("look for the rank that does not report, and at the fabric at that time",),
    ),
}

_NEVER = Advice(
    "configuration: these two have never reached each other; GID, route or rail",
    _ADVICE[Nature.CONFIGURATION].steps,
    "config_mismatch",
)
_UNDATED = Advice(
    "link or peer after traffic, GID, route or rail at start: the log does not tell",
    (*_ADVICE[Nature.PATH].steps, *_ADVICE[Nature.CONFIGURATION].steps[:1]),
)
_NO_DEVICE = Advice(
    "no RDMA device could be used: container, driver, rights or NCCL_IB_HCA; no cable",
    (
        "see whether /dev/infiniband and the locked memory reach into the container",
        "check NCCL_IB_HCA, NCCL_IB_DISABLE and the ports' state on this node",
    ),
    "nccl_fallback",
)
_FAILED_OVER = Advice(
    "link: the job goes on with fewer devices until its communicator is made anew",
    _ADVICE[Nature.LINK].steps,
    "port_down",
)
_LIBFABRIC = Advice(
    "EFA or another fabric of libfabric: security group, subnet or a dead peer; no cable",
    (
        "the security group of all nodes must allow all traffic to and from itself",
        "see whether the peer died or started anew first: its own log",
        "compare the versions of libfabric and plugin with a job that works",
    ),
)
_KINDS: Mapping[str, Advice] = {
    **dict.fromkeys(("libfabric_error", "ofi_request_error"), _LIBFABRIC),
    **dict.fromkeys(SET_UP - {"ofi_init_failed"}, _NO_DEVICE),
    "resiliency_device_failed": _FAILED_OVER,
}
_STRANGER = Advice(
    "a stranger's connection: a port scan or a health probe, nothing of the fabric",
    ("keep scanners off these ports, or update: NCCL 2.27.3 bears them",),
)
_FLAP = Advice(
    "link flap: the port fell and came back",
    _ADVICE[Nature.LINK].steps,
    "port_flap",
)
_FLUSH = Advice(
    "flushed work alone: the first error is on the other side or before this log",
    ("read the log of the peer, and the beginning of this one",),
)


def advise(trouble: Trouble) -> Advice:
    """Return where to look and what to do."""
    if trouble.flap:
        return _FLAP
    if trouble.root.kind == COMPLETION:
        if trouble.root.cause == "flush_root_cause_elsewhere":
            return _FLUSH
        if trouble.nature is Nature.CONFIGURATION:
            return _NEVER
        if trouble.nature is Nature.PATH and trouble.phase is Phase.UNKNOWN:
            return _UNDATED
    if trouble.root.cause == "port_scan_or_health_probe":
        return _STRANGER
    known = _ADVICE[trouble.nature]
    is_room = trouble.nature is Nature.RESOURCES
    return known if is_room else _KINDS.get(trouble.root.kind, known)
