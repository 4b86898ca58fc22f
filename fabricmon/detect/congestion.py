"""Congestion: where traffic waits in the network, and who is not to blame for it.

What is healthy differs by fabric: one lives with pause and knows no notifications,
another with notifications, InfiniBand with neither. So nothing is configured: a port
stands out against the other rails of the node at the same time, and against its own
past (``health-systems``, A7; ``faults``, N22 and N23). Where most rails change at once,
the past alone tells.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import inf
from statistics import median

from msgspec import field

from fabricmon.catalogue import CounterSpec, Signal
from fabricmon.config import Config
from fabricmon.config import Congestion as Limits
from fabricmon.detect.congestion_alike import Shown, Together
from fabricmon.detect.congestion_telling import (
    Unusual,
    tell_congestion,
    tell_victim,
)
from fabricmon.detect.flow_levels import (
    SIGNALS,
    WATCHED,
    Levels,
    Measure,
    levels_of,
    load_of,
)
from fabricmon.detect.flow_settings import FlowSettings
from fabricmon.detect.network_sight import uncounted
from fabricmon.detect.pause import PauseWatch
from fabricmon.detect.statistics import DecayedMean
from fabricmon.model import (
    Blindness,
    Finding,
    PortId,
    PortView,
    Role,
    View,
)
from fabricmon.value import State

LOOK_SECONDS = 10.0
"""Driver statistics come so often; all ports are looked at together."""

LEAST_RAILS = 3
"""Rails, this one among them, of which one can stand out."""

JUDGED = (
    Measure.NOTIFIED, Measure.SLOWED, Measure.PAUSE_RECEIVED, Measure.WAITED,
)  # fmt: skip
"""What tells of congestion, the most telling first."""

_LOADS = {
    Measure.NOTIFIED: Signal.BYTES_RECEIVED,
    Measure.SLOWED: Signal.BYTES_TRANSMITTED,
    Measure.PAUSE_RECEIVED: Signal.BYTES_TRANSMITTED,
    Measure.WAITED: Signal.BYTES_TRANSMITTED,
}


class _Port(State):
    """One port: what moves, how much, and how much is usual."""

    specs: dict[CounterSpec, float] = field(default_factory=dict)
    levels: Levels = field(default_factory=dict)
    usual: dict[Measure, DecayedMean] = field(default_factory=dict)
    unusual: dict[Measure, int] = field(default_factory=dict)
    since: dict[Measure, float] = field(default_factory=dict)


class Ramp:
    """Tells whether no job runs, or one that only starts: its traffic is rough."""

    def __init__(self, config: Limits) -> None:
        """Take what counts as busy, and how long a start takes."""
        self._busy_ratio = config.busy_ratio
        self._window = 2 * config.window_seconds  # bytes are read every 15 s
        self._settle = config.settle_seconds
        self._since = -inf
        self._newest = -inf
        self._loads: dict[tuple[PortId, Signal], float] = {}

    def load(self, port: PortId, measure: Measure) -> float | None:
        """Return the share of the line rate that bears on a measure, None if unknown."""
        return self._loads.get((port, _LOADS[measure]))

    def holds(self, rails: list[PortView], view: View) -> bool:
        """Take a look; where nobody counts bytes, nothing is known of jobs."""
        self._loads = {
            (port.info.id, signal): load
            for port in rails
            for signal in (Signal.BYTES_RECEIVED, Signal.BYTES_TRANSMITTED)
            if (load := load_of(port, self._window, view, signal)) is not None
        }
        if not self._loads:
            return False
        now = view.now
        if max(self._loads.values()) >= self._busy_ratio:
            if now - self._newest > self._settle:
                self._since = now
            self._newest = now
        return now - self._newest > self._window or now - self._since < self._settle


class Congestion:
    """Names congestion, the origin of pause, and settings that let packets drop."""

    name = "congestion"
    kinds: tuple[str, ...] = (
        "congestion", "pause_origin", "pause_victim", "config_mismatch",
    )  # fmt: skip

    def __init__(self, config: Config) -> None:
        """Take the thresholds from ``config.congestion``."""
        self._limits = config.congestion
        self._pause = PauseWatch(config.congestion)
        self._settings = FlowSettings(config.congestion)
        self._together = Together(config.congestion)
        self._ports: dict[PortId, _Port] = {}
        self._looked_at = 0.0
        self._ramp = Ramp(config.congestion)

    def judge(self, view: View) -> Iterator[Finding]:
        """Yield what holds now; levels are taken every ten seconds."""
        self._note(view)
        yield from self._pause.judge(view)
        yield from self._settings.judge(view)
        if view.now - self._looked_at >= LOOK_SECONDS:
            self._looked_at = view.now
            self._look(view)
        told: set[PortId] = set()
        for port in view.ports:
            known = self._ports.get(port.info.id)
            if known is not None and known.levels:
                for finding in self._findings(port, known, view):
                    told.add(port.info.id)
                    yield finding
        yield from self._of_most(told, view)

    def pause_onset(self, port: PortId) -> float | None:
        """Return since when a port holds the network up, Unix seconds."""
        return self._pause.onset(port)

    def blind(self, view: View) -> Iterator[Blindness]:
        """Without pause counters no origin is known; without any, no congestion.

        Nor does one of few rails stand out; pause is held against its own past.
        """
        ports = [p.info.id for p in view.ports if p.info.role is Role.COMPUTE]
        if not ports:
            return
        needs = {
            "congestion": [s for m in JUDGED for s in SIGNALS[m]],
            "pause_origin": list(SIGNALS[Measure.PAUSE_SENT]),
            "pause_victim": list(SIGNALS[Measure.PAUSE_RECEIVED]),
        }
        for kind, signals in needs.items():
            if not any(view.counters.by_signal(p, s) for p in ports for s in signals):
                yield Blindness(kind, uncounted(view))
            elif kind == "congestion" and len(ports) < LEAST_RAILS:
                yield Blindness(kind, f"{len(ports)} rails: too few to compare")

    def save(self) -> bytes:
        """Nothing: what is usual is learnt within minutes."""
        return b""

    def restore(self, saved: bytes, view_offset: float) -> None:
        """Nothing is kept."""
        del saved, view_offset

    def _note(self, view: View) -> None:
        """Note which counters moved; drops alone make a port worth a look."""
        for move in view.moves:
            if move.increase <= 0 or move.port.port == 0:
                continue
            if move.spec.signal in WATCHED:
                known = self._ports.setdefault(move.port, _Port())
                known.specs[move.spec] = move.at
            elif move.spec.signal is Signal.RECEIVE_DISCARD:
                self._ports.setdefault(move.port, _Port())
            elif move.spec.signal is Signal.DISCARD:
                self._settings.note(move)

    def _look(self, view: View) -> None:
        """Measure every port, hold the rails against each other, and learn."""
        ports = [port for port in view.ports if port.info.role is Role.COMPUTE]
        starts = self._ramp.holds(ports, view)
        if starts:
            self._together.forget()
        if not self._ports:
            if not starts:
                self._see_nothing(ports, view)
            return
        rails = [
            (port, self._ports.setdefault(port.info.id, _Port())) for port in ports
        ]
        for port, known in rails:
            known.levels = self._levels(port, known, view)
        levels = {port: known.levels for port, known in self._ports.items()}
        self._settings.look(levels, view)
        if starts:
            for _, known in rails:
                known.unusual, known.since = {}, {}
            return
        for measure in JUDGED:
            self._compare(measure, rails, view)

    def _see_nothing(self, ports: list[PortView], view: View) -> None:
        """Learn that nothing is usual, from rails that carry something."""
        for measure in JUDGED:
            shown = {
                port.info.id: Shown(0.0, load, counts=False)
                for port in ports
                if (load := self._ramp.load(port.info.id, measure)) is not None
                and load >= self._limits.busy_ratio
            }
            self._together.look(measure, shown, len(ports), view.now - LOOK_SECONDS)

    def _levels(self, port: PortView, known: _Port, view: View) -> Levels:
        """Return what moved lately, measured."""
        limits = self._limits
        oldest = view.now - limits.window_seconds - LOOK_SECONDS
        moved = [spec for spec, at in known.specs.items() if at >= oldest]
        return levels_of(port, moved, limits.window_seconds, limits, view)

    def _compare(
        self, measure: Measure, rails: list[tuple[PortView, _Port]], view: View
    ) -> None:
        """Judge one measure on all rails that carry something."""
        values: dict[PortId, float] = {}
        shown: dict[PortId, Shown] = {}
        for port, known in rails:
            load = self._ramp.load(port.info.id, measure)
            level = known.levels.get(measure)
            busy = load is None or load >= self._limits.busy_ratio
            if busy or level is not None:
                amount = 0.0 if level is None else level.value
                counts = self._counts(measure, port.info.id, known)
                values[port.info.id] = amount
                shown[port.info.id] = Shown(amount, load, counts)
        began = view.now - LOOK_SECONDS
        self._together.look(measure, shown, len(rails), began)
        for port, known in rails:
            value = values.get(port.info.id)
            if value is None:
                self._calm(known, measure)
                continue
            others = [each for other, each in values.items() if other != port.info.id]
            self._judge_one(measure, known, value, others, view.now)

    def _counts(self, measure: Measure, port: PortId, known: _Port) -> bool:
        """Tell whether a level was measured, is worth a word, and the network's."""
        level = known.levels.get(measure)
        if level is None or level.at_least or self._is_own(measure, port):
            return False
        return self._is_enough(measure, known)

    def _is_own(self, measure: Measure, port: PortId) -> bool:
        """Tell whether a host brings it about: that pauses makes the network notify."""
        pauses = measure is Measure.NOTIFIED and self._pause.sends(port)
        return pauses or self._pause.is_origin(port)

    def _judge_one(
        self,
        measure: Measure,
        known: _Port,
        value: float,
        others: list[float],
        now: float,
    ) -> None:
        """Count in how many looks a port stood out; else learn what is usual."""
        limits = self._limits
        usual = known.usual.get(measure)
        stands_out = (
            self._is_enough(measure, known)
            and len(others) >= LEAST_RAILS - 1
            and value >= limits.unlike_factor * median(others)
        )
        if stands_out and usual is not None and usual.count >= limits.usual_windows:
            stands_out = value >= limits.usual_factor * (usual.value or 0.0)
        if stands_out:
            known.unusual[measure] = known.unusual.get(measure, 0) + 1
            known.since.setdefault(measure, now - LOOK_SECONDS)
            return
        self._calm(known, measure)
        if usual is None:
            half_life = limits.usual_half_life_seconds
            usual = known.usual[measure] = DecayedMean(half_life)
        usual.add(value, now)

    def _calm(self, known: _Port, measure: Measure) -> None:
        known.unusual.pop(measure, None)
        known.since.pop(measure, None)

    def _usual(self, known: _Port) -> float:
        """Return what pause is usual, 0 where too little was seen."""
        usual = known.usual.get(Measure.PAUSE_RECEIVED)
        if usual is None or usual.count < self._limits.usual_windows:
            return 0.0
        return usual.value or 0.0

    def _is_enough(self, measure: Measure, known: _Port) -> bool:
        """Tell whether a level is worth a word, whatever is usual.

        A counter that ran into its ceiling tells the least that it can have been: that
        counts where it went through most of its field at once, and never did before.
        """
        level = known.levels.get(measure)
        if level is None:
            return False
        if level.at_least:
            usual = known.usual.get(measure)
            learnt = usual is not None and usual.count >= self._limits.usual_windows
            return level.fills and learnt
        return level.value >= self._floor(measure)

    def _floor(self, measure: Measure) -> float:
        if measure is Measure.PAUSE_RECEIVED:
            return self._limits.pause_ratio
        if measure is Measure.WAITED:
            return self._limits.wait_ratio
        return self._limits.notifications_per_second

    def _findings(self, port: PortView, known: _Port, view: View) -> Iterator[Finding]:
        """Yield what a port shows: it waits, or is held up for too long to be load."""
        limits = self._limits
        if self._pause.is_origin(port.info.id):
            return  # a host that cannot absorb makes the network notify and wait
        unusual = [
            measure
            for measure in JUDGED
            if known.unusual.get(measure, 0) >= limits.windows
            and not self._is_own(measure, port.info.id)
        ]
        if unusual:
            since = min(known.since[measure] for measure in unusual)
            case = Unusual(tuple(unusual), since + view.onset_offset)
            yield tell_congestion(port, case, known.levels, limits)
        held = known.levels.get(Measure.PAUSE_RECEIVED)
        if held is None or held.value < limits.victim_ratio:
            return
        if held.value < limits.usual_factor * self._usual(known):
            return
        sent = known.levels.get(Measure.PAUSE_SENT)
        if sent is None or held.value >= limits.pause_excess * sent.value:
            since = known.since.get(Measure.PAUSE_RECEIVED, view.now - LOOK_SECONDS)
            yield tell_victim(port, held, sent, since + view.onset_offset, limits)

    def _of_most(self, told: set[PortId], view: View) -> Iterator[Finding]:
        """Yield what most rails show: once, at the first that has nothing of its own."""
        held = {shared.measure: shared for shared in self._together.held(view.now)}
        unusual = [measure for measure in JUDGED if measure in held]
        if not unusual:
            return
        shared = held[unusual[0]]
        ports = {port.info.id: port for port in view.ports}
        first = next((p for p in shared.ports if p in ports and p not in told), None)
        if first is not None:
            onset = shared.since + view.onset_offset
            others = tuple(each for each in shared.ports if each != first)
            case, known = Unusual(tuple(unusual), onset, others), self._ports[first]
            yield tell_congestion(ports[first], case, known.levels, self._limits)
