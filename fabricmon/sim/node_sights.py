"""What a node shows otherwise for a time: files, network devices, counters, PCIe."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

from fabricmon.sim.counter_files import Flowing
from fabricmon.sim.effects import Mute, NetdevGone, OnPriority, PcieLink, Unreadable
from fabricmon.sim.sysfs import netdev_layout, pcie_speed

if TYPE_CHECKING:
    from fabricmon.sim.node import NodePlay

LOSSLESS = 3
"""The priority that the profiles carry RDMA data by."""

Sight = PcieLink | Unreadable | NetdevGone | OnPriority | Mute


class Sights:
    """Plays what changes how things show, and not what happens."""

    def __init__(self, play: NodePlay) -> None:
        self._play = play

    def schedule(self, effect: Sight) -> None:
        """Let it be so, and end."""
        at = self._play.at
        match effect:
            case PcieLink():
                if "pcie" in self._play.plan.sights:
                    at(effect.at, lambda _: self._train(effect))
                return
            case Unreadable():
                at(effect.begin, lambda _: self._mask(effect))
            case NetdevGone():
                at(effect.begin, lambda _: self._take_netdev(effect))
            case OnPriority():
                at(effect.begin, lambda t: self._switch(t, effect, back=False))
            case Mute():
                port = self._play.ports[effect.port]
                at(effect.begin, lambda t: port.mute(t, effect.meter))
        if effect.end < inf:
            at(effect.end, lambda t: self._end(t, effect))

    def _end(self, t: float, effect: Sight) -> None:
        match effect:
            case Unreadable():
                self._unmask(t, effect)
            case NetdevGone():
                self._return_netdev(t, effect)
            case OnPriority():
                self._switch(t, effect, back=True)
            case Mute():
                self._play.ports[effect.port].unmute(t, effect.meter)

    def _train(self, effect: PcieLink) -> None:
        place = self._play.plan.place(effect.port.device)
        now = {
            "current_link_width": f"{effect.width}",
            "current_link_speed": pcie_speed(effect.speed),
        }
        slot = {}
        if effect.slot_width is not None:
            slot["max_link_width"] = f"{effect.slot_width}"
        if effect.slot_speed is not None:
            slot["max_link_speed"] = pcie_speed(effect.slot_speed)
        for folder, files in ((place.folder, now), (place.root, now | slot)):
            for name, text in files.items():
                self._play.page.text(f"{folder}/{name}", f"{text}\n")

    def _mask(self, effect: Unreadable) -> None:
        self._play.page.mask(self._play.real_path(effect.path), effect.error)

    def _unmask(self, t: float, effect: Unreadable) -> None:
        path = self._play.real_path(effect.path)
        self._play.page.unmask(path)
        for port in self._play.ports.values():
            counter = port.counter_at(path)
            if counter is not None:
                port.show(t, counter)

    def _take_netdev(self, effect: NetdevGone) -> None:
        page, port = self._play.page, self._play.ports[effect.port]
        port.link.has_netdev = False
        page.delete(f"/sys/class/net/{port.link.netdev}")
        page.delete(port.link.net_folder)
        page.no_statistics(port.link.netdev)

    def _return_netdev(self, t: float, effect: NetdevGone) -> None:
        port = self._play.ports[effect.port]
        self._play.page.layout(netdev_layout(self._play.plan, effect.port))
        port.netdev_returns(t)

    def _switch(self, t: float, effect: OnPriority, *, back: bool) -> None:
        if effect.priority == LOSSLESS:
            return
        port = self._play.ports[effect.port]
        for what, direction in (
            (Flowing.SENT_BYTES, "tx"),
            (Flowing.RECEIVED_BYTES, "rx"),
        ):
            usual = f"{direction}_prio{LOSSLESS}_bytes"
            other = f"{direction}_prio{effect.priority}_bytes"
            names = (other, usual) if back else (usual, other)
            port.switch(t, what, *names)
