"""Lives of healthy nodes: each played, judged and kept, several at a time.

A life is kept under a name that holds a hash of the package, so that ranges of seeds
add up over many calls and nothing old is taken for new.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice
from multiprocessing import get_context
from pathlib import Path

import msgspec
from msgspec import Struct, field

from fabricmon.config_load import build
from fabricmon.finding_document import FindingDocument, finding_document
from fabricmon.replaying import Replay
from fabricmon.sim.host import simulated_host
from fabricmon.sim.life import Life, Moment, Staged
from fabricmon.sim.score import DAY, job_runs
from fabricmon.sim.score_places import place_text
from fabricmon.sim.score_stories import CRITICAL, Story, Told, stories
from fabricmon.sim.score_summary import Rate
from fabricmon.sim.staging import Stage
from fabricmon.sim.truth import FleetFile
from fabricmon.trial import told

_HASH_LENGTH = 12
_LOOK_BACK = 900.0
"""What was over for longer when an alarm came is not told with it."""
_MOST_AMID = 6


class Way(StrEnum):
    """How a life is lived."""

    BURSTS = "full"
    """Every minute, as the agent is by default."""
    PLAIN = "full-no-bursts"
    """Every minute, without burst sampling."""
    THINNED = "thinned"
    """The minutes around events, as the agent is by default."""


class Loudness(StrEnum):
    """What a false alarm costs: see the findings format, section 2."""

    PAGE = "page"
    TICKET = "ticket"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class Order:
    """A life to live."""

    way: Way
    seed: int
    nodes: int
    days: float
    busy: float = 1.0

    def kept_at(self, cache: Path, of_package: str) -> Path:
        """Return where its result is kept."""
        busy = "" if self.busy == 1 else f"x{self.busy:g}"
        name = f"{self.way}-{self.nodes}x{self.days:g}d{busy}-{self.seed}"
        return cache / f"{name}-{of_package[:_HASH_LENGTH]}.json"


class Alarm(Struct, frozen=True, kw_only=True):
    """Something told at warning or above, or to be acted on, of healthy nodes.

    ``t`` is in the trace's own seconds; ``amid`` is what had just begun there.
    """

    what: Loudness
    kind: str
    place: str
    t: float
    summary: str
    evidence: tuple[str, ...]
    amid: tuple[str, ...]


class LifeResult(Struct, frozen=True, kw_only=True):
    """One life: how much it stands for, how long its traces were, what was told."""

    way: Way
    seed: int
    profile: str
    node_days: float
    played_node_days: float
    seconds: float
    happened: dict[str, int]
    alarms: tuple[Alarm, ...] = ()
    problem: str | None = None


class Totals(Struct, frozen=True, kw_only=True):
    """What many lives gave."""

    lives: int = 0
    node_days: float = 0.0
    played_node_days: float = 0.0
    seconds: float = 0.0
    happened: dict[str, int] = field(default_factory=dict)
    told: dict[str, dict[str, int]] = field(default_factory=dict)
    """By loudness, then by kind."""

    def rate(self, what: Loudness, kind: str | None = None) -> Rate:
        """Return how often something was told, of a kind or in all."""
        kinds = self.told.get(what, {})
        count = sum(kinds.values()) if kind is None else kinds.get(kind, 0)
        return Rate(count, self.node_days)


def add_up(results: Iterable[LifeResult]) -> Totals:
    """Add up lives; those that could not be lived stand for nothing."""
    sound = [each for each in results if each.problem is None]
    happened: Counter[str] = Counter()
    kinds: dict[str, Counter[str]] = {}
    for each in sound:
        happened.update(each.happened)
        for alarm in each.alarms:
            kinds.setdefault(alarm.what, Counter())[alarm.kind] += 1
    return Totals(
        lives=len(sound),
        node_days=sum(each.node_days for each in sound),
        played_node_days=sum(each.played_node_days for each in sound),
        seconds=sum(each.seconds for each in sound),
        happened=dict(happened),
        told={what: dict(counts) for what, counts in kinds.items()},
    )


def live(order: Order) -> LifeResult:
    """Live a life; the nodes are judged by the agent's own pipeline."""
    begun = time.process_time()
    life = Life(order.seed, order.nodes, order.days, order.busy)
    staged = life.thinned() if order.way is Way.THINNED else life.full()
    stage = Stage(staged.scenario, order.seed, staged.more)
    bursts = {"bursts": {"enabled": order.way is not Way.PLAIN}}
    documents: list[FindingDocument] = []
    for node in range(stage.plan.nodes):
        replay = Replay(simulated_host(stage, node), build(bursts, (), ()))
        documents += [
            finding_document(change.incident, change.t) for change in replay.changes()
        ]
    return LifeResult(
        way=order.way,
        seed=order.seed,
        profile=life.profile,
        node_days=life.node_days,
        played_node_days=staged.scenario.duration * order.nodes / DAY,
        seconds=time.process_time() - begun,
        happened=dict(Counter(each.what.split()[0] if each.what.startswith("job ")
                              else each.what for each in staged.moments)),
        alarms=tuple(alarms(documents, stage.fleet, staged)),
    )  # fmt: skip


