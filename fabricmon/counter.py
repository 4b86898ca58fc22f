"""One counter of one port: its last value, and what a step to the next one means.

A value that falls was reset and gains nothing; one at the ceiling of its field is
saturated; one that was read late has gained over a gap (``health-systems``, A0).
"""

from __future__ import annotations

from typing import Final

from fabricmon.catalogue import CounterKind, CounterSpec, FaultClass, Overflow
from fabricmon.history import History
from fabricmon.model import Delta, Mark, Move, Reading

ALL_ONES: Final = (1 << 64) - 1
"""What ionic answers for a counter that it does not have."""

_CEILINGS: Final = (15, 255, 65_535, (1 << 32) - 1)
_RATE_SECONDS: Final = 300.0
_HASTE: Final = 4  # a wrap may be so many times faster than the rate before it


class Sight:
    """The newest reading of files that are read together: its time."""

    __slots__ = ("at",)

    def __init__(self, at: float) -> None:
        """Begin at ``at``, monotonic seconds."""
        self.at = at


class Counter:
    """A counter and its past.

    ``value`` is the last good one, None if there never was one; ``live`` tells whether
    the newest reading had it.
    """

    __slots__ = (
        "_first_at", "_history", "_horizon", "_quiet", "_stale", "_value_at", "_wraps",
        "ceiling", "counts", "live", "sight", "spec", "value",
    )  # fmt: skip

    def __init__(self, spec: CounterSpec, horizon_seconds: float) -> None:
        """Begin without a value; increases are kept for ``horizon_seconds``."""
        self.value: int | None = None
        self.live = False
        self.sight: Sight | None = None
        self.ceiling = spec.ceiling
        self._first_at = self._value_at = 0.0
        self._history: History | None = None
        self._horizon = horizon_seconds
        self._stale = False
        self._wraps = 1 << spec.width if spec.overflow is Overflow.WRAPS else None
        self.take(spec)

    @property
    def newest(self) -> float:
        """Time of the last good value."""
        return self.sight.at if self.live and self.sight else self._value_at

    def take(self, spec: CounterSpec) -> None:
        """Belong to ``spec``, which is about the same file as the one before."""
        self.spec = spec
        self.counts = spec.kind is CounterKind.COUNTER
        self._quiet = spec.fault_class is FaultClass.TRAFFIC

    def resume(self, value: int, at: float) -> None:
        """Take a value that another agent saw at ``at`` in the same boot."""
        self.value, self._value_at, self._first_at = value, at, at

    def pause(self) -> None:
        """Note that there is no value now; the next is compared with the last one."""
        self._value_at = self.newest
        self.live = False

    def restart(self) -> None:
        """Note that the device was started again: the next step counts nothing."""
        self.pause()
        self._stale = True

    def over(self, seconds: float) -> Delta | None:
        """Return the increase over ``seconds`` before the last good value."""
        if self.value is None or not self.counts:
            return None
        end = self.newest
        if self._history is None:
            known = end - self._first_at
            mark = Mark.OK if seconds <= known else Mark.FIRST
            increase, seconds = 0, min(seconds, known)
        else:
            span = self._history.over(end, seconds)
            increase, seconds, mark = span.increase, span.seconds, span.mark
        if self.value == self.ceiling:
            mark = Mark.SATURATED
        value = self.value if self.live else None
        return Delta(self.spec, increase, seconds, mark, value)

    def step(self, value: int, reading: Reading, longest: float) -> Move | None:
        """Take the value of a new reading; return the move if it is worth telling.

        More than ``longest`` seconds since the last good value are a gap.
        """
        at, previous = reading.at, self.value
        since = self.sight.at if self.live and self.sight else self._value_at
        self.value, self.live = value, True
        if self.ceiling is not None and value > self.ceiling:
            self.ceiling = next((c for c in _CEILINGS if c >= value), None)
        if previous is None:
            return self._first(value, reading)
        if value == previous or not self.counts:
            self._stale = False
            return None
        if value < previous or self._stale:
            rise, mark = self._unsteady_gain(value - previous, since, at)
        else:
            rise, mark = value - previous, Mark.OK
        if value == self.ceiling:
            mark = Mark.SATURATED
        elif mark is Mark.OK and at - since > longest:
            mark = Mark.GAP
        if self._history is None:
            self._history = History(self._first_at, self._horizon)
        self._history.step(since, at, rise, mark)
        if self._quiet and mark not in (Mark.RESET, Mark.SATURATED):
            return None
        before = None if mark is Mark.FIRST else previous
        return Move(reading.port, self.spec, at, before, value, rise, at - since, mark)

    def _first(self, value: int, reading: Reading) -> Move | None:
        self._first_at, self._stale = reading.at, False
        if not value or self._quiet or not self.counts:
            return None
        mark = Mark.SATURATED if value == self.ceiling else Mark.FIRST
        return Move(reading.port, self.spec, reading.at, None, value, 0, 0.0, mark)

    def _unsteady_gain(self, rise: int, since: float, at: float) -> tuple[int, Mark]:
        """Return the gain of a value that fell, or of a device that started again."""
        if self._stale:
            self._stale = False
            return 0, Mark.RESET if rise < 0 else Mark.FIRST
        if self._wraps is not None and self._is_wrap(rise, since, at):
            return rise + self._wraps, Mark.OK
        return 0, Mark.RESET

    def _is_wrap(self, fall: int, since: float, at: float) -> bool:
        """Tell whether a fall is plainly a wrap.

        The field must have been so near its end that going on as before explains the
        fall; a counter that was idle, or far from its end, was reset.
        """
        if self._wraps is None or self._history is None:
            return False
        span = self._history.over(since, _RATE_SECONDS)
        rate = span.increase / span.seconds if span.seconds > 0 else 0.0
        return 0 < fall + self._wraps <= _HASTE * rate * (at - since)
