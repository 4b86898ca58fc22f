"""Identity of one RDMA device, and the plans of what can be read from it.

Free for the device: the kernel answers all of it from memory.
"""

from __future__ import annotations

from collections.abc import Iterator

from fabricmon.config import Config
from fabricmon.host.protocol import Host, ReadError
from fabricmon.model import (
    GroupedPlan,
    Hca,
    HcaPort,
    PortId,
    ReadFailure,
    Record,
    Target,
)
from fabricmon.parse.sysfs import parse_guid, parse_link_layer
from fabricmon.parse.text import decimal, hexadecimal
from fabricmon.parse.words import LinkLayer
from fabricmon.sources.function import Function, find_function
from fabricmon.sources.paths import Attributes, device_folder, port_folder
from fabricmon.sources.plans import Planner
from fabricmon.sources.port_netdevs import (
    FunctionNetdev,
    of_function,
    of_number,
    of_port,
)

MAX_PORTS = 256  # the class allows as many; a folder without end stops here
GUID_DIGITS = 16


def poll(host: Host, target: Target, config: Config) -> tuple[Record, ...]:
    """Describe the device; what has no ports is a failure beside the description."""
    name = target.name
    entries = host.names(device_folder(name))
    if isinstance(entries, ReadError):
        return (_failure(name, "", entries.errno, "the device cannot be opened"),)
    names = host.names(f"{device_folder(name)}/ports")
    failures: list[ReadFailure] = []
    hca = _describe(host, name, _numbers(names), config, failures)
    if isinstance(names, ReadError):
        message = "the device has no ports: its driver is not ready or failed"
        failures.append(_failure(name, "ports", names.errno, message))
    return (hca, *failures)


def _failure(name: str, file: str, errno: str, message: str) -> ReadFailure:
    path = f"{device_folder(name)}/{file}".rstrip("/")
    return ReadFailure(name, None, path, errno, message)


def _numbers(names: tuple[str, ...] | ReadError) -> tuple[int, ...]:
    if isinstance(names, ReadError):
        return ()
    numbers = (decimal(name) for name in names)
    return tuple(sorted(number for number in numbers if number))[:MAX_PORTS]


def _describe(
    host: Host,
    name: str,
    numbers: tuple[int, ...],
    config: Config,
    failures: list[ReadFailure],
) -> Hca:
    folder = device_folder(name)
    attributes = Attributes(host)
    function = find_function(host, name, attributes)
    netdevs = of_function(host, function.folder)
    ports: tuple[HcaPort, ...] = ()
    plans: tuple[GroupedPlan, ...] = ()
    if not (function.is_virtual and config.devices.virtual_functions == "ignore"):
        ports = tuple(
            _port(host, PortId(name, number), of_number(netdevs, number, len(numbers)))
            for number in numbers
        )
        planner = Planner(
            host=host,
            driver=function.driver,
            generic_limit=config.devices.generic_counters,
            takes_lifespan=config.metrics.node_exporter_names,
            absent=attributes.absent,
            device=name,
            is_software=function.pci_path is None,
        )
        plans = tuple(_plans(planner, name, function, ports, config))
        failures += planner.failures
    return Hca(
        name=name,
        node_guid=_guid(attributes.text(folder, "node_guid")),
        sys_image_guid=_guid(attributes.text(folder, "sys_image_guid")),
        hca_type=attributes.text(folder, "hca_type"),
        board_id=attributes.text(folder, "board_id"),
        firmware=attributes.text(folder, "fw_ver"),
        node_type=attributes.text(folder, "node_type"),
        pci_address=function.address,
        driver=function.driver,
        numa_node=function.numa_node,
        is_vf=function.is_virtual,
        pf_address=function.owner,
        ports=ports,
        plans=plans,
        absent=tuple(attributes.absent),
        pci_path=function.pci_path,
        driver_instance=_instance(netdevs),
        at=host.monotonic(),
    )


def _instance(netdevs: tuple[FunctionNetdev, ...]) -> str | None:
    """Tell two loads of the driver apart: each makes its network devices anew.

    The oldest one counts, because others come and go with VLANs and virtual functions.
    """
    index = netdevs[0].index if netdevs else None
    return None if index is None else f"ifindex {index}"


def _plans(
    planner: Planner,
    name: str,
    function: Function,
    ports: tuple[HcaPort, ...],
    config: Config,
) -> Iterator[GroupedPlan]:
    if function.is_virtual and config.devices.virtual_functions != "export":
        return  # its state is watched; its counters would not be exported
    for port in ports:
        yield from planner.of_port(port.id)
        yield from planner.of_netdev(port)
    yield from planner.of_device(name, function)


def _port(host: Host, port: PortId, candidates: tuple[FunctionNetdev, ...]) -> HcaPort:
    attributes = Attributes(host)
    layer_text = attributes.text(port_folder(port), "link_layer")
    layer = None if layer_text is None else parse_link_layer(layer_text)
    netdevs = of_port(host, port, layer, candidates)
    guid = None
    if layer is LinkLayer.INFINIBAND:
        guid = _port_guid(attributes.text(port_folder(port), "gids/0"))
    return HcaPort(port, layer, guid, netdevs.names, netdevs.physical)


def _guid(text: str | None) -> str | None:
    return None if text is None else parse_guid(text)


def _port_guid(gid: str | None) -> str | None:
    """Return the lower half of the first GID, which on InfiniBand is the port's GUID."""
    digits = (gid or "").replace(":", "")[-GUID_DIGITS:]
    value = hexadecimal(digits) if len(digits) == GUID_DIGITS else None
    return f"0x{value:016x}" if value else None
