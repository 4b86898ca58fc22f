"""What the windows of one job's rails say together, in one direction.

One odd window is chance: phases of a job end within it. A rail is slow when most of
the newest windows agree, it keeps pace with the others whenever they work, and it is
busy for longer than they are. A rail of another job, or with less traffic, is not.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import replace
from statistics import fmean, median

from fabricmon.config import Stragglers
from fabricmon.detect.rail_comparison import Compared, compare
from fabricmon.detect.rail_drift import RailDrift
from fabricmon.detect.rail_windows import Rail, RailBurst, RailWindow
from fabricmon.model import PortId
from fabricmon.value import Value

_USUAL_WINDOWS = 10  # newest judged windows of which the usual rate is taken
_LEAST_BUSY = 0.01  # a rail that works while no other does is no infinity
_MEASURED_WINDOWS = 60  # newest ones of which a slow rail's numbers are taken
_MOST_WINDOWS = 400  # without pause, fifteen minutes hold three hundred


class SlowRail(Value, frozen=True):
    """A rail that paces the others; rates in bytes per second.

    ``busy_ratio`` and ``rate_ratio`` are against the usual rail, ``flagged`` of
    ``windows`` agree. ``drifted`` says that it was told by its own past, ``jitter``
    that it is slow for moments only.
    """

    port: PortId
    rail: Rail
    direction: str
    since: float
    busy: float
    usual_busy: float
    busy_ratio: float
    p99: float
    usual_p99: float
    flagged: int
    windows: int
    seconds: float
    jitter: bool = False
    drifted: bool = False

    @property
    def rate_ratio(self) -> float:
        """Its rate against that of the usual rail."""
        return self.p99 / self.usual_p99 if self.usual_p99 else 1.0


class _Case(Value, frozen=True):
    """A rail that is odd, in these windows of those."""

    rail: RailBurst
    odd: Sequence[Compared]
    windows: Sequence[Compared]


class RailHistory:
    """The windows of one job's rails, newest last."""

    def __init__(self, limits: Stragglers) -> None:
        """Start without any."""
        self._limits = limits
        self._windows: deque[Compared] = deque(maxlen=_MOST_WINDOWS)
        self._drift = RailDrift(limits)
        self._told: dict[PortId, float] = {}
        self._lasting_ports: set[PortId] = set()

    @property
    def odd(self) -> frozenset[PortId]:
        """The odd rails of the newest window that are not told of.

        None where there are more than can be slow at once: they are of another job.
        """
        newest = self._windows[-1] if self._windows else None
        if newest is None or len(newest.odd) > self._most(newest):
            return frozenset()
        return newest.odd - self._told.keys()

    @property
    def newest_is_judged(self) -> bool:
        """Whether the rails worked in the newest window."""
        return bool(self._windows) and self._windows[-1].judged

    def judged(self) -> list[Compared]:
        """Return the windows in which there was something to judge, oldest first."""
        return [window for window in self._windows if window.judged]

    def take(self, window: RailWindow) -> None:
        """Compare the rails of a new window."""
        limits = self._limits
        oldest = window.ended - limits.jitter_window_seconds
        while self._windows and self._windows[0].at < oldest:
            self._windows.popleft()
        rates = [each.p99 for each in self.judged()[-_USUAL_WINDOWS:]]
        compared = compare(window, limits, median(rates) if rates else 0.0)
        self._windows.append(compared)
        if compared.judged:
            self._drift.take(compared)

    def slow(self, direction: str) -> list[SlowRail]:
        """Return the rails that pace the others, or did for moments."""
        judged = self.judged()
        if not judged or self._windows[-1].at - judged[-1].at > (
            self._limits.idle_seconds
        ):
            self._told.clear()
            self._lasting_ports = set()
            return []
        lasting = [self._tell(case, direction) for case in self._lasting(judged)]
        found = [rail for rail in lasting if rail is not None]
        if self._lasting_ports and not found:
            self._windows.clear()  # what is over was no jitter
            judged = []
        self._lasting_ports = {rail.port for rail in found}
        if not found and judged:
            found += self._drifted(direction, judged)
        if not found and judged:
            found += self._jitter(direction, judged)
        self._told = {rail.port: rail.since for rail in found}
        return found

    def _lasting(self, judged: Sequence[Compared]) -> list[_Case]:
        """Return the rails that are odd in most of the newest windows."""
        limits = self._limits
        recent = _newest(judged, limits)
        cases = []
        suspects = frozenset[PortId]().union(*(window.odd for window in recent))
        for rail in recent[-1].rails:
            if rail.port not in suspects:
                continue
            odd = [window for window in recent if rail.port in window.odd]
            least = limits.least_windows / limits.windows * len(recent)
            enough = len(odd) >= max(limits.least_windows, least)
            if rail.port in self._lasting_ports:
                held = limits.clear_windows / limits.windows * len(recent)
                enough = len(odd) > held
            elif odd[-1].at - odd[0].began < limits.least_seconds:
                enough = False
            if enough and self._keeps_pace(rail.port, recent):
                cases.append(_Case(rail, odd, recent))
        return cases if len(cases) <= self._most(recent[-1]) else []

    def _most(self, window: Compared) -> int:
        """Return how many rails may be slow at once."""
        return max(1, int(self._limits.split_share * len(window.rails)))

    def _keeps_pace(self, port: PortId, windows: Sequence[Compared]) -> bool:
        """Tell whether a rail works whenever the others do: it is of their job."""
        lagging = sum(port in window.lagging for window in windows)
        return lagging <= (1 - self._limits.keeping_share) * len(windows)

    def _tell(self, case: _Case, direction: str) -> SlowRail | None:
        """Return the rail if it is busy longer than others: it paces them."""
        port = case.rail.port
        since = self._told.get(port, case.odd[0].began)
        over = [window for window in self._windows if window.began >= since]
        over = over[-_MEASURED_WINDOWS:]
        slow = _slow(port, direction, case, over or case.windows, since)
        if slow is None or slow.busy_ratio < self._limits.pacing_ratio:
            return None
        return slow

    def _drifted(
        self, direction: str, judged: Sequence[Compared]
    ) -> Iterator[SlowRail]:
        """Yield the rails that became slow against their own past."""
        recent = _newest(judged, self._limits)
        for port, since in self._drift.drifted(self._most(recent[-1])):
            rail = _of(port, recent[-1])
            if rail is None or not self._keeps_pace(port, recent):
                continue
            over = [window for window in judged if window.began >= since]
            slow = self._tell(_Case(rail, over or recent, recent), direction)
            if slow is not None:
                yield replace(slow, drifted=True)

    def _jitter(self, direction: str, judged: Sequence[Compared]) -> Iterator[SlowRail]:
        """Yield the one rail that is slow for moments, again and again."""
        odd_ones = sum(bool(window.odd) for window in self._windows)
        limits = self._limits
        if len(judged) < limits.jitter_windows or odd_ones < limits.jitter_episodes:
            return
        episodes = {
            rail.port: self._episodes(rail.port) for rail in self._windows[-1].rails
        }
        worst = max(episodes, key=lambda port: len(episodes[port]))
        most = len(episodes.pop(worst))
        others = max(map(len, episodes.values()), default=0)
        if most < self._limits.jitter_episodes or others >= most:
            return
        if not self._keeps_pace(worst, judged):
            return
        odd = [window for window in self._windows if worst in window.odd]
        rail = next(each for each in odd[-1].rails if each.port == worst)
        since = self._told.get(worst, odd[0].began)
        slow = _slow(worst, direction, _Case(rail, odd, judged), odd, since)
        if slow is not None:
            yield replace(slow, jitter=True)

    def _episodes(self, port: PortId) -> list[float]:
        """Return when the moments began in which a rail was odd.

        Between two of them it was as the others, and some time passed.
        """
        found: list[float] = []
        last, sound = float("-inf"), True
        for window in self._windows:
            if port not in window.odd:
                sound = sound or window.judged
                continue
            if sound and window.began - last >= self._limits.jitter_apart_seconds:
                found.append(window.began)
            last, sound = window.at, False
        return found


