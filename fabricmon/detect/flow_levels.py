"""How much congestion each port shows: rates and shares of time over a window.

Signals, not names: what a driver does not count is not there, and is never zero.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import StrEnum

from fabricmon.catalogue import CounterSpec, Signal
from fabricmon.config import Congestion
from fabricmon.detect.evidence import source_of
from fabricmon.model import Evidence, Mark, PortView, View
from fabricmon.value import Value

_BITS = 8
_GIGA = 1e9
PAUSE_BITS = 65535 * 512
"""Bit times of one longest pause: 65 535 quanta of 512 (IEEE 802.3, annex 31B)."""


class Measure(StrEnum):
    """What is measured of a port."""

    MARKED = "packets marked by the network"
    NOTIFIED = "congestion notifications sent"
    SLOWED = "congestion notifications obeyed"
    IGNORED = "congestion notifications ignored"
    PAUSE_SENT = "pause sent"
    PAUSE_RECEIVED = "pause received"
    WAITED = "waiting for credit"


_RATES = {
    Signal.ECN_MARKED: Measure.MARKED,
    Signal.CNP_SENT: Measure.NOTIFIED,
    Signal.CNP_HANDLED: Measure.SLOWED,
    Signal.CNP_IGNORED: Measure.IGNORED,
}
_TIMES = {
    Signal.PAUSE_TRANSMITTED_TIME: Measure.PAUSE_SENT,
    Signal.PAUSE_RECEIVED_TIME: Measure.PAUSE_RECEIVED,
}
_FRAMES = {
    Signal.PAUSE_TRANSMITTED: Measure.PAUSE_SENT,
    Signal.PAUSE_RECEIVED: Measure.PAUSE_RECEIVED,
}
_TIME_OF = {
    Signal.PAUSE_TRANSMITTED: Signal.PAUSE_TRANSMITTED_TIME,
    Signal.PAUSE_RECEIVED: Signal.PAUSE_RECEIVED_TIME,
}
WATCHED = frozenset({*_RATES, *_TIMES, *_FRAMES, Signal.TRANSMIT_WAIT})
"""Signals of which levels are made."""

SIGNALS = {
    measure: tuple(
        signal
        for table in (_RATES, _TIMES, _FRAMES, {Signal.TRANSMIT_WAIT: Measure.WAITED})
        for signal, each in table.items()
        if each is measure
    )
    for measure in Measure
}
"""The signals of each measure; any of them will do."""


class Level(Value, frozen=True):
    """A value per second, or a share of time, and the counter that says most of it."""

    value: float
    spec: CounterSpec
    increase: int
    seconds: float
    at_least: bool = False  # the counter reached its ceiling meanwhile
    at_most: bool = False  # frames alone: each is taken for the longest possible

    @property
    def bound(self) -> str:
        """Say which way the value may be wrong; empty if it is what was measured."""
        if self.at_least:
            return "at least "
        return "at most " if self.at_most else ""

    @property
    def fills(self) -> bool:
        """Tell whether it went through half of its counter's field in the window."""
        return 2 * self.increase >= 1 << self.spec.width

    def evidence(self, port: PortView, threshold: float | None = None) -> Evidence:
        """Return the counter's increase, as evidence."""
        return Evidence(
            self.spec.file,
            self.increase,
            "us" if self.spec.signal in _TIMES else "events",
            source_of(port.info, self.spec),
            threshold,
            round(self.seconds, 1),
        )


Levels = dict[Measure, Level]


def levels_of(
    port: PortView,
    moved: Iterable[CounterSpec],
    seconds: float,
    config: Congestion,
    view: View,
) -> Levels:
    """Return what a port shows over ``seconds``; ``moved`` are counters that moved."""
    line = line_rate(port)
    found: Levels = {}
    for spec in moved:
        delta = view.counters.delta(port.info.id, spec, seconds)
        if delta is None or delta.seconds <= 0 or delta.increase <= 0:
            continue
        if _is_told_in_time(port, spec, view):
            continue
        at_ceiling = delta.mark is Mark.SATURATED
        rate = delta.increase / delta.seconds
        for measure, value in _measured(spec, rate, line, config):
            known = found.get(measure)
            if known is None or value > known.value:
                found[measure] = Level(
                    value,
                    spec,
                    delta.increase,
                    delta.seconds,
                    at_ceiling,
                    at_most=spec.signal in _FRAMES,
                )
    return found


def line_rate(port: PortView) -> float | None:
    """Return the bits per second of a port's link, None where they are not known."""
    gbps = port.status.rate.gbps if port.status else None
    return None if not gbps else gbps * _GIGA


def load_of(port: PortView, seconds: float, view: View, signal: Signal) -> float | None:
    """Return the share of the line rate that is carried, None where nobody counts."""
    line = line_rate(port)
    if line is None:
        return None
    shares = [
        delta.increase * spec.factor * _BITS / delta.seconds / line
        for spec in view.counters.by_signal(port.info.id, signal)
        if (delta := view.counters.delta(port.info.id, spec, seconds)) is not None
        and delta.seconds > 0
    ]
    return max(shares, default=None)


def _is_told_in_time(port: PortView, spec: CounterSpec, view: View) -> bool:
    """Tell whether the device also says how long the pauses of these frames were.

    Where it does not, each is taken for the longest possible.
    """
    time = _TIME_OF.get(spec.signal) if spec.signal else None
    return time is not None and bool(view.counters.by_signal(port.info.id, time))


def _measured(
    spec: CounterSpec, rate: float, line: float | None, config: Congestion
) -> Iterator[tuple[Measure, float]]:
    """Yield what a counter that grows at ``rate`` a second says."""
    signal = spec.signal
    if signal in _RATES:
        yield _RATES[signal], rate
    elif signal in _TIMES:
        yield _TIMES[signal], min(rate * spec.factor, 1.0)
    elif signal in _FRAMES and line is not None:
        yield _FRAMES[signal], min(rate * PAUSE_BITS / line, 1.0)
    elif signal is Signal.TRANSMIT_WAIT and line is not None:
        yield Measure.WAITED, min(rate * config.wait_tick_bits / line, 1.0)
