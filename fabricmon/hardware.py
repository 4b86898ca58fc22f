"""What is known of the host's side: kernel log, transceivers, device health. Pure."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import replace
from typing import TypeAlias, get_args

from fabricmon.model import (
    ClockStatus,
    DeviceHealth,
    HostSide,
    KernelEvent,
    KernelEvents,
    KernelTally,
    ModuleStatus,
    NodeAddresses,
    Outcome,
    PortId,
)
from fabricmon.model.host_side import NO_HOST_SIDE

MAX_EVENTS = 1000
"""Kernel events kept between two judgements; a storm stops here."""

RECENT_SECONDS = 60.0
"""Older events are what the log still had when the agent started: they are judged, but
counted by the agent before."""

SILENT_SECONDS = 600.0
"""A transceiver that tells nothing for so long was taken out; one read may fail."""

AboutHost: TypeAlias = (
    KernelEvents | ModuleStatus | DeviceHealth | ClockStatus | NodeAddresses
)
"""Records that are kept here."""

ABOUT_HOST: tuple[type, ...] = get_args(AboutHost)


def refusals(record: AboutHost) -> Iterator[str]:
    """Yield the errno with which the kernel refused what a record is about."""
    problem = record.problem if isinstance(record, ClockStatus) else None
    if problem is not None:
        yield problem


class Hardware:
    """Takes in what the sources of the host's side find; the newest is what holds."""

    def __init__(self) -> None:
        """Start knowing nothing."""
        self.view: HostSide = NO_HOST_SIDE
        self.layout = 0
        self._events: deque[KernelEvent] = deque(maxlen=MAX_EVENTS)
        self._modules: dict[PortId, ModuleStatus] = {}
        self._health: dict[str, DeviceHealth] = {}
        self._tallies: dict[str, int] = {}

    def take_events(self) -> tuple[KernelEvent, ...]:
        """Return the kernel events that are new and forget that they were."""
        if not self._events:
            return ()
        events = tuple(self._events)
        self._events.clear()
        return events

    def take(self, record: AboutHost) -> object:
        """Take in a record; return what its source's next poll goes on from, if any."""
        match record:
            case KernelEvents():
                self._take_events(record)
                return record.carried
            case ModuleStatus():
                self.layout += record.port not in self._modules
                self._modules[record.port] = record
                self._set(modules=tuple(self._modules.values()))
            case DeviceHealth():
                self._health[record.device] = record
                self._set(health=tuple(self._health.values()))
            case ClockStatus():
                self._set(clock=record)
            case NodeAddresses():
                self._set(addresses=record)
        return None

    def keep_answers(self, outcome: Outcome) -> None:
        """Forget transceivers that have told nothing for long, where they were asked."""
        if outcome.job.source != "modules" or outcome.error is not None:
            return
        device, oldest = outcome.job.unit, outcome.ended - SILENT_SECONDS
        silent = [p for p, m in self._modules.items() if m.at < oldest]
        gone = [port for port in silent if port.device == device]
        if gone:
            self._forget_modules(gone)
            self._set(modules=tuple(self._modules.values()))

    def _forget_modules(self, gone: list[PortId]) -> None:
        for port in gone:
            del self._modules[port]
        self.layout += 1

    def forget(self, device: str) -> None:
        """Forget a device that is gone: its last values must not be judged."""
        gone = [port for port in self._modules if port.device == device]
        if not gone and device not in self._health:
            return
        self._forget_modules(gone)
        self._health.pop(device, None)
        self._set(
            modules=tuple(self._modules.values()), health=tuple(self._health.values())
        )

    def inherit(self, previous: Hardware) -> None:
        """Go on with what was counted under another configuration."""
        self._tallies = previous._tallies
        self._set(tallies=previous.view.tallies, kernel_lost=previous.view.kernel_lost)

    def _take_events(self, news: KernelEvents) -> None:
        self._events.extend(news.events)
        for event in news.events:
            if news.at - event.at > RECENT_SECONDS:
                continue
            self.layout += event.kind not in self._tallies
            self._tallies[event.kind] = self._tallies.get(event.kind, 0) + 1
        self._set(
            kernel_problem=news.problem,
            kernel_lost=self.view.kernel_lost + news.lost,
            tallies=tuple(KernelTally(*each) for each in self._tallies.items()),
        )

    def _set(self, **found: object) -> None:
        self.view = replace(self.view, **found)  # type: ignore[arg-type]
