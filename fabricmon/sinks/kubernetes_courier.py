"""The thread that tells the API server: newest condition, waiting events, retries.

The agent's loop only leaves things here. Whatever the server does, hang, refuse or be
away, happens to this thread alone.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fabricmon.config import Kubernetes
from fabricmon.model import Delivery, Incident, Snapshot
from fabricmon.redaction import Redactor
from fabricmon.runtime.logging import Changes
from fabricmon.sinks.kubernetes_api import Api, ApiError, Known, seconds_text, status_of
from fabricmon.sinks.kubernetes_series import Series
from fabricmon.sinks.kubernetes_words import (
    Condition,
    EventText,
    Voice,
    condition_of,
    event_of,
)
from fabricmon.sinks.mqtt_payloads import names_of

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

SINK = "kubernetes"
HOPELESS = frozenset({400, 403, 404, 409, 413, 422})
"""Answers that will be the same for the same event: it is dropped, the others go on."""

FORGOTTEN = 404
_SPREAD = 0.1  # of the heartbeat, so that nodes that start together drift apart
_LONGEST_DOUBLING = 30
_RANDOM = secrets.SystemRandom()


@dataclass(slots=True)
class _Wish:
    """The condition that should be told, since when, and when at the earliest."""

    condition: Condition
    since: float
    due: float

    def is_like(self, other: Condition) -> bool:
        return (self.condition.status, self.condition.reason) == (
            other.status,
            other.reason,
        )


class Courier:
    """Tells one node's condition and events until `stop`."""

    def __init__(
        self,
        settings: Kubernetes,
        redactor: Redactor,
        log: FilteringBoundLogger,
        made_before: Delivery | None = None,
    ) -> None:
        """Start nothing yet; counts go on from ``made_before``."""
        self._settings = settings
        self._redactor = redactor
        self._log = log
        self._changes = Changes()
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._stopping = False
        self._removes = not settings.condition
        self._newest: Snapshot | None = None
        self._waiting: deque[tuple[EventText, float]] = deque()
        self._delivery = made_before or Delivery(SINK)
        self._counts = {"delivered": 0, "dropped": 0, "failures": 0, "connects": 0}
        self._connected = False
        self._last_success: float | None = None
        self._api: Api | None = None
        self._series: Series | None = None
        self._known: Known | None = None
        self._has_asked = False
        self._wish: _Wish | None = None
        self._told: Condition | None = None
        self._next_beat = 0.0
        self._tries = 0
        self._resume_at = 0.0
        self._thread = threading.Thread(target=self._run, name=SINK, daemon=True)

    @property
    def delivery(self) -> Delivery:
        """How it fares."""
        with self._lock:
            before, counts = self._delivery, self._counts
            return Delivery(
                SINK,
                connected=self._connected,
                connects=before.connects + counts["connects"],
                delivered=before.delivered + counts["delivered"],
                waiting=len(self._waiting),
                dropped=before.dropped + counts["dropped"],
                failures=before.failures + counts["failures"],
                last_success=self._last_success or before.last_success,
            )

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def offer(self, snapshot: Snapshot, changes: tuple[Incident, ...]) -> None:
        """Take what there is to tell; returns at once."""
        before = self._newest
        texts: list[tuple[EventText, float]] = []
        if changes and self._settings.events:
            voice = self._voice(snapshot)
            made = ((event_of(each, voice), each.time) for each in changes)
            texts = [(text, at) for text, at in made if text is not None]
        with self._lock:
            self._newest = snapshot
            for text, at in texts:
                self._keep(text, at)
        if changes or before is None or _gist(before) != _gist(snapshot):
            self._wake.set()

    def stop(self, seconds: float, *, removes: bool = False) -> None:
        """End the thread, waiting so long; with ``removes`` the condition goes first."""
        self._removes = removes
        self._stopping = True
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join(seconds)

    def _keep(self, text: EventText, at: float) -> None:
        if len(self._waiting) >= self._settings.waiting_events:
            self._waiting.popleft()
            self._counts["dropped"] += 1
        self._waiting.append((text, at))

    def _voice(self, snapshot: Snapshot) -> Voice:
        return Voice(self._settings, self._redactor, names_of(snapshot))

    def _run(self) -> None:
        while not self._stopping:
            self._wake.wait(self._idle_seconds())
            self._wake.clear()
            if not self._must_wait():
                self._attempt(self._tell_all)
        if self._removes and self._newest is not None:
            self._attempt(self._remove)
        if self._api is not None:
            self._api.close()

    def _must_wait(self) -> bool:
        return self._stopping or time.monotonic() < self._resume_at

    def _attempt(self, work: Callable[[], bool]) -> None:
        try:
            if work():
                self._note_success()
        except ApiError as error:
            self._note_failure(error)
        except Exception as error:  # noqa: BLE001 - this thread must outlive its bugs
            self._note_failure(ApiError(repr(error)))

    def _idle_seconds(self) -> float | None:
        """Seconds until there is something to do; None to wait for news."""
        now = time.monotonic()
        if self._resume_at > now:
            return self._resume_at - now
        dues = [self._next_beat] if self._settings.condition and self._told else []
        if self._wish is not None:
            dues.append(self._wish.due)
        return max(min(dues) - now, 0.0) if dues else None

    def _tell_all(self) -> bool:
        """Tell what is due; True if the server took something."""
        snapshot = self._newest
        if snapshot is None:
            return False
        api = self._connect(snapshot)
        if self._removes:
            some = self._remove()
        else:
            some = self._settings.condition and self._tell_condition(api, snapshot)
        return self._tell_events(api) or some

    def _connect(self, snapshot: Snapshot) -> Api:
        if self._api is None:
            self._api = Api(self._settings, snapshot.node)
        if self._series is None:
            run = secrets.token_hex(6)
            self._series = Series(snapshot.node, self._settings, run)
        return self._api

    def _remove(self) -> bool:
        if self._newest is None:
            return False
        self._connect(self._newest).remove_condition()
        self._removes = False
        self._log.info("condition_removed", sink=SINK)
        return True

    def _tell_condition(self, api: Api, snapshot: Snapshot) -> bool:
        now = time.monotonic()
        wanted = condition_of(snapshot, self._voice(snapshot))
        if not self._has_asked:
            self._known, self._has_asked = api.condition(), True
        self._wish = self._wish_for(wanted, now)
        if self._wish is not None and now < self._wish.due:
            return False
        if self._wish is None and now < self._next_beat:
            return False
        changed = self._changed(wanted, now)
        api.set_condition(wanted, time.time(), changed)
        self._known = Known(wanted.status, wanted.reason, wanted.message, changed)
        self._told, self._wish = wanted, None
        beat = self._settings.heartbeat_seconds
        self._next_beat = now + beat * _RANDOM.uniform(1 - _SPREAD, 1 + _SPREAD)
        return True

    def _wish_for(self, wanted: Condition, now: float) -> _Wish | None:
        """Return the change to tell, None if the server knows it."""
        told = self._told
        if told is not None and _key(told) == _key(wanted):
            return None
        if self._wish is not None and self._wish.is_like(wanted):
            return self._wish
        wait = _RANDOM.uniform(0, self._settings.settle_seconds)
        if wanted.status == "Unknown":
            wait += self._settings.unknown_seconds
        return _Wish(wanted, now, now + wait)

    def _changed(self, wanted: Condition, now: float) -> str:
        """Return when the status changed: what the server knows holds over a restart."""
        known = self._known
        if known is not None and known.changed and status_of(known) == wanted.status:
            return known.changed
        ago = now - self._wish.since if self._wish is not None else 0.0
        return seconds_text(time.time() - ago)

    def _tell_events(self, api: Api) -> bool:
        some = False
        while not self._stopping:
            with self._lock:
                if not self._waiting:
                    return some
                text, at = self._waiting[0]
            try:
                if self._tell_event(api, text, at):
                    some = True
            except ApiError as error:
                if error.status not in HOPELESS:
                    raise
                self._note_refusal(error)
            self._drop_first(text, at)
        return some

    def _tell_event(self, api: Api, text: EventText, at: float) -> bool:
        series = self._series
        if series is None or not series.admit(time.monotonic()):
            self._count("dropped")
            return False
        told = series.next(text, at)
        try:
            api.write(told)
        except ApiError as error:
            if error.status != FORGOTTEN or not told.is_repeat:
                raise
            told = series.anew(text, at)  # the server keeps events for an hour
            api.write(told)
        series.written(told)
        self._count("delivered")
        return True

    def _drop_first(self, text: EventText, at: float) -> None:
        """Take off what was told, unless newer ones have pushed it out meanwhile."""
        with self._lock:
            if self._waiting and self._waiting[0] == (text, at):
                self._waiting.popleft()

    def _count(self, what: str) -> None:
        with self._lock:
            self._counts[what] += 1

    def _note_success(self) -> None:
        self._tries = 0
        with self._lock:
            self._last_success = time.monotonic()
            if not self._connected:
                self._counts["connects"] += 1
            self._connected = True
        if self._changes.note("server", None):
            self._log.info("server_reached", sink=SINK)

    def _note_refusal(self, error: ApiError) -> None:
        """Note that one event was refused: the server is there all the same."""
        with self._lock:
            self._counts["failures"] += 1
            self._counts["dropped"] += 1
        if self._changes.note("refusal", error.status):
            self._log.warning("event_refused", sink=SINK, err=str(error))

    def _note_failure(self, error: ApiError) -> None:
        with self._lock:
            self._counts["failures"] += 1
            self._connected = False
        if self._changes.note("server", str(error)):
            self._log.warning("server_unreachable", sink=SINK, err=str(error))
        doubled = 2 ** min(self._tries, _LONGEST_DOUBLING)
        self._tries += 1
        longest = self._settings.retry_seconds * doubled
        pause = _RANDOM.uniform(0, min(longest, self._settings.retry_cap_seconds))
        self._resume_at = time.monotonic() + max(pause, error.wait)
        self._has_asked = False  # somebody else may have changed it meanwhile
        self._wake.set()


def _gist(snapshot: Snapshot) -> tuple[object, ...]:
    """Return what may change the condition without any change of a finding."""
    return snapshot.verdict, snapshot.class_error, bool(snapshot.ports)


def _key(condition: Condition) -> tuple[str, str]:
    return condition.status, condition.reason
