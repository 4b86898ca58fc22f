"""Healthy life of a small fleet: what happens to nodes that nothing is wrong with.

A life is drawn once, with events at the moments at which they happen in so many days,
and played in full or thinned. Thinned, a trace has only the time around events: jobs
that start and end, reboots, driver reloads, starved agents, upgrades under maintenance.
Quiet time between them is not gapped but left out: the node goes on as it stood, every
counter and every state of the agent is carried on, and no poll is missed. What needs no
time of its own (a read error, a cleared counter, a single retransmission) all happens
in what is kept.

What thinning assumes, and what it does not show:

- A minute of a job that runs evenly, of a node that idles, and what counts by chance in
  it, is like any other: nothing that detectors remember over more than the kept minutes
  makes it tell something. Played in full, such minutes are tested by themselves.
- Of a job the first minutes are kept, with a checkpoint or two, and the last; one in
  `LONG_JOBS` is kept long enough for what is judged over windows of five minutes.
- Events lie closer together than in life, so windows of hours see more of them: where
  that makes a difference, a thinned life is the harder one.
- Single events of a port (a retransmit, a corrected PCIe error) are kept `APART`, and
  left out where there is no room. What makes them tell something is that several fall
  together: where by chance `CLUSTER` of them do, they and the time around are kept.
- Of what takes no time and flaps a link a node has two at most: three in a life of days
  are no three within hours.
- The time of day and the up-time of nodes are those of the thinned time.

Rates are per node-day, after "Prevalence" and section 6 of the fault catalogue; where
those are silent they are estimates.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from random import Random

from fabricmon.sim.draw import magnitude, poisson, source
from fabricmon.sim.effects import Effect
from fabricmon.sim.healthy import DAY
from fabricmon.sim.life_events import (
    ALWAYS,
    EVENTS,
    Always,
    Occasion,
    draw_profile,
)
from fabricmon.sim.profiles import PROFILES
from fabricmon.sim.scenario import JobPlan, Scenario
from fabricmon.sim.singles import CLUSTER_AFTER, draw_singles, steps
from fabricmon.sim.thinning import Thinning

FIRST = 60.0
"""Nothing happens before: the agent has seen the node stand still once."""
JOB = (3600.0, 57_600.0)
"""How long a job runs: with `IDLE` some four a day."""
IDLE = (120.0, 1800.0)
"""Between two jobs."""
BEFORE, AFTER = 10.0, 30.0
"""Seconds kept before and after what happens, beyond its own."""
JOB_KEPT, LONG_JOB_KEPT, LONG_JOBS = 150.0, 900.0, 20
"""Seconds kept of a job from its start; every 20th is kept long."""


@dataclass(frozen=True, slots=True)
class Moment:
    """A span of time in which something happens, in seconds of life or of a trace."""

    begin: float
    end: float
    what: str


@dataclass(frozen=True, slots=True)
class Work:
    """A job: when it runs, and how long it is kept when the life is thinned."""

    begin: float
    end: float
    is_long: bool


@dataclass(frozen=True, slots=True)
class Staged:
    """A life made ready: a scenario, effects beside it, and what happens when."""

    scenario: Scenario
    more: tuple[Effect, ...]
    moments: tuple[Moment, ...]


class Life:
    """One life: so many days of so many nodes; the seed decides everything else.

    ``busy`` multiplies how often events happen (not jobs), to compare full and thinned
    lives in which enough happens.
    """

    def __init__(
        self, seed: int, nodes: int = 2, days: float = 10, busy: float = 1
    ) -> None:
        self.seed, self.nodes, self.days, self.busy = seed, nodes, days, busy
        self.end = days * DAY
        self.profile = draw_profile(self._source("profile"))
        self.occasions = self._occasions()
        self.jobs = self._jobs()
        self.singles = tuple(
            single
            for node in range(nodes)
            for single in draw_singles(
                PROFILES[self.profile],
                node,
                days,
                first=FIRST,
                random=self._source("singles", node),
            )
        )

    @property
    def node_days(self) -> float:
        """How much life it is."""
        return self.nodes * self.days

    def full(self) -> Staged:
        """Return the life with every minute of it."""
        return self._staged(Thinning(((0.0, self.end),)), is_thin=False)

    def thinned(self) -> Staged:
        """Return the life with the minutes around its events only."""
        spans = [(0.0, FIRST)]
        spans += [
            (each.at - BEFORE, each.until + each.kind.after)
            for each in self.occasions
            if each.kind.takes_time
        ]
        for job in self.jobs:
            kept = LONG_JOB_KEPT if job.is_long else JOB_KEPT
            spans.append((job.begin - BEFORE, min(job.begin + kept, job.end)))
            spans.append((job.end - BEFORE, job.end + AFTER))
        for single in self.singles:
            spans += [
                (times[0] - BEFORE, times[-1] + CLUSTER_AFTER)
                for times in single.clusters
            ]
        return self._staged(Thinning(spans, self.end), is_thin=True)

    # What happens

    def _source(self, *key: object) -> Random:
        return source("life", self.seed, *key)

    def _occasions(self) -> tuple[Occasion, ...]:
        """Draw what happens, one thing after the other as far as it takes time."""
        drawn: list[Occasion] = []
        card = PROFILES[self.profile].compute[0].card
        for kind in EVENTS:
            random = self._source("event", kind.name)
            if not kind.fits(self.profile, is_ethernet=card.ethernet):
                continue
            rate = magnitude(random, kind.per_day) * self.busy
            groups = [None] if kind.of_all else list(range(self.nodes))
            for node in groups:
                for _ in range(poisson(random, rate * self.days)):
                    at = random.uniform(FIRST, self.end)
                    drawn.append(kind.occasion(at, node, random))
        drawn.sort(key=lambda each: each.at)
        return tuple(self._one_by_one(drawn))

    def _one_by_one(self, drawn: Iterable[Occasion]) -> Iterable[Occasion]:
        free = FIRST + BEFORE
        for each in drawn:
            if not each.kind.takes_time:
                yield each
                continue
            placed = each.later(free)
            free = placed.until + each.kind.after + BEFORE
            if free < self.end:
                yield placed

    def _jobs(self) -> tuple[Work, ...]:
        """Draw the jobs; none starts while a node boots or has no driver."""
        random = self._source("jobs")
        blocked = [each for each in self.occasions if each.kind.ends_jobs]
        found: list[Work] = []
        begin = FIRST + BEFORE
        while begin < self.end:
            for each in blocked:
                if each.at - BEFORE <= begin <= each.until + each.kind.after:
                    begin = each.until + each.kind.after + BEFORE
            over = min(
                begin + magnitude(random, JOB),
                min((e.at for e in blocked if e.at > begin), default=self.end),
                self.end,
            )
            if over < self.end or not found:
                is_long = random.randrange(LONG_JOBS) == 0
                found.append(Work(begin, over, is_long))
            begin = over + magnitude(random, IDLE)
        return tuple(found)

    # As a scenario

    def _staged(self, time: Thinning, *, is_thin: bool) -> Staged:
        duration = time.kept
        injections = [each.always(duration) for each in self._always()]
        moments: list[Moment] = []
        random = self._source("riders")
        kept: Counter[tuple[str, int | None]] = Counter()
        for each in self.occasions:
            kept[each.kind.name, each.node] += 1
            if is_thin and kept[each.kind.name, each.node] > each.kind.most_kept:
                continue
            if each.kind.takes_time or not is_thin:
                at = time(each.at)
            else:
                at = random.uniform(FIRST, max(duration - each.length, FIRST + 1))
            if at + 1 < duration:
                injections.append(each.injection(at, duration))
            moments.append(Moment(at, at + each.length, each.kind.name))
        jobs = tuple(
            self._job(number, job, time, is_thin=is_thin)
            for number, job in enumerate(self.jobs)
        )
        moments += [
            Moment(job.start, job.end or duration, f"job {job.id}") for job in jobs
        ]
        scenario = Scenario(
            name=f"life-{self.profile}",
            summary="Healthy life.",
            profile=self.profile,
            nodes=self.nodes,
            duration=duration,
            jobs=jobs,
            inject=tuple(injections),
            negative=True,
        )
        counted = [e for e in self.singles if is_thin or not e.background]
        singles = tuple(steps(counted, time, FIRST, self._source("loners")))
        moments.sort(key=lambda each: each.begin)
        return Staged(scenario, singles, tuple(moments))

    def _always(self) -> Iterable[Always]:
        random = self._source("always")
        ethernet = PROFILES[self.profile].compute[0].card.ethernet
        for each in ALWAYS:
            if random.random() < each.share and each.kind.fits(
                self.profile, is_ethernet=ethernet
            ):
                yield each

    def _job(self, number: int, job: Work, time: Thinning, *, is_thin: bool) -> JobPlan:
        random = self._source("job", number)
        first = (40.0, 60.0)
        return JobPlan(
            id=f"job{number}",
            start=time(job.begin),
            end=time(job.end) if job.end < self.end else None,
            init=(30, 60),
            step=magnitude(random, (2.0, 15.0)),
            communication=random.uniform(0.2, 0.6),
            load=random.uniform(0.6, 0.95),
            pattern="all_to_all" if random.random() < 0.3 else "ring",  # noqa: PLR2004
            checkpoint_every=first if is_thin else (600, 3600),
            pauses_every=None if random.random() < 0.5 else (1800, 7200),  # noqa: PLR2004
        )
