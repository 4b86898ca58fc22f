"""What the logs of collective libraries say of the fabric, held against the ports."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from math import inf

import msgspec
from msgspec import Struct

from fabricmon.config import Config
from fabricmon.detect.nccl_incident import (
    Episode,
    Key,
    LogIncident,
    episode_of,
    gather,
)
from fabricmon.detect.nccl_places import NO_PORT, NOWHERE, place_of
from fabricmon.detect.nccl_ports import PortSigns, joined
from fabricmon.detect.nccl_telling import (
    annotated,
    tell_error,
    tell_fallback,
    tell_peer,
)
from fabricmon.detect.nccl_votes import PeerTally
from fabricmon.detect.steady_clock import SteadyClock
from fabricmon.model import (
    Blindness,
    Finding,
    JobFacts,
    OutageBudget,
    PeerVotes,
    Role,
    View,
)
from fabricmon.parse.words import PortState
from fabricmon.stories.job import JobStory
from fabricmon.stories.story import Story, Trouble

LOOK_SECONDS = 5.0
"""How often the story is asked again while no log says anything."""

_RAILS = frozenset({Role.COMPUTE, Role.UNKNOWN})


class Told(Struct, frozen=True):
    """A finding that was told, and when it was last heard of (Unix seconds)."""

    finding: Finding
    heard: float


class NcclErrors:
    """Tells the first error of a job, with what the ports showed in those minutes."""

    name = "nccl"
    kinds: tuple[str, ...] = ("nccl_error", "nccl_fallback", "peer_suspect")

    def __init__(self, config: Config) -> None:
        """Take the limits of ``logs``."""
        self._limits = config.logs
        self._story = Story(config.logs)
        self._signs = PortSigns(config.logs.joining_seconds)
        self._tally = PeerTally(config.logs.closing_seconds)
        self._incidents: dict[Key, LogIncident] = {}
        self._ended: dict[Episode, float] = {}
        self._jobs: tuple[JobStory, ...] = ()
        self._votes: tuple[PeerVotes, ...] = ()
        self._heard: dict[str, float] = {}
        self._fallen_since: dict[str, float] = {}
        self._asked_at = -inf
        self._carried: tuple[Told, ...] = ()
        self._told: tuple[Told, ...] = ()
        self._clock = SteadyClock()

    def judge(self, view: View) -> Iterator[Finding]:
        """Yield the errors, fallbacks and suspected peers that hold now."""
        view = self._clock.view(view)
        self._signs.note(view)
        for event in view.log_events:
            self._story.add(event, view.wall)
            self._tally.add(event, view.wall)
            self._heard[event.job or event.comm or ""] = view.wall
        if not self._heard and not self._carried:
            return
        if view.log_events or view.now - self._asked_at >= LOOK_SECONDS:
            self._ask(view)
        found = [*self._errors(view), *self._fallbacks(view), *self._suspects(view)]
        found += self._from_before(found, view.wall)
        if self._clock.step:
            found = [_set_on(told, self._clock.step) for told in found]
        self._told = tuple(found)
        yield from (told.finding for told in found)

    def blind(self, view: View) -> Iterator[Blindness]:
        """Without a log nothing of this is known."""
        if not view.job.logs:
            for kind in self.kinds:
                yield Blindness(kind, "no log of a job is followed")

    def save(self) -> bytes:
        """Return what was told: the logs say it only once."""
        return msgspec.msgpack.encode(self._told)

    def restore(self, saved: bytes, view_offset: float) -> None:
        """Take over what was told; raises ValueError for what is damaged."""
        del view_offset  # times are Unix seconds
        try:
            self._carried = msgspec.msgpack.decode(saved, type=tuple[Told, ...])
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise ValueError(f"nccl: {error}") from error

    def annotate(self, finding: Finding, view: View) -> Finding:
        """Add what a log said of the port that a finding is about."""
        if not self._incidents:
            return finding
        wall = self._clock.view(view).wall
        return annotated(finding, self._incidents.values(), wall)

    def job_facts(self) -> JobFacts:
        """Return what the logs tell of jobs and peers, for those who export it."""
        budgets = tuple(
            OutageBudget(job.name, job.budget.seconds)
            for job in self._jobs
            if job.name and job.budget is not None and job.budget.seconds is not None
        )
        return JobFacts(budgets, self._votes)

    def _ask(self, view: View) -> None:
        """Ask the story what is wrong now, and forget what is long over."""
        self._asked_at = view.now
        limits = self._limits
        keep = limits.closing_seconds + limits.stories.consequence_seconds
        self._story.forget(view.wall - keep)
        self._jobs = self._story.jobs()
        self._votes = self._tally.votes(view.wall, view.peer_name)
        troubles = self._story.troubles(view.wall)
        before = self._incidents
        self._incidents = gather(
            troubles,
            before,
            view.wall,
            limits.stories.root_seconds,
            self._ended,
        )
        self._end(before.values(), troubles)

    def _end(self, before: Iterable[LogIncident], troubles: Iterable[Trouble]) -> None:
        """Remember what is over now, as long as the story does: it is not told again."""
        lasting = {episode_of(t) for i in self._incidents.values() for t in i.troubles}
        for incident in before:
            for episode in map(episode_of, incident.troubles):
                if incident.is_told and episode not in lasting:
                    self._ended[episode] = incident.heard
        known = {episode_of(trouble) for trouble in troubles}
        self._ended = {e: at for e, at in self._ended.items() if e in known}

    def _errors(self, view: View) -> Iterator[Told]:
        for key, incident in tuple(self._incidents.items()):
            waited = view.wall - incident.seen  # below 0 where the clock was set back
            if not incident.is_told and 0 <= waited < self._limits.settle_seconds:
                continue
            placed = incident
            if not incident.is_told:
                placed = self._place(incident, view)
            if placed.place.port is not None:
                signs = self._signs.of(placed.place.port, view.now)
                placed = replace(placed, shown=joined(placed.shown, signs))
            self._incidents[key] = placed
            yield Told(tell_error(placed, view), incident.heard)

    def _place(self, incident: LogIncident, view: View) -> LogIncident:
        """Fix which port and peer an incident is about: its identity, once told."""
        place = place_of(incident.troubles, self._signs, view)
        if place is NO_PORT:
            return replace(incident, place=place, is_told=True)
        peers = dict.fromkeys(peer for t in incident.troubles for peer in t.peers)
        names = dict.fromkeys(view.peer_name(peer) for peer in peers)
        peer = next(iter(names)) if len(names) == 1 else None
        if peer is None and place is not NOWHERE and place.port is not None:
            first = incident.root.peers
            peer = view.peer_name(first[0]) if len(first) == 1 else None
        return replace(incident, place=place, peer=peer, is_told=True)

    def _fallbacks(self, view: View) -> Iterator[Told]:
        """Yield jobs on TCP; a job that the node knows lasts until it is gone."""
        active = sum(
            port.status is not None
            and port.status.state is PortState.ACTIVE
            and port.info.role in _RAILS
            for port in view.ports
        )
        running = {use.job for use in view.job.jobs}
        fallen = [job for job in self._jobs if job.fallback] if active else []
        names = {job.name for job in fallen}
        for job in fallen:
            heard = self._heard.get(job.name, view.wall)
            if job.name in running:
                heard = view.wall
            if view.wall - heard < self._limits.closing_seconds:
                since = self._fallen_since.setdefault(job.name, heard)
                yield Told(tell_fallback(job, active, since), heard)
        for gone in self._fallen_since.keys() - names:
            del self._fallen_since[gone]

    def _suspects(self, view: View) -> Iterator[Told]:
        """Yield the peer that is named more than any other, if that is often enough."""
        if not self._votes or self._votes[0].votes < self._limits.peer_votes:
            return
        first, *others = self._votes
        if others and others[0].votes == first.votes:
            return
        window = self._limits.closing_seconds
        yield Told(tell_peer(first, self._limits.peer_votes, window), view.wall)

    def _from_before(self, found: list[Told], wall: float) -> list[Told]:
        """Return what an earlier run told and nothing here tells anew."""
        if not self._carried:
            return []
        now = {(told.finding.kind, told.finding.subject) for told in found}
        self._carried = tuple(
            told
            for told in self._carried
            if wall - told.heard < self._limits.closing_seconds
            and (told.finding.kind, told.finding.subject) not in now
        )
        return list(self._carried)


def _set_on(told: Told, step: float) -> Told:
    """Return what was told by the clock as it is set now."""
    finding = replace(told.finding, onset=told.finding.onset + step)
    return Told(finding, told.heard + step)
