"""Devices that do not answer, or get too little power: ``device_stuck``, ``nic_power``.

A device is stuck where two independent things say so: its driver (devlink, the
kernel's log), counters that stand still while those of the peers move, reads that take
seconds, again and again. One alone warns, or says nothing: a rail whose job is over
stands still, too, and is slow for a moment. Traffic that flows contradicts all of them.
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
from fabricmon.detect.stuck_signs import (
    KernelWords,
    Sign,
    Signs,
    SlowReads,
    spare_a_job,
)
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
from fabricmon.summaries import one_line

LOOK_SECONDS = 5.0
"""How often counters and reads are looked at."""

STALE_SECONDS = 600.0
"""What a driver said of its reporters so long ago says nothing now."""

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
        self._kernel = KernelWords(self._limits)
        self._slow = SlowReads(self._limits)
        self._signs: dict[str, Signs] = {}
        self._erring: dict[str, float] = {}  # since when a reporter is in error
        self._sure: dict[str, float] = {}  # since when
        self._power: dict[str, SavedPower] = {}
        self._boot_id = ""
        self._offset = 0.0

    def judge(self, view: View) -> Iterator[Finding]:
        """Yield devices that are stuck, and those that lack power."""
        self._offset = view.onset_offset
        if view.boot is not None and view.boot.boot_id != self._boot_id:
            if self._boot_id:
                self._power.clear()
                self._kernel.forget()
            self._boot_id = view.boot.boot_id
        if view.kernel_events:
            self._hear(view)
        if view.now >= self._look_at or view.kernel_events:
            self._look_at = view.now + LOOK_SECONDS
            self._traffic.look(view)
            self._signs = self._find_signs(view)
            self._sure = self._find_sure(view)
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
            if device is not None:
                self._kernel.hear(device, event)

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

    def _find_signs(self, view: View) -> dict[str, Signs]:
        found: dict[str, Signs] = {}
        self._ask_drivers(found, view)
        for device, at in self._traffic.busy().items():
            self._kernel.forget(device, at - self._limits.moving_seconds)
        self._kernel.add_to(found, view.now)
        for device, since in self._traffic.frozen(view).items():
            still = round(view.now - since, 1)
            limit = self._limits.frozen_seconds
            item = Evidence("frozen", still, "s", f"infiniband/{device}", limit)
            found.setdefault(device, Signs()).still = Sign(since, view.now, item)
        self._slow.add_to(found, view)
        spare_a_job(found)
        return found

    def _ask_drivers(self, found: dict[str, Signs], view: View) -> None:
        """Add what devlink says; a reporter that is well again ends what was said."""
        for health in view.host_side.health:
            reporters = [r for r in health.reporters if r.name.startswith(_FIRMWARE)]
            failed = [r.name for r in reporters if r.state == _ERROR]
            is_fresh = view.now - health.at <= STALE_SECONDS
            if failed and is_fresh:
                item = Evidence(failed[0], _ERROR, "", f"devlink/{health.device}")
                since = self._erring.setdefault(health.device, health.at)
                signs = found.setdefault(health.device, Signs())
                signs.driver = Sign(since, health.at, item)
                continue
            erred = self._erring.pop(health.device, None)
            if erred is not None and reporters and is_fresh:
                self._kernel.forget(health.device, health.at)

    def _find_sure(self, view: View) -> dict[str, float]:
        """Return since when devices surely are stuck.

        Once the job is dead nothing moves any more, so what was sure stays so, while
        anything but that says it and no traffic is seen.
        """
        limits, found = self._limits, dict[str, float]()
        busy = self._traffic.busy()
        for device, signs in self._signs.items():
            worked, since = busy.get(device, -inf), self._sure.get(device)
            if since is not None and not signs.is_only_still:
                if worked < since + limits.moving_seconds:
                    found[device] = since
            elif signs.agree(limits, worked, view.now):
                found[device] = view.now
        return found

    def _findings(self, view: View) -> Iterator[Finding]:
        devices = by_device(view.ports)
        for device, signs in self._signs.items():
            told = device in self._sure or signs.said or signs.are_ignored(self._limits)
            if device in devices and told:
                yield self._stuck(device, signs, devices[device], view)
        if self._power:
            yield from self._starved(devices, view)

    def _stuck(
        self, device: str, signs: Signs, ports: Sequence[PortView], view: View
    ) -> Finding:
        onset = min(sign.at for sign in signs.all) + view.onset_offset
        severity, action = Severity.WARNING, Action.INSPECT
        story, text = "may be stuck", "its driver says so, nothing else; not the fabric"
        if not signs.said:
            text = "commands go unanswered again and again; not the fabric"
        sure = device in self._sure
        if sure:
            severity, action = Severity.CRITICAL, Action.DRAIN_NOW
            story = "does not work"
            text = "firmware hangs, though the state says ACTIVE; not the fabric"
        if is_management(ports):
            severity, action = Severity.WARNING, Action.INSPECT
            text = "management, not the fabric"
        return Finding(
            kind="device_stuck",
            subject=subject_of_device(device, ports),
            onset=onset,
            evidence=tuple(sign.evidence for sign in signs.all),
            summary=one_line(f"{device} {story} since {clock(onset)}: {text}"),
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
