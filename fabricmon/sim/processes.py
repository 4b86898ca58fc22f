"""What moves the numbers of a port besides its traffic: events by chance, gauges."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from math import inf
from random import Random

from fabricmon.sim.counter_files import What
from fabricmon.sim.counters import FAST, Hazard, chunk_seconds, noisy
from fabricmon.sim.draw import poisson
from fabricmon.sim.meters import Meter, Per
from fabricmon.sim.port import Clock, Port
from fabricmon.sim.traffic import whole

_numbers = count()


@dataclass(frozen=True, slots=True)
class Course:
    """A mean rate of events, per what, from ``begin`` to ``end``."""

    what: What
    rate: float
    begin: float = 0.0
    end: float = inf
    per: Per = Per.SECOND
    even: bool = False


class Process:
    """A course on a port: single events while it is slow, noisy ramps while fast."""

    def __init__(
        self, port: Port, course: Course, random: Random, clock: Clock
    ) -> None:
        self._port = port
        self._course = course
        self._random = random
        self._clock = clock
        self._hazard = Hazard(random)
        self._version = 0
        self._is_ramp = False
        self._runs = False
        self._rate = 0.0

    def start(self, t: float) -> None:
        """Begin, and end when the course does; nothing where nothing counts it."""
        if not self._port.counters.of(self._course.what):
            return
        self._runs = True
        if self._course.per is not Per.SECOND:
            self._port.on_traffic.append(self.refresh)
        if self._course.end < inf:
            self._clock.at(self._course.end, self.stop)
        self.refresh(t)

    def stop(self, t: float) -> None:
        """End."""
        self._runs = False
        if self._course.per is not Per.SECOND:
            self._port.on_traffic.remove(self.refresh)
        self.refresh(t)

    def refresh(self, t: float) -> None:
        """Take over the rate as the traffic now has it."""
        self._version += 1
        rate = self._rate_now()
        self._rate = rate
        fast = self._course.even or rate >= FAST
        if fast and self._port.is_table(self._course.what):
            self._chunk(t, first=True)
            return
        if self._is_ramp and not fast:
            self._port.pace(t, self._course.what, 0.0, self)
            self._is_ramp = False
        if fast:
            self._hazard.change(t, 0.0)
            self._ramp(t)
        else:
            self._wait(self._hazard.change(t, rate), self._event)

    def _rate_now(self) -> float:
        if not self._runs:
            return 0.0
        rate, port = self._course.rate, self._port
        match self._course.per:
            case Per.SECOND:
                return rate
            case Per.BUSY_SECOND:
                return rate if port.busy else 0.0
            case Per.PACKET_RECEIVED:
                return rate * port.packets_received
            case Per.PACKET_SENT:
                return rate * port.packets_sent

    def _wait(self, t: float, action: Callable[[float], None]) -> None:
        """Call an action at ``t``, unless the rate has changed by then."""
        if t == inf:
            return
        version = self._version

        def act(now: float) -> None:
            if self._version == version:
                action(now)

        self._clock.at(whole(t), act)

    def _event(self, t: float) -> None:
        self._port.add(t, self._course.what, 1)
        self._wait(self._hazard.take(t), self._event)

    def _ramp(self, t: float) -> None:
        self._is_ramp = True
        if self._course.even or self._rate == 0:
            self._port.pace(t, self._course.what, self._rate, self)
            return
        seconds = chunk_seconds(self._rate)
        rate = noisy(self._random, self._rate, seconds)
        self._port.pace(t, self._course.what, rate, self)
        self._wait(t + seconds, self._ramp)

    def _chunk(self, t: float, *, first: bool = False) -> None:
        """Count what a table cannot show as a ramp, now and then."""
        seconds = max(1.0, FAST / self._rate) if self._rate else inf
        if not first:
            amount = poisson(self._random, self._rate * seconds)
            self._port.add(t, self._course.what, amount)
        self._wait(t + seconds, self._chunk)


def gauge(
    port: Port, meter: Meter, value: int, *, only_busy: bool
) -> Callable[[float], None]:
    """Return what shows a gauge as the traffic has it."""

    def show(t: float) -> None:
        port.put(t, meter, value if port.busy or not only_busy else 0)

    return show
