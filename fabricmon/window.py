"""From values to increases that can be trusted: the hygiene before any judgement.

A counter that falls was reset: it starts anew and gains nothing, never 2^N. One at
its ceiling is saturated. Elapsed time is that of the readings, so late polls give
right rates (``health-systems``, algorithm A0). An unchanged reading costs one
comparison of two tuples. A counter that rests costs 150 bytes, one that moves at most
4 KiB (`history`), however long it is watched.
"""

from __future__ import annotations

from typing import Final

import msgspec

from fabricmon.catalogue import CounterSpec, FaultClass, Signal
from fabricmon.config import Config
from fabricmon.counter import ALL_ONES, Counter, Sight
from fabricmon.model import Absence, Delta, Mark, Move, PortId, Reading, ReadPlan
from fabricmon.saved import writable

REMEMBERED: Final = frozenset({Signal.LINK_DOWN, Signal.CARRIER_DOWN})
"""Counters whose last values are saved: they tell of outages while nobody looked."""

HOUR_SECONDS: Final = 3600.0

_Place = tuple[str, str]  # directory and name of a file


class SavedCounter(msgspec.Struct, frozen=True, array_like=True):
    """Last value of a counter; ``at`` is monotonic, good within one boot."""

    device: str
    port: int
    directory: str
    file: str
    value: int
    at: float


class SavedWindow(msgspec.Struct, frozen=True):
    """What a restarted agent needs of the window of its predecessor."""

    boot_id: str
    counters: tuple[SavedCounter, ...]


class _Burst(Sight):
    """The counters that are read together: the last values, side by side."""

    __slots__ = ("absent", "counters", "port", "specs", "values")

    def __init__(self, reading: Reading, counters: list[Counter]) -> None:
        super().__init__(reading.at)
        self.port = reading.port  # kept alive: their ids are the key of this burst
        self.specs = reading.specs
        self.counters = counters
        self.values: tuple[int | None, ...] = (None,) * len(counters)
        self.absent = reading.absent

    def leave(self, known: _Port) -> None:
        """Give the counters free for another burst; until then they have no value."""
        for counter in self.counters:
            counter.pause()
            counter.sight = None
            known.peg(counter, pegged=False)


class _Port:
    """All counters of one port, and prepared answers about them."""

    __slots__ = (
        "bursts", "by_signal", "by_spec", "counters", "pegged", "resets", "saturated",
        "specs",
    )  # fmt: skip

    def __init__(self) -> None:
        self.counters: dict[_Place, Counter] = {}
        self.by_spec: dict[CounterSpec, Counter] = {}
        self.bursts: list[_Burst] = []
        self.pegged: dict[Counter, None] = {}
        self.resets = 0
        self.specs: tuple[CounterSpec, ...] | None = None
        self.by_signal: dict[Signal, tuple[CounterSpec, ...]] | None = None
        self.saturated: tuple[CounterSpec, ...] | None = None

    def forget_answers(self) -> None:
        """Drop prepared answers: a counter is new or has another spec."""
        self.specs = self.by_signal = self.saturated = None

    def peg(self, counter: Counter, *, pegged: bool) -> None:
        """Note whether a counter stands at its ceiling."""
        self.saturated = None
        if pegged:
            self.pegged[counter] = None
        else:
            self.pegged.pop(counter, None)

    def group(self) -> dict[Signal, tuple[CounterSpec, ...]]:
        """Sort the counters that have a signal by it."""
        found: dict[Signal, list[CounterSpec]] = {}
        for counter in self.counters.values():
            signal = counter.spec.signal
            if signal is not None and counter.value is not None:
                found.setdefault(signal, []).append(counter.spec)
        return {signal: tuple(specs) for signal, specs in found.items()}


