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
from collections import Counter, deque
from collections.abc import Callable
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


@dataclass(slots=True)
class _Lane:
    """Jobs of one lane; all of it belongs to the reader's lock."""

    queued: int = 0
    running: InFlight | None = None
    waiting: deque[Job] = field(default_factory=deque)


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
        self._ready: SimpleQueue[Job | None] = SimpleQueue()
        self._lanes: dict[str, _Lane] = {}
        self._pending: set[Job] = set()
        self._threads: set[Thread] = set()
        self._idle = 0
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
    def is_waiting(self) -> bool:
        """Tell whether jobs wait that no thread has looked at."""
        return not self._ready.empty()

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
            if self._closed or job in self._pending:
                return False
            lane = self._lanes.setdefault(job.lane, _Lane())
            if lane.queued <= MOST_WAITING:  # one of them runs
                lane.queued += 1
                self._pending.add(job)
                self._ready.put(job)
                self._relieve()
                return True
        now = self._clock()
        full = Outcome(job, now, now, error="too many jobs wait")
        self._hand_over(full, is_last=True)
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
            running = [lane.running for lane in self._lanes.values() if lane.running]
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

    def _drop_waiting(self) -> None:
        with suppress(Empty):
            while True:
                self._ready.get_nowait()
        self._pending.clear()
        for lane in self._lanes.values():
            lane.waiting.clear()
            lane.queued = 0
            if lane.running is not None:
                lane.queued = 1
                self._pending.add(lane.running.job)

    def _relieve(self) -> None:
        """Start a thread where jobs wait and every thread there is holds a slow read."""
        if self._idle or self._ready.empty() or self._closed:
            return
        before = self._clock() - PATIENCE_SECONDS
        running = [lane.running for lane in self._lanes.values() if lane.running]
        slow = sum(poll.since < before for poll in running)
        if slow >= len(self._threads):
            thread = Thread(target=self._serve, name="reader", daemon=True)
            self._threads.add(thread)
            self._idle += 1  # it is about to look for work
            thread.start()

    # In the threads

    def _serve(self) -> None:
        while (job := self._take()) is not None:
            while job is not None:
                job = self._end(job, self._run(job))
            with self._lock:
                if self._idle or self._closed:  # another took over meanwhile
                    break
                self._idle += 1
        with self._lock:
            self._threads = {t for t in self._threads if t.ident != get_ident()}

    def _take(self) -> Job | None:
        """Wait for a job whose lane is free and mark it as running; None ends."""
        while True:
            try:
                job = self._ready.get(timeout=IDLE_SECONDS)
            except Empty:
                job = None
            with self._lock:
                if job is None and not self._closed and not self._ready.empty():
                    continue
                if job is None or self._begin(job):
                    self._idle -= 1
                    return job

    def _begin(self, job: Job) -> bool:
        """Mark a job as running, or let it wait behind the one that holds its lane."""
        if job not in self._pending:  # dropped meanwhile
            return False
        lane = self._lanes[job.lane]
        if lane.running is not None:
            lane.waiting.append(job)
            return False
        lane.running = InFlight(job, self._clock())
        return True

    def _end(self, job: Job, outcome: Outcome) -> Job | None:
        """Hand the outcome over; return the job that waited for this lane."""
        following = None
        with self._lock:
            lane = self._lanes[job.lane]
            lane.queued -= 1
            lane.running = None
            self._pending.discard(job)
            if lane.waiting:
                following = lane.waiting.popleft()
                lane.running = InFlight(following, self._clock())
            elif not lane.queued:
                del self._lanes[job.lane]
        self._hand_over(outcome)
        return following

    def _hand_over(self, outcome: Outcome, *, is_last: bool = False) -> None:
        """Keep an outcome; ring once, when no other will follow at once."""
        with self._lock:
            self._outcomes.append(outcome)
            waited = outcome.ended - self._outcomes[0].ended
            soon = not self._ready.empty() and waited < PATIENCE_SECONDS
            ring = not self._is_rung and (is_last or not soon)
            self._is_rung |= ring
        if ring:
            with suppress(RuntimeError):  # the loop is closed: nobody collects any more
                self._wake()

    def _run(self, job: Job) -> Outcome:
        poll = self._poll
        started = self._clock()
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
