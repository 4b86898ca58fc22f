"""The files of a node as they stand when a trace begins.

As the kernel lays them out: devices below their PCI function, links from the classes.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from fabricmon.sim.counter_files import AER, aer_table
from fabricmon.sim.effects import SimPort
from fabricmon.sim.plan import FleetPlan, Place, rate_text
from fabricmon.sim.profiles import Card, Family, Slot

GPU_CLASS = "0x030200"
_ETHERNET_CLASS = "0x020000"
_INFINIBAND_CLASS = "0x020700"
_DRIVERS = {Family.MLX5: "mlx5_core", Family.EFA: "efa"}
_VF_FIRST = 2
_FIRST_IFINDEX = 10
_IFINDEXES = 256  # network devices that each device may have


@dataclass(slots=True)
class Layout:
    """Files with their texts and links with their targets."""

    files: dict[str, str] = field(default_factory=dict)
    links: dict[str, str] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)
    folders: list[str] = field(default_factory=list)

    def put(self, folder: str, files: dict[str, str]) -> None:
        """Add files of a folder; a line each."""
        self.files.update({f"{folder}/{name}": f"{t}\n" for name, t in files.items()})


def port_folder(plan: FleetPlan, port: SimPort, name: str | None = None) -> str:
    """Return the folder of a port; ``name`` where its device was renamed."""
    place = plan.place(port.device)
    return f"{place.folder}/infiniband/{name or port.device}/ports/{port.port}"


def node_layout(plan: FleetPlan) -> Layout:
    """Return what every node has beside its devices: up-time, name, GPUs, PCI."""
    layout = Layout()
    boot = plan.scenario.boot
    layout.files["/proc/uptime"] = f"{boot:.2f} {boot * 96:.2f}\n"
    layout.files["/sys/class/dmi/id/product_name"] = f"{plan.profile.product}\n"
    for slot in plan.profile.slots:
        _pci(plan, slot, layout)
    return layout


def device_layout(
    plan: FleetPlan, node: int, slot: Slot, ifindex: int, name: str | None = None
) -> Layout:
    """Return an RDMA device with its ports and network devices, without counters."""
    layout = Layout()
    place, card = plan.place(slot.device), slot.card
    name = name or slot.device
    folder = f"{place.folder}/infiniband/{name}"
    layout.links[f"/sys/class/infiniband/{name}"] = (
        f"{_from_class(place.folder)}/infiniband/{name}"
    )
    layout.links[f"{folder}/device"] = f"../../../{place.address}"
    layout.put(folder, _identity(node, place, card))
    for number in range(1, card.ports + 1):
        port = SimPort(node, slot.device, number)
        layout.put(f"{folder}/ports/{number}", _port(plan, port, place, card))
        lifespan = {"lifespan": str(plan.profile.lifespan)}
        layout.put(f"{folder}/ports/{number}/hw_counters", lifespan)
        if plan.netdev(port):
            _netdevs(plan, port, place, ifindex + number, layout)
    if card.family is Family.EFA:
        admin = {"submitted_cmds": "5120", "completed_cmds": "5120", "cmds_err": "0",
                 "no_completion_cmds": "0"}  # fmt: skip
        layout.put(f"{folder}/hw_counters", admin)
    for number in range(slot.virtual):
        _virtual(plan, node, slot, number, layout)
    return layout


def netdev_layout(plan: FleetPlan, port: SimPort) -> Layout:
    """Return the network devices of a port, as they are when they come anew."""
    layout = Layout()
    place = plan.place(port.device)
    slots = [slot.device for slot in plan.profile.slots]
    ifindex = first_ifindex(slots.index(port.device)) + port.port
    _netdevs(plan, port, place, ifindex, layout)
    return layout


def first_ifindex(slot: int) -> int:
    """Return the first number of network devices of a slot."""
    return _FIRST_IFINDEX + _IFINDEXES * slot


def pcie_speed(gts: float) -> str:
    """Return how the kernel writes a speed of PCIe."""
    return f"{gts:.1f} GT/s PCIe"


def netdev_folder(plan: FleetPlan, port: SimPort) -> str:
    """Return the folder of the network device of a port's PCI function."""
    return f"{plan.place(port.device).folder}/net/{plan.physical_netdev(port)}"


