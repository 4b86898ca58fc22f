"""The errors of one port that count, and how many windows speak against it."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import replace
from math import inf, isfinite

import msgspec
from msgspec import field

from fabricmon.catalogue import CounterSpec
from fabricmon.history import History
from fabricmon.model import Evidence, Finding, Move, PortId
from fabricmon.value import State, Value

MOST_RECOVERIES = 64
"""Steps of the recovery counter that are kept: far more than any limit."""


class Recovery(Value, frozen=True):
    """One step of the recovery counter ``file``."""

    at: float
    count: int
    file: str


class SavedWatch(msgspec.Struct, frozen=True):
    """A `Watch` as it survives a restart; times are Unix seconds."""

    device: str
    port: int
    windows: int
    began: float | None
    last: float | None
    agreed_at: float | None
    next_from: float | None
    critical_at: float | None
    local: bool
    evidence: tuple[Evidence, ...]
    summary: str
    recoveries: tuple[Recovery, ...]
    longest_gap: float = 0.0


class SavedWatches(msgspec.Struct, frozen=True):
    """All ports that are watched."""

    ports: tuple[SavedWatch, ...] = ()


class Watch(State):
    """A port that has errors; times are monotonic seconds."""

    pending: list[Move] = field(default_factory=list)
    counted: dict[CounterSpec, History] = field(default_factory=dict)
    recoveries: deque[Recovery] = field(
        default_factory=lambda: deque(maxlen=MOST_RECOVERIES)
    )
    windows: int = 0  # that agree
    began: float = -inf  # first error of this stretch
    last: float = -inf  # newest error that counted
    agreed_at: float = -inf  # end of the newest window over its bound
    longest_gap: float = 0.0  # seconds between two windows that agreed
    next_from: float = -inf  # where the next window may begin
    critical_at: float = -inf
    local: bool = False  # an error was seen at this end, not only in packets
    evidence: tuple[Evidence, ...] = ()
    summary: str = ""
    quiet_minutes: int = 0  # without errors, as the summary says
    finding: Finding | None = None  # prepared, until something changes
    unstable: Finding | None = None

    def settled(self, before: float) -> Iterator[Move]:
        """Take out the pending errors that happened before then, oldest first."""
        ready = [move for move in self.pending if move.at <= before]
        if ready:
            self.pending = [move for move in self.pending if move.at > before]
        yield from sorted(ready, key=lambda move: move.at)

    def count(self, move: Move, horizon_seconds: float) -> History:
        """Count an error: nothing but the link explains it."""
        since = move.at - move.seconds
        if since - self.last > horizon_seconds:
            self.began = move.at
            self.agreed_at, self.longest_gap = -inf, 0.0
            self.forget_damage()
        self.last = max(self.last, move.at)
        history = self.counted.get(move.spec)
        if history is None:
            history = self.counted[move.spec] = History(since, horizon_seconds)
        history.step(since, move.at, move.increase, move.mark)
        return history

    def recovered(self, now: float, seconds: float) -> tuple[str, int]:
        """Return who counted most recoveries in the last ``seconds``, and how many.

        Older ones are forgotten. Two counters of one port tell of the same events.
        """
        while self.recoveries and self.recoveries[0].at <= now - seconds:
            self.recoveries.popleft()
        counted: dict[str, int] = {}
        for item in self.recoveries:
            counted[item.file] = counted.get(item.file, 0) + item.count
        return max(counted.items(), key=lambda item: item[1], default=("", 0))

    def agree(self, at: float) -> None:
        """Note that a window that ended at ``at`` was over its bound."""
        if isfinite(self.agreed_at):
            self.longest_gap = max(self.longest_gap, at - self.agreed_at)
        self.agreed_at = at

    def forget_damage(self) -> None:
        """Begin anew: the link was clean for long enough."""
        self.windows, self.next_from, self.local = 0, -inf, False
        self.evidence, self.summary, self.finding = (), "", None

    def saved(self, port: PortId, offset: float) -> SavedWatch:
        """Return what must survive; ``offset`` is wall minus monotonic seconds."""
        return SavedWatch(
            device=port.device,
            port=port.port,
            windows=self.windows,
            began=_moved(self.began, offset),
            last=_moved(self.last, offset),
            agreed_at=_moved(self.agreed_at, offset),
            longest_gap=self.longest_gap,
            next_from=_moved(self.next_from, offset),
            critical_at=_moved(self.critical_at, offset),
            local=self.local,
            evidence=self.evidence,
            summary=self.summary,
            recoveries=tuple(replace(r, at=r.at + offset) for r in self.recoveries),
        )


def watches(
    saved: Iterable[SavedWatch], offset: float
) -> Iterator[tuple[PortId, Watch]]:
    """Go on watching what was saved."""
    for item in saved:
        watch = Watch(
            windows=item.windows,
            began=_restored(item.began, offset),
            last=_restored(item.last, offset),
            agreed_at=_restored(item.agreed_at, offset),
            longest_gap=item.longest_gap,
            next_from=_restored(item.next_from, offset),
            critical_at=_restored(item.critical_at, offset),
            local=item.local,
            evidence=item.evidence,
            summary=item.summary,
        )
        watch.recoveries.extend(replace(r, at=r.at - offset) for r in item.recoveries)
        yield PortId(item.device, item.port), watch


def _moved(at: float, offset: float) -> float | None:
    return at + offset if isfinite(at) else None


def _restored(at: float | None, offset: float) -> float:
    return -inf if at is None else at - offset
