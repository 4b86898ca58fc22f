"""Polls that are due, and what became of them."""

from __future__ import annotations

from dataclasses import dataclass, field

from fabricmon.model.ports import Hca
from fabricmon.model.records import Record
from fabricmon.value import Value


@dataclass(frozen=True, slots=True)
class Target:
    """What to poll: the node (empty name) or one device, perhaps not known yet."""

    name: str = ""
    hca: Hca | None = None
    carried: object = field(default=None, compare=False, repr=False)
    """What the last poll of this source gave the next one; it is never changed."""


@dataclass(frozen=True, slots=True)
class Job:
    """One poll that is due: a source, the unit it reads and the lane it runs in.

    Jobs of one lane run one after another; a hung read holds only its own lane. Two
    jobs are the same if these three are.
    """

    source: str
    unit: str
    lane: str
    target: Target = field(default=Target(), compare=False)


class Outcome(Value, frozen=True):
    """What became of a job: its records, or the error that ended it."""

    job: Job
    started: float
    ended: float
    records: tuple[Record, ...] = ()
    error: str | None = None


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
