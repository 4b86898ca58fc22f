"""Who holds the network up: the origin of pause, its onset, and its victims.

Transmit pause says that this host cannot absorb; receive pause, that the network
cannot (``health-systems``, 4.4). The origin sends far more than it receives, and its
device says why: the host holds it up, its buffer is full, or pause has lasted so long
that the device calls it a storm. What a stall of its own host explains is no answer to
anybody: then it need not be far more, for those whom it holds up pause it in turn.
"""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from msgspec import field

from fabricmon.catalogue import CounterSpec, Signal
from fabricmon.config import Congestion
from fabricmon.detect.evidence import source_of, unit_of
from fabricmon.detect.flow_levels import (
    Level,
    Levels,
    Measure,
    levels_of,
    load_of,
)
from fabricmon.detect.wording import clock, subject_of
from fabricmon.model import (
    Action,
    Evidence,
    Finding,
    Move,
    PortId,
    PortView,
    Role,
    Severity,
    View,
)
from fabricmon.summaries import one_line
from fabricmon.value import State, Value

ORIGIN = "pause_origin"

LEAST_STORM_SECONDS = 10.0
"""Shorter ones are over before anybody acts."""

LEAST_RAILS = 2
"""Rails that say whether a job is running at all."""

_SENT = frozenset({Signal.PAUSE_TRANSMITTED, Signal.PAUSE_TRANSMITTED_TIME})
_RECEIVED = frozenset({Signal.PAUSE_RECEIVED, Signal.PAUSE_RECEIVED_TIME})
_STALLS = (Signal.PAUSE_STORM, Signal.PCI_STALL, Signal.PCI_OVERFLOW)
"""What the device counts when its host holds it up, the gravest first."""


class _Episode(State):
    """A time in which a port sends pause; monotonic seconds."""

    began: float
    newest: float


class _Port(State):
    """What of a port's pause moved, and when."""

    specs: dict[CounterSpec, float] = field(default_factory=dict)
    episode: _Episode | None = None
    levels: Levels = field(default_factory=dict)


class _Origin(Value, frozen=True):
    """A port that holds the network up now."""

    port: PortView
    sent: Level
    marks: tuple[Evidence, ...]
    storm: bool
    onset: float


