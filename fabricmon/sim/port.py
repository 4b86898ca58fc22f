"""One port while a node plays: its numbers, and what moves them."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Protocol

from fabricmon.sim.counter_files import Area, PortCounters, Table, What
from fabricmon.sim.counters import Counter, Spot
from fabricmon.sim.effects import SimPort
from fabricmon.sim.meters import Meter
from fabricmon.sim.page import Page
from fabricmon.sim.plan import FleetPlan
from fabricmon.sim.port_link import PortLink
from fabricmon.sim.traffic import whole


class Clock(Protocol):
    """What lets things happen later."""

    def at(self, t: float, action: Callable[[float], None]) -> None:
        """Call ``action`` when time comes to ``t``."""


class Port:
    """The numbers of one port; it writes what changes to the page.

    ``busy`` is whether it carries a job's data, ``packets`` how many a second it
    sends and receives.
    """

    def __init__(
        self, plan: FleetPlan, port: SimPort, page: Page, clock: Clock
    ) -> None:
        self.id = port
        self.name = port.device  # as the device is called now
        self.link = PortLink(plan, port, page)
        self.busy = False
        self.packets_sent = 0.0
        self.packets_received = 0.0
        self.frozen = False
        self.on_traffic: list[Callable[[float], None]] = []
        self.bits_per_second = plan.slot(port).card.gbps * 1e9
        folder, netdev = self.link.folder, self.link.netdev
        self.counters = PortCounters(plan, port, folder, netdev)
        self._page = page
        self._clock = clock
        self._parts: dict[What, dict[object, float]] = {}
        self._muted: set[What] = set()
        self._wraps: dict[Counter, float] = {}

    # Numbers

    def pace(self, t: float, what: What, rate: float, part: object = None) -> None:
        """Let what is counted move so fast, as far as this ``part`` is concerned."""
        counters = self.counters.of(what)
        if not counters:
            return
        parts = self._parts.setdefault(what, {})
        if rate:
            parts[part] = rate
        else:
            parts.pop(part, None)
        if what in self._muted:
            return
        rate = sum(parts.values())
        for counter in counters:
            if counter.pace(t, rate):
                self._write(counter)

    def add(self, t: float, what: What, amount: int) -> None:
        """Count so many at once."""
        if what in self._muted:
            return
        for counter in self.counters.of(what):
            if amount and counter.add(t, amount):
                self._write(counter)

    def put(self, t: float, what: What, value: int | None) -> None:
        """Let a number stand at a value; None: at its ceiling."""
        if what in self._muted:
            return
        for counter in self.counters.of(what):
            top = counter.ceiling or (1 << 64) - 2
            counter.put(t, top if value is None else value)
            self._write(counter)

    def put_in(self, t: float, what: What, areas: tuple[Area, ...], to: int) -> None:
        """Let the numbers of these areas that count this stand at a value."""
        for counter in self.counters.of(what):
            if self.counters.area_of(counter) in areas:
                counter.settle(t)
                counter.put(t, to)
                self._write(counter)

    def reset(self, t: float, areas: tuple[Area, ...], to: int = 0) -> None:
        """Let all numbers of these areas fall."""
        for area in areas:
            for counter in self.counters.areas[area]:
                counter.settle(t)
                counter.put(t, to)
                self._write(counter)

    def mute(self, t: float, what: What) -> None:
        """Let a number stand still, whatever happens."""
        for counter in self.counters.of(what):
            if counter.pace(t, 0.0):
                self._write(counter)
        self._muted.add(what)

    def unmute(self, t: float, what: What) -> None:
        """Let it count again."""
        self._muted.discard(what)
        self._again(t, what)

    def switch(self, t: float, what: What, name: str, other: str) -> None:
        """Let the driver statistic ``other`` count what ``name`` counted."""
        listed = self.counters.of(what)
        for counter in self.counters.areas[Area.NETDEV]:
            if counter.spot.name == name and counter in listed:
                listed.remove(counter)
                if counter.pace(t, 0.0):
                    self._write(counter)
            elif counter.spot.name == other and counter not in listed:
                listed.append(counter)
        self._again(t, what)

    def _again(self, t: float, what: What) -> None:
        rate = sum(self._parts.get(what, {}).values())
        for counter in self.counters.of(what):
            if counter.pace(t, rate):
                self._write(counter)

    def is_table(self, what: What) -> bool:
        """Tell whether a number stands in a table, which no ramp can move."""
        return any(isinstance(each, Table) for each in self.counters.of(what))

    def show_all(self, t: float) -> None:
        """Write every number as it stands and goes on."""
        for counters in self.counters.areas.values():
            for counter in counters:
                counter.settle(t)
                self._write(counter)

    def _write(self, counter: Counter) -> None:
        if self.frozen or not self.link.present:
            return
        if counter.spot.name is not None and not self.link.has_netdev:
            return
        self._page.number(counter)
        self._wait_for_wrap(counter)

    def _wait_for_wrap(self, counter: Counter) -> None:
        """Come back when the counter is full; one that slows down is asked again."""
        wrap = counter.wraps_at()
        if wrap < self._wraps.get(counter, inf):
            self._wraps[counter] = wrap
            self._clock.at(whole(wrap), lambda t: self._wrap(t, counter))

    def _wrap(self, t: float, counter: Counter) -> None:
        self._wraps.pop(counter, None)
        if counter.wraps_at() <= t:
            self.show(t, counter)
        else:
            self._wait_for_wrap(counter)

    def counter_at(self, path: str) -> Counter | None:
        """Return the counter that stands in a file, None if none does."""
        found = (each for many in self.counters.areas.values() for each in many)
        return next((each for each in found if each.spot.path == path), None)

    def show(self, t: float, counter: Counter) -> None:
        """Write a counter as it stands and goes on."""
        counter.settle(t)
        self._write(counter)

    def freeze(self, t: float) -> None:
        """Let every number stand still, whatever it counts."""
        for counters in self.counters.areas.values():
            for counter in counters:
                rate = counter.rate
                if rate:
                    counter.pace(t, 0.0)
                    self._page.number(counter)
                    counter.pace(t, rate / counter.share)
        self.frozen = True

    def thaw(self, t: float) -> None:
        """Let the numbers go on."""
        self.frozen = False
        self.show_all(t)

    # The device

    def come_back(self, t: float, folder: str, name: str, *, keeps_pma: bool) -> None:
        """Be there again as another instance, perhaps with another name."""
        before = self.link.folder
        for counters in self.counters.areas.values():
            for counter in counters:
                if counter.spot.path.startswith(f"{before}/"):
                    tail = counter.spot.path.removeprefix(before)
                    counter.spot = Spot(folder + tail)
        self.link.folder, self.name, self.link.present = folder, name, True
        areas = (Area.HARDWARE, Area.NETDEV)
        self.reset(t, areas if keeps_pma else (*areas, Area.PMA))
        self.show_all(t)
        self.link.begin_anew()

    def reboot(self, t: float, downs: int) -> None:
        """Count from 0, with ``downs`` link losses while it trained."""
        self.reset(t, tuple(Area))
        self.put(t, Meter.LINK_DOWNS, downs)
        self.link.begin_anew()

    def netdev_returns(self, t: float) -> None:
        """Show the network device again, with what it has counted."""
        self.link.has_netdev = True
        self.link.show_carrier()
        for counter in self.counters.areas[Area.NETDEV]:
            self.show(t, counter)
