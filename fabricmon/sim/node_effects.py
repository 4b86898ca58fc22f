"""Effects on a node: what each one changes in files, counters and logs, and when."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from fabricmon.host.trace import Bridging, Module
from fabricmon.sim.counter_files import AER, Area
from fabricmon.sim.effects import (
    Bridged,
    Counting,
    DeviceHealth,
    Effect,
    Frozen,
    Gone,
    Inflow,
    KernelLines,
    Level,
    LogLines,
    Maintenance,
    ModuleReading,
    Mute,
    NetdevGone,
    NodeFile,
    OnPriority,
    Outage,
    PcieLink,
    PortText,
    Reboot,
    Reset,
    Silence,
    SimPort,
    Step,
    Unreadable,
    WallStep,
)
from fabricmon.sim.job_log import FOLDER
from fabricmon.sim.meters import Meter
from fabricmon.sim.node_devices import Devices
from fabricmon.sim.node_links import Links
from fabricmon.sim.node_sights import Sights
from fabricmon.sim.port_link import Overlay, physical_text, state_text
from fabricmon.sim.processes import Course, gauge

if TYPE_CHECKING:
    from fabricmon.sim.node import NodePlay

MAINTENANCE = "/run/fabricmon/maintenance.json"
AREAS: dict[str, tuple[Area, ...]] = {
    "pma": (Area.PMA,),
    "hw": (Area.HARDWARE,),
    "netdev": (Area.NETDEV,),
    "all": (Area.PMA, Area.HARDWARE, Area.NETDEV),
}
_PCIE_FILES = ("link_speed", "link_width", "aer_dev_correctable", "aer_dev_nonfatal",
               "aer_dev_fatal")  # fmt: skip


def concerns(effect: Effect, node: int) -> bool:
    """Tell whether an effect changes anything on a node itself."""
    port = getattr(effect, "port", None)
    return (port.node if port is not None else getattr(effect, "node", None)) == node


class EffectPlayer:
    """Puts effects into a node's queue."""

    def __init__(self, play: NodePlay) -> None:
        self._play = play
        self._links = Links(play)
        self._devices = Devices(play)
        self._sights = Sights(play)
        self._windows: list[dict[str, object]] = []

    def schedule(self, effect: Effect, number: int) -> None:
        """Let an effect happen in its time."""
        match effect:
            case Counting():
                self._count(effect, number)
            case Step():
                self._do(effect.at, lambda t: self._step(t, effect))
            case Level():
                self._level(effect)
            case Inflow():
                self._flow_in(effect)
            case Reset():
                self._do(effect.at, lambda t: self._reset(t, effect))
            case Outage():
                self._links.schedule(effect)
            case PortText():
                self._text(effect)
            case Gone() | Frozen() | Reboot():
                self._devices.schedule(effect)
            case PcieLink() | Unreadable() | NetdevGone() | OnPriority() | Mute():
                self._sights.schedule(effect)
            case _:
                self._schedule_plain(effect)

    def _schedule_plain(self, effect: Effect) -> None:
        """Schedule what is over as soon as it was said."""
        match effect:
            case NodeFile():
                self._do(effect.at, lambda _: self._file(effect))
            case Silence():
                gap = effect.end - effect.begin
                say = _call(self._play.page.gap, gap, restart=effect.restart)
                self._do(effect.begin, say)
            case WallStep():
                self._do(effect.at, _call(self._play.page.wall_step, effect.seconds))
            case Maintenance():
                self._maintain(effect)
            case _:
                self._schedule_told(effect)

    def _schedule_told(self, effect: Effect) -> None:
        """Schedule what is told by other ways than files, as far as they are open."""
        page, sights = self._play.page, self._play.plan.sights
        match effect:
            case KernelLines() if "kmsg" in sights:
                self._do(effect.at, _call(page.kernel, *effect.lines))
            case LogLines() if "nccl_log" in sights:
                self._do(effect.at, _call(page.log, self._log(effect), effect.text))
            case ModuleReading() if "module" in sights:
                self._do(effect.at, lambda _: self._module(effect))
            case Bridged() if "dcb" in sights:
                self._do(effect.at, lambda _: self._bridge(effect))
            case DeviceHealth() if "pcie" in sights:
                self._do(effect.at, lambda _: self._health(effect))

    def _do(self, t: float, action: Callable[[float], None]) -> None:
        self._play.at(t, action)

    def _log(self, effect: LogLines) -> str:
        first = next(iter(self._play.plan.jobs_of(effect.node)), "none")
        return f"{FOLDER}/{effect.job or first}.log"

    def _keeper(self, port: SimPort, meter: Meter) -> SimPort:
        """Return the port that counts this: of what a device counts, one for all."""
        return self._play.plan.keeper(port) if meter in AER else port

    def _count(self, effect: Counting, number: int) -> None:
        course = Course(
            effect.meter, effect.rate, effect.begin, effect.end, effect.per, effect.even
        )
        port = self._keeper(effect.port, effect.meter)
        process = self._play.make_process(port, course, "effect", number)
        self._do(effect.begin, process.start)

    def _step(self, t: float, effect: Step) -> None:
        port = self._keeper(effect.port, effect.meter)
        self._play.ports[port].add(t, effect.meter, effect.amount)

    def _level(self, effect: Level) -> None:
        port = self._play.ports[effect.port]
        show = gauge(port, effect.meter, effect.value, only_busy=effect.only_busy)

        def begin(t: float) -> None:
            if effect.only_busy:
                port.on_traffic.append(show)
            show(t)

        def end(t: float) -> None:
            if effect.only_busy:
                port.on_traffic.remove(show)
            port.put(t, effect.meter, 0)

        self._do(effect.begin, begin)
        self._do(effect.end, end)

    def _flow_in(self, effect: Inflow) -> None:
        """Let a port receive a share of its line besides its jobs' traffic."""
        traffic = self._play.traffic
        share = effect.share
        self._do(effect.begin, lambda t: traffic.flow_in(t, effect.port, share))
        self._do(effect.end, lambda t: traffic.flow_in(t, effect.port, 0.0))

    def _reset(self, t: float, effect: Reset) -> None:
        port = self._play.ports[effect.port]
        if effect.meters:
            for meter in effect.meters:
                port.put_in(t, meter, AREAS[effect.area], effect.to)
        else:
            port.reset(t, AREAS[effect.area], effect.to)

    def _text(self, effect: PortText) -> None:
        overlay = Overlay(
            state_text(effect.state), physical_text(effect.phys), effect.rate
        )

        def show(t: float, now: Overlay | None) -> None:
            port = self._play.ports[effect.port]
            port.link.overlay(effect, now)
            self._play.traffic.refresh(t, effect.port)

        self._do(effect.begin, lambda t: show(t, overlay))
        self._do(effect.end, lambda t: show(t, None))

    def _file(self, effect: NodeFile) -> None:
        page, path = self._play.page, self._play.real_path(effect.path)
        if path.endswith(_PCIE_FILES) and "pcie" not in self._play.plan.sights:
            return
        if effect.error is not None:
            page.error(path, effect.error)
        elif effect.text is not None:
            page.text(path, effect.text)
            self._devices.burn(effect.path, effect.text)
        else:
            page.delete(path)

    def _module(self, effect: ModuleReading) -> None:
        port = self._play.ports[effect.port]
        module = Module(
            temperature_c=effect.temperature_c, rx_power_dbm=effect.receive_power_dbm
        )
        self._play.page.module(f"{port.name}/{effect.port.port}", module)

    def _bridge(self, effect: Bridged) -> None:
        bridging = Bridging(
            pfc_enabled=effect.pfc_enabled, ecn={"enabled": effect.ecn_enabled}
        )
        self._play.page.bridging(self._play.ports[effect.port].link.netdev, bridging)

    def _health(self, effect: DeviceHealth) -> None:
        address = self._play.plan.pci_address(SimPort(effect.node, effect.device))
        self._play.page.health(address, effect.reporter, effect.state)

    def _maintain(self, effect: Maintenance) -> None:
        until = datetime.fromtimestamp(self._play.header.start + effect.until, UTC)
        window: dict[str, object] = {
            "until": until.isoformat().replace("+00:00", "Z"),
            "reason": "planned work",
        }
        if effect.ports:
            window["ports"] = [f"{port.device}/{port.port}" for port in effect.ports]
        self._do(effect.at, lambda _: self._announce(window))
        self._do(effect.until, lambda _: self._close(window))

    def _announce(self, window: dict[str, object]) -> None:
        self._windows.append(window)
        self._show_windows()

    def _close(self, window: dict[str, object]) -> None:
        self._windows = [each for each in self._windows if each is not window]
        self._show_windows()

    def _show_windows(self) -> None:
        """Write all windows of the node that are open; without one there is no file."""
        if self._windows:
            text = f"{json.dumps(self._windows)}\n"
            self._play.page.text(MAINTENANCE, text)
        else:
            self._play.page.delete(MAINTENANCE)


def _call(
    action: Callable[..., None], *arguments: object, **more: object
) -> Callable[[float], None]:
    """Return an action that does not care when it is done."""

    def act(_: float) -> None:
        action(*arguments, **more)

    return act
