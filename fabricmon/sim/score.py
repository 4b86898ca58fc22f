"""Scores what was found in one run against what really happened in it.

Pure: truth, fleet and finding documents in, `RunScore` out. Measures are those of the
fault catalogue, section 9, in the terms of the findings format: "silent", page, ticket.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from msgspec import Struct, field

from fabricmon.sim.score_groups import (
    NOTHING,
    group_of_class,
    group_of_kind,
)
from fabricmon.sim.score_places import (
    answers,
    blames_culprit,
    blames_victim,
    breaches,
    place_text,
)
from fabricmon.sim.score_stories import CRITICAL, Story, Told, stories
from fabricmon.sim.truth import FaultTruth, FleetFile, Truth

DAY = 86400.0


class Outcome(StrEnum):
    """What became of one fault."""

    FOUND = "found"
    LATE = "late"  # the right answer after the deadline: a miss
    MISSED = "missed"
    ABSTAINED = "abstained"  # the mask hides the signature and nobody guessed
    GUESSED = "guessed"  # it does, and the right answer was given all the same


class Answer(Struct, frozen=True, kw_only=True):
    """How one fault was answered; ``seconds`` from its onset, 0 where it was early.

    ``evidence`` tells whether the finding named a signal of the injected cause, None
    where the truth names none. ``said`` is the group that the place was put into.
    """

    fault: str
    outcome: Outcome
    place: str
    onset: float
    deadline: float
    by_vote: bool = False
    kind: str | None = None
    seconds: float | None = None
    evidence: bool | None = None
    said: str = NOTHING


class Mistake(Struct, frozen=True, kw_only=True):
    """Something that should not have been told."""

    what: str
    kind: str
    place: str
    t: float


class RunScore(Struct, frozen=True, kw_only=True):
    """What one judge was worth in one run.

    ``false`` are actionable findings on no true culprit, ``blames`` those on a listed
    victim, ``breaches`` what a rule forbids, ``loud`` what was told at warning or
    above, or actionable, in a negative. ``loud_stories`` counts findings that were
    not silent, ``incidents`` the faults that they are about. A false page or ticket
    is one on no true culprit.
    """

    scenario: str
    seed: int
    tags: tuple[str, ...] = ()
    negative: bool = False
    node_days: float = 0
    answers: tuple[Answer, ...] = ()
    actionable: int = 0
    false: tuple[Mistake, ...] = ()
    has_victims: bool = False
    blames: tuple[Mistake, ...] = ()
    breaches: tuple[Mistake, ...] = ()
    loud: tuple[Mistake, ...] = ()
    loud_stories: int = 0
    incidents: int = 0
    false_pages: int = 0
    false_tickets: int = 0
    said_in_peace: tuple[str, ...] = field(default=())

    @property
    def passed(self) -> bool:
        """Tell whether nothing was told that must not be."""
        return not self.breaches and not (self.negative and self.loud)

    @property
    def classes(self) -> tuple[str, ...]:
        """Its fault classes; of a negative the scenario's name stands for them."""
        return tuple(sorted({each.fault for each in self.answers})) or (self.scenario,)


@dataclass(frozen=True, slots=True)
class _Run:
    truth: Truth
    fleet: FleetFile
    told: tuple[Story, ...]

    def is_true(self, story: Story) -> bool:
        """Tell whether a finding is about a culprit, told since its fault began."""
        return any(map(self.has_reason, story.told))

    def has_reason(self, record: Told) -> bool:
        """Tell whether a record is about the place of a fault that has begun."""
        return any(
            record.t >= _begin(fault) and blames_culprit(record, fault)
            for fault in self.truth.faults
        )

    def is_barred(self, record: Told) -> bool:
        """Tell whether a record was told when nothing might be, as in maintenance."""
        return any(
            rule.begin is not None and breaches(record, rule)
            for rule in self.truth.forbid
        )

    def is_blame(self, story: Story) -> bool:
        """Tell whether an actionable finding is about one who only suffers."""
        return not self.is_true(story) and any(
            record.is_actionable and blames_victim(record, victim)
            for record in story.told
            for victim in self.truth.victims
        )

    def is_page(self, story: Story) -> bool:
        """Tell whether somebody is woken: critical, to be acted on, a job there."""
        return any(
            record.is_actionable
            and record.severity == CRITICAL
            and job_runs(self.fleet, record)
            for record in story.told
        )


