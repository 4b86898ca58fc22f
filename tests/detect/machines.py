"""Nodes whose devices are on PCIe, for tests of the host's side."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from fabricmon.catalogue import Directory, FaultClass, Group, Signal
from fabricmon.detect.protocol import Detector
from fabricmon.model import (
    DeviceHealth,
    Hca,
    HcaPort,
    HealthReporter,
    HostSide,
    KernelEvent,
    ModuleStatus,
    PciLink,
    PciStatus,
    PortId,
    PortInfo,
)
from fabricmon.parse.kmsg import recognise
from tests.node import Node
from tests.views import port, spec

GEN5 = PciLink(32.0, 16, 32.0, 16)
TRAFFIC = ("port_rcv_data", "port_xmit_data")
LINE = 400  # Gb/s of a port

_PCI = {
    "directory": Directory.PCI,
    "group": Group.PCI,
    "fault_class": FaultClass.RESOURCE,
}
_DRIVER = {
    "directory": Directory.ETHTOOL,
    "group": Group.DRIVER,
    "fault_class": FaultClass.RESOURCE,
}
SPECS = (
    spec("aer_dev_correctable", Signal.AER_CORRECTABLE, **_PCI),  # type: ignore[arg-type]
    spec("aer_dev_nonfatal", Signal.AER_UNCORRECTABLE, **_PCI),  # type: ignore[arg-type]
    replace(
        spec("aer_dev_fatal", Signal.AER_UNCORRECTABLE, **_PCI),  # type: ignore[arg-type]
        fatal=True,
    ),
    spec("rx_pci_signal_integrity", Signal.PCI_INTEGRITY, **_DRIVER),  # type: ignore[arg-type]
    spec("outbound_pci_stalled_wr_events", Signal.PCI_STALL, **_DRIVER),  # type: ignore[arg-type]
    spec("module_high_temp", Signal.MODULE_HOT, **_DRIVER),  # type: ignore[arg-type]
)


def address(rail: int) -> str:
    """Return the PCI address of the device of a rail."""
    return f"0000:{rail + 1:x}a:00.0"


def cards(count: int = 8, **known: object) -> tuple[PortInfo, ...]:
    """Return the ports of equal devices, one each; ``known`` replaces parts."""
    return tuple(
        port(
            f"mlx5_{rail}",
            rail=rail,
            pci_address=address(rail),
            netdev=f"eth{rail}",
            **known,  # type: ignore[arg-type]
        )
        for rail in range(count)
    )


def hca_of(info: PortInfo, firmware: str = "28.41.1000") -> Hca:
    """Return the device of a port, below a bridge of its own."""
    bus = (info.pci_address or "").split(":")[1]
    return Hca(
        name=info.id.device,
        node_guid=None,
        sys_image_guid=None,
        hca_type="MT4129",
        board_id=info.board_id,
        firmware=firmware,
        node_type=None,
        pci_address=info.pci_address,
        driver=info.driver,
        numa_node=0,
        is_vf=info.is_vf,
        pf_address=None,
        ports=(HcaPort(info.id, info.link_layer, None, (info.netdev or "",)),),
        plans=(),
        pci_path=f"/sys/devices/pci0000:{bus}/0000:{bus[0]}0:01.0/{info.pci_address}",
    )


class Machine(Node):
    """A node with devices on PCIe that a test drives."""

    def __init__(
        self,
        *detectors: type[Detector],
        infos: tuple[PortInfo, ...] | None = None,
        files: tuple[str, ...] = TRAFFIC,
        link: PciLink | None = GEN5,
        **options: Any,
    ) -> None:
        infos = cards() if infos is None else infos
        super().__init__(*detectors, infos=infos, files=files, begin=False, **options)
        self.specs |= {each.file: each for each in SPECS}
        self.hcas = tuple(hca_of(info) for info in infos)
        self.loads = dict.fromkeys(self.ids, 0.0)
        self.modules: dict[PortId, ModuleStatus] = {}
        for rail in range(len(infos)):
            if link is not None:
                self.pci(rail, link)
        self.step_all()

    def pci(self, rail: int, link: PciLink, slot: PciLink = GEN5) -> None:
        """Let the PCIe link of a device be so from now on."""
        where = self.rail(rail)
        known = self.of(where).info.pci_address or ""
        self.of(where).pci = PciStatus(where.device, self.now, known, link, slot)

    def sample(self, polls: int = 1, seconds: float = 30.0) -> None:
        """Let PCIe be read so often again, as it is."""
        for _ in range(polls):
            for where in self.ids:
                known = self.of(where).pci
                if known is not None:
                    self.of(where).pci = replace(known, at=self.now)
            self.run(seconds)

    def work(self, *rails: int, share: float = 0.5) -> None:
        """Let these rails carry a share of their line rate from now on."""
        for rail in rails:
            self.loads[self.rail(rail)] = share

    def step_all(self, seconds: float = 5.0) -> None:
        """Let time and traffic pass once and judge."""
        for where, share in self.loads.items():
            words = round(share * LINE * 1e9 / 8 / 4 * seconds)
            if words:
                self.grow(where, port_rcv_data=words, port_xmit_data=words)
        super().step_all(seconds)

    def says(self, *lines: str) -> None:
        """Let the kernel say something now."""
        events = (recognise(line, self.now) for line in lines)
        known: list[KernelEvent] = [event for event in events if event is not None]
        assert len(known) == len(lines)
        self.kernel += known

    def module(self, rail: int, **parts: Any) -> None:
        """Let the transceiver of a rail be read."""
        where = self.rail(rail)
        self.modules[where] = ModuleStatus(where, self.now, source="hwmon", **parts)
        self.host_side = replace(self.host_side, modules=tuple(self.modules.values()))

    def reporter(self, rail: int, name: str, state: str) -> None:
        """Let a health reporter of a device be in a state."""
        health = DeviceHealth(
            self.rail(rail).device, self.now, (HealthReporter(name, state),)
        )
        self.host_side = HostSide(modules=self.host_side.modules, health=(health,))


def driver(rail: int, text: str) -> str:
    """Return a line of the driver of a device."""
    return f"mlx5_core {address(rail)}: {text}"
