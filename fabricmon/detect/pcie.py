"""The way between a device and its host: width, speed, errors, stalls of PCIe."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import inf

from msgspec import Struct

from fabricmon.catalogue import Signal
from fabricmon.config import Config
from fabricmon.detect.device_places import (
    Places,
    by_device,
    has_hardware,
    subject_of_device,
)
from fabricmon.detect.packing import pack, unpack
from fabricmon.detect.pcie_faults import PcieFaults, SavedFault
from fabricmon.detect.pcie_link import PcieLinks, SavedPciLink
from fabricmon.detect.pcie_load import Stalls, load_of
from fabricmon.detect.wording import clock
from fabricmon.model import (
    Action,
    Blindness,
    Evidence,
    Finding,
    KernelKind,
    PortId,
    Severity,
    View,
)
from fabricmon.summaries import one_line

LOOK_SECONDS = 5.0
"""How often the newest samples are looked at: they are 30 s apart."""

QUIET_SHARE = 0.05
"""A peer that is held up for less of the window is not held up."""

BUSY_PEERS = 2
"""Peers at work that are not held up, before one that is can be at fault alone."""


class SavedPcie(Struct, frozen=True):
    """What must survive a restart."""

    links: tuple[SavedPciLink, ...] = ()
    faults: tuple[SavedFault, ...] = ()


class Pcie:
    """Says that a device's way to the host is narrow, slow or damaged."""

    name = "pcie"
    kinds: tuple[str, ...] = ("pcie_degraded", "pcie_errors")

    def __init__(self, config: Config) -> None:
        """Take the thresholds of ``pcie``."""
        self._limits = config.pcie
        self._stalls = Stalls(config.pcie.stall_window_seconds)
        self._links = PcieLinks(config.pcie, self._stalls)
        self._faults = PcieFaults(config.pcie)
        self._stalled_since: dict[str, float] = {}
        self._look_at = -inf
        self._offset = 0.0

    def judge(self, view: View) -> Iterator[Finding]:
        """Yield what is wrong with the links of devices."""
        self._offset = view.onset_offset
        if view.kernel_events:
            self._hear(view)
        if view.moves:
            self._stalls.note(view.moves)
            self._faults.note(view.moves, view)
        if view.now >= self._look_at:
            self._look_at = view.now + LOOK_SECONDS
            self._links.look(view)
            self._find_stalled(view)
        yield from self._links.findings(view)
        yield from self._faults.findings(view)
        for device in self._stalled_since:
            yield from self._stalled(device, view)

    def blind(self, view: View) -> Iterator[Blindness]:
        """Say so where neither link nor stalls can be read, or nothing counts errors."""
        unreadable = self._links.unreadable()
        counted = any(
            view.counters.by_signal(port.info.id, Signal.PCI_STALL)
            for port in view.ports
        )
        devices = by_device(view.ports)
        if has_hardware(view) and not counted and len(unreadable) == len(devices):
            reason = "neither width nor speed of a PCIe link can be read"
            yield Blindness("pcie_degraded", reason)
        problem = view.host_side.kernel_problem
        if problem and has_hardware(view) and not any(map(_counts(view), devices)):
            yield Blindness("pcie_errors", f"no count of errors, and {problem}")

    def save(self) -> bytes:
        """Return which links are low or were full, and errors that are not over."""
        links, faults = self._links.save(self._offset), self._faults.save(self._offset)
        return pack(SavedPcie(links, faults))

    def restore(self, saved: bytes, view_offset: float) -> None:
        """Take back what `save` returned; raises ValueError for anything else."""
        state = unpack(saved, SavedPcie)
        self._offset = view_offset
        self._links.restore(state.links)
        self._faults.restore(state.faults, view_offset)

    def _hear(self, view: View) -> None:
        places = Places(view)
        for event in view.kernel_events:
            device = places.device(event)
            if event.kind is KernelKind.PCIE_LIMITED:
                self._links.hear(device, event)
            elif device is not None:
                self._faults.hear(device, event, view.now)

    def _find_stalled(self, view: View) -> None:
        """Find devices that alone are held up, where their link cannot be read."""
        doubtful = set(self._links.unreadable()).intersection(self._stalls.devices)
        if not doubtful:
            self._stalled_since.clear()
            return
        devices, limits = by_device(view.ports), self._limits
        quiet = [
            name
            for name, ports in devices.items()
            if (load_of(ports, view) or 0) >= limits.load_ratio
            and self._stalls.share(name, view.now) < QUIET_SHARE
        ]
        for name in devices:
            alone = name in doubtful and len(quiet) >= BUSY_PEERS
            if alone and self._stalls.share(name, view.now) >= limits.stall_ratio:
                began = view.now - limits.stall_window_seconds
                self._stalled_since.setdefault(name, began)
            else:
                self._stalled_since.pop(name, None)

    def _stalled(self, device: str, view: View) -> Iterator[Finding]:
        ports = by_device(view.ports).get(device)
        if ports is None:
            return
        onset = self._stalled_since[device] + view.onset_offset
        share, limits = self._stalls.share(device, view.now), self._limits
        window = limits.stall_window_seconds
        yield Finding(
            kind="pcie_degraded",
            subject=subject_of_device(device, ports),
            onset=onset,
            evidence=(
                Evidence("stalled_ratio", round(share, 2), "1", "fabricmon",
                         limits.stall_ratio, window),
                *self._stalls.evidence(device, ports, view.now),
            ),
            summary=one_line(
                f"{device} alone is held up by its host {share:.0%} of the time since "
                f"{clock(onset)}: PCIe, not the fabric; its width cannot be read"
            ),
            severity=Severity.WARNING,
            action=Action.INSPECT,
            confidence=0.7,
        )  # fmt: skip


def _counts(view: View) -> Callable[[str], bool]:
    """Return what tells whether anything counts the PCIe errors of a device."""

    def counts(device: str) -> bool:
        own = PortId(device, 0)  # where the AER tables of a function are kept
        ports = [port.info.id for port in view.ports if port.info.id.device == device]
        return bool(view.counters.by_signal(own, Signal.AER_CORRECTABLE)) or any(
            view.counters.by_signal(port, Signal.PCI_INTEGRITY) for port in ports
        )

    return counts
