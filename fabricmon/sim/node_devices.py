"""Devices that leave, freeze or start anew, alone or with their node."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

from fabricmon.sim.effects import Frozen, Gone, Reboot
from fabricmon.sim.port import Port
from fabricmon.sim.sysfs import device_layout, port_folder

if TYPE_CHECKING:
    from fabricmon.sim.node import NodePlay

BOOTED = 0.6
"""Share of the silence of a boot after which the kernel runs: firmware comes first."""
TRAINING_DOWNS = (0, 1)
"""Link losses while a link trains at boot."""
INSTANCE_STEP = 16384
"""A new driver instance has network devices with so much higher numbers."""


class Devices:
    """Plays devices that are gone or stuck, and reboots."""

    def __init__(self, play: NodePlay) -> None:
        self._play = play
        self._instances = 0
        self._boots = 0
        self._firmware: dict[str, str] = {}

    def burn(self, path: str, text: str) -> None:
        """Remember firmware that a card was given: it outlives the driver."""
        folder, _, file = path.rpartition("/")
        if file == "fw_ver":
            self._firmware[folder.rpartition("/")[2]] = text

    def schedule(self, effect: Gone | Frozen | Reboot) -> None:
        """Let it happen, and end."""
        match effect:
            case Gone():
                self._play.at(effect.begin, lambda t: self._leave(t, effect))
                if effect.end < inf:
                    self._play.at(effect.end, lambda t: self._return(t, effect))
            case Frozen():
                self._play.at(effect.begin, lambda t: self._freeze(t, effect))
                self._play.at(effect.end, lambda t: self._thaw(t, effect))
            case Reboot():
                self._play.at(effect.at, lambda t: self._reboot(t, effect))

    def _ports(self, device: str) -> list[Port]:
        ports = self._play.ports
        return [port for which, port in ports.items() if which.device == device]

    def _leave(self, t: float, effect: Gone) -> None:
        page, ports = self._play.page, self._ports(effect.device)
        name = ports[0].name
        page.delete(f"/sys/class/infiniband/{name}")
        page.delete(ports[0].link.folder.rpartition("/ports/")[0])
        for port in ports:
            port.link.present = False
            if port.link.netdev:
                page.delete(f"/sys/class/net/{port.link.netdev}")
                page.delete(port.link.net_folder)
                page.no_statistics(port.link.netdev)
            self._play.traffic.refresh(t, port.id)

    def _return(self, t: float, effect: Gone) -> None:
        plan, node = self._play.plan, self._play.node
        self._instances += 1
        ports = self._ports(effect.device)
        name = effect.new_name or ports[0].name
        slot = plan.slot(ports[0].id)
        first = INSTANCE_STEP * self._instances
        self._play.page.layout(device_layout(plan, node, slot, first, name))
        for port in ports:
            folder = port_folder(plan, port.id, name)
            port.come_back(t, folder, name, keeps_pma=effect.keeps_pma)
            self._play.traffic.refresh(t, port.id)
        firmware = self._firmware.get(effect.device)
        if firmware is not None:
            card = ports[0].link.folder.rpartition("/ports/")[0]
            self._play.page.text(f"{card}/fw_ver", firmware)

    def _freeze(self, t: float, effect: Frozen) -> None:
        for port in self._ports(effect.device):
            port.freeze(t)
            if effect.read_seconds:
                self._slow(port, effect.read_seconds)

    def _thaw(self, t: float, effect: Frozen) -> None:
        for port in self._ports(effect.device):
            if effect.read_seconds:
                self._slow(port, 0.0)
            port.thaw(t)

    def _slow(self, port: Port, seconds: float) -> None:
        """Let each burst of reads take so long: one file of each is slow."""
        for counters in port.counters.areas.values():
            spot = next(
                (each.spot for each in counters if each.spot.name is None), None
            )
            if spot is not None and spot.path.startswith(port.link.folder):
                self._play.page.slow(spot.path, seconds)
        self._play.page.slow(f"{port.link.folder}/state", seconds)

    def _reboot(self, t: float, effect: Reboot) -> None:
        self._play.page.gap(effect.seconds, restart=True)
        self._play.is_booting = True
        self._play.at(t + BOOTED * effect.seconds, self._boot)

    def _boot(self, t: float) -> None:
        self._boots += 1
        self._play.is_booting = False
        page = self._play.page
        page.boot(self._play.boot_id(self._boots))
        page.text("/proc/uptime", "4.00 64.00\n")
        noise = self._play.plan.scenario.noise
        for port in self._play.ports.values():
            downs = self._play.random.randint(*TRAINING_DOWNS) if noise else 0
            port.reboot(t, downs)