def _newest(judged: Sequence[Compared], limits: Stragglers) -> Sequence[Compared]:
    """Return the newest windows: so many, and over so long, as are looked at."""
    number = min(limits.windows, len(judged))
    while number < len(judged):
        if judged[-1].at - judged[-number].began >= limits.least_seconds:
            break
        number += 1
    return judged[-number:]


def _slow(
    port: PortId,
    direction: str,
    case: _Case,
    over: Sequence[Compared],
    since: float,
) -> SlowRail | None:
    own = [_of(port, window) for window in over]
    kept = [(o, w) for o, w in zip(own, over, strict=True) if o is not None]
    if not kept:
        return None
    busy = fmean(rail.busy for rail, _ in kept)
    usual = fmean(window.busy for _, window in kept)
    rates = [(rail.p99, window.p99) for rail, window in kept if window.judged]
    rates = rates or [(rail.p99, case.windows[-1].p99) for rail, _ in kept]
    return SlowRail(
        port=port,
        rail=case.rail.rail,
        direction=direction,
        since=since,
        busy=busy,
        usual_busy=usual,
        busy_ratio=busy / max(usual, _LEAST_BUSY),
        p99=median(own for own, _ in rates),
        usual_p99=median(other for _, other in rates),
        flagged=len(case.odd),
        windows=len(case.windows),
        seconds=case.windows[-1].at - case.windows[0].began,
    )


def _of(port: PortId, window: Compared) -> RailBurst | None:
    return next((rail for rail in window.rails if rail.port == port), None)