def score(
    truth: Truth,
    fleet: FleetFile,
    records: Iterable[Told],
    *,
    with_shadow: bool = False,
) -> RunScore:
    """Score the findings of one run."""
    run = _Run(truth, fleet, stories(records, with_shadow=with_shadow))
    actionable = [story for story in run.told if story.is_actionable]
    wrong = [story for story in actionable if not run.is_true(story)]
    loud = [story for story in run.told if not story.is_silent]
    pages = sum(map(run.is_page, wrong))
    return RunScore(
        scenario=truth.scenario,
        seed=truth.seed,
        tags=truth.tags,
        negative=truth.negative,
        node_days=len(fleet.nodes) * truth.duration / DAY,
        answers=tuple(_answer(fault, run) for fault in truth.faults),
        actionable=len(actionable),
        false=_mistakes("false action", wrong),
        has_victims=bool(truth.victims),
        blames=_mistakes("victim blamed", filter(run.is_blame, actionable)),
        breaches=_breaches(truth, run.told),
        loud=_mistakes("not silent", loud) if truth.negative else (),
        loud_stories=len(loud) if truth.faults else 0,
        incidents=len({(fault.fault, fault.onset) for fault in truth.faults}),
        false_pages=pages,
        false_tickets=len(wrong) - pages,
        said_in_peace=_groups(loud if truth.negative else wrong),
    )


def _answer(fault: FaultTruth, run: _Run) -> Answer:
    found = min(
        (
            (t, story)
            for story in run.told
            if (t := _told_at(story, fault, run)) is not None
        ),
        key=lambda pair: pair[0],
        default=None,
    )
    seconds = None if found is None else found[0] - fault.onset
    story = None if found is None else found[1]
    return Answer(
        fault=fault.fault,
        outcome=_outcome(fault, seconds),
        place=_fault_place(fault),
        onset=fault.onset,
        deadline=fault.deadline,
        by_vote=fault.by_vote,
        kind=None if story is None else story.kind,
        seconds=seconds,
        evidence=_is_explained(fault, story),
        said=_said(fault, run.told, story, seconds),
    )


def _told_at(story: Story, fault: FaultTruth, run: _Run) -> float | None:
    """Return when a finding answered a fault, its onset at the earliest.

    What was told while a rule forbade it answers nothing. What was told before the fault began was right by chance, unless another fault
    was the reason and the finding stays open: then it speaks of both.
    """
    begin = _begin(fault)
    if story.closed <= begin:
        return None
    right = [
        record
        for record in story.told
        if answers(record, fault) and not run.is_barred(record)
    ]
    if right and right[0].t < begin and run.has_reason(right[0]):
        return fault.onset
    first = next((record.t for record in right if record.t >= begin), None)
    return None if first is None else max(first, fault.onset)


def _begin(fault: FaultTruth) -> float:
    return fault.onset if fault.begin is None else fault.begin


def _outcome(fault: FaultTruth, seconds: float | None) -> Outcome:
    in_time = seconds is not None and seconds <= fault.deadline
    if not fault.visible:
        return Outcome.GUESSED if in_time else Outcome.ABSTAINED
    if in_time:
        return Outcome.FOUND
    return Outcome.MISSED if seconds is None else Outcome.LATE


def _is_explained(fault: FaultTruth, story: Story | None) -> bool | None:
    if story is None or not fault.signals:
        return None
    return not story.signals.isdisjoint(fault.signals)


def _said(
    fault: FaultTruth, told: Sequence[Story], story: Story | None, seconds: float | None
) -> str:
    """Return the group that the place was put into: by the answer, else by the worst.

    An accepted kind is right whatever group it is in.
    """
    if story is not None and seconds is not None and seconds <= fault.deadline:
        return group_of_class(fault.fault)
    about = [
        each
        for each in told
        if each.closed > fault.onset
        and any(blames_culprit(record, fault) for record in each.told)
        and not any(answers(record, fault) for record in each.told)
        and not each.is_silent
    ]
    if not about:
        return NOTHING
    worst = max(about, key=lambda each: (each.last.severity == CRITICAL, -each.opened))
    return group_of_kind(worst.kind)


def _fault_place(fault: FaultTruth) -> str:
    parts = (fault.node, fault.device, fault.port)
    named = [str(part) for part in parts if part is not None]
    extra = (("rail", fault.rail), ("leaf", fault.leaf), ("peer", fault.peer))
    named += [f"{key}={value}" for key, value in extra if value is not None]
    return "/".join(named) or "fabric"


def _mistakes(what: str, wrong: Iterable[Story]) -> tuple[Mistake, ...]:
    return tuple(_mistake(what, story.kind, story.last) for story in wrong)


def _mistake(what: str, kind: str, record: Told) -> Mistake:
    return Mistake(what=what, kind=kind, place=place_text(record.subject), t=record.t)


def _breaches(truth: Truth, told: Sequence[Story]) -> tuple[Mistake, ...]:
    """Return what a rule forbids, each finding once."""
    found = []
    for story in told:
        wrong = next(
            (
                record
                for record in story.told
                if any(breaches(record, rule) for rule in truth.forbid)
            ),
            None,
        )
        if wrong is not None:
            found.append(_mistake("forbidden", story.kind, wrong))
    return tuple(found)


def _groups(loud: Iterable[Story]) -> tuple[str, ...]:
    return tuple(sorted({group_of_kind(story.kind) for story in loud}))


def job_runs(fleet: FleetFile, record: Told) -> bool:
    """Tell whether a job runs on the node; which of its ports it uses is not known."""
    node = record.subject.node
    return any(
        node in job.nodes and job.start <= record.t <= job.end for job in fleet.jobs
    )