class PauseWatch:
    """Follows the pause that ports send."""

    def __init__(self, config: Congestion) -> None:
        """Take the limits of storms from ``congestion``."""
        self._limits = config
        self._ports: dict[PortId, _Port] = {}
        self._origins: frozenset[PortId] = frozenset()
        self._offset = 0.0
        self._now = 0.0

    def onset(self, port: PortId) -> float | None:
        """Return when the pause that a port sends now began, Unix seconds."""
        known = self._ports.get(port)
        if known is None or known.episode is None:
            return None
        return known.episode.began + self._offset

    def is_origin(self, port: PortId) -> bool:
        """Tell whether a port is told of as one that holds the network up."""
        return port in self._origins

    def sends(self, port: PortId) -> bool:
        """Tell whether a port sends pause for a share of time that matters."""
        known = self._ports.get(port)
        return known is not None and known.episode is not None

    def judge(self, view: View) -> Iterator[Finding]:
        """Yield the ports that hold the network up."""
        self._offset, self._now = view.onset_offset, view.now
        self._origins = frozenset()
        touched = self._note(view)
        if not self._ports:
            return
        found: list[_Origin] = []
        for port in view.ports:
            known = self._ports.get(port.info.id)
            if known is None or port.info.role is Role.MANAGEMENT or port.info.is_vf:
                continue
            if port.info.id in touched:
                self._look(port, known, view)
            self._forget(port.info.id, known, view.now)
            if known.episode is not None:
                origin = self._origin(port, known, view)
                found += [] if origin is None else [origin]
        self._origins = frozenset(origin.port.info.id for origin in found)
        yield from self._tell(found, view)

    def _note(self, view: View) -> set[PortId]:
        touched: set[PortId] = set()
        for move in view.moves:
            signal = move.spec.signal
            if signal not in _SENT and signal not in _RECEIVED:
                continue
            if move.increase <= 0 or move.previous is None:
                continue
            known = self._ports.get(move.port)
            if known is None:
                if signal not in _SENT:
                    continue
                known = self._ports[move.port] = _Port()
            known.specs[move.spec] = move.at
            if signal in _SENT:
                touched.add(move.port)
                self._follow(known, move)
        return touched

    def _follow(self, known: _Port, move: Move) -> None:
        """Begin or prolong an episode; one read late began when its pauses fit in."""
        if move.spec.signal is not Signal.PAUSE_TRANSMITTED_TIME or move.seconds <= 0:
            return
        paused = move.increase * move.spec.factor
        if paused / move.seconds < self._limits.pause_warning_ratio:
            return
        if known.episode is None:
            began = move.at - min(paused, move.seconds)
            known.episode = _Episode(began, move.at)
        known.episode.newest = move.at

    def _look(self, port: PortView, known: _Port, view: View) -> None:
        """Measure the pause of a storm window; frames alone begin an episode here."""
        limits = self._limits
        window = limits.storm_window_seconds
        known.levels = levels_of(port, known.specs, window, limits, view)
        sent = known.levels.get(Measure.PAUSE_SENT)
        if sent is None or known.episode is not None:
            return
        if _share(sent, window) >= limits.pause_warning_ratio:
            at = known.specs[sent.spec]
            known.episode = _Episode(at - min(sent.seconds, window), at)

    def _forget(self, port: PortId, known: _Port, now: float) -> None:
        window = self._limits.storm_window_seconds
        if known.episode is not None and now - known.episode.newest > window:
            known.episode = None
        if known.specs and now - max(known.specs.values()) > 2 * window:
            del self._ports[port]
            known.episode = None

    def _origin(self, port: PortView, known: _Port, view: View) -> _Origin | None:
        """Judge a port that sends pause: origin, or too little, or only in answer."""
        limits, episode = self._limits, known.episode
        sent = known.levels.get(Measure.PAUSE_SENT)
        received = known.levels.get(Measure.PAUSE_RECEIVED)
        if sent is None or episode is None:
            return None
        stalls = tuple(self._stalls(port, view))
        marks = (*stalls, *self._signs(port, view))
        if sent.at_most and not marks:
            return None
        excess = 1.0 if stalls else limits.pause_excess
        if received is not None and sent.value < excess * received.value:
            return None
        share = _share(sent, limits.storm_window_seconds)
        least = limits.pause_warning_ratio if marks else limits.pause_critical_ratio
        if share < least:
            return None
        paused, lasted = sent.value * sent.seconds, view.now - episode.began
        lasted = min(max(lasted, LEAST_STORM_SECONDS), limits.storm_window_seconds)
        least_paused = limits.storm_ratio * lasted
        storm = paused >= least_paused and not sent.at_most
        return _Origin(port, sent, marks, storm, episode.began)

    def _counted(
        self, port: PortView, signal: Signal, view: View
    ) -> Iterator[Evidence]:
        """Yield what a device counted of a signal in a storm window."""
        where, window = port.info.id, self._limits.storm_window_seconds
        for spec in view.counters.by_signal(where, signal):
            delta = view.counters.delta(where, spec, window)
            if delta is not None and delta.increase > 0:
                source, unit = source_of(port.info, spec), unit_of(spec)
                yield Evidence(spec.file, delta.increase, unit, source, None, window)

    def _signs(self, port: PortView, view: View) -> Iterator[Evidence]:
        """Yield what a host that stalls brings about, and others might as well."""
        yield from self._counted(port, Signal.BUFFER_PRESSURE, view)
        yield from self._starved(port, view)

    def _stalls(self, port: PortView, view: View) -> Iterator[Evidence]:
        """Yield what only a host that holds its device up brings about."""
        limits, where = self._limits, port.info.id
        for signal in _STALLS:
            yield from self._counted(port, signal, view)
        for spec in view.counters.by_signal(where, Signal.PCI_STALL_RATIO):
            value = view.counters.value(where, spec)
            if value is not None and value * spec.factor >= limits.stall_ratio:
                source = source_of(port.info, spec)
                limit = round(limits.stall_ratio / spec.factor)
                yield Evidence(spec.file, value, "percent", source, limit)

    def _starved(self, port: PortView, view: View) -> Iterator[Evidence]:
        """Yield what comes in, if that is nearly nothing while other rails are busy."""
        if port.info.role is not Role.COMPUTE:
            return
        window, busy = self._limits.window_seconds, self._limits.busy_ratio
        own = load_of(port, window, view, Signal.BYTES_RECEIVED)
        others = [
            load
            for other in view.ports
            if other.info.role is Role.COMPUTE
            and other.info.id != port.info.id
            and (load := load_of(other, window, view, Signal.BYTES_RECEIVED))
            is not None
        ]
        if own is None or len(others) < LEAST_RAILS or own >= busy:
            return
        rails = median(others)
        if rails >= self._limits.unlike_factor * busy:
            shown = round(own, 4)
            yield Evidence("received_ratio", shown, "1", "fabricmon", busy, window)

    def _tell(self, found: list[_Origin], view: View) -> Iterator[Finding]:
        rails = [each for each in found if each.port.info.role is not Role.STORAGE]
        of_node = sum(p.info.role is Role.COMPUTE for p in view.ports)
        if len(rails) >= max(self._limits.alike_ports, (of_node + 1) // 2):
            first = min(rails, key=lambda each: (each.onset, each.port.info.id))
            yield self._of_host(first, len(rails))
            found = [each for each in found if each not in rails]
        for origin in found:
            yield self._of_port(origin)

    def _of_port(self, origin: _Origin) -> Finding:
        limits = self._limits
        share = _share(origin.sent, limits.storm_window_seconds)
        least = limits.pause_critical_ratio
        if origin.sent.at_most:  # as many frames as a storm has, not as a slow host
            least = limits.storm_ratio
        critical = bool(origin.marks) and share >= least
        severity = Severity.CRITICAL if critical else Severity.WARNING
        action = Action.DRAIN_NOW if origin.storm else Action.DRAIN_AFTER_JOB
        if not critical:
            action = Action.INSPECT if origin.marks else Action.NONE
        onset = origin.onset + self._offset
        why = "its host stalls" if origin.marks else "no stall is seen"
        return Finding(
            kind=ORIGIN,
            subject=subject_of(origin.port.info),
            onset=onset,
            evidence=tuple(self._evidence(origin)),
            summary=one_line(
                f"{origin.port.info.id} pauses the network {origin.sent.bound}"
                f"{share:.0%} of the last minute since {clock(onset)}: {why}, no "
                f"congestion"
            ),
            severity=severity,
            action=action,
            confidence=1.0 if origin.marks else 0.6,
        )

    def _of_host(self, first: _Origin, count: int) -> Finding:
        """Return the one finding of rails that pause alike: no device is to blame."""
        onset = first.onset + self._offset
        least = self._limits.alike_ports
        return Finding(
            kind=ORIGIN,
            subject=subject_of(first.port.info),
            onset=onset,
            evidence=(
                *self._evidence(first),
                Evidence("ports_alike", count, "ports", "fabricmon", least),
            ),
            summary=one_line(
                f"{count} rails pause the network since {clock(onset)}: the host is "
                f"slow, no single device and no congestion"
            ),
            severity=Severity.WARNING,
            action=Action.INSPECT if first.marks else Action.NONE,
            confidence=0.8,
        )

    def _evidence(self, origin: _Origin) -> Iterator[Evidence]:
        limits = self._limits
        window = limits.storm_window_seconds
        yield origin.sent.evidence(origin.port)
        share = round(_share(origin.sent, window), 4)
        least = limits.pause_critical_ratio
        yield Evidence("pause_sent_ratio", share, "1", "fabricmon", least, window)
        known = self._ports[origin.port.info.id]
        received = known.levels.get(Measure.PAUSE_RECEIVED)
        if received is not None:
            yield received.evidence(origin.port)
        yield from origin.marks


def _share(level: Level, window: float) -> float:
    """Return the part of a whole window that was pause, if it was seen for less too."""
    return level.value * min(level.seconds / window, 1.0)