class Window:
    """Newest values and past increases of every counter of a node."""

    def __init__(self, config: Config) -> None:
        errors = config.link_errors
        self._gap_polls = config.telemetry.gap_polls
        self._long = max(errors.slow_window_seconds, HOUR_SECONDS)
        self._short = errors.independence_windows * errors.critical_window_seconds
        self._bursts: dict[tuple[int, int], _Burst] = {}
        self._ports: dict[PortId, _Port] = {}
        self._saved: dict[tuple[PortId, _Place], SavedCounter] = {}

    def add(self, reading: Reading, period_seconds: float) -> tuple[Move, ...]:
        """Take in a reading; return the steps of counters that moved.

        A move is an increase, or a value whose mark is not OK. First sights are told
        where they are not zero. Traffic counters move always and are told only when
        reset or saturated; gauges and settings never. A reading that is older than the
        last one of its files is dropped.
        """
        burst = self._bursts.get((id(reading.specs), id(reading.port)))
        if burst is None:
            burst = self._meet(reading)
        elif reading.at < burst.at:
            return ()
        burst.absent = reading.absent
        if reading.values == burst.values:
            burst.at = reading.at
            return ()
        moves = self._advance(burst, reading, self._gap_polls * period_seconds)
        burst.values = reading.values
        burst.at = reading.at
        return moves

    def delta(self, port: PortId, spec: CounterSpec, seconds: float) -> Delta | None:
        """Return the increase over the newest ``seconds``, with what they cover.

        The span ends with the newest good value; it is longer than asked for where it
        begins within a step, shorter where the counter was first seen later. None for
        what was never read, and for gauges and settings, which do not increase.
        """
        counter = self._counter(port, spec)
        return counter.over(seconds) if counter is not None else None

    def by_signal(self, port: PortId, signal: Signal) -> tuple[CounterSpec, ...]:
        """Return the counters of the port that mean this, in the order of reading."""
        known = self._ports.get(port)
        if known is None:
            return ()
        if known.by_signal is None:
            known.by_signal = known.group()
        return known.by_signal.get(signal, ())

    def specs(self, port: PortId) -> tuple[CounterSpec, ...]:
        """Return every counter of the port that was read at least once."""
        known = self._ports.get(port)
        if known is None:
            return ()
        if known.specs is None:
            counters = known.counters.values()
            known.specs = tuple(c.spec for c in counters if c.value is not None)
        return known.specs

    def value(self, port: PortId, spec: CounterSpec) -> int | None:
        """Return the newest value, None where the newest reading has none."""
        counter = self._counter(port, spec)
        return counter.value if counter is not None and counter.live else None

    def saturated(self, port: PortId) -> tuple[CounterSpec, ...]:
        """Return the counters that stand at their ceiling and show nothing more."""
        known = self._ports.get(port)
        if known is None:
            return ()
        if known.saturated is None:
            known.saturated = tuple(counter.spec for counter in known.pegged)
        return known.saturated

    def resets(self, port: PortId) -> int:
        """Return in how many readings of the port counters had fallen."""
        known = self._ports.get(port)
        return known.resets if known is not None else 0

    def unreadable(self, port: PortId) -> tuple[Absence, ...]:
        """Return the files that exist and gave no number in the newest readings."""
        known = self._ports.get(port)
        if known is None:
            return ()
        found: list[Absence] = []
        for burst in known.bursts:
            found += (item for item in burst.absent if not item.is_absent)
            found += (
                Absence(spec.file, "all ones: the device has no such counter")
                for spec, value in zip(burst.specs, burst.values, strict=True)
                if value == ALL_ONES
            )
        return tuple(found)

    def forget(self, device: str) -> None:
        """Drop a device that is gone: should it come back, all is seen first."""
        for port in [port for port in self._ports if port.device == device]:
            for burst in self._ports.pop(port).bursts:
                self._drop(burst)

    def leave(self, plan: ReadPlan | Reading) -> bool:
        """Show no values of files that are gone, keep their past; False if unknown."""
        known = self._ports.get(plan.port)
        if known is None:
            return False
        left = [burst for burst in known.bursts if burst.specs == plan.specs]
        for burst in left:
            known.bursts.remove(burst)
            self._drop(burst)
            burst.leave(known)
        return bool(left)

    def rebaseline(self, device: str, reason: str) -> None:
        """Count nothing up to the next sight of a device that was started again.

        The next step is marked reset where the value fell and first where it did not.
        ``reason`` is for the reader of the call.
        """
        del reason
        for port, known in self._ports.items():
            if port.device == device:
                for counter in known.counters.values():
                    counter.restart()
                for burst in known.bursts:
                    burst.values = (None,) * len(burst.counters)

    def save(self, boot_id: str) -> bytes:
        """Return the last values of the counters that remember outages.

        Those of a device or file whose name is not text are left out.
        """
        kept = writable(
            SavedCounter(port.device, port.port, *place, item.value, item.newest)
            for port, known in self._ports.items()
            for place, item in known.counters.items()
            if item.value is not None and item.spec.signal in REMEMBERED
        )
        kept += tuple(self._saved.values())  # of ports that were not read since
        return msgspec.json.encode(SavedWindow(boot_id, kept))

    def resume(self, saved: bytes, boot_id: str) -> None:
        """Go on from what `save` returned, if the node has not booted since.

        An outage that a counter remembers is then told by the first reading. Raises
        ValueError for what is no saved window.
        """
        try:
            window = msgspec.json.decode(saved, type=SavedWindow)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise ValueError(f"saved counters: {error}") from error
        if window.boot_id == boot_id:
            for item in window.counters:
                port = PortId(item.device, item.port)
                self._saved[port, (item.directory, item.file)] = item

    def _counter(self, port: PortId, spec: CounterSpec) -> Counter | None:
        known = self._ports.get(port)
        if known is None:
            return None
        found = known.by_spec.get(spec)
        return found or known.counters.get((spec.directory, spec.file))

    def _meet(self, reading: Reading) -> _Burst:
        """Make room for a new set of files; counters that are known go on."""
        known = self._ports.setdefault(reading.port, _Port())
        counters = [self._find(known, reading, spec) for spec in reading.specs]
        for old in known.bursts[:]:
            if old.specs == reading.specs or not set(counters).isdisjoint(old.counters):
                known.bursts.remove(old)
                self._drop(old)
                old.leave(known)
        burst = _Burst(reading, counters)
        for counter in counters:
            counter.sight = burst
        known.bursts.append(burst)
        known.forget_answers()
        self._bursts[id(burst.specs), id(burst.port)] = burst
        return burst

    def _find(self, known: _Port, reading: Reading, spec: CounterSpec) -> Counter:
        """Find the counter of a file; the spec may be a new one for the same file."""
        place = (spec.directory, spec.file)
        counter = known.counters.get(place)
        if counter is None:
            traffic = spec.fault_class is FaultClass.TRAFFIC
            counter = Counter(spec, self._short if traffic else self._long)
            known.counters[place] = counter
            saved = self._saved.pop((reading.port, place), None)
            if saved is not None and saved.at < reading.at:
                counter.resume(saved.value, saved.at)
        elif counter.spec is not spec:
            known.by_spec.pop(counter.spec, None)
            counter.take(spec)
        known.by_spec[spec] = counter
        return counter

    def _drop(self, burst: _Burst) -> None:
        self._bursts.pop((id(burst.specs), id(burst.port)), None)

    def _advance(
        self, burst: _Burst, reading: Reading, longest: float
    ) -> tuple[Move, ...]:
        """Step the counters that differ from the last reading."""
        known = self._ports[burst.port]
        moves: list[Move] = []
        fell = False
        for counter, old, new in zip(
            burst.counters, burst.values, reading.values, strict=True
        ):
            if new == old:
                continue
            if new is None or new == ALL_ONES:
                counter.pause()
                known.peg(counter, pegged=False)
                continue
            if counter.value is None:
                known.forget_answers()
            move = counter.step(new, reading, longest)
            if (new == counter.ceiling) is not (counter in known.pegged):
                known.peg(counter, pegged=new == counter.ceiling)
            if move is not None:
                fell = fell or move.mark is Mark.RESET
                moves.append(move)
        known.resets += fell
        return tuple(moves)
