"""What of a poll's outcome is an answer and what a failure. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fabricmon.model import Absence, Job, Outcome, ReadFailure, Reading
from fabricmon.quarantine import common_failure

REPLACED = "ESTALE"
"""What the host answers, once, where a name leads to another device than before."""


def failures_of(
    outcome: Outcome, readings: Sequence[Reading]
) -> tuple[tuple[ReadFailure, ...], int]:
    """Return what could not be read at all, and how many records are answers."""
    records = outcome.records
    failures = tuple(each for each in records if isinstance(each, ReadFailure))
    answered = len(records) - len(failures)
    if readings and readings[0].absent:
        whole = tuple(_whole_failure(outcome.job, readings))
        failures, answered = (*failures, *whole), answered if not whole else 0
    return failures, answered


def _whole_failure(job: Job, readings: Sequence[Reading]) -> Iterator[ReadFailure]:
    """Say that every file of a source fails alike: nothing of it can be seen."""
    reason = common_failure(readings)
    if reason in {None, REPLACED}:  # a device that was replaced is read anew at once
        return
    if Absence(job.source, reason).is_errno:
        yield ReadFailure(
            device=job.unit,
            port=None,
            file=job.source,
            errno=reason,
            message=f"every {job.source} file fails",
        )
