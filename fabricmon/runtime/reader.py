"""Run polls on daemon threads, lane by lane, so that a hung read hangs nothing else.

A read that the kernel holds cannot be cancelled: its thread waits for it, nobody waits
for the thread, and its lane goes on only when it returns. While all is well one thread
serves every lane: eight that wake together fight for the interpreter at each system
call and cost twice as much. Once a read takes long, another thread takes over the
other lanes. Threads are daemons, so that the process can end while they hang; those of
asyncio and concurrent.futures would be waited for.

A job that repeats, such as the samples of a burst, is run by the thread's own clock:
nobody is rung before its last poll, so the event loop sleeps meanwhile.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from math import inf
from operator import attrgetter
from queue import Empty, SimpleQueue
from threading import Lock, Thread, get_ident

from fabricmon.errors import FabricmonError
from fabricmon.host.protocol import Host
from fabricmon.lanes import InFlight, Progress
from fabricmon.model import Job, Outcome, Record
from fabricmon.runtime.encores import Encores
from fabricmon.runtime.job_lane import JobLane as _Lane
from fabricmon.runtime.job_lane import key as _key

IDLE_SECONDS = 300.0
"""A thread without work for so long ends."""

PATIENCE_SECONDS = 0.02
"""A read that takes longer gets the others another thread."""

WATCH_SECONDS = 1.0
"""While jobs repeat, one that hangs is noticed so soon, if nothing else wakes the loop."""

MOST_WAITING = 512
"""Jobs that wait in one lane; one more is answered with an error at once."""

Poll = Callable[[Job], tuple[Record, ...]]
Crash = Callable[[Job, Exception], None]

_NUDGE = _Lane("")
"""Wakes an idle thread, which looks anew when a job repeats."""


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
        self._encores = Encores()
        self._wakes_at = inf  # when the idle thread does, if no lane comes
        self._lanes: dict[str, _Lane] = {}
        self._threads: set[Thread] = set()
        self._idle = 0
        self._refusals = 0
        self._outcomes: list[Outcome] = []
        self._samples: list[Outcome] = []  # for which nobody is rung
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

    @property
    def look_seconds(self) -> float:
        """How soon to look again whether a read hangs; infinity: when rung."""
        if self.is_waiting:
            return PATIENCE_SECONDS
        return WATCH_SECONDS if self._encores else inf

    def take_over(self, poll: Poll, crashed: Crash) -> None:
        """Do jobs by another ``poll`` from now on: there is a new configuration.

        Waiting jobs and what was not collected are dropped. A job that runs is ended
        by the old poll and gives its outcome; a lane that hangs keeps its one thread.
        """
        with self._lock:
            self._poll, self._crashed = poll, crashed
            self._outcomes.clear()
            self._samples.clear()
            self._drop_waiting()

    def submit(self, job: Job) -> bool:
        """Take a job; False if the same one waits or runs, or the reader is closed."""
        with self._lock:
            if self._closed or self._has(job):
                return False
            if job.repeats is not None:
                self._encores.begin(job, job.repeats)
                self._nudge()
                self._relieve()
                return True
            lane = self._lane(job.lane)
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
            outcomes, self._outcomes = self._outcomes, []
            samples, self._samples = self._samples, []
        if samples:
            outcomes = sorted(outcomes + samples, key=attrgetter("ended"))
        return tuple(outcomes)

    def progress(self) -> tuple[Progress, ...]:
        """Return how far every job is that repeats and has not ended."""
        with self._lock:
            return self._encores.progress()

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

    def _has(self, job: Job) -> bool:
        lane = self._lanes.get(job.lane)
        return job in self._encores or (lane is not None and lane.has(job))

    def _lane(self, name: str) -> _Lane:
        """Return a lane, which a thread will look after from now on."""
        lane = self._lanes.get(name)
        if lane is None:
            lane = self._lanes[name] = _Lane(name)
            self._ready.put(lane)
        return lane

    def _repeat(self, now: float) -> None:
        """Let jobs wait in their lanes whose time has come again."""
        for job in self._encores.take_due(now):
            self._lane(job.lane).waiting[_key(job)] = job

    def _nudge(self) -> None:
        """Wake the idle thread if it would sleep for too long."""
        if self._idle and self._encores.next_at < self._wakes_at:
            self._wakes_at = self._encores.next_at
            self._ready.put(_NUDGE)

    def _drop_waiting(self) -> None:
        self._encores.clear()
        self._wakes_at = inf
        with suppress(Empty):
            while True:
                self._ready.get_nowait()
        for lane in self._lanes.values():
            lane.waiting.clear()
        # A lane that a thread has just taken and not begun is dropped as well.
        self._lanes = {n: lane for n, lane in self._lanes.items() if lane.running}

    def _relieve(self) -> None:
        """Start a thread where lanes wait and every thread there is holds a slow read."""
        if self._idle or self._closed:
            return
        self._repeat(self._clock())
        if not self._has_ready:
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

    def _go_on(self, lane: _Lane, now: float) -> _Lane | None:
        """Start the next job of a lane, or else of one that waits for a thread.

        That is left to another thread where one is idle.
        """
        if self._start_next(lane, now) is not None:
            return lane
        while not (self._idle or self._closed or self._ready.empty()):
            other = self._ready.get_nowait()
            if other is not None and self._start_next(other, now) is not None:
                return other
        return None

    def _keep(self, outcome: Outcome, *, follows: bool) -> bool:
        """Keep an outcome; tell whether to ring: not if another ``follows`` at once.

        Nobody is rung for a job that repeats, but for what ended before it.
        """
        if outcome.job.repeats is not None and self._encores.goes_on(outcome):
            self._samples.append(outcome)
            self._nudge()
            if not self._outcomes:
                return False
        else:
            self._outcomes.append(outcome)
        since = min(self._outcomes[0].ended, outcome.started)
        at_once = follows and outcome.ended - since < PATIENCE_SECONDS
        rings = not self._is_rung and not at_once
        self._is_rung |= rings
        return rings

    # In the threads

    def _serve(self) -> None:
        while (lane := self._take()) is not None:
            turn = self._begin(lane)
            while turn is not None and turn.running is not None:
                turn = self._end(turn, self._run(turn.running, turn.since))
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
                lane = self._ready.get(timeout=self._rest())
            except Empty:
                lane = None
            with self._lock:
                works = self._has_ready or bool(self._encores)
                if lane is _NUDGE or (lane is None and not self._closed and works):
                    continue
                self._idle -= 1
                return lane

    def _rest(self) -> float:
        """Repeat what is due; return for how long to wait for a lane then."""
        with self._lock:
            now = self._clock()
            self._repeat(now)
            self._wakes_at = min(now + IDLE_SECONDS, self._encores.next_at)
            return self._wakes_at - now

    def _begin(self, lane: _Lane) -> _Lane | None:
        """Start the first job of a lane, of another one if that was dropped meanwhile."""
        with self._lock:
            return self._go_on(lane, self._clock())

    def _end(self, lane: _Lane, outcome: Outcome) -> _Lane | None:
        """Hand an outcome over and start the next job; return its lane, if any."""
        with self._lock:
            following = self._go_on(lane, outcome.ended)
            follows = following is not None or self._has_ready
            rings = self._keep(outcome, follows=follows)
        if rings:
            self._ring()
        return following

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
