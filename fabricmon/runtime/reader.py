"""Run polls on daemon threads, lane by lane, so that a hung read hangs nothing else.

A read that the kernel holds cannot be cancelled: its thread waits for it, nobody waits
for the thread, and its lane goes on only when it returns. While all is well one thread
serves every lane: eight that wake together fight for the interpreter at each system
call and cost twice as much. Once a read takes long, another thread takes over the
other lanes. Threads are daemons, so that the process can end while they hang; those of
asyncio and concurrent.futures would be waited for.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from threading import Lock, Thread, get_ident

from fabricmon.errors import FabricmonError
from fabricmon.host.protocol import Host
from fabricmon.lanes import InFlight
from fabricmon.model import Job, Outcome, Record

IDLE_SECONDS = 300.0
"""A thread without work for so long ends."""

PATIENCE_SECONDS = 0.02
"""A read that takes longer gets the others another thread."""

MOST_WAITING = 512
"""Jobs that wait in one lane; one more is answered with an error at once."""

Poll = Callable[[Job], tuple[Record, ...]]
Crash = Callable[[Job, Exception], None]
_Key = tuple[str, str]


@dataclass(slots=True)
class _Lane:
    """Jobs of one lane, in order; all of it belongs to the reader's lock.

    While there is a job, the lane waits for a thread or has one.
    """

    name: str
    running: Job | None = None
    since: float = 0
    waiting: dict[_Key, Job] = field(default_factory=dict)

    def has(self, job: Job) -> bool:
        """Tell whether the same job runs or waits."""
        return _key(job) in self.waiting or self.running == job

    def start_next(self, now: float) -> Job | None:
        """Take the job that waits longest as the one that runs; None if none waits."""
        self.running = None
        for key in self.waiting:
            self.running, self.since = self.waiting.pop(key), now
            break
        return self.running


def _key(job: Job) -> _Key:
    return job.source, job.unit


class ThreadReader:
    """Runs jobs in lanes; for the event loop's thread, except where noted.

    Whoever uses it calls `relieve` or `collect` every `PATIENCE_SECONDS` while
    `is_waiting`: that is when a read that hangs is noticed.

    Args:
        host: Whose clock times the jobs.
        poll: Does a job; an exception becomes the error of its outcome.
        wake: Called from a thread when there is something to collect, once until it
            was collected; what ends together comes together.
        crashed: Called from a thread with an exception that is a bug, once for each
            place that it comes from.
    """

    def __init__(
        self,
        host: Host,
        poll: Poll,
        wake: Callable[[], object] = lambda: None,
        crashed: Crash = lambda _job, _error: None,
    ) -> None:
        self._clock = host.monotonic
        self._poll = poll
        self._wake = wake
        self._crashed = crashed
        self._lock = Lock()
        self._ready: SimpleQueue[_Lane | None] = SimpleQueue()
        self._lanes: dict[str, _Lane] = {}
        self._threads: set[Thread] = set()
        self._idle = 0
        self._refusals = 0
        self._outcomes: list[Outcome] = []
        self._is_rung = False
        self._crashes: Counter[tuple[str, str, int]] = Counter()
        self._closed = False

    @property
    def crashes(self) -> int:
        """Polls that ended by a bug."""
        return self._crashes.total()

    @property
    def threads(self) -> int:
        """Threads that there are now: one, and one for each read that hangs."""
        return len(self._threads)

    @property
    def refusals(self) -> int:
        """Threads that could not be started; what waits for one is told as hung."""
        return self._refusals

    @property
    def is_waiting(self) -> bool:
        """Tell whether to look again soon, because nobody may be rung.

        Lanes wait for a thread, outcomes are there, or a poll has only just begun:
        should the next one hang, nobody is rung for those that ended before it.
        """
        with self._lock:
            return self._has_ready or bool(self._outcomes) or any(self._fresh())

    def take_over(self, poll: Poll, crashed: Crash) -> None:
        """Do jobs by another ``poll`` from now on: there is a new configuration.

        Waiting jobs and what was not collected are dropped. A job that runs is ended
        by the old poll and gives its outcome; a lane that hangs keeps its one thread.
        """
        with self._lock:
            self._poll, self._crashed = poll, crashed
            self._outcomes.clear()
            self._drop_waiting()

    def submit(self, job: Job) -> bool:
        """Take a job; False if the same one waits or runs, or the reader is closed."""
        with self._lock:
            lane = self._lanes.get(job.lane)
            if self._closed or (lane is not None and lane.has(job)):
                return False
            if lane is None:
                lane = self._lanes[job.lane] = _Lane(job.lane)
                self._ready.put(lane)
            if len(lane.waiting) < MOST_WAITING:
                lane.waiting[_key(job)] = job
                self._relieve()
                return True
        now = self._clock()
        full = Outcome(job, now, now, error="too many jobs wait")
        with self._lock:
            rings = self._keep(full, follows=False)
        if rings:
            self._ring()
        return True

    def relieve(self) -> None:
        """Give waiting jobs another thread if a read holds every one there is."""
        with self._lock:
            self._relieve()

    def collect(self, now: float) -> tuple[Outcome, ...]:
        """Return what has ended since the last call, in the order of its end."""
        del now  # what has ended, has ended by now
        with self._lock:
            self._is_rung = False
            self._relieve()
            outcomes, self._outcomes = tuple(self._outcomes), []
        return outcomes

    def in_flight(self) -> tuple[InFlight, ...]:
        """Return the polls that run now, longest first."""
        with self._lock:
            running = [
                InFlight(lane.running, lane.since)
                for lane in self._lanes.values()
                if lane.running is not None
            ]
        return tuple(sorted(running, key=lambda poll: poll.since))

    def close(self, seconds: float) -> tuple[InFlight, ...]:
        """Take no more jobs, drop waiting ones; return what still runs after that time.

        Blocks the caller until the threads are done or the time is up.
        """
        deadline = time.monotonic() + seconds
        with self._lock:
            self._closed = True
            self._drop_waiting()
            threads = tuple(self._threads)
            for _ in threads:
                self._ready.put(None)
        for thread in threads:
            thread.join(max(deadline - time.monotonic(), 0))
        return self.in_flight()

    # Under the lock

    @property
    def _has_ready(self) -> bool:
        return not self._ready.empty()

    def _drop_waiting(self) -> None:
        with suppress(Empty):
            while True:
                self._ready.get_nowait()
        for lane in self._lanes.values():
            lane.waiting.clear()
        # A lane that a thread has just taken and not begun is dropped as well.
        self._lanes = {n: lane for n, lane in self._lanes.items() if lane.running}

    def _relieve(self) -> None:
        """Start a thread where lanes wait and every thread there is holds a slow read."""
        if self._idle or not self._has_ready or self._closed:
            return
        fresh = list(self._fresh())
        slow = len(fresh) - sum(fresh)
        if slow >= len(self._threads):
            thread = Thread(target=self._serve, name="reader", daemon=True)
            self._threads.add(thread)
            self._idle += 1  # it is about to look for work
            try:
                thread.start()
            except RuntimeError:  # out of threads: the next call tries again
                self._threads.discard(thread)
                self._idle -= 1
                self._refusals += 1

    def _fresh(self) -> Iterator[bool]:
        """Tell of each poll that runs whether it began a moment ago."""
        before = self._clock() - PATIENCE_SECONDS
        lanes = self._lanes.values()
        return (lane.since >= before for lane in lanes if lane.running is not None)

    def _start_next(self, lane: _Lane, now: float) -> Job | None:
        job = lane.start_next(now)
        if job is None and self._lanes.get(lane.name) is lane:
            del self._lanes[lane.name]
        return job

    def _keep(self, outcome: Outcome, *, follows: bool) -> bool:
        """Keep an outcome; tell whether to ring: not if another ``follows`` at once."""
        self._outcomes.append(outcome)
        since = min(self._outcomes[0].ended, outcome.started)
        at_once = follows and outcome.ended - since < PATIENCE_SECONDS
        rings = not self._is_rung and not at_once
        self._is_rung |= rings
        return rings

    # In the threads

    def _serve(self) -> None:
        while (lane := self._take()) is not None:
            job = self._begin(lane)
            while job is not None:
                job = self._end(lane, self._run(job, lane.since))
            with self._lock:
                if self._idle or self._closed:  # another took over meanwhile
                    break
                self._idle += 1
        with self._lock:
            self._threads = {t for t in self._threads if t.ident != get_ident()}

    def _take(self) -> _Lane | None:
        """Wait for a lane with jobs that has no thread; None ends."""
        while True:
            try:
                lane = self._ready.get(timeout=IDLE_SECONDS)
            except Empty:
                lane = None
            with self._lock:
                if lane is None and not self._closed and self._has_ready:
                    continue
                self._idle -= 1
                return lane

    def _begin(self, lane: _Lane) -> Job | None:
        """Start the first job of a lane, None if it was dropped meanwhile."""
        with self._lock:
            return self._start_next(lane, self._clock())

    def _end(self, lane: _Lane, outcome: Outcome) -> Job | None:
        """Hand an outcome over and start the next job of its lane, if there is one."""
        with self._lock:
            job = self._start_next(lane, outcome.ended)
            rings = self._keep(outcome, follows=job is not None or self._has_ready)
        if rings:
            self._ring()
        return job

    def _ring(self) -> None:
        with suppress(RuntimeError):  # the loop is closed: nobody collects any more
            self._wake()

    def _run(self, job: Job, started: float) -> Outcome:
        poll = self._poll
        try:
            records = poll(job)
        except FabricmonError as error:
            return Outcome(job, started, self._clock(), error=str(error))
        except Exception as error:  # noqa: BLE001 -- a bug costs its poll, not its lane
            self._note_crash(job, error)
            text = f"{type(error).__name__}: {error}"
            return Outcome(job, started, self._clock(), error=text)
        return Outcome(job, started, self._clock(), records)

    def _note_crash(self, job: Job, error: Exception) -> None:
        traceback = error.__traceback__
        while traceback is not None and traceback.tb_next is not None:
            traceback = traceback.tb_next
        line = traceback.tb_lineno if traceback is not None else 0
        place = (job.source, type(error).__name__, line)
        with self._lock:
            self._crashes[place] += 1
            new = self._crashes[place] == 1
        if new:
            self._crashed(job, error)
