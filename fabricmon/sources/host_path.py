"""What lies between the GPUs and the network ports, and what the node can reach.

NCCL's GPUDirect needs peer memory or dma-buf, an IOMMU and switches that let the
devices talk to each other, and a GPU near its port. None of it reaches the firmware of
a port but data centre bridging, which the kernel asks the driver for under a lock: so
this has the lane of the driver statistics.
"""

from __future__ import annotations

from collections.abc import Iterable

from fabricmon.config import Config
from fabricmon.expectations import is_watched
from fabricmon.host.protocol import Host, ReadError
from fabricmon.model import Accelerators, HostPath, PriorityUse, Target
from fabricmon.parse.interfaces import is_made_for_containers
from fabricmon.parse.pci_config import redirects_peers
from fabricmon.parse.pci_path import pci_functions, up_to_function
from fabricmon.parse.text import decimal, decode
from fabricmon.sources import bridging
from fabricmon.sources.node import poll_accelerators
from fabricmon.sources.paths import (
    NET_CLASS,
    PCI_DEVICES,
    RDMA_CLASS,
    device_folder,
    net_folder,
)

MODULES = "/sys/module"
PEER_MEMORY = ("nvidia_peermem", "nv_peer_mem")
"""Modules that let RDMA drivers pin memory of NVIDIA GPUs, the second the older one."""

AMD_PEERS = "/sys/kernel/mm/memory_peers"
NVIDIA_VERSION = "/proc/driver/nvidia/version"
OPEN_DRIVER = "Open Kernel Module"
"""Only these drivers of NVIDIA hand out dma-buf."""

KERNEL_RELEASE = "/proc/sys/kernel/osrelease"
DMA_BUF_KERNEL = (5, 12)
"""First kernel whose RDMA class takes dma-buf."""

COMMAND_LINE = "/proc/cmdline"
IOMMU_GROUPS = "/sys/kernel/iommu_groups"
PASS_THROUGH = frozenset({"iommu=pt", "iommu.passthrough=1", "iommu=off"})
TRANSLATES = frozenset({"intel_iommu=on", "amd_iommu=on", "iommu=force"})

MAX_INTERFACES = 256  # a node with pods has hundreds, made for containers
MAX_BRIDGES = 64  # PCIe ports whose configuration is read
MAX_DEVICES = 64

_UP = frozenset({"up", "unknown"})  # unknown: a driver that does not say


def poll(host: Host, _target: Target, config: Config) -> tuple[HostPath, ...]:
    """Look at modules, IOMMU, PCIe, interfaces and bridging of the node."""
    gpus = _gpus(host, config)
    devices = _devices(host, config)
    interfaces = _interfaces(host)
    paths = (*gpus, *devices.values())
    return (
        HostPath(
            at=host.monotonic(),
            peer_memory=_peer_memory(host),
            dma_buf=_dma_buf(host),
            iommu_translates=_translates(host, paths) if gpus and devices else None,
            acs_redirects=_redirects(host, gpus, devices.values()),
            near_gpus=_near(devices, gpus),
            devices=tuple(devices),
            interfaces=interfaces,
            interfaces_up=tuple(name for name in interfaces if _is_up(host, name)),
            priorities=_priorities(host, devices),
        ),
    )


def _gpus(host: Host, config: Config) -> tuple[str, ...]:
    for record in poll_accelerators(host, Target(), config):
        if isinstance(record, Accelerators):
            return record.paths
    return ()


def _devices(host: Host, config: Config) -> dict[str, str]:
    """Return the PCI functions of the RDMA devices that may be looked at."""
    names = host.names(RDMA_CLASS)
    if isinstance(names, ReadError):
        return {}
    watched = [name for name in names if is_watched(name, config.devices)]
    found = {}
    for name in watched[:MAX_DEVICES]:
        path = host.target(f"{device_folder(name)}/device")
        function = None if path is None else up_to_function(path)
        if function is not None:
            found[name] = function
    return found


