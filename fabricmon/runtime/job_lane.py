"""Jobs that wait for one another, because they read the same device."""

from __future__ import annotations

from dataclasses import dataclass, field

from fabricmon.model import Job

_Key = tuple[str, str]


def key(job: Job) -> _Key:
    """Return what tells the jobs of a lane apart."""
    return job.source, job.unit


@dataclass(slots=True)
class JobLane:
    """Jobs of one lane, in order; all of it belongs to the reader's lock.

    While there is a job, the lane waits for a thread or has one.
    """

    name: str
    running: Job | None = None
    since: float = 0
    waiting: dict[_Key, Job] = field(default_factory=dict)

    def has(self, job: Job) -> bool:
        """Tell whether the same job runs or waits."""
        return key(job) in self.waiting or self.running == job

    def start_next(self, now: float) -> Job | None:
        """Take the job that waits longest as the one that runs; None if none waits."""
        self.running = None
        for first in self.waiting:
            self.running, self.since = self.waiting.pop(first), now
            break
        return self.running
