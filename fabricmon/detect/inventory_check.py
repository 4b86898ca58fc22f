"""RDMA devices that were there, or are expected, and are not: ``device_missing``.

A driver that is loaded again takes its device away for 5 to 60 s (``faults``, N03), a
card that fails takes it away for good (F24), and nothing tells the two apart in the
first minute. So a device is found missing after ``missing_polls`` listings, as
information, and becomes critical once it is gone for longer than a reload takes.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from fabricmon.config import Config
from fabricmon.detect.grace import Grace, SavedGrace
from fabricmon.detect.packing import pack, unpack
from fabricmon.detect.wording import clock, lasting
from fabricmon.model import (
    Action,
    Blindness,
    Evidence,
    Finding,
    MissingDevice,
    Part,
    Role,
    Severity,
    Subject,
    View,
)
from fabricmon.summaries import one_line

_SOURCE = "infiniband"


class SavedPresence(Struct, frozen=True):
    """Since when devices are missing, Unix seconds by name."""

    grace: SavedGrace = SavedGrace()
    since: dict[str, float] = {}


class DevicePresence:
    """Watches that no device goes away for good."""

    name = "presence"
    kinds: tuple[str, ...] = ("device_missing",)

    def __init__(self, config: Config) -> None:
        """Take the thresholds of ``link_state``."""
        self._limits = config.link_state
        self._grace = Grace()
        self._since: dict[str, float] = {}
        self._last: tuple[MissingDevice, ...] = ()
        self._offset = 0.0

    def judge(self, view: View) -> Iterator[Finding]:
        """Yield a finding for each device that is missing.

        A listing that fails tells nothing: what was missing before stays so.
        """
        self._offset = view.onset_offset
        self._grace.observe(view)
        if view.class_error in {None, "ENOENT"}:
            self._last = view.missing
        if not self._last and not view.hcas:
            return  # nothing is listed yet
        names = {device.name for device in self._last}
        self._since = {n: at for n, at in self._since.items() if n in names}
        for device in self._last:
            told = device.name in self._since
            if told or device.polls >= self._limits.missing_polls:
                since = self._since.setdefault(device.name, device.since)
                yield self._finding(device, min(since, device.since), view)

    def blind(self, view: View) -> Iterator[Blindness]:
        """Say so where the devices cannot be listed."""
        if view.class_error not in {None, "ENOENT"}:
            reason = f"the RDMA class cannot be listed: {view.class_error}"
            yield Blindness("device_missing", reason)

    def save(self) -> bytes:
        """Return since when devices are missing."""
        since = {name: at + self._offset for name, at in self._since.items()}
        return pack(SavedPresence(self._grace.save(self._offset), since))

    def restore(self, saved: bytes, view_offset: float) -> None:
        """Take back what `save` returned; raises ValueError for anything else."""
        state = unpack(saved, SavedPresence)
        self._offset = view_offset
        self._grace.restore(state.grace, view_offset)
        self._since = {name: at - view_offset for name, at in state.since.items()}

    def _finding(self, device: MissingDevice, since: float, view: View) -> Finding:
        gone, onset = view.now - since, since + view.onset_offset
        severity, action, text = self._verdict(device, gone, view.now)
        known = "expected by configuration" if device.expected else "known before"
        story = f"gone since {clock(onset)}"
        if device.never_seen:
            story = f"is expected and was never there, looked since {clock(onset)}"
        return Finding(
            kind="device_missing",
            subject=_subject(device),
            onset=onset,
            evidence=(
                Evidence(
                    signal="polls_without_device",
                    value=device.polls,
                    unit="polls",
                    source=_SOURCE,
                    threshold=self._limits.missing_polls,
                    window_seconds=round(gone, 1),
                ),
                Evidence(
                    signal="seconds_gone",
                    value=round(gone, 1),
                    unit="s",
                    source=_SOURCE,
                    threshold=self._limits.reload_seconds,
                ),
                Evidence("device_known", known, "", "fabricmon"),
            ),
            summary=one_line(f"{device.name} {story} ({lasting(gone)}): {text}"),
            severity=severity,
            part=Part.OBSERVER if device.never_seen else Part.CULPRIT,
            action=action,
        )

    def _verdict(
        self, device: MissingDevice, gone: float, now: float
    ) -> tuple[Severity, Action, str]:
        limits, ports = self._limits, device.ports
        if ports and all(port.is_vf for port in ports):
            return Severity.INFO, Action.NONE, "a virtual function, no card"
        if device.never_seen:
            return self._of_never_seen(gone, now)
        if gone < limits.reload_seconds:
            return Severity.INFO, Action.NONE, "perhaps its driver is loaded again"
        if self._grace.since_boot(now) < limits.boot_down_seconds:
            return Severity.INFO, Action.NONE, "the node is still starting"
        if ports and all(port.role is Role.MANAGEMENT for port in ports):
            return Severity.WARNING, Action.INSPECT, "management, not the fabric"
        return Severity.CRITICAL, Action.DRAIN_NOW, "card or driver failed, no reload"

    def _of_never_seen(self, gone: float, now: float) -> tuple[Severity, Action, str]:
        limits = self._limits
        if gone < limits.reload_seconds:
            return Severity.INFO, Action.NONE, "perhaps its driver is still to load"
        if self._grace.since_boot(now) < limits.boot_down_seconds:
            return Severity.INFO, Action.NONE, "the node is still starting"
        return Severity.CRITICAL, Action.DRAIN_NOW, "no card, or no such name"


def _subject(device: MissingDevice) -> Subject:
    only = device.ports[0] if len(device.ports) == 1 else None
    return Subject(device=device.name, rail=only.rail if only else None)
