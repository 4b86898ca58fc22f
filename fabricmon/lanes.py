"""Who runs the polls: at once in replay, in threads of their own on a live node."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from fabricmon.model import Job, Outcome
from fabricmon.value import Value


class InFlight(Value, frozen=True):
    """A poll that runs now, since ``since`` (monotonic seconds)."""

    job: Job
    since: float


class Progress(Value, frozen=True):
    """How far a series is, monotonic seconds.

    ``ended`` is when its last poll did, ``since`` from when on another one runs or
    waits for its lane; None if none has ended or none is due.
    """

    job: Job
    ended: float | None
    since: float | None


class Reader(Protocol):
    """Runs jobs lane by lane: one at a time and in order within a lane.

    A job that hangs holds its lane and nothing else. Every accepted job gives exactly
    one `Outcome`, however it ends; one that hangs gives it when it returns.
    """

    def submit(self, job: Job) -> bool:
        """Take a job; False if the same job waits or runs: its outcome is to come."""

    def collect(self, now: float) -> tuple[Outcome, ...]:
        """Return what has ended by ``now`` and was not yet returned, in that order."""

    def in_flight(self) -> tuple[InFlight, ...]:
        """Return the polls that run now, longest first; waiting ones are not in it."""


@runtime_checkable
class Repeater(Protocol):
    """A `Reader` that runs series of jobs by itself, and rings at the end of each."""

    def progress(self) -> tuple[Progress, ...]:
        """Return how far every series is that has not ended."""
