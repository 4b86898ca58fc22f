"""From events of logs to what happened: who failed first, and what only follows. Pure.

One story takes in events of any number of logs, live or of a dead job, in any order,
and holds a bounded number of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from msgspec import field

from fabricmon.config import Logs
from fabricmon.parse.log_event import LogEvent
from fabricmon.parse.log_shared import Shared
from fabricmon.stories.budget import RetryBudget
from fabricmon.stories.causes import Causes
from fabricmon.stories.fold import MAX_JOBS, Fold, Group, gap, trimmed
from fabricmon.stories.job import JobStory, budget_of, job_stories
from fabricmon.stories.learn import learn, phase_of
from fabricmon.stories.nature import (
    ASYNC,
    COMPLETION,
    PORT_ACTIVE,
    PORT_ERROR,
    TRACE,
    Nature,
    Phase,
    Tier,
    has_index,
    kills_link,
    nature,
    status_text,
    tier,
)
from fabricmon.stories.roster import Bounded, PortStory, Process, Roster, plain_address
from fabricmon.stories.votes import Suspect, Votes, rail_suspects, suspects
from fabricmon.value import State, Value

MAX_TROUBLES = 1024
"""Troubles remembered of those whose events had to leave memory."""

MAX_PEERS = 16
"""Peers named of one trouble."""

_VOTING = frozenset(
    {
        "gin_completion_error",
        "ib_modify_qp_failed",
        "ofi_request_error",
        "socket_connect_failed",
        "socket_reset",
    }
)
_VOTING_STATUS = frozenset({11, 12, 13})  # what a peer or the way to it can cause


class Trouble(Value, frozen=True):
    """One thing that went wrong on one node, by its first report.

    ``first`` and ``last`` are Unix seconds, None where nobody knows. ``reports`` are
    the lines that say it, ``consequences`` those that follow from it, ``heard`` is the
    newest of both. ``flap`` says that the port came back, None for what is no port.
    ``over`` says that nothing of it was heard for long.
    """

    root: LogEvent
    node: str
    nature: Nature
    phase: Phase
    first: float | None
    last: float | None
    reports: int
    consequences: int
    processes: int
    peers: tuple[str, ...]
    peer_nodes: tuple[str, ...]
    downs: int = 0
    flap: bool | None = None
    over: bool = False
    budget: RetryBudget | None = None
    devices: tuple[str, ...] = ()
    members: frozenset[object] = frozenset()
    """The processes, by pid or rank."""
    heard: float | None = None
    jobs: tuple[str, ...] = ()
    """The jobs that suffered it, as far as they are named: they may share an HCA."""


class _Tale(State):
    """A trouble that is being put together."""

    chief: Group
    reports: int = 0
    consequences: int = 0
    processes: set[object] = field(default_factory=set)
    peers: dict[str, None] = field(default_factory=dict)
    jobs: dict[str, None] = field(default_factory=dict)
    last: float | None = None
    heard: float | None = None

    def take(self, group: Group) -> None:
        """Add a root group; the earliest of them leads."""
        if _before(group, self.chief):
            self.chief = group
        self.reports += group.count
        self.processes.update(group.processes)
        if group.event.peer is not None and len(self.peers) < MAX_PEERS:
            self.peers.setdefault(group.event.peer)
        for job in group.jobs:
            if len(self.jobs) < MAX_JOBS:
                self.jobs.setdefault(job)
        if group.last is not None and (self.last is None or group.last > self.last):
            self.last = group.last
        self._hear(group.last)

    def follow(self, group: Group, closing_seconds: float) -> None:
        """Add what follows from it; what comes when it is over does not revive it."""
        self.consequences += group.count
        near = gap(self.heard, group.first) <= closing_seconds
        if near:
            self._hear(group.last)

    def _hear(self, when: float | None) -> None:
        if when is not None and (self.heard is None or when > self.heard):
            self.heard = when


class Story:
    """What the logs of one node, or of one dead job, tell."""

    def __init__(self, limits: Logs, *, tells: bool = False) -> None:
        """Start with nothing heard; ``tells`` makes `add` return what had to leave."""
        self._tells = tells
        self._limits = limits.stories
        self._closing = limits.closing_seconds
        self._roster = Roster()
        self._causes = Causes(self._limits, self._roster)
        self._fold = Fold(
            self._limits.open_groups,
            self._limits.event_merge_seconds,
            min(self._limits.repeat_seconds, self._closing),
        )
        self._votes = Votes()
        self._shared = Shared()
        self._settled: Bounded[object, _Tale] = Bounded(MAX_TROUBLES)
        self.events = 0
        """Events taken in."""

    @property
    def dropped(self) -> int:
        """What there was no room for: events that left early, processes, votes."""
        parts = (self._fold, self._roster, self._votes, self._settled)
        return sum(part.dropped for part in parts)

    def add(
        self, event: LogEvent, at: float | None = None, *, source: str = ""
    ) -> tuple[LogEvent, ...]:
        """Take in an event; return folded ones that had to leave, if that is wanted.

        ``at`` is Unix seconds at which the line was written as far as its reader can
        tell; it counts where the log has no time. Leave it out for old files.
        ``source`` is what holds the logs of one job at most, if they name none.
        """
        self.events += event.count
        event = self._shared.event(trimmed(event))
        when = event.time if event.time is not None else at
        place = self._roster.place_of(event)
        process = self._roster.process_of(event, place)
        process.source = process.source or source
        event = self._resolved(event, process)
        group, is_new, left = self._fold.add(event, place, when)
        if is_new:
            group.phase = phase_of(event, process, when, self._limits.start_seconds)
            self._causes.note(group, process)
        elif process.root is not group:
            self._causes.repeat(group, process)
        if event.kind == TRACE:
            self._causes.trace(event, process)
        learn(event, process, self._roster, when)
        self._note_port(event, place, when)
        self._vote(event, place, when)
        for one in left:
            self._settle(one)
        if not self._tells:
            return ()
        return tuple(one.folded(self._causes.root_of(one)) for one in left)

    def finish(self) -> tuple[LogEvent, ...]:
        """Return all events that are left, in the order in which they began."""
        groups = self._fold.groups()
        self._tell(sorted(groups, key=_began), self._settled)
        found = tuple(group.folded(self._causes.root_of(group)) for group in groups)
        self._fold.clear()
        return found

    def forget(self, before: float) -> None:
        """Forget what was last heard of before this time (Unix seconds)."""
        self._fold.drop_before(before)
        self._votes.forget(before)
        for key, tale in list(self._settled.items()):
            if tale.heard is not None and tale.heard < before:
                self._settled.drop(key)

    def troubles(self, now: float | None = None) -> tuple[Trouble, ...]:
        """Return what went wrong, the first first; ``now`` tells what is over."""
        tales: Bounded[object, _Tale] = Bounded(MAX_TROUBLES)
        for key, tale in self._settled.items():
            tales.put(key, _copy(tale))
        self._tell(sorted(self._fold.loud_groups(), key=_began), tales)
        found = [self._trouble(tale, now) for tale in tales.values()]
        return tuple(sorted(found, key=_order))

    def suspects(self) -> tuple[Suspect, ...]:
        """Return whom the observers accuse: nodes, pairs and rails."""
        limits, roster = self._limits, self._roster
        names = {address: node for address, node in roster.addresses.items() if node}
        peers = {peer for _, peer in self._votes.pairs}
        names |= {peer: node for peer in peers if (node := roster.named(peer))}
        votes = self._votes.renamed(names)
        self._add_talks(votes)
        rails = {
            node.name: {nic.device: nic.index for nic in node.nics.values()}
            for node in roster.nodes.values()
        }
        by_rail = rail_suspects(votes, rails, limits.vote_observers)
        by_node = suspects(votes, limits.vote_observers, limits.vote_share)
        return (*by_rail, *by_node)

    def jobs(self) -> tuple[JobStory, ...]:
        """Return the jobs that the logs speak of; one without name may be several."""
        return job_stories(self._roster.processes.values())

    @property
    def roster(self) -> Roster:
        """Everybody the logs speak of: processes, nodes, their NICs and channels."""
        return self._roster

    def _add_talks(self, votes: Votes) -> None:
        """Tell the votes which nodes have channels with each other."""
        for process in self._roster.processes.values():
            node = self._roster.nodes.peek(process.place)
            for route in node.routes.values() if node else ():
                if route.rank == process.rank:
                    peer = self._roster.node_of_rank(process.job, route.peer_rank)
                    if peer is not None:
                        votes.add_talk(process.place, peer)

    def _settle(self, group: Group) -> None:
        """Take leave of a group: what it told stays, as a line of its trouble."""
        if group.loud:
            self._tell((group,), self._settled)

    def _tell(self, groups: Iterable[Group], tales: Bounded[object, _Tale]) -> None:
        """Enter groups into the tales of their roots."""
        for group in groups:
            if not group.loud:
                continue
            root = self._causes.root_of(group)
            tale = self._tale(root or group, tales)
            if root is None or _tale_key(root) == _tale_key(group):
                tale.take(group)
            else:
                tale.follow(group, self._closing)

    def _tale(self, chief: Group, tales: Bounded[object, _Tale]) -> _Tale:
        """Return the tale of a root: one that was quiet for long is another episode."""
        key = _tale_key(chief)
        tale = tales.get(key)
        if tale is not None and gap(tale.heard, chief.first) > self._closing:
            tales.put((key, tale.chief.order), tale)
            tale = None
        return tale or tales.put(key, _Tale(chief, last=chief.first, heard=chief.first))

    def _trouble(self, tale: _Tale, now: float | None) -> Trouble:
        chief = tale.chief
        event = chief.event
        process = self._roster.process_of(event, chief.place)
        story = self._port_story(event, chief.place)
        peers = tuple(tale.peers)
        named = (self._roster.named(peer) for peer in peers)
        over = (
            now is not None
            and tale.heard is not None
            and now - tale.heard >= self._closing
        )
        return Trouble(
            chief.folded(None),
            chief.place,
            nature(event, chief.phase),
            chief.phase,
            chief.first,
            tale.last,
            tale.reports or chief.count,
            tale.consequences,
            len(tale.processes),
            peers,
            tuple(dict.fromkeys(node for node in named if node)),
            story.downs if story else 0,
            story.is_back if story else None,
            over,
            budget_of(process),
            self._devices(process, event) if len(tale.processes) <= 1 else (),
            frozenset(tale.processes),
            tale.heard,
            tuple(tale.jobs),
        )

    def _resolved(self, event: LogEvent, process: Process) -> LogEvent:
        """Name a device that is a number: the completion before has its name."""
        root = process.root
        if root is None or root.event.kind != COMPLETION or not has_index(event):
            return event
        name = root.event.device
        return event if name is None else replace(event, device=name)

    def _devices(self, process: Process, event: LogEvent) -> tuple[str, ...]:
        """Return the HCAs that it can be: named, or all that the rank's channels use."""
        if event.device is not None and not has_index(event):
            return (event.device,)
        node = self._roster.nodes.peek(process.place)
        if node is None or process.rank is None:
            return ()
        used = {r.device for r in node.routes.values() if r.rank == process.rank}
        return tuple(sorted(device for device in used if device))

    def _note_port(self, event: LogEvent, place: str, when: float | None) -> None:
        if event.kind != ASYNC:
            return
        text = status_text(event)
        if text in {PORT_ERROR, PORT_ACTIVE}:
            story = self._roster.node(place).port(event.device, event.port)
            if gap(story.last, when) > self._closing:
                story.threads.clear()
            thread = (event.pid, event.thread, event.rank)
            story.note(thread, is_up=text == PORT_ACTIVE, when=when)

    def _port_story(self, event: LogEvent, place: str) -> PortStory | None:
        if event.kind != ASYNC or status_text(event) != PORT_ERROR:
            return None
        node = self._roster.nodes.peek(place)
        return node.ports.get((event.device, event.port)) if node else None

    def _vote(self, event: LogEvent, place: str, when: float | None) -> None:
        if event.device is not None and (event.kind == COMPLETION or kills_link(event)):
            self._votes.add_port(place, event.device)
        if event.peer is not None and names_peer(event):
            peer = self._shared.text(plain_address(event.peer))
            self._votes.add(place, peer, event.count, when)


def names_peer(event: LogEvent) -> bool:
    """Whether an event that has a peer speaks against it, or the way to it."""
    if event.kind == COMPLETION:
        return event.status in _VOTING_STATUS
    return event.kind in _VOTING and tier(event) is Tier.ROOT


def _tale_key(chief: Group) -> object:
    """Return what makes root groups one trouble: node and kind, not peer or process."""
    event = chief.event
    status = None if chief.tier is Tier.LATE else event.status
    return (chief.place, event.kind, status, event.device, event.port)


def _copy(tale: _Tale) -> _Tale:
    return replace(
        tale,
        processes=set(tale.processes),
        peers=dict(tale.peers),
        jobs=dict(tale.jobs),
    )


def _before(group: Group, other: Group) -> bool:
    if group.first is not None and other.first is not None:
        return group.first < other.first
    return group.order < other.order


def _began(group: Group) -> tuple[float, int]:
    """Sort by time; what has none goes with the first."""
    return (group.first or 0.0, group.order)


def _order(trouble: Trouble) -> tuple[bool, float]:
    """Sort by time; what has none comes after, in the order in which it came."""
    return (trouble.first is None, trouble.first or 0.0)
