"""Adds up the scores of many runs into the measures that are published."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from fabricmon.sim.score import Answer, Outcome, RunScore
from fabricmon.sim.score_groups import NOTHING, group_of_class
from fabricmon.sim.score_statistics import poisson_upper, quantile

PER_NODE_DAYS = 1000.0
_MEDIAN, _HIGH = 0.5, 0.95
_IN_SIGHT = frozenset({Outcome.FOUND, Outcome.LATE, Outcome.MISSED})


@dataclass(frozen=True, slots=True)
class Share:
    """So many of so many."""

    hits: int
    total: int

    @property
    def value(self) -> float | None:
        """The share, None where there was nothing to count."""
        return self.hits / self.total if self.total else None


@dataclass(frozen=True, slots=True)
class Recall:
    """How a set of faults was answered; times in seconds, of those that were found.

    ``hidden`` counts faults whose signature the mask hides, ``guessed`` those of them
    that were answered rightly all the same; neither is part of ``found``.
    """

    found: Share
    late: int
    hidden: int
    guessed: int
    median: float | None
    p95: float | None
    explained: Share


@dataclass(frozen=True, slots=True)
class Rate:
    """Events in so many node-days, and per 1,000 node-days with its upper bound."""

    count: int
    node_days: float

    @property
    def value(self) -> float | None:
        """Events per 1,000 node-days."""
        return self.count * PER_NODE_DAYS / self.node_days if self.node_days else None

    @property
    def upper(self) -> float | None:
        """One-sided upper bound at 95 % of that."""
        if not self.node_days:
            return None
        return poisson_upper(self.count) * PER_NODE_DAYS / self.node_days


@dataclass(frozen=True, slots=True)
class Summary:
    """The measures over many runs of one judge."""

    runs: int
    by_class: dict[str, Recall]
    local: Recall
    vote: Recall
    every: Recall
    precision: Share
    blame: Share
    blame_by_class: dict[str, Share]
    negatives: Share
    failed_negatives: dict[str, Share]
    economy: float | None
    pages: Rate
    tickets: Rate
    confusion: dict[str, dict[str, int]]


def summarize(runs: Iterable[RunScore]) -> Summary:
    """Add up runs.

    Those without a fault are the negatives; ``pages`` and ``tickets`` are theirs, all
    of them false.
    """
    runs = tuple(runs)
    answers = [answer for run in runs for answer in run.answers]
    suffering = [run for run in runs if run.has_victims]
    peace = [run for run in runs if not run.answers]
    days = sum(run.node_days for run in peace)
    actionable = sum(run.actionable for run in runs)
    incidents = sum(run.incidents for run in runs)
    return Summary(
        runs=len(runs),
        by_class={
            fault: recall([each for each in answers if each.fault == fault])
            for fault in sorted({answer.fault for answer in answers})
        },
        local=recall([each for each in answers if not each.by_vote]),
        vote=recall([each for each in answers if each.by_vote]),
        every=recall(answers),
        precision=Share(actionable - sum(len(run.false) for run in runs), actionable),
        blame=_share(suffering, lambda run: bool(run.blames)),
        blame_by_class=_by_class(suffering, lambda run: bool(run.blames)),
        negatives=_share(peace, lambda run: run.passed),
        failed_negatives={
            name: share
            for name, share in _by_class(peace, lambda run: not run.passed).items()
            if share.hits
        },
        economy=_economy(runs) if incidents else None,
        pages=Rate(sum(run.false_pages for run in peace), days),
        tickets=Rate(sum(run.false_tickets for run in peace), days),
        confusion=_confusion(runs),
    )


def recall(answers: Sequence[Answer]) -> Recall:
    """Add up answers; what a mask hides is no miss."""
    seen = [each for each in answers if each.outcome in _IN_SIGHT]
    found = [each for each in seen if each.outcome is Outcome.FOUND]
    times = [each.seconds for each in found if each.seconds is not None]
    explained = [each.evidence for each in found if each.evidence is not None]
    return Recall(
        found=Share(len(found), len(seen)),
        late=sum(each.outcome is Outcome.LATE for each in seen),
        hidden=len(answers) - len(seen),
        guessed=sum(each.outcome is Outcome.GUESSED for each in answers),
        median=quantile(times, _MEDIAN),
        p95=quantile(times, _HIGH),
        explained=Share(sum(explained), len(explained)),
    )


def _economy(runs: Sequence[RunScore]) -> float:
    """Findings per incident, where anything was told: a miss is no economy."""
    told = [run for run in runs if run.incidents and run.loud_stories]
    incidents = sum(run.incidents for run in told)
    return sum(run.loud_stories for run in told) / incidents if incidents else 0.0


def _share(runs: Sequence[RunScore], hits: Callable[[RunScore], bool]) -> Share:
    return Share(sum(map(hits, runs)), len(runs))


def _by_class(
    runs: Sequence[RunScore], hits: Callable[[RunScore], bool]
) -> dict[str, Share]:
    names = sorted({name for run in runs for name in run.classes})
    return {
        name: _share([run for run in runs if name in run.classes], hits)
        for name in names
    }


def _confusion(runs: Sequence[RunScore]) -> dict[str, dict[str, int]]:
    """Count, for each true group, the groups that were said.

    A fault that the mask hides is no row; a run without faults is one of `NOTHING`.
    """
    counts: dict[str, Counter[str]] = {}
    for run in runs:
        for answer in run.answers:
            if answer.outcome in _IN_SIGHT:
                row = counts.setdefault(group_of_class(answer.fault), Counter())
                row[answer.said] += 1
        if not run.answers:
            row = counts.setdefault(NOTHING, Counter())
            row.update(run.said_in_peace or (NOTHING,))
    return {group: dict(row) for group, row in sorted(counts.items())}
