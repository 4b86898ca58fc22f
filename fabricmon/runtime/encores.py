"""Jobs that are run again and again by the reader itself, and when each is due."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass
from math import inf

from fabricmon.lanes import Progress
from fabricmon.model import Job, Outcome, Repeats


@dataclass(slots=True)
class _Encore:
    """A job that is run again at ``at``, or runs or waits for its lane since then."""

    job: Job
    at: float
    sleeps: bool = True
    ended: float | None = None


class Encores:
    """Series of jobs that have not ended; all of it belongs to the reader's lock."""

    def __init__(self) -> None:
        self._all: dict[Job, _Encore] = {}
        self._heap: list[tuple[float, int, _Encore]] = []
        self._pushed = 0

    def __bool__(self) -> bool:
        return bool(self._all)

    def __contains__(self, job: Job) -> bool:
        return job in self._all

    @property
    def next_at(self) -> float:
        """When the next job is due; infinity if none is."""
        return self._heap[0][0] if self._heap else inf

    def begin(self, job: Job, repeats: Repeats) -> None:
        """Run this job from its first moment on."""
        encore = self._all[job] = _Encore(job, repeats.first)
        self._push(encore)

    def take_due(self, now: float) -> Iterator[Job]:
        """Take the jobs that are due, in order."""
        while self._heap and self._heap[0][0] <= now:
            encore = heapq.heappop(self._heap)[2]
            encore.sleeps = False
            yield encore.job

    def goes_on(self, outcome: Outcome) -> bool:
        """Note that a poll has ended; tell whether it is followed by another one."""
        encore = self._all.get(outcome.job)
        if encore is None or encore.job is not outcome.job:
            return False
        following = outcome.follower
        if following is None:
            del self._all[outcome.job]
            return False
        encore.at, encore.ended, encore.sleeps = following, outcome.ended, True
        self._push(encore)
        return True

    def progress(self) -> tuple[Progress, ...]:
        """Return how far each series is."""
        return tuple(
            Progress(each.job, each.ended, None if each.sleeps else each.at)
            for each in self._all.values()
        )

    def clear(self) -> None:
        """Forget every series; a poll that runs is the last of its own."""
        self._all.clear()
        self._heap.clear()

    def _push(self, encore: _Encore) -> None:
        self._pushed += 1
        heapq.heappush(self._heap, (encore.at, self._pushed, encore))
