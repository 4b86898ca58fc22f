"""Errors of the PCIe link of a device: ``pcie_errors``.

Counted by three that do not know of each other, each enough on its own: the AER tables,
the device's own statistics of the signal, the kernel's log. Corrected errors are noise
until they come as a storm or go on rising; what was not corrected lost a packet.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from enum import IntEnum
from math import inf

from msgspec import Struct, field

from fabricmon.catalogue import Signal
from fabricmon.config import Pcie
from fabricmon.detect.device_places import (
    by_device,
    is_management,
    kernel_text,
    subject_of_device,
)
from fabricmon.detect.wording import clock
from fabricmon.model import (
    Action,
    Evidence,
    Finding,
    KernelEvent,
    KernelKind,
    Mark,
    Move,
    PortView,
    Severity,
    View,
)
from fabricmon.summaries import one_line
from fabricmon.value import State

MOST_STEPS = 256
"""Steps kept of one counter; a storm of lines keeps the newest."""

KMSG = "kmsg"
"""Signal of evidence that is a line of the kernel's log."""

_THIRDS = 3


class Grade(IntEnum):
    """How bad an error is."""

    CORRECTED = 0
    NONFATAL = 1
    FATAL = 2


_SIGNALS = frozenset(
    {Signal.AER_CORRECTABLE, Signal.AER_UNCORRECTABLE, Signal.PCI_INTEGRITY}
)
_GRADES = {
    KernelKind.PCIE_CORRECTED: Grade.CORRECTED,
    KernelKind.PCIE_NONFATAL: Grade.NONFATAL,
    KernelKind.PCIE_FATAL: Grade.FATAL,
    KernelKind.DEVICE_LOST: Grade.FATAL,
}
_OF_FIRMWARE = frozenset({KernelKind.PCIE_MESSAGE, KernelKind.PCIE_NONFATAL})


class SavedFault(Struct, frozen=True):
    """An episode of a device that is not over; times are Unix seconds."""

    device: str
    grade: int
    since: float
    last: float


class _Channel(State):
    """One who counts errors of one grade."""

    signal: str
    source: str
    grade: Grade
    steps: deque[tuple[float, int]] = field(
        default_factory=lambda: deque(maxlen=MOST_STEPS)
    )
    text: str = ""

    def over(self, seconds: float, now: float) -> list[tuple[float, int]]:
        """Return the steps of the newest ``seconds``."""
        return [step for step in self.steps if now - step[0] <= seconds]


class _Episode(State):
    """Errors of a device that are worth telling, until they are over."""

    grade: Grade
    since: float
    last: float


