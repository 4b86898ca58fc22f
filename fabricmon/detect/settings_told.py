"""Settings that logs tell at the start of a process, kept while the job may run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct, field

from fabricmon.model import LibrarySetting, LogEvent, View
from fabricmon.value import State

KIND = "env_setting"
"""Kind of the log events that name a setting; its fields are ``name`` and ``value``."""

MAX_PROCESSES = 1024
MAX_SETTINGS = 128  # of one process
CONTAINERS = frozenset({"pods", "docker"})
"""Origins of logs whose processes may have a network of their own."""

LOST_SECONDS = 60.0
"""A log that is not followed for so long is over, and its job with it."""


class SavedTold(Struct, frozen=True):
    """One process as it is saved: times are Unix seconds."""

    file: str
    host: str | None
    pid: int | None
    job: str | None
    pod: str | None
    version: str | None
    at: float
    settings: dict[str, str]


class Told(State):
    """What a log told of one process; times are monotonic."""

    file: str
    host: str | None
    pid: int | None
    at: float
    followed: float
    job: str | None = None
    pod: str | None = None
    version: str | None = None
    contained: bool = False
    values: dict[str, str] = field(default_factory=dict)

    @property
    def settings(self) -> tuple[LibrarySetting, ...]:
        """What it was told to be set to."""
        return tuple(LibrarySetting(n, v, "log") for n, v in self.values.items())

    @property
    def group(self) -> str:
        """What its ranks have in common: the job, or else the file."""
        return self.job or self.file

    def is_here(self, node: str) -> bool:
        """Tell whether it ran on this node; logs may be shared by many."""
        return self.host is None or _short(self.host) == _short(node)


class ToldSettings:
    """Remembers them by file, host and process."""

    def __init__(self, remember_seconds: float) -> None:
        """Start with none."""
        self._remember = remember_seconds
        self._known: dict[tuple[str, str | None, int | None], Told] = {}
        self.version = 0
        """Changes whenever something else is known."""

    def __iter__(self) -> Iterator[Told]:
        """Go through the processes."""
        return iter(self._known.values())

    def take(self, view: View) -> None:
        """Take in what is new, forget what is over."""
        for event in view.log_events:
            if event.kind == KIND:
                self._note(event, view.now)
        if self._known:
            self._forget(view)

    def save(self, offset: float) -> tuple[SavedTold, ...]:
        """Return all of it; ``offset`` is wall minus monotonic."""
        return tuple(
            SavedTold(
                each.file, each.host, each.pid, each.job, each.pod, each.version,
                each.at + offset, dict(each.values),
            )
            for each in self._known.values()
        )  # fmt: skip

    def restore(self, saved: Iterable[SavedTold], offset: float, now: float) -> None:
        """Take back what `save` returned."""
        for each in list(saved)[:MAX_PROCESSES]:
            key = (each.file, each.host, each.pid)
            self._known[key] = Told(
                file=each.file,
                host=each.host,
                pid=each.pid,
                at=each.at - offset,
                followed=now,
                job=each.job,
                pod=each.pod,
                version=each.version,
                values=dict(each.settings),
            )
        self.version += 1

    def _note(self, event: LogEvent, now: float) -> None:
        name, value = event.field("name"), event.field("value")
        if not isinstance(name, str) or value is None:
            return
        key = (event.file, event.host, event.pid)
        told = self._known.get(key)
        if told is None:
            if len(self._known) >= MAX_PROCESSES:
                del self._known[next(iter(self._known))]
            told = Told(event.file, event.host, event.pid, now, now)
            self._known[key] = told
        told.at = told.followed = now
        told.job = event.job or told.job
        told.pod = event.pod or told.pod
        told.version = event.library_version or told.version
        text = str(value)
        if name in told.values or len(told.values) < MAX_SETTINGS:
            if told.values.get(name) != text:
                self.version += 1
            told.values[name] = text

    def _forget(self, view: View) -> None:
        followed = {log.path: log.origin for log in view.job.logs}
        jobs = {use.job for use in view.job.jobs}
        for key, told in tuple(self._known.items()):
            if told.file in followed:
                told.followed = view.now
                told.contained = followed[told.file] in CONTAINERS
            ended = bool(jobs) and told.job is not None and told.job not in jobs
            lost = view.now - told.followed > LOST_SECONDS
            if ended or lost or view.now - told.at > self._remember:
                del self._known[key]
                self.version += 1


def _short(host: str) -> str:
    return host.partition(".")[0].lower()
