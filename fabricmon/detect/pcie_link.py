"""PCIe links that run below what their slot can: ``pcie_degraded``.

Capable is what both the card and its slot can; a narrow slot is no fault. A speed that
is low while the device idles is power saving; a link that is alike on every device of
a model, and never was better, is how the node was built.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

from fabricmon.config import Pcie
from fabricmon.detect.device_places import (
    by_device,
    is_management,
    kernel_text,
    model_of,
    subject_of_device,
)
from fabricmon.detect.pcie_above import LinksAbove
from fabricmon.detect.pcie_load import Stalls, full_rate, line_rate, load_of, raw_gbps
from fabricmon.detect.wording import clock
from fabricmon.model import (
    Action,
    Evidence,
    Finding,
    KernelEvent,
    Part,
    PciLink,
    PciStatus,
    PortId,
    PortView,
    Severity,
    View,
)
from fabricmon.summaries import one_line
from fabricmon.value import State, Value

IDLE_PEERS = 2
"""Idle devices at full speed that prove that idle links do not save power here."""


class SavedPciLink(Struct, frozen=True):
    """What is kept of a device; ``since`` is Unix seconds."""

    address: str
    was_full: bool = False
    since: float | None = None


class _Watch(State):
    """One device: its newest sample, and since when it is low."""

    address: str
    status: PciStatus | None = None
    was_full: bool = False
    lows: int = 0
    since: float | None = None


class _Capable(Value, frozen=True):
    """What the link can do: the lesser of card and slot; None where neither says."""

    width: int | None
    speed: float | None


class PcieLinks:
    """Holds the link of each device against what it can do."""

    def __init__(self, limits: Pcie, stalls: Stalls) -> None:
        """Take the thresholds, and who counts stalls."""
        self._limits = limits
        self._stalls = stalls
        self._watches: dict[str, _Watch] = {}
        self._lines: dict[str, KernelEvent] = {}
        self._above = LinksAbove(limits)
        self._best: dict[PortId, float] = {}  # Gb/s
        self._restored: dict[str, SavedPciLink] = {}

    def hear(self, device: str | None, event: KernelEvent) -> None:
        """Keep what the kernel said of a function's bandwidth.

        It is evidence for the link of a device; a device that it is about may not be
        listed yet.
        """
        self._above.hear(event)
        if device is not None:
            self._lines[device] = event

    def look(self, view: View) -> None:
        """Take in the samples that are new."""
        devices = by_device(view.ports)
        for gone in self._watches.keys() - devices.keys():
            del self._watches[gone]
            self._lines.pop(gone, None)
        fresh = []
        for port in view.ports:
            rate = line_rate((port,))
            self._best[port.info.id] = max(rate, self._best.get(port.info.id, 0.0))
        for name, ports in devices.items():
            status = ports[0].pci
            if status is None:
                continue
            watch = self._watches.get(name)
            if watch is None or watch.address != status.address:
                watch = self._watches[name] = self._meet(status.address, view)
            if watch.status is status or (watch.status and not _says(status.link)):
                continue  # what was known stands
            watch.status = status
            fresh.append(name)
        for name in fresh:
            self._judge(name, devices, view)
        self._above.look(devices)

    def findings(self, view: View) -> Iterator[Finding]:
        """Yield a finding for each link that is low."""
        enough = self._limits.samples
        low = {n: w.status for n, w in self._watches.items() if w.lows >= enough}
        devices = by_device(view.ports) if low or self._above.heard else {}
        for name, status in low.items():
            if name in devices and status is not None:
                yield self._finding(name, status, devices, view)
        needs = {
            name: full_rate(ports, self._best)
            for name, ports in devices.items()
            if name not in low
        }
        yield from self._above.findings(devices, needs, view)

    def unreadable(self) -> tuple[str, ...]:
        """Return the devices whose links tell neither width nor speed."""
        return tuple(
            name
            for name, watch in self._watches.items()
            if watch.status is not None and not _says(watch.status.link)
        )

    def save(self, offset: float) -> tuple[SavedPciLink, ...]:
        """Return which links were once full, and which are low."""
        enough = self._limits.samples
        kept = {**self._restored}
        for watch in self._watches.values():
            low = watch.since is not None and watch.lows >= enough
            since = (watch.since or 0) + offset if low else None
            kept[watch.address] = SavedPciLink(watch.address, watch.was_full, since)
        return tuple(kept.values())

    def restore(self, saved: Sequence[SavedPciLink]) -> None:
        """Take back what `save` returned."""
        self._restored = {each.address: each for each in saved}

    def _meet(self, address: str, view: View) -> _Watch:
        saved = self._restored.pop(address, None)
        if saved is None:
            return _Watch(address)
        watch = _Watch(address, was_full=saved.was_full)
        if saved.since is not None:
            watch.since = saved.since - view.onset_offset
            watch.lows = self._limits.samples
        return watch

    def _judge(self, name: str, devices: dict[str, list[PortView]], view: View) -> None:
        watch = self._watches[name]
        status = watch.status
        if status is None or not _says(status.link):
            return
        if not _is_low(status):
            if _is_told(status):
                watch.was_full, watch.lows, watch.since = True, 0, None
            return
        if not _is_narrow(status) and self._may_save_power(name, devices, view):
            return
        watch.lows += 1
        if watch.since is None:
            watch.since = status.at

    def _may_save_power(
        self, name: str, devices: dict[str, list[PortView]], view: View
    ) -> bool:
        """Tell whether a low speed may be that of an idle link.

        It is not where the device is at work, or idle devices of its model run at full
        speed.
        """
        load = load_of(devices[name], view)
        if load is not None and load >= self._limits.load_ratio:
            return False
        model = model_of(devices[name][0].info)
        proof = 0
        for other, ports in devices.items():
            watch = self._watches.get(other)
            if other == name or watch is None or watch.status is None:
                continue
            if model_of(ports[0].info) != model or _is_low(watch.status):
                continue
            other_load = load_of(ports, view)
            proof += other_load is not None and other_load < self._limits.load_ratio
        return proof < IDLE_PEERS

    def _is_built_so(self, name: str, devices: dict[str, list[PortView]]) -> bool:
        """Tell whether every device of the model has this very link, and none better."""
        mine = self._watches[name]
        if mine.was_full or mine.status is None:
            return False
        model, alike = model_of(devices[name][0].info), 0
        for other, ports in devices.items():
            watch = self._watches.get(other)
            if model_of(ports[0].info) != model or watch is None:
                continue
            if watch.status is None or watch.was_full:
                return False
            if _level(watch.status.link) != _level(mine.status.link):
                return False
            alike += 1
        return alike > 1

    def _finding(
        self,
        name: str,
        status: PciStatus,
        devices: dict[str, list[PortView]],
        view: View,
    ) -> Finding:
        watch, ports = self._watches[name], devices[name]
        built_so = self._is_built_so(name, devices)
        severity, action, text = self._verdict(status, ports, built_so=built_so)
        onset = (watch.since or status.at) + view.onset_offset
        what = _described(status.link)
        can = _described(PciLink(_capable(status).speed, _capable(status).width))
        return Finding(
            kind="pcie_degraded",
            subject=subject_of_device(name, ports),
            onset=onset,
            evidence=tuple(self._evidence(name, status, ports, view)),
            summary=one_line(
                f"{name} PCIe {what} of {can} since {clock(onset)}: {text}"
            ),
            severity=severity,
            part=Part.OBSERVER if built_so else Part.CULPRIT,
            action=action,
        )

    def _verdict(
        self, status: PciStatus, ports: Sequence[PortView], *, built_so: bool
    ) -> tuple[Severity, Action, str]:
        if built_so:
            text = "as all of its model here, not a fault of this card"
            return Severity.INFO, Action.NONE, text
        if is_management(ports):
            return Severity.WARNING, Action.INSPECT, "management, not the fabric"
        line, usable = full_rate(ports, self._best), self._usable(status)
        if usable is not None and line and usable >= line:
            text = "card or slot, not the fabric; feeds the line rate"
            return Severity.WARNING, Action.INSPECT, text
        return Severity.CRITICAL, Action.DRAIN_AFTER_JOB, "card or slot, not the fabric"

    def _usable(self, status: PciStatus) -> float | None:
        width, speed = status.link.width, status.link.speed_gts
        if width is None or speed is None:
            return None
        return raw_gbps(width, speed) * self._limits.payload_ratio

    def _evidence(
        self, name: str, status: PciStatus, ports: Sequence[PortView], view: View
    ) -> Iterator[Evidence]:
        link, capable, source = status.link, _capable(status), f"pci/{status.address}"
        if link.width is not None:
            yield Evidence(
                "current_link_width", link.width, "lanes", source, capable.width
            )
        if link.speed_gts is not None:
            yield Evidence(
                "current_link_speed", link.speed_gts, "GT/s", source, capable.speed
            )
        usable = self._usable(status)
        if usable is not None:
            line = full_rate(ports, self._best) or None
            yield Evidence("usable_gbps", round(usable, 1), "Gb/s", "fabricmon", line)
        yield from self._stalls.evidence(name, ports, view.now)
        if name in self._lines:
            yield Evidence("kmsg", kernel_text(self._lines[name]), "", "kernel log")


def _lesser(one: float | None, other: float | None) -> float | None:
    known = [value for value in (one, other) if value is not None]
    return min(known) if known else None


def _capable(status: PciStatus) -> _Capable:
    """Return what card and slot can both do; a card that does not say can anything."""
    width = _lesser(status.link.max_width, status.slot.max_width)
    speed = _lesser(status.link.max_speed_gts, status.slot.max_speed_gts)
    if status.link.max_width is None:
        width = None
    if status.link.max_speed_gts is None:
        speed = None
    return _Capable(None if width is None else int(width), speed)


def _is_narrow(status: PciStatus) -> bool:
    width, capable = status.link.width, _capable(status).width
    return width is not None and capable is not None and width < capable


def _is_low(status: PciStatus) -> bool:
    speed, capable = status.link.speed_gts, _capable(status).speed
    slow = speed is not None and capable is not None and speed < capable
    return slow or _is_narrow(status)


def _is_told(status: PciStatus) -> bool:
    """Tell whether the link tells all that can be held against what it can do."""
    link, capable = status.link, _capable(status)
    no_width = link.width is None and capable.width is not None
    return not no_width and (link.speed_gts is not None or capable.speed is None)


def _says(link: PciLink) -> bool:
    return link.width is not None or link.speed_gts is not None


def _level(link: PciLink) -> tuple[int | None, float | None]:
    return link.width, link.speed_gts


def _described(link: PciLink) -> str:
    width = "x?" if link.width is None else f"x{link.width}"
    return width if link.speed_gts is None else f"{width} {link.speed_gts:g} GT/s"
