"""Which events are written, as new ones or as repeats, and how many. Pure.

As the recorder of client-go does (KEP-383): an event like the one before, soon after
it, is counted in a series of that one; and one source may write a burst of events, then
one now and then.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import replace

from fabricmon.config import Kubernetes
from fabricmon.sinks.kubernetes_words import EventText
from fabricmon.value import Value

MOST_SERIES = 256
"""Different events remembered; the one that was written longest ago is forgotten."""

_Key = tuple[str, str, str, str]


class Told(Value, frozen=True):
    """An event to be written: the first of its kind, or the ``count``-th of a series.

    ``first`` and ``at`` are Unix seconds.
    """

    text: EventText
    name: str
    count: int
    first: float
    at: float

    @property
    def is_repeat(self) -> bool:
        """Whether it belongs to an event that was written before."""
        return self.count > 1


class Series:
    """Remembers what was written lately."""

    def __init__(self, node: str, settings: Kubernetes, run: str) -> None:
        """Make names of ``node`` and ``run``, which no other run of an agent has."""
        self._stem = f"{node[:200]}.{run}"
        self._settings = settings
        self._known: OrderedDict[_Key, Told] = OrderedDict()
        self._made = 0
        self._tokens = float(settings.event_burst)
        self._filled_at: float | None = None

    def admit(self, now: float) -> bool:
        """Tell whether one more may be written at ``now`` (monotonic), and count it."""
        if self._filled_at is not None:
            gained = (now - self._filled_at) / self._settings.event_refill_seconds
            most = float(self._settings.event_burst)
            self._tokens = min(self._tokens + max(gained, 0.0), most)
        self._filled_at = now
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True

    def next(self, text: EventText, at: float) -> Told:
        """Return the event to write for this text, which came at ``at`` (Unix)."""
        before = self._known.get(_key(text))
        if before is not None and at - before.at <= self._settings.series_seconds:
            return replace(before, text=text, count=before.count + 1, at=at)
        return self.anew(text, at)

    def anew(self, text: EventText, at: float) -> Told:
        """Return a first event: the one before is gone."""
        self._made += 1
        return Told(text, f"{self._stem}.{self._made:x}", 1, at, at)

    def written(self, told: Told) -> None:
        """Remember what was written."""
        key = _key(told.text)
        self._known[key] = told
        self._known.move_to_end(key)
        if len(self._known) > MOST_SERIES:
            self._known.popitem(last=False)


def _key(text: EventText) -> _Key:
    return text.reason, text.kind, text.action, text.place