def _peer_memory(host: Host) -> bool | None:
    """Tell whether GPU memory can be registered; None without such a GPU driver."""
    if any(host.target(f"{MODULES}/{module}") for module in PEER_MEMORY):
        return True
    if host.target(AMD_PEERS) is not None:
        return True
    return False if host.target(f"{MODULES}/nvidia") is not None else None


def _dma_buf(host: Host) -> bool | None:
    """Tell whether driver and kernel can share GPU memory by dma-buf."""
    version = _text(host, NVIDIA_VERSION)
    release = _text(host, KERNEL_RELEASE)
    if version is None or release is None:
        return None
    major, _, rest = release.partition(".")
    numbers = decimal(major), decimal(rest.partition(".")[0].partition("-")[0])
    if numbers[0] is None or numbers[1] is None:
        return None
    return OPEN_DRIVER in version and (numbers[0], numbers[1]) >= DMA_BUF_KERNEL


def _translates(host: Host, paths: Iterable[str]) -> bool | None:
    """Tell whether an IOMMU translates addresses between GPU and port."""
    groups = host.names(IOMMU_GROUPS)
    if isinstance(groups, ReadError):
        return None
    if not groups:
        return False
    addresses = [path.rpartition("/")[2] for path in paths]
    kinds = [
        kind
        for address in addresses
        if (kind := _text(host, f"{PCI_DEVICES}/{address}/iommu_group/type"))
    ]
    if kinds:
        return any(kind.startswith("DMA") for kind in kinds)
    words = set((_text(host, COMMAND_LINE) or "").split())
    if words & PASS_THROUGH:
        return False
    return True if words & TRANSLATES else None


def _redirects(host: Host, gpus: Iterable[str], devices: Iterable[str]) -> bool | None:
    """Tell whether a PCIe switch on the way sends peer traffic up to the processor.

    Only the ports of switches count that a GPU and an RDMA device share.
    """
    ports: dict[str, None] = {}
    near = [pci_functions(path) for path in devices]
    for gpu in map(pci_functions, gpus):
        for device in near:
            shared = [port for port in gpu[:-1] if port in device[:-1]]
            if shared:
                own = (*gpu[len(shared) : -1], *device[len(shared) : -1])
                ports |= dict.fromkeys(own)
    answers = []
    for port in list(ports)[:MAX_BRIDGES]:
        raw = host.read(f"{PCI_DEVICES}/{port}/config")
        answers.append(None if isinstance(raw, ReadError) else redirects_peers(raw))
    if True in answers:
        return True
    return False if answers and None not in answers else None


def _near(devices: dict[str, str], gpus: Iterable[str]) -> tuple[str, ...]:
    """Return the devices that have a PCIe switch in common with a GPU."""
    above = {port for gpu in gpus for port in pci_functions(gpu)[:-1]}
    return tuple(
        name
        for name, path in devices.items()
        if above.intersection(pci_functions(path)[:-1])
    )


def _interfaces(host: Host) -> tuple[str, ...]:
    names = host.names(NET_CLASS)
    if isinstance(names, ReadError):
        return ()
    folders = [name for name in names if name != "bonding_masters"]
    return tuple(sorted(folders, key=is_made_for_containers)[:MAX_INTERFACES])


def _is_up(host: Host, name: str) -> bool:
    """Tell whether an interface can carry packets; those of containers are not asked."""
    if is_made_for_containers(name):
        return False
    return _text(host, f"{net_folder(name)}/operstate") in _UP


def _priorities(host: Host, devices: dict[str, str]) -> tuple[PriorityUse, ...]:
    found = (bridging.of_device(host, name, path) for name, path in devices.items())
    return tuple(use for uses in found for use in uses)


def _text(host: Host, path: str) -> str | None:
    raw = host.read(path)
    return None if isinstance(raw, ReadError) else decode(raw).strip() or None
