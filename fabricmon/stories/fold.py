"""Identical events of processes, threads and channels as one. Pure.

Memory is bounded: the groups that were heard of longest ago leave first, and what is
loud never leaves for what is not.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import replace
from typing import TypeAlias, TypeVar, cast

from fabricmon.parse.log_event import LogEvent, LogField
from fabricmon.stories.nature import (
    ASYNC,
    COMPLETION,
    Phase,
    Tier,
    is_loud,
    retold,
    status_text,
    tier,
)
from fabricmon.value import State

MAX_JOBS = 16
"""Jobs named of one event."""

MAX_PROCESSES = 256
"""Processes told apart within one group; a node has fewer."""

MAX_TEXT = 512
"""Characters kept of each text of an event: lines come in any length."""

_TEXT = 200  # characters by which unclassified warnings are told apart
_SIGHTS = frozenset({ASYNC, "link_speed_change"})
_PROBES = frozenset(
    {
        "bootstrap_interface_error",
        "channel_via_socket",
        "env_setting",
        "gdr_disabled",
        "ib_device_open_failed",
        "ib_library_missing",
        "ib_no_device",
        "library_version",
        "net_fallback_socket",
        "net_selected",
        "suspicious_interface",
    }
)  # what every process of a host finds alike when it starts

Key: TypeAlias = tuple[object, ...]


class Group(State, eq=False):
    """One event and its repeats; most are of one process, so that a tuple names them.

    ``first`` and ``last`` are Unix seconds, None where neither log nor reader know;
    ``timed`` says whether the log itself told. ``order`` counts groups as they came.
    ``under`` is the group that was the root of its process when this one came.
    """

    event: LogEvent
    place: str
    order: int
    first: float | None
    last: float | None
    timed: bool
    count: int = 0
    processes: tuple[object, ...] = ()
    under: Group | None = None
    phase: Phase = Phase.UNKNOWN
    tier: Tier = Tier.NONE
    loud: bool = False
    jobs: tuple[str, ...] = ()

    def take(self, event: LogEvent, when: float | None) -> None:
        """Count a repeat; the earliest of them stands for all."""
        self.count += event.count
        who = event.pid if event.pid is not None else event.rank
        if len(self.processes) < MAX_PROCESSES and who not in self.processes:
            self.processes += (who,)
        job = event.job
        if job is not None and len(self.jobs) < MAX_JOBS and job not in self.jobs:
            self.jobs += (job,)
        if when is None:
            return
        if self.first is None or when < self.first:
            self.first = when
            self.event = event
        if self.last is None or when > self.last:
            self.last = when

    def folded(self, root: Group | None) -> LogEvent:
        """Return the event that stands for the group, under its root if it has one."""
        event = retold(self.event, root.event if root else None, self.phase)
        is_root = root is None and self.event.root
        return replace(event, count=self.count, root=is_root)


class Fold:
    """Open groups, at most ``limit``, half of them loud."""

    def __init__(self, limit: int, merge_seconds: float, repeat_seconds: float) -> None:
        """Start without groups."""
        self._most = max(limit // 2, 1)
        self._merge = merge_seconds
        self._repeat = repeat_seconds
        self._open: dict[bool, OrderedDict[Key, Group]] = {
            True: OrderedDict(),
            False: OrderedDict(),
        }
        self._made = 0
        self.dropped = 0
        """Loud events that had to leave because there was no room."""

    def add(
        self, event: LogEvent, place: str, when: float | None
    ) -> tuple[Group, bool, tuple[Group, ...]]:
        """Take in an event.

        Returns its group, whether it is new, and the groups that had to leave.
        """
        loud = is_loud(event)
        groups = self._open[loud]
        key = key_of(event, place)
        group = groups.get(key)
        left: tuple[Group, ...] = ()
        if group is not None and self._together(group, when):
            groups.move_to_end(key)
            group.take(event, when)
            return group, False, ()
        if group is not None:
            left = (groups.pop(key),)
        timed = event.time is not None
        group = Group(event, place, self._made, when, when, timed, loud=loud)
        group.tier = tier(event)
        self._made += 1
        group.take(event, when)
        groups[key] = group
        if len(groups) > self._most:
            oldest = groups.popitem(last=False)[1]
            self.dropped += oldest.count if loud else 0
            left += (oldest,)
        return group, True, left

    def groups(self) -> tuple[Group, ...]:
        """Return the groups that are open, in the order in which they began."""
        every = [group for side in self._open.values() for group in side.values()]
        return tuple(sorted(every, key=lambda group: group.order))

    def loud_groups(self) -> tuple[Group, ...]:
        """Return those that are faults, or follow from one."""
        return tuple(self._open[True].values())

    def drop_before(self, when: float) -> None:
        """Forget the groups that were last heard of before this."""
        for side in self._open.values():
            for key in [
                k for k, g in side.items() if g.last is not None and g.last < when
            ]:
                del side[key]

    def clear(self) -> None:
        """Forget all groups."""
        for side in self._open.values():
            side.clear()

    def _together(self, group: Group, when: float | None) -> bool:
        """Whether something at this time is still the same thing."""
        if when is None or group.first is None or group.last is None:
            return True
        if group.event.kind in _SIGHTS:
            return abs(when - group.first) <= self._merge
        if group.event.kind in _PROBES:
            return True
        return group.first - self._repeat <= when <= group.last + self._repeat


def key_of(event: LogEvent, place: str) -> Key:
    """Return what makes two events the same.

    Ports of a peer's socket are channels, and vendor codes beside a completion are
    noise: neither tells events apart. Context is the same where all its fields are.
    """
    kind = event.kind
    if kind in _SIGHTS:
        return (kind, place, event.device, event.port, status_text(event))
    if kind in _PROBES:
        tail = event.fields if kind == "env_setting" else ()
        return (kind, place, event.device, event.port, event.peer, event.status, *tail)
    who = (place, event.pid, event.rank)
    if kind == COMPLETION:
        return (kind, *who, event.peer, event.status, event.device)
    what: Key = (event.device, event.port, event.peer, event.status, event.comm)
    if kind == "unclassified_warn":
        return (kind, *who, *what, event.text[:_TEXT])
    if is_loud(event):
        return (kind, *who, *what)
    return (kind, event.rule, *who, *what, event.fields)


def gap(before: float | None, after: float | None) -> float:
    """Return seconds between two moments, 0 where one is not known."""
    return 0.0 if before is None or after is None else after - before


def trimmed(event: LogEvent) -> LogEvent:
    """Return an event whose texts are short enough to be kept by the thousand."""
    texts = (event.text, event.peer, event.device, event.comm, event.host, event.status)
    long = any(isinstance(text, str) and len(text) > MAX_TEXT for text in texts)
    fields = event.fields
    if any(isinstance(f.value, str) and len(f.value) > MAX_TEXT for f in fields):
        fields = tuple(LogField(f.name, _short(f.value)) for f in fields)
    elif not long:
        return event
    return replace(
        event,
        text=_short(event.text),
        peer=_short(event.peer),
        device=_short(event.device),
        comm=_short(event.comm),
        host=_short(event.host),
        status=_short(event.status),
        fields=fields,
    )


T = TypeVar("T")


def _short(value: T) -> T:
    return cast("T", value[:MAX_TEXT]) if isinstance(value, str) else value
