"""Devices that do not answer, or get too little power: ``device_stuck``, ``nic_power``.

A device is stuck where two independent things say so: its driver (devlink, the
kernel's log), counters that stand still while those of the peers move, reads that take
seconds. One alone warns, or says nothing: a rail without work stands still, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import inf

from msgspec import Struct

from fabricmon.config import Config
from fabricmon.detect.device_places import (
    Places,
    by_device,
    has_hardware,
    is_management,
    kernel_text,
    model_of,
    subject_of_device,
)
from fabricmon.detect.packing import pack, unpack
from fabricmon.detect.traffic_watch import TrafficWatch
from fabricmon.detect.wording import clock
from fabricmon.model import (
    Action,
    Blindness,
    Evidence,
    Finding,
    KernelEvent,
    KernelKind,
    Part,
    PortView,
    Severity,
    View,
)
from fabricmon.sources.protocol import Lane
from fabricmon.summaries import one_line
from fabricmon.value import State, Value

LOOK_SECONDS = 5.0
"""How often counters and reads are looked at."""

STALE_SECONDS = 600.0
"""What a driver said of its reporters so long ago says nothing now."""

_STUCK = frozenset({KernelKind.FIRMWARE_STUCK, KernelKind.FIRMWARE_FATAL})
_FIRMWARE = "fw"  # how the reporters of firmware are called: fw, fw_fatal, fw_reset
_ERROR = "error"


class SavedPower(Struct, frozen=True):
    """A function that the slot gives too little power; ``at`` is Unix seconds."""

    address: str
    at: float
    watts: int | None = None
    text: str = ""


class SavedHealth(Struct, frozen=True):
    """What must survive a restart."""

    boot_id: str = ""
    power: tuple[SavedPower, ...] = ()


class _Sign(Value, frozen=True):
    """Something that says that a device is stuck."""

    at: float
    evidence: Evidence


class _Signs(State):
    """What is held against one device now."""

    kernel: _Sign | None = None
    driver: _Sign | None = None
    still: _Sign | None = None
    slow: _Sign | None = None
    unanswered: _Sign | None = None

    @property
    def all(self) -> list[_Sign]:
        """Every sign there is, the plainest first."""
        every = (self.driver, self.kernel, self.still, self.slow, self.unanswered)
        return [sign for sign in every if sign is not None]

    @property
    def is_sure(self) -> bool:
        """Tell whether two that do not know of each other agree.

        A command that was not answered and a slow read are one and the same.
        """
        said = self.kernel or self.driver
        felt = self.slow or self.unanswered
        return sum(map(bool, (said, self.still, felt))) > 1 or bool(
            self.kernel and self.driver
        )

    @property
    def is_said(self) -> bool:
        """Tell whether the driver itself says so."""
        return self.kernel is not None or self.driver is not None


class DeviceHealth:
    """Puts together what says that a device is stuck or starved."""

    name = "device_health"
    kinds: tuple[str, ...] = ("device_stuck", "nic_power")

    def __init__(self, config: Config) -> None:
        """Take the thresholds of ``device_health``."""
        self._limits = config.device_health
        self._traffic = TrafficWatch(
            config.device_health.moving_ratio, config.device_health.frozen_seconds
        )
        self._look_at = -inf
        self._said: dict[str, _Sign] = {}
        self._unanswered: dict[str, _Sign] = {}
        self._signs: dict[str, _Signs] = {}
        self._erring: dict[str, float] = {}  # since when a reporter is in error
        self._sure: set[str] = set()
        self._power: dict[str, SavedPower] = {}
        self._boot_id = ""
        self._offset = 0.0

    def judge(self, view: View) -> Iterator[Finding]:
        """Yield devices that are stuck, and those that lack power."""
        self._offset = view.onset_offset
        if view.boot is not None and view.boot.boot_id != self._boot_id:
            if self._boot_id:
                self._power.clear()
                self._said.clear()
                self._unanswered.clear()
            self._boot_id = view.boot.boot_id
        if view.kernel_events:
            self._hear(view)
        if view.now >= self._look_at or view.kernel_events:
            self._look_at = view.now + LOOK_SECONDS
            self._traffic.look(view)
            self._signs = self._find_signs(view)
            # Once the job is dead nothing moves any more: what was sure stays so while
            # anything says it.
            self._sure = {
                device
                for device, signs in self._signs.items()
                if signs.is_sure or device in self._sure
            }
        if self._signs or self._power:
            yield from self._findings(view)

    def blind(self, view: View) -> Iterator[Blindness]:
        """Say so where the kernel's log, which alone tells of power, is not read."""
        problem = view.host_side.kernel_problem
        if problem and has_hardware(view):
            yield Blindness("nic_power", problem)

    def save(self) -> bytes:
        """Return which functions lack power: it is said once a boot."""
        return pack(SavedHealth(self._boot_id, tuple(self._power.values())))

    def restore(self, saved: bytes, view_offset: float) -> None:
        """Take back what `save` returned; raises ValueError for anything else."""
        state = unpack(saved, SavedHealth)
        self._offset = view_offset
        self._boot_id = state.boot_id
        self._power = {each.address: each for each in state.power}

    def _hear(self, view: View) -> None:
        places = Places(view)
        for event in view.kernel_events:
            self._hear_of_power(event, view)
            device = places.device(event)
            if device is None:
                continue
            sign = _Sign(event.at, _line(event))
            if event.kind in _STUCK:
                self._said[device] = sign
            elif event.kind is KernelKind.COMMAND_TIMEOUT:
                self._unanswered[device] = sign
            elif event.kind is KernelKind.RECOVERED:
                self._said.pop(device, None)
                self._unanswered.pop(device, None)

    def _hear_of_power(self, event: KernelEvent, view: View) -> None:
        if event.address is None:
            return
        if event.kind is KernelKind.POWER_LOW:
            at = event.at + view.onset_offset
            text = kernel_text(event)
            known = self._power.get(event.address)
            self._power[event.address] = SavedPower(
                event.address, known.at if known else at, event.watts, text
            )
        elif event.kind is KernelKind.POWER_ENOUGH:
            self._power.pop(event.address, None)

    def _find_signs(self, view: View) -> dict[str, _Signs]:
        found: dict[str, _Signs] = {}
        for kept, part in ((self._said, "kernel"), (self._unanswered, "unanswered")):
            for device, sign in tuple(kept.items()):
                if view.now - sign.at > self._limits.hold_seconds:
                    del kept[device]
                else:
                    setattr(found.setdefault(device, _Signs()), part, sign)
        for health in view.host_side.health:
            failed = [
                each.name
                for each in health.reporters
                if each.state == _ERROR and each.name.startswith(_FIRMWARE)
            ]
            if failed and view.now - health.at <= STALE_SECONDS:
                item = Evidence(failed[0], _ERROR, "", f"devlink/{health.device}")
                signs = found.setdefault(health.device, _Signs())
                since = self._erring.setdefault(health.device, health.at)
                signs.driver = _Sign(since, item)
            else:
                self._erring.pop(health.device, None)
        for device, since in self._traffic.frozen(view).items():
            still = round(view.now - since, 1)
            limit = self._limits.frozen_seconds
            item = Evidence("frozen", still, "s", f"infiniband/{device}", limit)
            found.setdefault(device, _Signs()).still = _Sign(since, item)
        for device, seconds in self._slow_reads(view).items():
            limit = self._limits.slow_read_seconds
            source = f"infiniband/{device}"
            item = Evidence("read_seconds", round(seconds, 2), "s", source, limit)
            signs = found.setdefault(device, _Signs())
            signs.slow = _Sign(view.now - seconds, item)
        return found

    def _slow_reads(self, view: View) -> dict[str, float]:
        """Return devices whose reads take long; none where most do: a slow host."""
        longest: dict[str, float] = {}
        for health in view.health:
            if health.lane != Lane.DEVICE or not health.unit:
                continue
            since = health.in_flight_since
            going = 0.0 if since is None else view.now - since
            took = max(health.duration_seconds, going)
            longest[health.unit] = max(took, longest.get(health.unit, 0.0))
        limit = self._limits.slow_read_seconds
        slow = {name: took for name, took in longest.items() if took >= limit}
        return slow if 2 * len(slow) <= len(longest) else {}

    def _findings(self, view: View) -> Iterator[Finding]:
        devices = by_device(view.ports)
        for device, signs in self._signs.items():
            told = device in self._sure or signs.is_said
            if device in devices and told:
                yield self._stuck(device, signs, devices[device], view)
        if self._power:
            yield from self._starved(devices, view)

    def _stuck(
        self, device: str, signs: _Signs, ports: Sequence[PortView], view: View
    ) -> Finding:
        onset = min(sign.at for sign in signs.all) + view.onset_offset
        severity, action = Severity.WARNING, Action.INSPECT
        text = "its driver says so, nothing else yet"
        sure = device in self._sure
        if sure:
            severity, action = Severity.CRITICAL, Action.DRAIN_NOW
            text = "firmware hangs, though the state says ACTIVE; not the fabric"
        if is_management(ports):
            severity, action = Severity.WARNING, Action.INSPECT
            text = "management, not the fabric"
        return Finding(
            kind="device_stuck",
            subject=subject_of_device(device, ports),
            onset=onset,
            evidence=tuple(sign.evidence for sign in signs.all),
            summary=one_line(f"{device} does not work since {clock(onset)}: {text}"),
            severity=severity,
            action=action,
            confidence=1.0 if sure else 0.7,
        )

    def _starved(
        self, devices: dict[str, list[PortView]], view: View
    ) -> Iterator[Finding]:
        del view
        for device, ports in devices.items():
            power = self._power.get(ports[0].info.pci_address or "")
            if power is None:
                continue
            common = self._is_said_of_all(ports[0], devices)
            watts = "?" if power.watts is None else power.watts
            text = "its ports may be throttled; slot, not the fabric"
            if common:
                text = "as all cards of this model here: how the node is built"
            yield Finding(
                kind="nic_power",
                subject=subject_of_device(device, ports),
                onset=power.at,
                evidence=(
                    Evidence("insufficient_power", power.watts, "W", "kernel log"),
                    Evidence("kmsg", power.text, "", "kernel log"),
                ),
                summary=one_line(
                    f"{device} gets {watts} W from its slot, less than it needs, since "
                    f"{clock(power.at)}: {text}"
                ),
                severity=Severity.INFO if common else Severity.WARNING,
                part=Part.OBSERVER if common else Part.CULPRIT,
                action=Action.NONE if common else Action.INSPECT,
            )

    def _is_said_of_all(
        self, port: PortView, devices: dict[str, list[PortView]]
    ) -> bool:
        """Tell whether every card of a model lacks power: a platform, no bad slot."""
        model = model_of(port.info)
        alike = [
            ports[0].info.pci_address or ""
            for ports in devices.values()
            if model_of(ports[0].info) == model
        ]
        return len(alike) > 1 and all(address in self._power for address in alike)


def _line(event: KernelEvent) -> Evidence:
    return Evidence("kmsg", kernel_text(event), "", "kernel log")
