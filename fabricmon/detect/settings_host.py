"""Settings of NCCL about sockets, GPUDirect and paths, and what the node must have."""

from __future__ import annotations

from collections.abc import Iterator

from fabricmon.detect.settings_case import (
    Case,
    SettingCheck,
    default,
    fits,
    judged,
    unknown,
    wrong,
)
from fabricmon.model import HostPath, LibrarySetting
from fabricmon.parse.device_list import parse_device_list
from fabricmon.parse.interfaces import LOOPBACK, is_made_for_containers

NODE = "node"
"""Origin of what is no setting of the library, but of the node itself."""

GDR_OFF = frozenset({"0", "LOC"})
"""Levels that let no NIC reach GPU memory; the others are distances."""

MOST_QUEUE_PAIRS = 128
"""NCCL_IB_MAX_QPS."""


def socket_interface(case: Case) -> Iterator[SettingCheck]:
    """Judge ``NCCL_SOCKET_IFNAME``: an interface between nodes, and up."""
    setting, path = case.get("NCCL_SOCKET_IFNAME"), case.ground.host_path
    if setting is None:
        return
    if case.in_pod:
        yield unknown(setting, "a pod's network", "a pod has a network of its own")
        return
    if path is None or not path.interfaces:
        yield unknown(setting, "no interface", "interfaces cannot be listed")
        return
    chosen = parse_device_list(setting.value)
    names = [name for name in path.interfaces if chosen.chooses(name)]
    better = _interface(case, path)
    if not names:
        yield wrong(setting, "no such interface", better)
        return
    between = [name for name in names if _leads_out(name)]
    if not between:
        yield wrong(setting, f"{names[0]} stays within the node", better)
        return
    up = [name for name in between if name in path.interfaces_up]
    shown = ", ".join(up[:3]) if up else f"{between[0]} is not up"
    yield judged(setting, shown, bool(up), better)


def _leads_out(name: str) -> bool:
    return name != LOOPBACK and not is_made_for_containers(name)


def _interface(case: Case, path: HostPath) -> str | None:
    """Return an interface for sockets: rather one that is no rail."""
    up = [name for name in path.interfaces_up if _leads_out(name)]
    rails = {port.info.netdev for port in case.ground.compute}
    ranked = sorted(up, key=lambda name: name in rails)
    return f"={ranked[0]}" if ranked else None


def gpu_direct(case: Case) -> Iterator[SettingCheck]:
    """Judge ``NCCL_NET_GDR_LEVEL``: off means a copy through the host for each byte."""
    setting = case.get("NCCL_NET_GDR_LEVEL", "NCCL_IB_GDR_LEVEL")
    ports = case.chosen()
    if setting is None or not ports or not case.speaks_verbs:
        return
    off = setting.value.strip().upper() in GDR_OFF
    near = case.ground.host_path.near_gpus if case.ground.host_path else ()
    shown = f"{len(ports)} ACTIVE ports, {len(near)} beside a GPU"
    yield judged(setting, shown, not off, "not set" if not near else "PXB, or not set")


def peer_memory(case: Case) -> Iterator[SettingCheck]:
    """Judge what lets a NIC reach GPU memory: a module, or dma-buf."""
    path = case.ground.host_path
    if path is None or not case.chosen() or not case.speaks_verbs:
        return
    if path.peer_memory is None and path.dma_buf is None:
        return  # no GPU driver that is known here
    told_off = case.number("NCCL_DMABUF_ENABLE") == 0
    module = _of_node("nvidia_peermem", "loaded" if path.peer_memory else "not loaded")
    shares = path.dma_buf is True and not told_off
    if path.peer_memory or shares:
        yield fits(module, "GPU memory is shared by " + _means(path))
    elif path.peer_memory is None or (path.dma_buf is None and not told_off):
        yield unknown(module, "dma-buf not known", "the GPU driver does not say")
    else:
        better = "loaded, or the open GPU driver with dma-buf"
        yield wrong(module, "no dma-buf either: data goes through the host", better)


def _means(path: HostPath) -> str:
    return "peer memory" if path.peer_memory else "dma-buf"


def iommu(case: Case) -> Iterator[SettingCheck]:
    """Judge the IOMMU: one that translates sends peer traffic up to the processor."""
    path = case.ground.host_path
    if path is None or path.iommu_translates is None or not case.chosen():
        return
    state = "translates" if path.iommu_translates else "off or pass-through"
    row = _of_node("iommu", state)
    yield judged(row, "GPU and NIC share addresses", not path.iommu_translates, "pt")


