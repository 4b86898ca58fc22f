"""Steps got longer while the network idles and is clean: ``not_network`` (F53).

What is followed is how much of the time a job sends: its bytes of a minute over the
rate at which its rails run. Longer computing lowers that share on all rails alike and
leaves the rate as it was. Means decide nothing else here (``health-systems`` 4.2).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from statistics import fmean, median

from msgspec import field

from fabricmon.catalogue import Signal
from fabricmon.config import Stragglers
from fabricmon.detect.rail_bytes import mean_rate
from fabricmon.detect.rail_windows import is_rail
from fabricmon.detect.wording import clock
from fabricmon.model import (
    Action,
    Evidence,
    Finding,
    Mark,
    Part,
    Severity,
    Subject,
    View,
)
from fabricmon.summaries import one_line
from fabricmon.value import State

MINUTE_SECONDS = 60.0

_PAST_MINUTES = 60  # of a job that its past is made of
_RATES = 12  # newest rates of windows that a minute's rate is taken of
_BACK = 0.05  # how far above the limit the share must be for it to be over
_STALLS = (Signal.ACK_TIMEOUT, Signal.RETRIES_EXCEEDED, Signal.DISCARD)
"""One timer that runs out holds a rail for 4 s and leaves its rate as it was."""


class _Past(State):
    """Shares of time that were busy, and rates, minute by minute."""

    busy: deque[float] = field(default_factory=lambda: deque(maxlen=_PAST_MINUTES))
    rate: deque[float] = field(default_factory=lambda: deque(maxlen=_PAST_MINUTES))


class ComputePace:
    """Follows one job: how much of the time all its rails send."""

    def __init__(self, limits: Stragglers) -> None:
        """Start without a past."""
        self._limits = limits
        self._past = _Past()
        self._low: deque[tuple[float, float]] = deque(maxlen=limits.compute_minutes)
        self._rates: deque[float] = deque(maxlen=_RATES)
        self._minute: float | None = None
        self._began = 0.0
        self._finding: Finding | None = None

    def note_rate(self, p99: float) -> None:
        """Take the rate of the usual rail in a window in which it was busy."""
        self._rates.append(p99)

    def judge(self, view: View) -> Finding | None:
        """Look once a minute; return the finding while it holds."""
        if self._minute is None:
            self._minute = view.now
        if view.now - self._minute < MINUTE_SECONDS:
            return self._finding
        self._minute = view.now
        if view.gap_seconds is None and self._rates:
            self._look(view)
        return self._finding

    def _look(self, view: View) -> None:
        sent = list(_sent(view))
        if len(sent) < self._limits.least_rails:
            return
        rate = median(self._rates)
        busy = median(sent) / rate if rate else 0.0
        past = self._past
        if len(past.busy) < self._limits.compute_past_minutes:
            self._learn(busy, rate)
            return
        usual, usual_rate = median(past.busy), median(past.rate)
        if busy < self._limits.pause_ratio * usual:
            return  # a pause or a checkpoint fills most of the minute
        limit = self._limits.compute_ratio * usual
        if busy > limit + (_BACK * usual if self._finding else 0.0):
            self._low.clear()
            self._finding = None
            self._learn(busy, rate)
            return
        if not self._low:
            self._began = view.now - MINUTE_SECONDS
        self._low.append((busy, rate))
        if len(self._low) >= self._limits.compute_minutes:
            self._finding = self._tell(view, usual, usual_rate)

    def _learn(self, busy: float, rate: float) -> None:
        if busy > 0:
            self._past.busy.append(busy)
            self._past.rate.append(rate)

    def _tell(self, view: View, usual: float, usual_rate: float) -> Finding | None:
        limits = self._limits
        busy = fmean(each for each, _ in self._low)
        rate = median(each for _, each in self._low)
        if rate < limits.compute_rate_ratio * usual_rate:
            return None  # the network is slower too
        if _has_stalled(view, limits.compute_minutes * MINUTE_SECONDS):
            return None  # it is not clean
        began = self._began
        seconds = round(view.now - began, 1)
        down = 1 - busy / usual
        return Finding(
            kind="not_network",
            subject=Subject(),
            onset=began + view.onset_offset,
            evidence=(
                Evidence(
                    "busy_ratio",
                    round(busy, 3),
                    "ratio",
                    "traffic and bursts",
                    round(limits.compute_ratio * usual, 3),
                    seconds,
                ),
                Evidence(
                    "rate_ratio",
                    round(rate / usual_rate, 2),
                    "ratio",
                    "bursts",
                    limits.compute_rate_ratio,
                    seconds,
                ),
            ),
            summary=one_line(
                f"steps got longer since {clock(began + view.onset_offset)}: all rails "
                f"send {down:.0%} less of the time, as fast as before: not the network"
            ),
            severity=Severity.INFO,
            part=Part.OBSERVER,
            action=Action.NONE,
            confidence=0.7,
        )


def _has_stalled(view: View, seconds: float) -> bool:
    """Tell whether a rail counted anything that holds it up without slowing it."""
    return any(
        delta.mark is Mark.OK and delta.increase > 0
        for port in view.ports
        if is_rail(port)
        for signal in _STALLS
        for spec in view.counters.by_signal(port.info.id, signal)
        if (delta := view.counters.delta(port.info.id, spec, seconds)) is not None
    )


def _sent(view: View) -> Iterator[float]:
    """Yield the bytes per second that each rail sent in the last minute."""
    for port in view.ports:
        if is_rail(port):
            signal = Signal.BYTES_TRANSMITTED
            rate = mean_rate(port.info.id, signal, MINUTE_SECONDS, view)
            if rate is not None:
                yield rate
