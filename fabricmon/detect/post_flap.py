"""Links that came back while their traffic did not: ``post_flap_degraded``.

After a flap the connections that were made before go on at a fraction, with long
pauses, until they are made anew (``faults``, F51). A job that ended looks alike on the
port alone; so the port is held against the other rails, which must be busy.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from statistics import median

from msgspec import field

from fabricmon.catalogue import CounterSpec, Signal
from fabricmon.config import Config
from fabricmon.detect.counter_sense import OUTAGE_SIGNALS
from fabricmon.detect.evidence import source_of
from fabricmon.detect.wording import clock, subject_of
from fabricmon.model import (
    Blindness,
    Evidence,
    Finding,
    PortId,
    PortView,
    Role,
    Severity,
    View,
)
from fabricmon.parse.words import PortState
from fabricmon.summaries import one_line
from fabricmon.value import State, Value

KIND = "post_flap_degraded"
REMEMBERED = 8
"""Busy windows that say what was usual before."""
LAST = 4
"""Windows that are judged."""
FEW = 2
"""Slow ones among them that keep a finding, or open it where timers run out too."""
LEAST_SAMPLES = 5
"""Samples of a window that show a rate and no mean over an idle time."""
LEAST_RAILS = 2
"""Busy rails that a port can be held against."""
MEAN_SECONDS = 60.0
"""Window of the mean rate, which stands in where no bursts are taken."""

_BITS = 8
_GIGA = 1e9
_BYTES = (Signal.BYTES_TRANSMITTED, Signal.BYTES_RECEIVED)


class _Rate(Value, frozen=True):
    """How fast a port was in a window that ended at ``at``; bytes per second."""

    at: float
    value: float


class _Port(State):
    """A port, what was usual before it flapped, and what came after."""

    usual: deque[float] = field(default_factory=lambda: deque(maxlen=REMEMBERED))
    newest: _Rate | None = None
    is_down: bool = False
    back: float | None = None
    slow: deque[bool] = field(default_factory=lambda: deque(maxlen=LAST))
    rails: float = 0.0
    timeouts: int = 0
    timer: CounterSpec | None = None
    told: bool = False

    def fall(self) -> None:
        """Begin an outage."""
        self.is_down, self.back, self.told = True, None, False

    def rise(self, at: float) -> None:
        """Have a link again since ``at``."""
        self.is_down, self.back = False, at
        self.slow.clear()
        self.timeouts = 0

    @property
    def before(self) -> float | None:
        """What was usual, None if the port was not busy."""
        return median(self.usual) if self.usual else None


class PostFlap:
    """Follows the rates of rails, and holds one that flapped against the others."""

    def __init__(self, config: Config) -> None:
        """Take ``post_flap_*`` of ``transport`` and what counts as busy."""
        self._limits = config.transport
        self._busy = config.bursts.busy_ratio
        self._bursts = config.bursts.enabled
        self._ports: dict[PortId, _Port] = {}
        self._windows: object = None
        self._measured_at = 0.0

    def judge(self, view: View) -> Iterator[Finding]:
        """Yield the ports that are back and slow."""
        self._note(view)
        if self._is_new(view):
            self._measure(view)
        for port in view.ports:
            known = self._ports.get(port.info.id)
            if known is None or known.back is None:
                continue
            if self._holds(known, view.now):
                yield self._tell(port, known, view)

    def blind(self, view: View) -> Iterator[Blindness]:
        """Without bytes, or with few rails, there is no traffic to compare."""
        ports = [p.info.id for p in view.ports if p.info.role is Role.COMPUTE]
        counted = any(view.counters.by_signal(p, s) for p in ports for s in _BYTES)
        if ports and not counted:
            yield Blindness(KIND, "no counter of bytes can be read")
        elif ports and len(ports) <= LEAST_RAILS:
            yield Blindness(KIND, f"{len(ports)} rails: too few to compare")

    def _note(self, view: View) -> None:
        """Take in outages, and timers that ran out after one."""
        for move in view.moves:
            if move.increase <= 0 or move.previous is None:
                continue
            if move.spec.signal in OUTAGE_SIGNALS:
                known = self._ports.setdefault(move.port, _Port())
                if not known.is_down:
                    known.fall()
                    known.rise(move.at)
            elif move.spec.signal is Signal.ACK_TIMEOUT and move.port in self._ports:
                known = self._ports[move.port]
                known.timeouts += move.increase
                known.timer = move.spec
        for status in view.statuses:
            if status.state not in (PortState.ACTIVE, None):
                self._ports.setdefault(status.port, _Port()).fall()
            elif status.state is not None and status.port in self._ports:
                known = self._ports[status.port]
                if known.is_down:
                    known.rise(status.at)

    def _is_new(self, view: View) -> bool:
        """Tell whether there are windows that were not seen yet."""
        if view.bursts or self._bursts:
            new = view.bursts is not self._windows
            self._windows = view.bursts
            return new and bool(view.bursts)
        return view.now - self._measured_at >= MEAN_SECONDS / 2

    def _measure(self, view: View) -> None:
        self._measured_at = view.now
        lines = {
            p.info.id: p.status.rate.gbps * _GIGA / _BITS
            for p in view.ports
            if p.info.role is Role.COMPUTE and p.status and p.status.rate.gbps
        }
        rates = _of_bursts(view) if view.bursts else _means(view, lines)
        new: dict[PortId, _Rate] = {}
        for port, rate in rates.items():
            known = self._ports.setdefault(port, _Port()) if port in lines else None
            if known is not None and (
                known.newest is None or rate.at > known.newest.at
            ):
                known.newest = new[port] = rate
        for port, rate in new.items():
            self._compare(port, rate, lines)

    def _compare(self, port: PortId, rate: _Rate, lines: dict[PortId, float]) -> None:
        """Hold a port against the rails that were busy in the same window."""
        known = self._ports[port]
        others = [
            each.newest.value
            for other, each in self._ports.items()
            if other != port
            and other in lines
            and each.newest is not None
            and abs(each.newest.at - rate.at) < MEAN_SECONDS / 2
            and (each.back is None or rate.at - each.back > self._follow)
            and each.newest.value >= self._busy * lines[other]
        ]
        if len(others) < LEAST_RAILS:
            return
        rails, least = median(others), self._limits.post_flap_ratio
        before = known.before
        slow = rate.value < least * rails
        slow = slow and (before is None or rate.value < least * before)
        if known.back is not None and rate.at > known.back:
            known.slow.append(slow)
            known.rails = rails
        if not slow and not known.is_down:
            known.usual.append(rate.value)

    @property
    def _follow(self) -> float:
        return self._limits.post_flap_seconds

    def _holds(self, known: _Port, now: float) -> bool:
        """Tell whether a port is slow since it is back; it must begin soon after."""
        if known.back is None or known.newest is None:
            return False
        slow = sum(known.slow)
        if known.told:
            known.told = slow >= FEW and now - known.newest.at < self._follow
        elif now - known.back < self._follow and (known.timeouts or known.usual):
            # Slower than the rails alone is not enough: another job may use them.
            least = FEW if known.timeouts else self._limits.post_flap_windows
            known.told = slow >= least
        return known.told

    def _tell(self, port: PortView, known: _Port, view: View) -> Finding:
        onset = (known.back or view.now) + view.onset_offset
        value = known.newest.value if known.newest else 0.0
        share = value / known.rails if known.rails else 0.0
        return Finding(
            kind=KIND,
            subject=subject_of(port.info),
            onset=onset,
            evidence=tuple(self._evidence(port, known, value, view.now)),
            summary=one_line(
                f"{port.info.id} is back since {clock(onset)} at {share:.0%} of its "
                f"rails: its connections are stale, the link is not slow"
            ),
            severity=Severity.WARNING,
            confidence=0.9 if known.timeouts else 0.7,
        )

    def _evidence(
        self, port: PortView, known: _Port, value: float, now: float
    ) -> Iterator[Evidence]:
        name = "p99_rate" if self._bursts else "mean_rate"
        limit = round(self._limits.post_flap_ratio * known.rails)
        yield Evidence(name, round(value), "bytes/s", "fabricmon", limit)
        if known.before is not None:
            before = round(known.before)
            yield Evidence(f"{name}_before", before, "bytes/s", "fabricmon")
        yield Evidence(
            "slow_windows", sum(known.slow), "windows", "fabricmon", len(known.slow)
        )
        if known.timer is not None:
            yield Evidence(
                known.timer.file,
                known.timeouts,
                "events",
                source_of(port.info, known.timer),
                window_seconds=round(now - (known.back or now), 1),
            )


def _of_bursts(view: View) -> dict[PortId, _Rate]:
    """Return the fastest of both directions in the newest windows."""
    found: dict[PortId, _Rate] = {}
    for burst in view.bursts:
        if burst.samples < LEAST_SAMPLES:
            continue
        known = found.get(burst.port)
        if known is None or burst.p99 > known.value:
            found[burst.port] = _Rate(burst.ended, burst.p99)
    return found


def _means(view: View, lines: dict[PortId, float]) -> dict[PortId, _Rate]:
    """Return mean rates of the last minute."""
    found: dict[PortId, _Rate] = {}
    for port in lines:
        values = [
            delta.increase * spec.factor / delta.seconds
            for signal in _BYTES
            for spec in view.counters.by_signal(port, signal)
            if (delta := view.counters.delta(port, spec, MEAN_SECONDS)) is not None
            and delta.seconds > 0
        ]
        if values:
            found[port] = _Rate(view.now, max(values))
    return found