def access_control(case: Case) -> Iterator[SettingCheck]:
    """Judge ACS on the PCIe switches that GPU and NIC share: it must not redirect."""
    path = case.ground.host_path
    if path is None or not path.near_gpus or not case.chosen():
        return
    row = _of_node("pcie_acs", "redirects" if path.acs_redirects else "off")
    shown = "switches between GPU and NIC"
    if path.acs_redirects is None:
        yield unknown(row, shown, "PCIe configuration needs root")
    else:
        yield judged(row, shown, not path.acs_redirects, "off on these switches")


def placement(case: Case) -> Iterator[SettingCheck]:
    """Judge whether each rail shares a PCIe switch with a GPU, as most rails do."""
    path = case.ground.host_path
    rails = [port for port in case.chosen() if port in case.ground.compute]
    if path is None:
        return
    rails = [port for port in rails if _was_seen(path, port.info.id.device)]
    far = [port for port in rails if port.info.id.device not in path.near_gpus]
    if len(far) * 2 >= len(rails):
        return  # this machine is built so
    for port in far:
        row = _of_node("pcie_placement", "far")
        shown = f"{port.info.id} shares no PCIe switch with a GPU, other rails do"
        yield wrong(row, shown, "the slot, or the passed-through topology", port)


def _was_seen(path: HostPath, device: str) -> bool:
    """Tell whether a device was there, under this name, when the node was looked at."""
    return path.devices is None or device in path.devices


def cross_nic(case: Case) -> Iterator[SettingCheck]:
    """Judge ``NCCL_CROSS_NIC`` and PXN where the fabric has no path between rails."""
    rail_only = case.ground.limits.rail_only
    setting = case.get("NCCL_CROSS_NIC")
    if setting is not None:
        shown = "rails without a path between them"
        if rail_only is None or setting.value.strip() not in {"0", "1"}:
            yield unknown(setting, "paths between rails", "")
        elif rail_only:
            yield judged(setting, shown, setting.value.strip() == "0", "0")
        else:
            yield fits(setting, "rails are connected")
    proxies = case.get("NCCL_PXN_DISABLE")
    if proxies is not None and rail_only:
        off = case.number("NCCL_PXN_DISABLE") not in {None, 0}
        shown = "rails without a path between them need PXN"
        yield judged(proxies, shown, not off, "0")


def queue_pairs(case: Case) -> Iterator[SettingCheck]:
    """Judge queue pairs and splitting: what spreads a connection over the paths."""
    setting, split = (
        case.get("NCCL_IB_QPS_PER_CONNECTION"),
        case.get("NCCL_IB_SPLIT_DATA_ON_QPS"),
    )
    if not case.chosen() or not case.speaks_verbs:
        return
    count = case.number("NCCL_IB_QPS_PER_CONNECTION") if setting else 1
    wanted = case.ground.limits.queue_pairs
    row = setting or default("NCCL_IB_QPS_PER_CONNECTION", "1")
    if setting is not None and (count is None or not 1 <= count <= MOST_QUEUE_PAIRS):
        yield wrong(row, "no number of queue pairs", str(wanted or 1))
    elif wanted is not None and count is not None and (setting or case.complete):
        shown = f"flows share paths: {wanted} queue pairs spread them"
        yield judged(row, shown, count >= wanted, str(wanted))
    elif setting is not None:
        yield unknown(row, "paths of the fabric", "")
    if case.number("NCCL_IB_SPLIT_DATA_ON_QPS") == 1 and split is not None:
        if setting is None and not case.complete:
            yield unknown(split, "queue pairs", "")
        else:
            shown = f"{count} queue pair to split on"
            spread = count is not None and count > 1
            yield judged(split, shown, spread, "0, or more queue pairs")


def adaptive_routing(case: Case) -> Iterator[SettingCheck]:
    """Judge ``NCCL_IB_ADAPTIVE_ROUTING`` against what the switches do."""
    wanted = case.ground.limits.adaptive_routing
    setting = case.get("NCCL_IB_ADAPTIVE_ROUTING")
    ports = case.chosen()
    if not ports or not case.speaks_verbs:
        return
    if wanted is None:
        if setting is not None:
            yield unknown(setting, "routing of the switches", "")
        return
    on = case.number("NCCL_IB_ADAPTIVE_ROUTING") if setting else None
    if setting is None:
        if not case.complete:
            return
        on = 0 if any(port.is_roce for port in ports) else 1  # NCCL's default
    row = setting or default("NCCL_IB_ADAPTIVE_ROUTING", str(on))
    shown = f"switches route {'adaptively' if wanted else 'by fixed paths'}"
    yield judged(row, shown, on == int(wanted), str(int(wanted)))


def _of_node(name: str, value: str) -> LibrarySetting:
    return LibrarySetting(name, value, NODE)
