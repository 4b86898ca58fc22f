"""Whether a port had a fault of its own lately: what turns a victim into a culprit.

Transport symptoms name those who suffer. Only damage seen at this end of the link, its
state, its PCIe side or its temperature within the last minutes make a place the
culprit (``health-systems``, 4.5: the second of its ordered checks).
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum

from fabricmon.catalogue import CounterSpec, Signal
from fabricmon.config import Config
from fabricmon.detect.evidence import source_of, unit_of
from fabricmon.detect.grace import Grace
from fabricmon.detect.statistics import poisson_bound
from fabricmon.detect.wording import port_source
from fabricmon.model import (
    Evidence,
    LinkStatus,
    Mark,
    ModuleStatus,
    Move,
    PciStatus,
    PortId,
    PortView,
    Subject,
    View,
)
from fabricmon.parse.kernel_event import KernelEvent, KernelKind
from fabricmon.parse.words import PortState
from fabricmon.value import Value


class Nature(StrEnum):
    """What kind of fault of its own a port shows."""

    LINK = "link"
    STATE = "state"
    PCIE = "pcie"
    MODULE = "module"
    DEVICE = "device"


class LocalSign(Value, frozen=True):
    """One thing that a port showed, last at ``at`` (monotonic seconds)."""

    nature: Nature
    at: float
    evidence: Evidence


_NATURE = {
    Signal.SYMBOL_ERROR: Nature.LINK,
    Signal.RECEIVE_ERROR: Nature.LINK,
    Signal.LINK_RECOVERY: Nature.LINK,
    Signal.LINK_DOWN: Nature.STATE,
    Signal.CARRIER_DOWN: Nature.STATE,
    Signal.PCI_STALL: Nature.PCIE,
    Signal.PCI_OVERFLOW: Nature.PCIE,
    Signal.PCI_INTEGRITY: Nature.PCIE,
    Signal.AER_CORRECTABLE: Nature.PCIE,
    Signal.AER_UNCORRECTABLE: Nature.PCIE,
    Signal.MODULE_HOT: Nature.MODULE,
    Signal.MODULE_FAULT: Nature.MODULE,
    Signal.MODULE_UNPLUGGED: Nature.MODULE,
    Signal.DEVICE_FAULT: Nature.DEVICE,
}

_KERNEL = {
    KernelKind.LINK_DOWN: Nature.STATE,
    KernelKind.MODULE_UNPLUGGED: Nature.MODULE,
    KernelKind.MODULE_FAULT: Nature.MODULE,
    KernelKind.MODULE_HOT: Nature.MODULE,
    KernelKind.POWER_LOW: Nature.DEVICE,
    KernelKind.FIRMWARE_STUCK: Nature.DEVICE,
    KernelKind.FIRMWARE_FATAL: Nature.DEVICE,
    KernelKind.PCIE_NONFATAL: Nature.PCIE,
    KernelKind.PCIE_FATAL: Nature.PCIE,
    KernelKind.DEVICE_LOST: Nature.DEVICE,
}

_NO_FAULT = frozenset({PortState.ACTIVE, PortState.INIT, PortState.ARMED, None})
"""A port in INIT has a link: that the fabric does not configure it is no fault of it."""

_PACKETS = Signal.RECEIVE_ERROR  # also packets that an upstream hop marked as bad
_BITS_PER_GIGABIT = 1e9
_UNKNOWN_RATE_GBPS = 100.0


class LocalEvidence:
    """Remembers what each port showed of its own; cheap while nothing moves."""

    def __init__(self, config: Config) -> None:
        """Take ``local_evidence`` and the bounds of ``link_errors``."""
        self._limits = config.local_evidence
        self._errors = config.link_errors
        self._grace = Grace()
        self._moved: dict[PortId, dict[CounterSpec, float]] = {}
        self._down: dict[PortId, tuple[float, PortState]] = {}
        self._narrow: dict[str, tuple[float, tuple[Evidence, ...]]] = {}
        self._told: dict[str, dict[KernelKind, KernelEvent]] = {}
        self._links: dict[str, PciStatus] = {}

    def note(self, view: View) -> None:
        """Take in what is new in a view; call it once for each."""
        self._grace.observe(view)
        for move in view.moves:
            self._note_move(move)
        for status in view.statuses:
            if status.state not in _NO_FAULT:
                self._note_state(status)
        for event in view.kernel_events:
            if event.kind in _KERNEL:
                self._told.setdefault(_place(event), {})[event.kind] = event
        for port in view.ports:
            pci = port.pci
            if pci is not None and pci is not self._links.get(pci.device):
                self._links[pci.device] = pci
                self._look_at(pci)

    def _note_move(self, move: Move) -> None:
        nature = None if move.spec.signal is None else _NATURE.get(move.spec.signal)
        if nature is None or move.increase <= 0 or move.mark is Mark.RESET:
            return
        if nature is Nature.PCIE or not self._settles(move.port.device, move.at):
            self._moved.setdefault(move.port, {})[move.spec] = move.at

    def _note_state(self, status: LinkStatus) -> None:
        if status.state is not None and not self._settles(
            status.port.device, status.at
        ):
            self._down[status.port] = (status.at, status.state)

    def of(self, port: PortView, view: View) -> tuple[LocalSign, ...]:
        """Return what a port showed of its own lately, empty if nothing."""
        return tuple(self._signs(port, view))

    def natures(self, port: PortView, view: View) -> frozenset[Nature]:
        """Return which kinds of fault a port showed lately."""
        return frozenset(sign.nature for sign in self._signs(port, view))

    def kernel_lines(
        self, subject: Subject, since: float, view: View
    ) -> tuple[Evidence, ...]:
        """Return what the kernel said of a device since then (monotonic seconds)."""
        if not self._told:
            return ()
        lines = (
            event
            for place in _places(subject, view)
            for event in self._told.get(place, {}).values()
            if since <= event.at
        )
        return tuple(map(_from_kernel, sorted(lines, key=lambda event: event.at)))

    def _settles(self, device: str, at: float) -> bool:
        """Tell whether a link may misbehave: the boot or the driver is young."""
        limits = self._errors
        return (
            self._grace.since_boot(at) < limits.boot_grace_seconds
            or self._grace.since_load(device, at) < limits.driver_grace_seconds
        )

    def _signs(self, port: PortView, view: View) -> Iterator[LocalSign]:
        info = port.info
        oldest = view.now - self._limits.window_seconds
        yield from self._counted(port, view, info.id, oldest)
        yield from self._counted(port, view, PortId(info.id.device, 0), oldest)
        at, state = self._down.get(info.id, (-1.0, None))
        if state is not None and at >= oldest:
            shown = Evidence("state", state.value, "state", port_source(info.id))
            yield LocalSign(Nature.STATE, at, shown)
        at, narrow = self._narrow.get(info.id.device, (-1.0, ()))
        for item in narrow:
            yield LocalSign(Nature.PCIE, at, item)
        for place in (info.id.device, info.pci_address, info.netdev):
            for kind, event in self._told.get(place or "", {}).items():
                if event.at >= oldest:
                    yield LocalSign(_KERNEL[kind], event.at, _from_kernel(event))
        for module in view.host_side.modules:
            if module.port == info.id and _is_hot(module):
                yield LocalSign(Nature.MODULE, module.at, _from_module(module))

    def _counted(
        self, port: PortView, view: View, where: PortId, oldest: float
    ) -> Iterator[LocalSign]:
        window = self._limits.window_seconds
        for spec, at in self._moved.get(where, {}).items():
            nature = None if spec.signal is None else _NATURE.get(spec.signal)
            delta = view.counters.delta(where, spec, window)
            if nature is None or at < oldest or delta is None:
                continue
            least = self._least(spec, port)
            if delta.increase < least:
                continue
            yield LocalSign(
                nature,
                at,
                Evidence(
                    spec.file,
                    delta.increase,
                    unit_of(spec),
                    source_of(port.info, spec),
                    least,
                    round(delta.seconds, 1),
                ),
            )

    def _least(self, spec: CounterSpec, port: PortView) -> int:
        """Return how many of a counter in the window are more than chance."""
        signal, limits = spec.signal, self._limits
        if signal in (Signal.SYMBOL_ERROR, _PACKETS):
            rate = port.status.rate.gbps if port.status else None
            bits = (rate or _UNKNOWN_RATE_GBPS) * _BITS_PER_GIGABIT
            mean = bits * self._errors.warning_bit_error_ratio * limits.window_seconds
            return poisson_bound(mean, self._errors.false_alarm_probability)
        if signal is Signal.PCI_STALL:
            return limits.pci_stall_seconds
        if signal is Signal.AER_CORRECTABLE:
            return limits.corrected_pci_errors
        return 1

    def _look_at(self, pci: PciStatus) -> None:
        """Note a link that trained with fewer lanes than both of its ends have.

        Its speed is none: idle links save power by lowering it (``faults``, N42).
        """
        link, slot = pci.link, pci.slot
        ends = [end.max_width for end in (link, slot) if end.max_width]
        known = link.width
        if not known or not ends or known >= min(ends):
            self._narrow.pop(pci.device, None)
            return
        source = f"pci/{pci.address}"
        shown = Evidence("current_link_width", known, "lanes", source, min(ends))
        self._narrow[pci.device] = (pci.at, (shown,))


def _places(subject: Subject, view: View) -> tuple[str, ...]:
    """Return what the kernel may call the device of a subject, also one that is gone."""
    gone = (info for device in view.missing for info in device.ports)
    infos = (*(port.info for port in view.ports), *gone)
    names: dict[str | None, None] = {subject.device: None, subject.netdev: None}
    for info in infos:
        same = subject.port in {None, info.id.port}
        if info.id.device == subject.device and same:
            names |= {info.pci_address: None, info.netdev: None}
    return tuple(name for name in names if name)


def _place(event: KernelEvent) -> str:
    return event.device or event.address or event.netdev or ""


def _from_kernel(event: KernelEvent) -> Evidence:
    return Evidence("kmsg", event.kind.value, "", f"kmsg:{event.rule}")


def _is_hot(module: ModuleStatus) -> bool:
    alarm, temperature = module.alarm_c, module.temperature_c
    return alarm is not None and temperature is not None and temperature >= alarm


def _from_module(module: ModuleStatus) -> Evidence:
    return Evidence(
        "temperature", module.temperature_c, "degC", module.source, module.alarm_c
    )