def alarms(
    documents: list[FindingDocument], fleet: FleetFile, staged: Staged
) -> Iterator[Alarm]:
    """Yield what was told that should not have been, in order of time."""
    texts = {(each.id, each.t): each for each in documents}
    for story in stories(told(documents)):
        if story.is_silent:
            continue
        record = _loudest(story)
        document = texts[record.id, record.t]
        yield Alarm(
            what=_loudness(story, fleet),
            kind=story.kind,
            place=place_text(record.subject),
            t=record.t,
            summary=document.summary,
            evidence=tuple(
                f"{each.signal}={each.value} {each.unit}" for each in document.evidence
            ),
            amid=tuple(_amid(staged.moments, record.t))[-_MOST_AMID:],
        )


def _loudest(story: Story) -> Told:
    """Return the first record that was not silent."""
    return next(each for each in story.told if not each.is_silent)


def _loudness(story: Story, fleet: FleetFile) -> Loudness:
    if not story.is_actionable:
        return Loudness.WARNING
    woken = any(
        each.is_actionable and each.severity == CRITICAL and job_runs(fleet, each)
        for each in story.told
    )
    return Loudness.PAGE if woken else Loudness.TICKET


def _amid(moments: tuple[Moment, ...], t: float) -> Iterator[str]:
    for each in moments:
        if each.begin <= t and t - each.end < _LOOK_BACK:
            yield f"{each.what} {each.begin:.0f}-{each.end:.0f}"


def run_all(
    orders: Iterable[Order],
    cache: Path,
    of_package: str,
    *,
    jobs: int,
    limit: float,
    tell: Callable[[str], None],
) -> None:
    """Live what is not kept yet, in order, and keep it.

    After ``limit`` seconds nothing more is begun.
    """
    cache.mkdir(parents=True, exist_ok=True)
    over = time.monotonic() + limit
    to_do = (o for o in orders if not o.kept_at(cache, of_package).exists())
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        working: dict[Future[LifeResult], Order] = {}
        while True:
            if time.monotonic() < over:
                for order in islice(to_do, jobs - len(working)):
                    working[pool.submit(_try, order)] = order
            if not working:
                return
            for future in wait(working, return_when=FIRST_COMPLETED).done:
                order, result = working.pop(future), future.result()
                keep(order.kept_at(cache, of_package), result)
                tell(_outcome(result))


def keep(path: Path, result: LifeResult) -> None:
    """Keep a result whole or not at all."""
    partial = path.with_suffix(".part")
    partial.write_bytes(msgspec.json.encode(result))
    partial.replace(path)


def kept(cache: Path, of_package: str) -> Iterator[LifeResult]:
    """Yield every life that this package has lived, by way and seed."""
    found = [
        msgspec.json.decode(path.read_bytes(), type=LifeResult)
        for path in cache.glob(f"*-{of_package[:_HASH_LENGTH]}.json")
    ]
    yield from sorted(found, key=lambda each: (each.way, each.seed))


def _try(order: Order) -> LifeResult:
    """Live a life; what goes wrong with it ends only it, and is told."""
    try:
        return live(order)
    except Exception as error:  # noqa: BLE001 - one life less is still a table
        problem = f"{type(error).__name__}: {error}"
        return LifeResult(
            way=order.way, seed=order.seed, profile="", node_days=0,
            played_node_days=0, seconds=0, happened={}, problem=problem,
        )  # fmt: skip


def _outcome(result: LifeResult) -> str:
    head = f"{result.way} seed {result.seed}"
    if result.problem is not None:
        return f"{head}: {result.problem}"
    told_wrongly = "".join(f"\n  {each.what}: {each.kind}" for each in result.alarms)
    return (
        f"{head} ({result.profile}): {result.node_days:g} node-days in "
        f"{result.seconds:.0f} s{told_wrongly}"
    )
