"""Data centre bridging of the RoCE ports of a device: what of it the node can read.

PFC and the priorities of DSCPs come from the kernel, and so does the type of service
that RDMA-CM gives; ECN and a traffic class that the driver enforces only from files of
NVIDIA's own driver, where that is installed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from fabricmon.host.protocol import Host, ReadError
from fabricmon.model import NO_CLASS, PriorityUse
from fabricmon.parse.sysfs import parse_link_layer
from fabricmon.parse.text import decimal, decode
from fabricmon.parse.words import LinkLayer
from fabricmon.sources.paths import device_folder, net_folder
from fabricmon.sources.port_netdevs import of_function

BRIDGING_READS = 28
"""Firmware commands of one answer on mlx5: three for each of eight classes, and PFC."""

RDMA_CM = "/sys/kernel/config/rdma_cm"
PRIORITIES = 8
MAX_PORTS = 4  # of one function
_SIDES = ("roce_np", "roce_rp")  # who notices congestion, and who slows down
_ON = "1"
_GLOBAL = "Global tclass="
_BY_TAG = "pcp"  # the port looks at the tag of a frame, not at its DSCP


def of_device(host: Host, name: str, function: str) -> Iterator[PriorityUse]:
    """Yield what is known of each network device of a RoCE device."""
    ports = host.names(f"{device_folder(name)}/ports")
    numbers = () if isinstance(ports, ReadError) else ports[:MAX_PORTS]
    layers = {
        number: _text(host, f"{device_folder(name)}/ports/{number}/link_layer")
        for number in numbers
    }
    roce = [
        number
        for number, layer in layers.items()
        if layer is not None and parse_link_layer(layer) is LinkLayer.ETHERNET
    ]
    if not roce:
        return
    for number, netdev in zip(roce, of_function(host, function), strict=False):
        use = _of_netdev(host, netdev.name)
        forced = _traffic_class(host, name, number)
        usual = _default_tos(host, name, number)
        if use is not None or forced is not None or usual is not None:
            use = use or PriorityUse(netdev.name)
            yield replace(use, traffic_class=forced, default_tos=usual)


def _of_netdev(host: Host, netdev: str) -> PriorityUse | None:
    use = host.bridging(netdev, BRIDGING_READS)
    ecn = _ecn(host, netdev)
    if use is None:
        return None if ecn is None else PriorityUse(netdev, ecn_enabled=ecn)
    if use.ecn_enabled is None:
        use = replace(use, ecn_enabled=ecn)
    trust = _text(host, f"{net_folder(netdev)}/qos/trust")
    if trust == _BY_TAG:
        use = replace(use, dscp_to_priority=())
    elif trust is not None and not use.dscp_to_priority:
        use = replace(use, dscp_to_priority=None)  # a map that the kernel was not told
    return use


def _ecn(host: Host, netdev: str) -> tuple[int, ...] | None:
    """Return the priorities with ECN on both sides; None without such files."""
    enabled = []
    for priority in range(PRIORITIES):
        folder = f"{net_folder(netdev)}/ecn"
        sides = [_text(host, f"{folder}/{side}/enable/{priority}") for side in _SIDES]
        if None in sides:
            return None
        if sides == [_ON, _ON]:
            enabled.append(priority)
    return tuple(enabled)


def _traffic_class(host: Host, device: str, port: str) -> int | None:
    """Return the class that is put on every packet: ``Global tclass=106``.

    The file holds no such line where there is none; others speak of single addresses.
    """
    raw = host.read(f"{device_folder(device)}/tc/{port}/traffic_class")
    if isinstance(raw, ReadError):
        return None
    for line in decode(raw).splitlines():
        if line.startswith(_GLOBAL):
            return decimal(line.removeprefix(_GLOBAL).strip())
    return NO_CLASS


def _default_tos(host: Host, device: str, port: str) -> int | None:
    """Return what RDMA-CM gives; its folder is there only if somebody made it."""
    text = _text(host, f"{RDMA_CM}/{device}/ports/{port}/default_roce_tos")
    return None if text is None else decimal(text)


def _text(host: Host, path: str) -> str | None:
    raw = host.read(path)
    return None if isinstance(raw, ReadError) else decode(raw).strip() or None