class PcieFaults:
    """Counts the errors of each device."""

    def __init__(self, limits: Pcie) -> None:
        """Take the thresholds."""
        self._limits = limits
        self._channels: dict[str, dict[str, _Channel]] = {}
        self._episodes: dict[str, _Episode] = {}
        self._reported: dict[str, KernelEvent] = {}  # by firmware, the newest

    def note(self, moves: Sequence[Move], view: View) -> None:
        """Take in the steps of counters."""
        for move in moves:
            if move.spec.signal not in _SIGNALS or move.mark is Mark.RESET:
                continue
            if move.previous is None or move.increase <= 0:
                continue
            grade = Grade.CORRECTED
            if move.spec.signal is Signal.AER_UNCORRECTABLE:
                grade = Grade.FATAL if move.spec.fatal else Grade.NONFATAL
            channel = self._channel(
                move.port.device, move.spec.file, grade, _source(move, view)
            )
            channel.steps.append((move.at, move.increase))

    def hear(self, device: str, event: KernelEvent, now: float) -> None:
        """Take in a line of the kernel's log, unless it is an old one."""
        if now - event.at > self._limits.hold_seconds:
            return
        grade = _GRADES.get(event.kind)
        if event.bits is not None and event.kind in _OF_FIRMWARE:
            grade = self._graded_by_firmware(device, event)
        if grade is None:
            return
        key = _key(event, grade)
        channel = self._channel(device, KMSG, grade, "kernel log", key)
        channel.steps.append((event.at, 1))
        channel.text = kernel_text(event)

    def _graded_by_firmware(self, device: str, event: KernelEvent) -> Grade:
        """Return how bad an error is that the platform's firmware reports.

        Every one begins with its status; only what was not repaired has a line behind
        it, on which errors are fatal (``pci_print_aer`` of the kernel's ``aer.c``).
        """
        if event.kind is KernelKind.PCIE_MESSAGE:
            self._reported[device] = event
            return Grade.CORRECTED
        status = self._reported.pop(device, None)
        if status is None:
            return Grade.NONFATAL
        key = _key(status, Grade.CORRECTED)
        repaired = self._channels.get(device, {}).get(key)
        if repaired is not None and repaired.steps:
            repaired.steps.pop()
        is_fatal = (status.bits or 0) & (event.bits or 0)
        return Grade.FATAL if is_fatal else Grade.NONFATAL

    def findings(self, view: View) -> Iterator[Finding]:
        """Yield a finding for each device with an episode."""
        if not self._channels and not self._episodes:
            return
        for device in tuple(self._channels):
            self._judge(device, view.now)
        devices = by_device(view.ports)
        for device, episode in tuple(self._episodes.items()):
            if view.now - episode.last > self._limits.hold_seconds:
                del self._episodes[device]
            elif device in devices:
                yield self._finding(device, episode, devices[device], view)

    def save(self, offset: float) -> tuple[SavedFault, ...]:
        """Return the episodes that are not over."""
        return tuple(
            SavedFault(device, each.grade, each.since + offset, each.last + offset)
            for device, each in self._episodes.items()
        )

    def restore(self, saved: Sequence[SavedFault], offset: float) -> None:
        """Take back what `save` returned."""
        for each in saved:
            if each.grade in set(Grade):
                self._episodes[each.device] = _Episode(
                    Grade(each.grade), each.since - offset, each.last - offset
                )

    def _channel(
        self, device: str, signal: str, grade: Grade, source: str, key: str = ""
    ) -> _Channel:
        channels = self._channels.setdefault(device, {})
        return channels.setdefault(key or signal, _Channel(signal, source, grade))

    def _judge(self, device: str, now: float) -> None:
        """Let an episode of a device begin, go on or get worse."""
        keep = max(self._limits.rising_window_seconds, self._limits.hold_seconds)
        channels = self._channels[device]
        for key, channel in tuple(channels.items()):
            steps = channel.steps
            while steps and now - steps[0][0] > keep:
                steps.popleft()
            if not steps:
                del channels[key]
                continue
            if self._counts(channel, now) or device in self._episodes:
                known = self._episodes.setdefault(
                    device, _Episode(channel.grade, steps[0][0], steps[-1][0])
                )
                known.last = max(known.last, steps[-1][0])
                known.grade = max(known.grade, channel.grade)
        if not channels:
            del self._channels[device]

    def _counts(self, channel: _Channel, now: float) -> bool:
        """Tell whether the errors of a channel are more than noise."""
        if channel.grade is not Grade.CORRECTED:
            return True
        limits = self._limits
        storm = channel.over(limits.storm_window_seconds, now)
        bursts = _bursts(storm, limits.storm_burst_seconds)
        # One burst is a link that trained: the others must be a storm without it.
        besides = sum(bursts) - max(bursts, default=0)
        if len(bursts) >= limits.storm_samples and besides >= limits.storm_errors:
            return True
        risen = channel.over(limits.rising_window_seconds, now)
        if sum(amount for _, amount in risen) < limits.rising_errors:
            return False
        third = limits.rising_window_seconds / _THIRDS
        parts = {int((now - at) / third) for at, _ in channel.steps}
        return parts.issuperset(range(_THIRDS))

    def _finding(
        self, device: str, episode: _Episode, ports: Sequence[PortView], view: View
    ) -> Finding:
        onset = episode.since + view.onset_offset
        severity, action, text = _verdict(episode.grade)
        if is_management(ports):
            severity, action = Severity.WARNING, Action.INSPECT
            text = "management, not the fabric"
        evidence = tuple(self._evidence(device, view.now))
        if not evidence:  # told by an earlier agent
            source = "fabricmon"
            evidence = (
                Evidence("pcie_errors", episode.grade.name.lower(), "", source),
            )
        return Finding(
            kind="pcie_errors",
            subject=subject_of_device(device, ports),
            onset=onset,
            evidence=evidence,
            summary=one_line(f"{device} PCIe errors since {clock(onset)}: {text}"),
            severity=severity,
            action=action,
        )

    def _evidence(self, device: str, now: float) -> Iterator[Evidence]:
        channels = self._channels.get(device, {}).values()
        for channel in sorted(channels, key=lambda each: -each.grade):
            window = round(now - channel.steps[0][0], 1)
            total = sum(amount for _, amount in channel.steps)
            corrected = channel.grade is Grade.CORRECTED
            limit = self._limits.storm_errors if corrected else 0
            yield Evidence(
                channel.signal, total, "errors", channel.source, limit, window
            )
            if channel.text:
                yield Evidence("kmsg_line", channel.text, "", channel.source)


def _bursts(steps: Sequence[tuple[float, int]], seconds: float) -> list[int]:
    """Return how many errors came together: within so long of the first of them."""
    found: list[int] = []
    began = -inf
    for at, amount in steps:
        if at - began >= seconds:
            found.append(0)
            began = at
        found[-1] += amount
    return found


def _key(event: KernelEvent, grade: Grade) -> str:
    """Return the channel of a line: several rows may tell of one and the same error."""
    return f"{KMSG} {grade.name} {event.rule}"


def _verdict(grade: Grade) -> tuple[Severity, Action, str]:
    if grade is Grade.FATAL:
        text = "fatal, the link is lost: card or slot, not the fabric"
        return Severity.CRITICAL, Action.DRAIN_AFTER_JOB, text
    if grade is Grade.NONFATAL:
        text = "packets lost between card and host, not in the fabric"
        return Severity.WARNING, Action.INSPECT, text
    text = "repaired, but far too many: card, slot or riser, not the fabric"
    return Severity.WARNING, Action.INSPECT, text


def _source(move: Move, view: View) -> str:
    infos = (p.info for p in view.ports if p.info.id.device == move.port.device)
    info = next(infos, None)
    if info is None:
        return "pci"
    is_aer = move.spec.signal is not Signal.PCI_INTEGRITY
    return f"pci/{info.pci_address}" if is_aer else f"ethtool:{info.netdev}"