def guid(node: int, bus: int, port: int = 0) -> str:
    """Return a GUID in groups of four, the same for the same place in the fleet."""
    return f"a088:c203:{node:04x}:{bus:02x}{port:02x}"


def _from_class(folder: str) -> str:
    return f"../../{folder.removeprefix('/sys/')}"


def _pci(plan: FleetPlan, slot: Slot, layout: Layout) -> None:
    place, card = plan.place(slot.device), slot.card
    kind = _ETHERNET_CLASS if card.ethernet else _INFINIBAND_CLASS
    bridge = f"../../../{place.root.removeprefix('/sys/')}"
    numa = "0" if place.bus < 0x80 else "1"  # noqa: PLR2004 - half of the buses
    layout.put(place.folder, {"class": kind, "numa_node": numa})
    devices = "/sys/bus/pci/devices"
    layout.links[f"{devices}/{place.address}"] = f"{bridge}/{place.address}"
    driver = f"../../../../bus/pci/drivers/{_DRIVERS[card.family]}"
    layout.links[f"{place.folder}/driver"] = driver
    if slot.gpu:
        layout.put(f"{place.root}/{place.gpu_address}", {"class": GPU_CLASS})
        layout.links[f"{devices}/{place.gpu_address}"] = f"{bridge}/{place.gpu_address}"
    if "pcie" in plan.sights:
        link = {
            "current_link_speed": card.pci_speed,
            "current_link_width": str(card.pci_width),
            "max_link_speed": card.pci_speed,
            "max_link_width": str(card.pci_width),
        }
        layout.put(place.root, link)
        layout.put(place.folder, link)
        for meter, (file, _, _) in AER.items():
            layout.files[f"{place.folder}/{file}"] = aer_table(meter, 0)


def _identity(node: int, place: Place, card: Card) -> dict[str, str]:
    if card.family is Family.EFA:
        return {
            "node_guid": "0000:0000:0000:0000",
            "sys_image_guid": "0000:0000:0000:0000",
            "fw_ver": card.firmware,
            "node_type": "7: unspecified",
        }
    return {
        "node_guid": guid(node, place.bus),
        "sys_image_guid": guid(node, place.bus),
        "fw_ver": card.firmware,
        "hca_type": card.type,
        "board_id": card.board,
        "node_type": "1: CA",
    }


def _port(plan: FleetPlan, port: SimPort, place: Place, card: Card) -> dict[str, str]:
    used = port.port in plan.slot(port).used
    state, phys, rate = link_texts(plan, port)
    infiniband = card.layer == "InfiniBand"
    # LIDs of a fleet are unique: 48 ports a node are more than any profile uses.
    lid = 16 + port.node * 96 + (place.bus & 0xF0) // 16 * 12 + port.port
    files = {
        "state": state,
        "phys_state": phys,
        "rate": rate,
        "link_layer": card.layer,
        "lid": f"0x{lid % 0xBFFF:x}" if infiniband and used else "0x0",
        "sm_lid": "0x1" if infiniband and used else "0x0",
    }
    if card.family is Family.MLX5:
        own = guid(port.node, place.bus, port.port)
        files["gids/0"] = f"fe80:0000:0000:0000:{own}"
        if card.ethernet:
            files["gid_attrs/ndevs/0"] = plan.netdev(port)
            files["gid_attrs/ndevs/1"] = plan.netdev(port)
            files["gid_attrs/types/0"] = "IB/RoCE v1"
            files["gid_attrs/types/1"] = "RoCE v2"
            files["gids/1"] = f"0000:0000:0000:0000:0000:ffff:{_address(port, place)}"
    return files


