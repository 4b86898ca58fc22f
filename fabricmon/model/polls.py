"""Polls that are due, and what became of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf, nextafter

from fabricmon.model.ports import Hca
from fabricmon.model.records import Record
from fabricmon.value import Value

_SLACK = 1e-6  # of the time between two moments


@dataclass(frozen=True, slots=True)
class Target:
    """What to poll: the node (empty name) or one device, perhaps not known yet."""

    name: str = ""
    hca: Hca | None = None
    carried: object = field(default=None, compare=False, repr=False)
    """What the last poll of this source gave the next one; it is never changed."""


class Repeats(Value, frozen=True):
    """When a job is run again and again without being asked for; monotonic seconds.

    It is run at ``first`` and every so many seconds after that, not later than
    ``until``, and ends early with a poll that fails or takes longer than
    ``slow_seconds``.
    """

    first: float
    every: float
    until: float
    slow_seconds: float

    def after(self, at: float) -> float:
        """Return the first of its moments that is later; what was missed is left out."""
        # A moment on the grid is often a little before it in floating point.
        passed = ((at - self.first) / self.every + _SLACK) // 1
        following = self.first + (passed + 1) * self.every
        # What is shorter than a step of floating-point time would be due for ever.
        return following if at < following < inf else nextafter(at, inf)


@dataclass(frozen=True, slots=True)
class Job:
    """One poll that is due: a source, the unit it reads and the lane it runs in.

    Jobs of one lane run one after another; a hung read holds only its own lane. Two
    jobs are the same if these three are. One that ``repeats`` is many polls, each of
    which has its own outcome.
    """

    source: str
    unit: str
    lane: str
    target: Target = field(default=Target(), compare=False)
    repeats: Repeats | None = field(default=None, compare=False)


class Outcome(Value, frozen=True):
    """What became of a job: its records, or the error that ended it."""

    job: Job
    started: float
    ended: float
    records: tuple[Record, ...] = ()
    error: str | None = None

    @property
    def follower(self) -> float | None:
        """When a job that repeats is due again; None if this was its last poll."""
        repeats = self.job.repeats
        if repeats is None or self.error is not None:
            return None
        if self.ended - self.started > repeats.slow_seconds:
            return None
        following = repeats.after(self.ended)
        return following if following <= repeats.until else None


class ErrnoCount(Value, frozen=True):
    """Failed reads of one source by errno name."""

    errno: str
    count: int


class Health(Value, frozen=True):
    """How one source fares on one unit; seconds, monotonic."""

    source: str
    unit: str
    ok: bool
    last_success: float | None
    duration_seconds: float
    due_seconds: float
    in_flight_since: float | None
    errors: tuple[ErrnoCount, ...] = ()
    quarantined: str | None = None
    lane: str = ""
    found: bool = True  # False where no poll has ever found anything to tell
