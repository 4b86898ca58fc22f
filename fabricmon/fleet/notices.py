"""What people hear of alerts: waiting, grouping and inhibition of Alertmanager.

Pure. The rules are those of its dispatcher: a group is flushed ``group_wait`` after
the first alert that made it, then every ``group_interval`` until it is empty; an alert
that is inhibited at a flush is not told at it, one that is over by its first is never
told, and one that comes back before the next has not been away.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from fabricmon.fleet.firing import Firing, Heard
from fabricmon.fleet.inhibiting import Inhibitor, labels_of
from fabricmon.fleet.rule import Inhibition


@dataclass(frozen=True, slots=True)
class Grouping:
    """``group_wait`` and ``group_interval`` of the route, and its ``group_by``.

    Without labels to group by each alert is a group of its own, so that none waits
    for the flush of another.
    """

    wait_seconds: float = 30
    interval_seconds: float = 300
    by: tuple[str, ...] | None = None


def hear(
    firings: Sequence[Firing],
    inhibitions: Iterable[Inhibition],
    grouping: Grouping,
    until: float,
) -> tuple[Heard, ...]:
    """Return what is heard of the alerts of one fleet, in order of their beginning.

    A group is flushed once, and then up to ``until``.
    """
    inhibitor = Inhibitor(inhibitions, firings)
    groups: dict[object, list[Firing]] = {}
    for firing in sorted(firings, key=lambda each: each.life.fired):
        groups.setdefault(_group_of(firing, grouping), []).append(firing)
    heard = [
        notice.heard
        for members in groups.values()
        for notice in _Group(members, inhibitor, grouping).notices(until)
    ]
    return tuple(sorted(heard, key=lambda each: each.firing.life.fired))


def _group_of(firing: Firing, grouping: Grouping) -> object:
    if grouping.by is None:
        return firing.labels
    return tuple(firing.label(name) for name in grouping.by)


@dataclass(slots=True)
class _Notice:
    """An alert in its group; ``current`` is the last time that it came, so far."""

    first: Firing
    current: Firing
    told: float | None = None
    resolved: float | None = None
    silenced: str | None = None

    @property
    def heard(self) -> Heard:
        return Heard(self.first, self.told, self.resolved, self.silenced)


class _Group:
    """Alerts that are told together, in order of their coming."""

    def __init__(
        self, members: Iterable[Firing], inhibitor: Inhibitor, grouping: Grouping
    ) -> None:
        self._waiting = deque(members)
        self._inhibitor = inhibitor
        self._grouping = grouping
        self._present: dict[object, _Notice] = {}
        self._all: list[_Notice] = []

    def notices(self, until: float) -> Sequence[_Notice]:
        """Play it; return what came of each alert."""
        while self._waiting:
            now = self._waiting[0].life.fired + self._grouping.wait_seconds
            while True:
                self._take(now)
                self._flush(now)
                now += self._grouping.interval_seconds
                if not self._present:
                    break  # an empty group is forgotten
                if now > until:
                    self._take(until)
                    return self._all
        return self._all

    def _take(self, now: float) -> None:
        """Let everything in that has come."""
        while self._waiting and self._waiting[0].life.fired <= now:
            firing = self._waiting.popleft()
            notice = self._present.get(firing.labels)
            if notice is None:
                notice = self._present[firing.labels] = _Notice(firing, firing)
                self._all.append(notice)
            notice.current = firing

    def _flush(self, now: float) -> None:
        for key, notice in list(self._present.items()):
            if notice.current.ended <= now:
                notice.resolved = None if notice.told is None else now
                del self._present[key]
                continue
            reason = self._inhibitor.reason(labels_of(notice.current), now)
            if reason is not None:
                notice.silenced = notice.silenced or reason
            elif notice.told is None:
                notice.told = now