def link_texts(plan: FleetPlan, port: SimPort) -> tuple[str, str, str]:
    """Return ``state``, ``phys_state`` and ``rate`` of a sound port."""
    slot = plan.slot(port)
    if port.port not in slot.used:
        return "1: DOWN", "3: Disabled", "10 Gb/sec (4X SDR)"
    return "4: ACTIVE", "5: LinkUp", rate_text(slot.card)


def _address(port: SimPort, place: Place) -> str:
    """Return the lower half of an IPv4-mapped address on the RDMA network."""
    return f"0a{place.bus:02x}:{port.node + 1:04x}"


def _netdevs(
    plan: FleetPlan, port: SimPort, place: Place, ifindex: int, layout: Layout
) -> None:
    slot = plan.slot(port)
    used = port.port in slot.used
    names = [plan.physical_netdev(port)]
    if slot.bond:
        names.append(names[0].replace("f0", "f1"))
    for number, name in enumerate(names):
        folder = f"{place.folder}/net/{name}"
        layout.links[f"/sys/class/net/{name}"] = (
            f"{_from_class(place.folder)}/net/{name}"
        )
        layout.links[f"{folder}/device"] = f"../../../{place.address}"
        ids = {"ifindex": str(ifindex + 64 * number), "dev_port": str(port.port - 1)}
        layout.put(folder, ids | carrier(used=used, ups=int(used), downs=0))
        layout.put(f"{folder}/statistics", dict.fromkeys(_STATISTICS, "0"))
    if slot.bond:
        folder = f"/sys/devices/virtual/net/{plan.netdev(port)}"
        layout.links[f"/sys/class/net/{plan.netdev(port)}"] = (
            f"../../devices/virtual/net/{plan.netdev(port)}"
        )
        layout.put(
            folder, {"ifindex": str(ifindex + 128)} | carrier(used=used, ups=1, downs=0)
        )
        layout.files[f"{folder}/bonding/slaves"] = f"{' '.join(names)}\n"


_STATISTICS = (
    "rx_errors", "tx_errors", "rx_dropped", "tx_dropped", "rx_crc_errors",
    "rx_missed_errors",
)  # fmt: skip


def carrier(*, used: bool, ups: int, downs: int) -> dict[str, str]:
    """Return what a network device says whose link came and went so often."""
    return {
        "operstate": "up" if used else "down",
        "carrier": "1" if used else "0",
        "carrier_changes": f"{ups + downs}",
        "carrier_up_count": f"{ups}",
        "carrier_down_count": f"{downs}",
    }


def _virtual(
    plan: FleetPlan, node: int, slot: Slot, number: int, layout: Layout
) -> None:
    """Add a virtual function: its state is told, its physical counters are not."""
    place = plan.place(slot.device)
    address = f"{place.address[:-1]}{number + _VF_FIRST}"
    name = f"{slot.device}v{number}"
    function = f"{place.root}/{address}"
    layout.put(function, {"class": _ETHERNET_CLASS, "numa_node": "0"})
    layout.links[f"{function}/physfn"] = f"../{place.address}"
    layout.links[f"{function}/driver"] = "../../../../bus/pci/drivers/mlx5_core"
    layout.links[f"/sys/bus/pci/devices/{address}"] = (
        f"../../../{function.removeprefix('/sys/')}"
    )
    folder = f"{function}/infiniband/{name}"
    layout.links[f"/sys/class/infiniband/{name}"] = (
        f"{_from_class(function)}/infiniband/{name}"
    )
    layout.links[f"{folder}/device"] = f"../../../{address}"
    layout.put(folder, _identity(node, place, slot.card))
    port = SimPort(node, slot.device)
    texts = _port(plan, port, place, slot.card)
    del texts["gid_attrs/ndevs/0"], texts["gid_attrs/ndevs/1"]
    layout.put(f"{folder}/ports/1", texts)
    for file in ("symbol_error", "link_downed", "port_rcv_errors"):
        layout.errors[f"{folder}/ports/1/counters/{file}"] = "EINVAL"
    data = dict.fromkeys(("port_xmit_data", "port_rcv_data"), "0")
    layout.put(f"{folder}/ports/1/counters", data)
