"""What the metrics about jobs measure that detectors worked out of their logs."""

from __future__ import annotations

from collections.abc import Iterator

from fabricmon.sinks.job_measures import MOST_JOBS, OTHER
from fabricmon.sinks.measures import Sample, Scene

MOST_PEERS = 32
"""Values of the label ``peer``; those that are named most come first."""


def outage_budgets(scene: Scene) -> Iterator[Sample]:
    """Seconds of outage that each job survives; of those without room, the shortest."""
    budgets = scene.snapshot.job_facts.budgets
    room = MOST_JOBS if len(budgets) <= MOST_JOBS else MOST_JOBS - 1
    for budget in budgets[:room]:
        yield Sample((budget.job,), budget.seconds)
    if budgets[room:]:
        yield Sample((OTHER,), min(budget.seconds for budget in budgets[room:]))


def peer_votes(scene: Scene) -> Iterator[Sample]:
    """HCAs or processes here that fail towards each peer."""
    votes = scene.snapshot.job_facts.votes
    room = MOST_PEERS if len(votes) <= MOST_PEERS else MOST_PEERS - 1
    for vote in votes[:room]:
        yield Sample((vote.peer,), vote.votes)
    if votes[room:]:
        yield Sample((OTHER,), sum(vote.votes for vote in votes[room:]))
