"""What follows from what, among the events of a log. Pure.

Order in a file is not order in time: threads of one process are late with each other,
so that the verdict on an event is asked for when it is needed, not when it comes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from fabricmon.config import Stories
from fabricmon.parse.log_event import LogEvent
from fabricmon.stories.fold import Group, gap
from fabricmon.stories.nature import (
    CLOSED,
    COMPLETION,
    FALLBACKS,
    SET_UP,
    Tier,
    has_index,
    kills_link,
)
from fabricmon.stories.roster import Node, Process, Roster

_CHAIN = 64  # groups under each other; each step is one that came earlier in time


class Causes:
    """Tells the root of a group by what its process, node, peer and job said."""

    def __init__(self, limits: Stories, roster: Roster) -> None:
        """Ask this roster, within these limits."""
        self._limits = limits
        self._roster = roster
        self._everywhere = Node("")

    def note(self, group: Group, process: Process) -> None:
        """Put a new group in its place among those of its process and node."""
        if group.event.kind in SET_UP | FALLBACKS:
            self._note_set_up(group, process)
        elif group.loud and group.tier is not Tier.NONE:
            self._note_failure(group, process)
            self._roster.node(group.place).add_cause(group)
            if group.tier is Tier.ROOT:
                self._everywhere.add_cause(group)

    def repeat(self, group: Group, process: Process) -> None:
        """Note that a process saw what another told first."""
        if group.event.kind in SET_UP:
            process.set_up = process.set_up or group
        if not group.loud or group.tier is Tier.NONE:
            return
        root = process.root
        late = gap(root.first, group.last) if root is not None else 0.0
        if root is None or late > self._limits.root_seconds:
            process.root = group
        elif group.tier > root.tier:
            process.root, root.under = group, group

    def trace(self, event: LogEvent, process: Process) -> None:
        """Take a line of an error's way up through the library.

        A connection that closed while the bootstrap accepted it, and from nobody who is
        in these logs, was a port scan or a health probe (NCCL up to 2.27.2 dies of it).
        """
        root, source = process.root, event.field("file")
        if root is None or root.event.kind != CLOSED or root.under is not None:
            return
        stranger = self._roster.named(root.event.peer) is None
        in_bootstrap = str(source or "").startswith("bootstrap")
        if root.event.cause is None and stranger and in_bootstrap:
            root.event = replace(root.event, cause="port_scan_or_health_probe")

    def root_of(self, group: Group) -> Group | None:
        """Return what a group follows from, None if it is a root itself."""
        found = self._explained(group)
        for _ in range(_CHAIN):
            above = None if found is None else self._explained(found)
            if above is None or above is group:
                return found
            found = above
        return found

    def _explained(self, group: Group) -> Group | None:
        if group.under is not None:
            return group.under
        if group.tier is Tier.ROOT:
            return self._lost_link(group)
        if group.tier is Tier.NONE:
            return None
        nodes = [*self._nodes(group)]
        if group.tier in {Tier.LATE, Tier.ECHO}:
            nodes.append(self._everywhere)
        found = [
            cause
            for node in nodes
            for level, causes in node.causes.items()
            if level > group.tier
            for cause in causes
            if self._above(cause, group) and _same_job(cause, group)
        ]
        return min(found, key=lambda cause: (-cause.tier, cause.order), default=None)

    def _note_set_up(self, group: Group, process: Process) -> None:
        first = process.set_up
        if (
            first is not None
            and gap(first.first, group.first) <= self._limits.root_seconds
        ):
            group.under = first
        elif group.event.kind in SET_UP:
            process.set_up = group

    def _note_failure(self, group: Group, process: Process) -> None:
        """Apply the rule: the first failure of a process explains the next ones."""
        root, limit = process.root, self._limits.root_seconds
        if root is None:
            process.root = group
            return
        late = gap(root.first, group.first)
        earlier = group.tier == root.tier and -limit <= late < 0
        higher = group.tier > root.tier and late <= limit
        if earlier or higher or self._lost_by(group, root):
            process.root, root.under = group, group
        elif self._above(root, group):
            group.under = root
        elif group.tier >= root.tier:
            process.root = group

    def _above(self, cause: Group, group: Group) -> bool:
        """Whether one may follow from the other, by tier and time."""
        late, limits = gap(cause.first, group.first), self._limits
        if cause.tier > group.tier:
            return -limits.root_seconds <= late <= limits.consequence_seconds
        return cause.tier == group.tier and 0 <= late <= limits.root_seconds

    def _nodes(self, group: Group) -> Iterator[Node]:
        """Yield the nodes whose failures may explain one: its own, its peer's."""
        peer = self._roster.named(group.event.peer)
        names = (group.place, peer, group.event.file if peer is None else None)
        for name in dict.fromkeys(names):
            node = self._roster.nodes.peek(name) if name else None
            if node is not None:
                yield node

    def _lost_link(self, group: Group) -> Group | None:
        """Return the port or device whose loss made a completion fail."""
        if group.event.kind != COMPLETION:
            return None
        for node in self._nodes(group):
            for cause in node.lost:
                if self._lost_by(cause, group):
                    return cause
        return None

    def _lost_by(self, cause: Group, group: Group) -> bool:
        """Whether a completion failed because of this loss, read before it or after."""
        if group.event.kind != COMPLETION or not kills_link(cause.event):
            return False
        near = abs(gap(cause.first, group.first)) <= self._limits.root_seconds
        return near and not (cause.place == group.place and _differ(cause, group))


def _same_job(cause: Group, group: Group) -> bool:
    jobs = {cause.event.job, group.event.job} - {None}
    return len(jobs) < len(("one", "other"))


def _differ(cause: Group, group: Group) -> bool:
    """Whether two events of a node speak of two devices."""
    if has_index(cause.event):
        return False
    return None not in {cause.event.device, group.event.device} and (
        cause.event.device != group.event.device
    )
