"""Where records go: window, observed ports, inventory and schedule of one node."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from fabricmon.bursts import SOURCE as BURST
from fabricmon.bursts import Bursts
from fabricmon.catalogue import FaultClass, Group, Signal
from fabricmon.config import Config
from fabricmon.hardware import ABOUT_HOST, AboutHost, Hardware, refusals
from fabricmon.inventory import Inventory
from fabricmon.model import (
    Absence,
    Accelerators,
    BootInfo,
    DeviceList,
    Hca,
    LinkEvent,
    LinkStatus,
    LogNews,
    MaintenancePlan,
    MaintenanceWindow,
    Move,
    NetdevStatus,
    Outcome,
    PciStatus,
    PortId,
    PortInfo,
    PortView,
    ReadFailure,
    Reading,
    Target,
    ToolReport,
)
from fabricmon.news import News
from fabricmon.observed import ObservedPorts
from fabricmon.outcomes import REPLACED, failures_of
from fabricmon.pacing import Pacing
from fabricmon.port_key import port_key
from fabricmon.schedule import Entry, Schedule
from fabricmon.sources.protocol import Lane, Scope, Source
from fabricmon.window import Window
from fabricmon.workload import ABOUT_JOBS, AboutJobs, Workload

REMEMBER_OUTAGES = frozenset({Signal.LINK_DOWN, Signal.CARRIER_DOWN})
"""Counters that remember an outage shorter than a poll."""

MAX_NEWS = 10_000
"""Samples kept between two judgements; a storm of link events stops here."""

_MOST_DOUBLED = 16  # pauses are far beyond any period by then


class Intake:
    """Takes the outcomes of polls in; everything else asks it what is known."""

    def __init__(
        self, config: Config, sources: Sequence[Source], schedule: Schedule
    ) -> None:
        """Start knowing nothing."""
        self._config = config
        self._sources = tuple(sources)
        self._schedule = schedule
        self.window = Window(config)
        self.observed = ObservedPorts()
        self.inventory = Inventory(config)
        self.workload = Workload()
        self.hardware = Hardware()
        self.bursts = Bursts(config, schedule, self.inventory, self.observed)
        self._pacing = Pacing(config, schedule, self.window, self.observed)
        self.boot: BootInfo | None = None
        self.class_error: str | None = None
        self._changes = 0
        self.ever_active: set[str] = set()
        self._now = 0.0
        self._saved_counters = b""
        self._maintenance = MaintenancePlan(at=0)
        self._failures: dict[str, tuple[ReadFailure, ...]] = {}
        self._reports: dict[str, ToolReport] = {}
        self._statuses: deque[LinkStatus] = deque(maxlen=MAX_NEWS)
        self._netdevs: deque[NetdevStatus] = deque(maxlen=MAX_NEWS)
        self._events: deque[LinkEvent] = deque(maxlen=MAX_NEWS)
        self._moves: deque[Move] = deque(maxlen=MAX_NEWS)
        self._take: dict[type, Callable[[Any, Entry], None]] = {
            Reading: self._take_reading,
            LinkStatus: self._take_status,
            NetdevStatus: self._take_netdev,
            PciStatus: self._take_pci,
            Hca: self._take_hca,
            DeviceList: self._take_devices,
            Accelerators: self._take_accelerators,
            LinkEvent: self._take_event,
            BootInfo: self._take_boot,
            MaintenancePlan: self._take_maintenance,
            ToolReport: self._take_report,
            ReadFailure: self._take_failure,
            **dict.fromkeys(ABOUT_JOBS, self._take_workload),
            **dict.fromkeys(ABOUT_HOST, self._take_hardware),
        }

    @property
    def layout(self) -> int:
        """A number that changes when the set of values or an identity does."""
        told = self.workload.layout + self.bursts.layout + self.hardware.layout
        return self._changes + self.inventory.layout + told

    def start(self, now: float) -> None:
        """Schedule what is polled once for the whole node."""
        for source in self._sources:
            if source.scope is Scope.NODE:
                self._schedule.add(source, Target(), self._period(source), now)

    def feed(self, outcome: Outcome) -> bool:
        """Take in what became of one poll; tell whether there is something to judge."""
        if outcome.job.source == BURST and outcome.error is None:
            return self._feed_burst(outcome)
        readings = [each for each in outcome.records if isinstance(each, Reading)]
        failures, answered = failures_of(outcome, readings)
        failed = outcome.error is not None or (bool(failures) and not answered)
        entry = self._schedule.settle(outcome, failed=failed)
        if entry is None:
            return False
        self._now = outcome.ended
        if entry.source.lane is Lane.TOOL:
            self._reports.pop(entry.source.name, None)
        if failures or failed or self._failures:
            self._note_failures(entry, outcome, failures)
        if entry.source.lane is Lane.DRIVER:
            self._pacing.back_off(entry, self._now)
        if readings and self._pacing.spare(entry, readings, self._now):
            self._changes += 1
        changes = self._changes
        for record in outcome.records:
            self._take[type(record)](record, entry)
        if entry.source.name == "driver" and outcome.error is None:
            silent = self.observed.keep_answers(entry.target.name, readings)
            self._changes += sum(map(self.window.leave, silent))
        self.hardware.keep_answers(outcome)
        if entry.source.name == "state" and outcome.error is None:
            self._pacing.pace_state(entry.target.name, self._now)
            return self._changes != changes  # read every second where nobody tells
        return bool(outcome.records) or outcome.error is not None

    def _feed_burst(self, outcome: Outcome) -> bool:
        """Take in a sample; it is dear to judge at each one, so only windows count."""
        entry = self._schedule.settle(outcome, failed=False)
        return entry is not None and self.bursts.take(entry, outcome)

    def resume_logs(self, saved: bytes) -> None:
        """Go on reading logs where an earlier agent ended."""
        if saved and (entry := self._schedule.entry("nccl_log", "")) is not None:
            entry.carry(saved)

    def resume_counters(self, saved: bytes) -> None:
        """Take what counters read last, once it is known which boot this is."""
        self._saved_counters = saved

    def inherit(self, previous: Intake) -> None:
        """Take over what another intake of the same node has measured."""
        self.window = previous.window
        self.boot = previous.boot
        self._pacing.inherit(previous._pacing)
        self.workload.inherit(previous.workload)
        self.hardware.inherit(previous.hardware)
        self._saved_counters = b""

    def is_restless(self, now: float) -> bool:
        """Tell whether the link of any device changed lately."""
        return self._pacing.is_restless(now)

    def take_news(self) -> News:
        """Return what is new and forget that it was."""
        self.workload.place(self.inventory.ports())
        news = News(
            tuple(self._statuses),
            tuple(self._netdevs),
            tuple(self._events),
            tuple(self._moves),
            self.workload.take_events(),
        )
        for kept in (self._statuses, self._netdevs, self._events, self._moves):
            kept.clear()
        return news

    def port_views(self, now: float) -> tuple[PortView, ...]:
        """Return every port of the node as detectors see it."""
        return tuple(self._view(info, now) for info in self.inventory.ports())

    def readings(self, port: PortInfo) -> tuple[Reading, ...]:
        """Return the newest readings of a port; a device's own go with its first."""
        found = tuple(self.observed.port(port.id).readings.values())
        ports = self.inventory.ports()
        device = port.id.device
        if next((info for info in ports if info.id.device == device), None) is not port:
            return found
        return (*found, *self.observed.port(PortId(device, 0)).readings.values())

    def failures(self, now: float) -> tuple[ReadFailure, ...]:
        """Return what could not be read at all: newest polls, and those that hang."""
        noted = (item for kept in self._failures.values() for item in kept)
        hung = self._schedule.hung(now - self._config.deadlines.read_seconds)
        return (*noted, *hung)

    def reports(self) -> tuple[ToolReport, ...]:
        """Return the newest report of each tool."""
        return tuple(self._reports.values())

    def maintenance(self, wall: float) -> tuple[MaintenanceWindow, ...]:
        """Return the windows that have not ended."""
        return tuple(w for w in self._maintenance.windows if w.until > wall)

    @property
    def maintenance_error(self) -> str | None:
        """What of the maintenance file could not be understood."""
        return self._maintenance.error

    def _view(self, info: PortInfo, now: float) -> PortView:
        seen = self.observed.port(info.id)
        key = port_key(info)
        if seen.was_active:
            self.ever_active.add(key)
        return PortView(
            info=info,
            status=seen.status,
            netdev=seen.netdev,
            pci=self.observed.pci.get(info.id.device),
            ever_active=key in self.ever_active,
            fresh=seen.status is not None and self._is_fresh(info.id, seen.status, now),
        )

    def _is_fresh(self, port: PortId, status: LinkStatus, now: float) -> bool:
        entry = self._schedule.entry("state", port.device)
        period = entry.period if entry else self._config.periods.state_seconds
        allowed = self._config.telemetry.stale_polls * period
        return now - status.at <= allowed + self._config.deadlines.read_seconds

    def _period(self, source: Source) -> float:
        return source.period(self._config.periods)

    def _note_failures(
        self, entry: Entry, outcome: Outcome, failures: tuple[ReadFailure, ...]
    ) -> None:
        key = f"{entry.source.name} {entry.target.name}"
        if outcome.error is not None:
            device, file = entry.target.name or None, entry.source.name
            failures = (ReadFailure(device, None, file, None, outcome.error),)
        if entry.quarantined is not None and failures:
            # A function that is not meant to answer is no failure once that is known.
            reason = failures[0].errno or ""
            restricted = Absence(entry.source.name, reason).is_restricted
            failures = () if restricted else failures
        if failures:
            self._failures[key] = failures
            entry.count_errors(f.errno or "error" for f in failures)
        else:
            self._failures.pop(key, None)

    def _take_reading(self, reading: Reading, entry: Entry) -> None:
        group = reading.specs[0].group if reading.specs else Group.ERRORS
        seen = self.observed.port(reading.port)
        last = seen.readings.get(group)
        if last is None or last.specs != reading.specs or last.absent != reading.absent:
            self._changes += 1
        if any(each.reason == REPLACED for each in reading.absent):
            self.window.rebaseline(reading.port.device, "another device has its name")
            for source in ("identity", entry.source.name):
                self._schedule.hasten(source, reading.port.device, reading.at)
        moves = self.window.add(reading, entry.period)
        if reading.specs:
            seen.take_traffic(reading, last)
        seen.readings[group] = reading
        if moves:
            self._moves.extend(moves)
            self._react(reading.port, moves)
        if reading.absent:
            entry.count_errors(a.reason for a in reading.absent if not a.is_absent)

    def _react(self, port: PortId, moves: tuple[Move, ...]) -> None:
        if any(m.spec.fault_class is FaultClass.LINK for m in moves):
            self.observed.port(port).link_moved = True
        steps = (m for m in moves if m.previous is not None)  # a first sight is none
        if any(m.spec.signal in REMEMBER_OUTAGES for m in steps):
            self._pacing.watch_closely(port.device, moves[0].at)

    def _take_status(self, status: LinkStatus, entry: Entry) -> None:
        before = self.observed.port(status.port).status
        merged = self.observed.port(status.port).take_status(status)
        self._statuses.append(merged)
        changed = before is not None and before.state != merged.state
        if changed:
            self._pacing.watch_closely(status.port.device, status.at)
        if merged.complete:
            self._pacing.look_again(status.port.device, status.at)
        if before is None or before.absent != merged.absent or changed:
            self._changes += 1
        self.inventory.update(merged)
        entry.count_errors(a.reason for a in status.absent if not a.is_absent)

    def _take_netdev(self, status: NetdevStatus, _entry: Entry) -> None:
        self.observed.port(status.port).netdev = status
        self._netdevs.append(status)

    def _take_pci(self, status: PciStatus, _entry: Entry) -> None:
        self.observed.pci[status.device] = status

    def _take_devices(self, devices: DeviceList, _entry: Entry) -> None:
        if self.class_error != devices.error:
            self.class_error = devices.error
            self._changes += 1
        changes = self.inventory.update(devices)
        for name in changes.appeared:
            for source in self._sources:
                if source.scope is Scope.DEVICE:
                    period = self._period(source)
                    self._schedule.add(source, Target(name), period, devices.at)
        for name in changes.disappeared:
            self._forget(name)

    def _forget(self, device: str) -> None:
        self._changes += 1
        self._schedule.remove(device)
        self.observed.forget(device)
        self.window.forget(device)
        self._pacing.forget(device)
        self.bursts.forget(device)
        self.workload.forget(device)
        self.hardware.forget(device)
        for key in [key for key in self._failures if key.endswith(f" {device}")]:
            del self._failures[key]

    def _take_hca(self, hca: Hca, entry: Entry) -> None:
        changes = self.inventory.update(hca)
        if entry.target.hca == hca:
            return  # what is kept open or counted by the same plans goes on
        if changes.reloaded:
            self.window.rebaseline(hca.name, "driver loaded again")
        for unread in self.observed.keep_only(hca, entry.target.hca):
            self._changes += self.window.leave(unread)
        for source in self._sources:
            if source.scope is not Scope.NODE:
                period = self._period(source)
                self._schedule.add(source, Target(hca.name, hca), period, self._now)

    def _take_accelerators(self, found: Accelerators, _entry: Entry) -> None:
        self.inventory.update(found)

    def _take_event(self, event: LinkEvent, _entry: Entry) -> None:
        self._events.append(event)
        for info in self.inventory.ports():
            lost = not event.netdev  # some events were: look at every port
            if lost or event.netdev in info.netdevs:
                self._schedule.hasten("state", info.id.device, event.at)
                self._schedule.hasten("netdev", info.id.device, event.at)
                self._pacing.watch_closely(info.id.device, event.at)

    def _take_boot(self, boot: BootInfo, _entry: Entry) -> None:
        if self.boot is not None and boot.boot_id != self.boot.boot_id:
            for hca in self.inventory.hcas():
                self.window.rebaseline(hca.name, "the node booted")
        if self._saved_counters and self.boot is None:
            with suppress(ValueError):  # damaged: then only this outage is not told
                self.window.resume(self._saved_counters, boot.boot_id)
        self.boot = boot
        self._pacing.tells_links = boot.tells_links
        self.inventory.update(boot)

    def _take_maintenance(self, plan: MaintenancePlan, _entry: Entry) -> None:
        self._maintenance = plan

    def _take_report(self, report: ToolReport, entry: Entry) -> None:
        self._reports[report.tool] = report
        entry.count_errors(each.errno or "error" for each in report.errors)

    def _take_workload(self, record: AboutJobs, entry: Entry) -> None:
        carried = self.workload.take(record)
        if carried is not None:
            entry.carry(carried)
        if isinstance(record, LogNews):  # with nothing to follow, only search
            period = self._period(entry.source)
            if not record.logs:
                period = max(period, self._config.logs.discovery_seconds)
            self._schedule.set_period(entry, period, self._now)

    def _take_hardware(self, record: AboutHost, entry: Entry) -> None:
        entry.count_errors(refusals(record))
        carried = self.hardware.take(record)
        if carried is not None:
            entry.carry(carried)

    def _take_failure(self, _record: ReadFailure, entry: Entry) -> None:
        """Try a tool again soon, then less and less so; the failure was noted before."""
        if (source := entry.source).lane is Lane.TOOL:
            doubled = min(max(entry.failures - 1, 0), _MOST_DOUBLED)
            pause = self._config.deadlines.command_retry_seconds * 2**doubled
            self._schedule.hasten(source.name, entry.target.name, self._now + pause)
