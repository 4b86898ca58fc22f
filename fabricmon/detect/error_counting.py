"""Which step of an error counter speaks against the link that it is about."""

from __future__ import annotations

from collections import Counter as Tally

from fabricmon.catalogue import Signal
from fabricmon.config import Config
from fabricmon.detect.error_bounds import Bounds, Excess, load_correlation
from fabricmon.history import History
from fabricmon.model import Mark, Move, PortId, PortInfo, View
from fabricmon.parse.words import PortState

GIGA = 1e9

TRAFFIC_POLLS = 2
"""Polls of the data counters in a window that is compared with the errors in it."""


class ErrorCounting:
    """Holds counts against the bounds for the line rate of their port."""

    def __init__(self, config: Config) -> None:
        """Take the limits of ``config.link_errors``."""
        self._limits = config.link_errors
        self._window = TRAFFIC_POLLS * config.periods.traffic_seconds
        self._bounds = Bounds(config.link_errors)
        self._rates: dict[PortId, float] = {}

    def note(self, view: View) -> None:
        """Learn the rates of the links that are up."""
        for status in view.statuses:
            if status.state is PortState.ACTIVE and status.rate.gbps:
                self._rates[status.port] = status.rate.gbps * GIGA

    def rate(self, view: View, port: PortInfo) -> float | None:
        """Return bits per second: the last rate while ACTIVE, else what is expected.

        With neither it is the rate of most ports of the same board.
        """
        own = self._rates.get(port.id)
        if own is not None:
            return own
        if port.expected_rate_gbps is not None:
            return port.expected_rate_gbps * GIGA
        peers = Tally(
            self._rates[peer.info.id]
            for peer in view.ports
            if peer.info.board_id == port.board_id is not None
            and peer.info.id in self._rates
        )
        return peers.most_common(1)[0][0] if peers else None

    def excess(
        self, view: View, port: PortInfo, move: Move, errors: History, since: float
    ) -> Excess | None:
        """Return the window, begun at ``since`` or later, that a step takes over it."""
        spec = move.spec
        if spec.signal is Signal.SYMBOL_ERROR:
            rate = self.rate(view, port)
            return self._bounds.bits(spec, errors, since, rate) if rate else None
        if spec.signal is Signal.RECEIVE_ERROR:
            return self._damaged_packets(view, port, move, errors, since)
        apart = self._limits.critical_window_seconds
        return Excess(spec, move.increase, move.seconds, 1, apart)

    def critical(
        self, view: View, port: PortInfo, move: Move, errors: History
    ) -> Excess | None:
        """Return the window in which errors pass what no link in use may show."""
        if move.spec.signal is not Signal.SYMBOL_ERROR or move.mark is Mark.GAP:
            return None
        rate = self.rate(view, port)
        if rate is None:
            return None
        return self._bounds.critical(move.spec, errors, move.seconds, rate)

    def correlation(self, view: View, port: PortInfo, errors: History) -> float | None:
        """Return how far errors follow the received load, None if that is unknown."""
        if self._is_young(errors):
            return None
        lag = view.now - errors.newest
        spans = [
            lag + self._window * n for n in range(self._limits.independence_windows + 1)
        ]
        found: list[int] = []
        for spec in view.counters.by_signal(port.id, Signal.BYTES_RECEIVED):
            deltas = [view.counters.delta(port.id, spec, seconds) for seconds in spans]
            sums = [delta.increase for delta in deltas if delta is not None]
            if len(sums) == len(spans) and sum(sums) >= sum(found):
                found = sums
        if not found:
            return None
        carried = [each - found[0] for each in found[1:]]
        return load_correlation(errors, carried, self._window)

    def _is_young(self, errors: History) -> bool:
        """Tell whether the errors began too lately to be compared with the load."""
        known = errors.newest - errors.oldest
        return known < self._window * (self._limits.independence_windows - 1)

    def _damaged_packets(
        self, view: View, port: PortInfo, move: Move, errors: History, since: float
    ) -> Excess | None:
        """Judge damaged packets: fewer are allowed where symbols are not counted."""
        spec = move.spec
        excess = self._bounds.packets(spec, errors, since)
        if excess is None and lacking(view, port, (Signal.SYMBOL_ERROR,)):
            rate = self.rate(view, port)
            excess = self._bounds.bits(spec, errors, since, rate) if rate else None
        if excess is None or _is_upstream(view, port, excess):
            return None
        loads = view.counters.by_signal(port.id, Signal.BYTES_RECEIVED)
        if loads and self._is_young(errors):
            return None
        follows = self.correlation(view, port, errors)
        if follows is not None and follows > self._limits.congestion_correlation:
            return None
        return excess


def lacking(view: View, port: PortInfo, signals: tuple[Signal, ...]) -> str | None:
    """Return why no counter of these signals can tell anything; None if one can."""
    counters = view.counters
    specs = [spec for s in signals for spec in counters.by_signal(port.id, s)]
    live = [spec for spec in specs if counters.value(port.id, spec) is not None]
    if not live:
        return "no counter of it can be read"
    saturated = counters.saturated(port.id)
    if all(spec in saturated for spec in live):
        return "its counters stand at their ceiling"
    return None


def _is_upstream(view: View, port: PortInfo, excess: Excess) -> bool:
    """Tell whether packets that an upstream hop marked as bad explain the count."""
    remote = view.counters.by_signal(port.id, Signal.REMOTE_PHYSICAL)
    deltas = [view.counters.delta(port.id, spec, excess.seconds) for spec in remote]
    marked = max((delta.increase for delta in deltas if delta), default=0)
    return excess.increase - marked < excess.bound
