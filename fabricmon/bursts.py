"""Short windows of fast samples, and what each says of a port: how busy, how fast.

A mean over 15 s cannot show a straggler: in a synchronous job it is the same on every
rail. A few samples a second for a few seconds can. All rails of a node are sampled in
the same windows, which lie on the grid of the schedule.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import inf

from fabricmon.config import Config
from fabricmon.inventory import Inventory
from fabricmon.model import (
    Burst,
    BurstSample,
    Outcome,
    PortId,
    PortInfo,
    Repeats,
    Role,
)
from fabricmon.observed import ObservedPorts
from fabricmon.schedule import Entry, Schedule

SOURCE = "burst"
"""Name of the source whose samples come here."""

RECEIVED = "received"
TRANSMITTED = "transmitted"

_BITS = 8
_GIGA = 1e9
_MILLI = 1e-3
_IDLE_SAMPLES = 1  # an idle port costs so many reads a window
_LEAST_SAMPLES = 2
_BETWEEN_RESTS = 4  # graces: jobs that begin every minute do not blind the node
_RAILS = frozenset({Role.COMPUTE, Role.UNKNOWN})


@dataclass(slots=True)
class _Device:
    """The window that a device is in."""

    samples: dict[PortId, list[BurstSample]] = field(default_factory=dict)
    before: dict[PortId, BurstSample] = field(default_factory=dict)
    taken: int = 0
    began: float = 0.0
    rests_until: float = -inf
    pauses: bool = False

    def start(self, at: float) -> None:
        """Begin a window; what the last one ended with stays known."""
        self.before.update((p, kept[-1]) for p, kept in self.samples.items() if kept)
        self.samples = {}
        self.taken, self.began = 0, at

    def add(self, outcome: Outcome) -> None:
        """Add one sample of each port."""
        self.taken += 1
        for sample in outcome.records:
            if isinstance(sample, BurstSample):
                self.samples.setdefault(sample.port, []).append(sample)

    def judged(self) -> Iterator[Sequence[BurstSample]]:
        """Yield the samples of each port; alone, the last one before stands with it."""
        for port, kept in self.samples.items():
            yield kept if len(kept) > 1 else [*self._last(port), *kept]

    def _last(self, port: PortId) -> Sequence[BurstSample]:
        return [self.before[port]] if port in self.before else []

    def is_idle(self) -> bool:
        """Tell whether nothing moved on any port since the window before."""
        return all(
            port in self.before and _moved(self.before[port], kept[-1]) == 0
            for port, kept in self.samples.items()
        )


def is_sample(outcome: Outcome) -> bool:
    """Tell a sample of a burst: whoever takes it works out the roles of all ports.

    So it is fed after what they follow from; a thousand devices that appear together
    would otherwise each have the roles worked out anew.
    """
    return outcome.job.source == SOURCE


class Bursts:
    """Gathers samples into windows and paces the source that takes them."""

    def __init__(
        self,
        config: Config,
        schedule: Schedule,
        inventory: Inventory,
        observed: ObservedPorts,
    ) -> None:
        """Start without any window; the last two tell roles and line rates."""
        self._limits = config.bursts
        self._step = config.periods.burst_seconds
        self._slack = self._step / 2  # the last sample may come a little early
        self._schedule = schedule
        self._inventory = inventory
        self._observed = observed
        self._devices: dict[str, _Device] = {}
        self._newest: dict[PortId, tuple[Burst, ...]] = {}
        self._windows: tuple[Burst, ...] | None = ()
        self._ports: tuple[PortInfo, ...] = ()
        self._wanted: frozenset[str] = frozenset()
        self._suspected_until = -inf
        self._settles_until = -inf
        self._job_starts = 0
        self._look_again = -inf
        self.layout = 0
        self.repeats = False
        """Whether the reader takes the samples of a window by itself."""

    @property
    def windows(self) -> tuple[Burst, ...]:
        """The newest complete window of each port and direction."""
        if self._windows is None:
            kept = self._newest.values()
            self._windows = tuple(burst for bursts in kept for burst in bursts)
        return self._windows

    def suspect(self, since: float) -> None:
        """Sample without pause for a while after ``since``, when suspicion arose."""
        until = since + self._limits.suspicion_seconds
        self._suspected_until = max(self._suspected_until, until)

    def keep_up(self, now: float, job_starts: int) -> None:
        """Rest while a job that has just begun connects; drop windows that are old.

        They are of ports that were not sampled for long: their device rests or hangs.
        """
        if job_starts != self._job_starts:
            self._job_starts = job_starts
            grace = self._limits.job_grace_seconds
            if now >= self._settles_until + _BETWEEN_RESTS * grace:
                self._settles_until = now + grace
        if now < self._look_again:
            return
        keep = self._limits.patience_seconds
        ends = {port: kept[-1].ended for port, kept in self._newest.items() if kept}
        for port in [port for port, ended in ends.items() if now - ended > keep]:
            del self._newest[port], ends[port]
            self._windows = None
            self.layout += 1
        self._look_again = min(ends.values(), default=now) + keep

    def forget(self, device: str) -> None:
        """Forget a device that is gone."""
        self._devices.pop(device, None)
        for port in [port for port in self._newest if port.device == device]:
            del self._newest[port]
            self._windows = None
            self.layout += 1

    def take(self, entry: Entry, outcome: Outcome) -> bool:
        """Take one sample of each port of a device; True where a window is complete."""
        now, name = outcome.ended, entry.target.name
        device = self._devices.setdefault(name, _Device())
        if outcome.job.repeats is None:
            device.pauses = False
        elif device.pauses:
            return False  # a late one of a window that is over begins no other
        slow = entry.duration > self._limits.slow_read_milliseconds * _MILLI
        if slow and device.taken:  # the first read opens the files
            device.rests_until = now + self._limits.slow_rest_seconds
        resting = now < max(device.rests_until, self._settles_until)
        if resting or not self._wants(name):
            self._pause(entry, device, now)
            return False
        if not device.taken:
            device.start(now)
        device.add(outcome)
        # Under suspicion windows follow each other, in step only if all are whole.
        suspected = now < self._suspected_until
        idle = device.taken == _IDLE_SAMPLES and device.is_idle() and not suspected
        if not idle and now - device.began < self._limits.window_seconds - self._slack:
            self._go_on(entry, device, outcome)
            return False
        done = self._finish(device)
        if idle or not suspected:
            self._pause(entry, device, now)
        else:
            device.start(now)
            self._go_on(entry, device, outcome)
        return done

    def _wants(self, name: str) -> bool:
        """Tell whether a device has ports that form rails, or may."""
        ports = self._inventory.ports()
        if ports is not self._ports:  # the same ones until something changes
            self._ports = ports
            rails = (port for port in ports if port.role in _RAILS)
            self._wanted = frozenset(port.id.device for port in rails)
        return self._limits.enabled and name in self._wanted

    def _go_on(self, entry: Entry, device: _Device, outcome: Outcome) -> None:
        """Take more samples, until the window is complete."""
        now = outcome.ended
        if not self.repeats:
            self._aim(entry, self._step, now)
            return
        if outcome.follower is not None:
            return  # they are being taken
        first = self._schedule.next_on_grid(self._step, now)
        began = device.began if device.taken else first
        until = began + self._limits.window_seconds + self._slack
        slow = self._limits.slow_read_milliseconds * _MILLI
        entry.repeat(Repeats(first, self._step, until, slow))
        self._schedule.set_period(entry, self._step, now)
        self._schedule.postpone(entry, now)

    def _pause(self, entry: Entry, device: _Device, now: float) -> None:
        device.start(now)
        device.pauses = True
        self._aim(entry, self._limits.every_seconds, now, self._limits.lag_seconds)

    def _aim(self, entry: Entry, period: float, now: float, lag: float = 0.0) -> None:
        if not lag and period == entry.period and entry.due > now:
            return  # it is due at the next moment of this grid already
        entry.repeat(None)
        due = self._schedule.next_on_grid(period, now - lag) + lag
        self._schedule.set_period(entry, period, now)
        self._schedule.postpone(entry, due)

    def _finish(self, device: _Device) -> bool:
        """Judge the window of every port; True where there is something to tell."""
        for samples in device.judged():
            port = samples[0].port
            status = self._observed.port(port).status
            gbps = None if status is None else status.rate.gbps
            if gbps and len(samples) >= _LEAST_SAMPLES:
                floor = self._limits.busy_ratio * gbps * _GIGA / _BITS
                found = tuple(_judge(samples, floor))
                self.layout += len(found) != len(self._newest.get(port, ()))
                self._newest[port] = found
                self._windows = None
        return bool(device.samples)


def _moved(old: BurstSample, new: BurstSample) -> int | None:
    """Return the bytes between two samples, None where a counter fell or is absent."""
    total = 0
    for before, after in (
        (old.received, new.received),
        (old.transmitted, new.transmitted),
    ):
        if before is None or after is None or after < before:
            return None
        total += after - before
    return total


def _judge(samples: Sequence[BurstSample], floor: float) -> Iterator[Burst]:
    """Judge both directions of one port; ``floor`` is what counts as busy, bytes/s."""
    at = [sample.at for sample in samples]
    for direction, values in (
        (RECEIVED, [sample.received for sample in samples]),
        (TRANSMITTED, [sample.transmitted for sample in samples]),
    ):
        rates = _rates(at, values)
        if not rates:
            continue
        known = [value for value in values if value is not None]
        busy = [rate > floor for rate in rates]
        first = busy.index(True) if True in busy else len(busy)
        last = len(busy) - busy[::-1].index(True) if True in busy else 0
        within = busy[first:last]
        gaps = sum(before and not after for before, after in pairwise(within))
        yield Burst(
            port=samples[0].port,
            direction=direction,
            began=at[0],
            ended=at[-1],
            samples=len(samples),
            busy=sum(busy) / len(busy),
            p99=percentile(rates, 0.99),
            mean=(known[-1] - known[0]) / (at[-1] - at[0]),
            idle_gaps=gaps,
        )


def _rates(at: Sequence[float], values: Sequence[int | None]) -> list[float]:
    """Return bytes per second between samples; none where one fell or is absent."""
    rates = []
    for number in range(1, len(at)):
        before, after = values[number - 1], values[number]
        seconds = at[number] - at[number - 1]
        if before is None or after is None or after < before or seconds <= 0:
            return []
        rates.append((after - before) / seconds)
    return rates


def percentile(values: Sequence[float], share: float) -> float:
    """Return the value below which ``share`` of them lie, between neighbours linear."""
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)
