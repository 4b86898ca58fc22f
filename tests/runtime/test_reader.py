import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from queue import Queue
from threading import Event, Lock, Thread, get_ident

import pytest

from fabricmon.errors import HostError
from fabricmon.host.live import LiveHost
from fabricmon.lanes import Reader
from fabricmon.model import DeviceList, Job, Outcome, Repeats
from fabricmon.runtime import reader as module
from fabricmon.runtime.reader import WATCH_SECONDS, ThreadReader
from tests.support.servers import wait_until

ERRORS_0 = Job("errors", "mlx5_0", "device:mlx5_0")
STATE_0 = Job("state", "mlx5_0", "device:mlx5_0")
STATE_1 = Job("state", "mlx5_1", "device:mlx5_1")


class Node:
    """Polls that hang until a test lets them go, and a bell that was rung."""

    def __init__(self) -> None:
        self.gates: dict[Job, Event] = {}
        self.started: Queue[Job] = Queue()
        self.bell: Queue[None] = Queue()
        self.crashed: Queue[tuple[Job, Exception]] = Queue()
        self.errors: dict[Job, Exception] = {}
        self.threads: dict[str, set[int]] = {}
        self._lock = Lock()

    def poll(self, job: Job) -> tuple[DeviceList, ...]:
        """Wait for the job's gate, if it has one; then fail or give one record."""
        with self._lock:
            self.threads.setdefault(job.lane, set()).add(get_ident())
        self.started.put(job)
        if job in self.gates:
            assert self.gates[job].wait(30)
        if job in self.errors:
            raise self.errors[job]
        return (DeviceList(1.0, (job.unit,)),)

    def ring(self) -> None:
        """Note that the reader has something to collect."""
        self.bell.put(None)

    def hear(self) -> None:
        """Wait until the reader has something to collect."""
        self.bell.get(timeout=10)


@pytest.fixture
def node() -> Node:
    """Return polls that hang nowhere."""
    return Node()


@pytest.fixture
def reader(node: Node) -> Iterator[ThreadReader]:
    """Return a reader of the node's polls; in the end no thread is left."""
    live = ThreadReader(
        LiveHost(),
        node.poll,
        wake=node.ring,
        crashed=lambda job, error: node.crashed.put((job, error)),
    )
    yield live
    for gate in node.gates.values():
        gate.set()
    assert live.close(10) == ()


def hang(node: Node, job: Job) -> Event:
    """Let a job hang until the event that is returned is set."""
    gate = node.gates[job] = Event()
    return gate


def relieved(node: Node, reader: ThreadReader) -> bool:
    """Look after hung reads, as the loop does; tell whether the bell was rung."""
    reader.relieve()
    return not node.bell.empty()


def running(reader: ThreadReader) -> int:
    """Look after hung reads; return how many polls run."""
    reader.relieve()
    return len(reader.in_flight())


class TestThreads:
    def test_none_can_be_started(
        self, node: Node, reader: ThreadReader, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The job waits, the refusal is counted, and the next look tries again."""

        def refuse(_thread: Thread) -> None:
            raise RuntimeError("can't start new thread")

        with monkeypatch.context() as patch:
            patch.setattr(Thread, "start", refuse)
            assert reader.submit(STATE_0)
            assert (reader.threads, reader.refusals) == (0, 1)
            assert reader.is_waiting
        reader.relieve()
        node.hear()
        (outcome,) = reader.collect(0)
        assert outcome.error is None


class TestOutcomes:
    def test_is_a_reader(self, reader: ThreadReader) -> None:
        """It is what the pipeline asks."""
        as_reader: Reader = reader

        assert as_reader.collect(0) == ()
        assert as_reader.in_flight() == ()

    def test_records(self, node: Node, reader: ThreadReader) -> None:
        """A poll's records come back with its job and its times, once."""
        assert reader.submit(STATE_0)
        node.hear()

        (outcome,) = reader.collect(0)

        assert outcome.job == STATE_0
        assert outcome.records == (DeviceList(1.0, ("mlx5_0",)),)
        assert outcome.error is None
        assert 0 < outcome.started <= outcome.ended
        assert reader.collect(0) == ()

    def test_expected_error(self, node: Node, reader: ThreadReader) -> None:
        """An error that fabricmon raises on purpose is its text, and no bug."""
        node.errors[STATE_0] = HostError("is gone", path="/sys", errno="ENODEV")
        reader.submit(STATE_0)
        node.hear()

        (outcome,) = reader.collect(0)

        assert outcome.error == "/sys: is gone (ENODEV)"
        assert outcome.records == ()
        assert reader.crashes == 0

    def test_bug(self, node: Node, reader: ThreadReader) -> None:
        """A bug costs its poll, is counted each time and told once."""
        node.errors[STATE_0] = KeyError("lid")
        for _ in range(3):
            reader.submit(STATE_0)
            node.hear()
            (outcome,) = reader.collect(0)
            assert outcome.error == "KeyError: 'lid'"

        assert reader.crashes == 3
        assert node.crashed.get(timeout=10) == (STATE_0, node.errors[STATE_0])
        assert node.crashed.empty()

    def test_lane_outlives_a_bug(self, node: Node, reader: ThreadReader) -> None:
        """After a bug the same lane goes on."""
        node.errors[STATE_0] = ZeroDivisionError()
        reader.submit(STATE_0)
        node.hear()
        reader.collect(0)

        reader.submit(ERRORS_0)
        node.hear()

        assert reader.collect(0)[0].error is None
        assert len(node.threads["device:mlx5_0"]) == 1

    def test_wake_is_coalesced(self, node: Node, reader: ThreadReader) -> None:
        """Many outcomes ring once, until they are collected."""
        jobs = [Job("state", f"mlx5_{n}", f"device:mlx5_{n}") for n in range(8)]
        for job in jobs:
            reader.submit(job)
        node.hear()
        wait_until(lambda: not reader.in_flight(), 10, "all have ended")
        outcomes: list[Outcome] = []
        while len(outcomes) < len(jobs):
            outcomes.extend(reader.collect(0))

        assert {outcome.job for outcome in outcomes} == set(jobs)
        assert node.bell.qsize() < len(jobs)

    def test_nobody_to_wake(self, node: Node) -> None:
        """A loop that is closed already does not matter."""

        def closed() -> None:
            raise RuntimeError("Event loop is closed")

        reader = ThreadReader(LiveHost(), node.poll, wake=closed)
        reader.submit(STATE_0)
        reader.submit(ERRORS_0)

        wait_until(lambda: node.started.qsize() == 2, 10, "both ran")
        assert reader.close(10) == ()


class TestLanes:
    def test_order(self, node: Node, reader: ThreadReader) -> None:
        """Jobs of a lane run one after the other, in order."""
        gate = hang(node, STATE_0)
        reader.submit(STATE_0)
        reader.submit(ERRORS_0)
        assert node.started.get(timeout=10) == STATE_0
        assert node.started.empty()

        gate.set()

        assert node.started.get(timeout=10) == ERRORS_0

    def test_hung_lane_holds_only_itself(
        self, node: Node, reader: ThreadReader
    ) -> None:
        """A hung device is in flight since its start; others are read meanwhile."""
        gate = hang(node, STATE_0)
        reader.submit(STATE_0)
        node.started.get(timeout=10)

        reader.submit(STATE_1)
        wait_until(lambda: relieved(node, reader), 10, "another thread took over")
        node.hear()

        assert [outcome.job for outcome in reader.collect(0)] == [STATE_1]
        (hung,) = reader.in_flight()
        assert hung.job == STATE_0
        assert hung.since > 0
        gate.set()
        node.hear()
        assert [outcome.job for outcome in reader.collect(0)] == [STATE_0]

    def test_no_second_thread(self, node: Node, reader: ThreadReader) -> None:
        """However many jobs come, a hung lane has one thread."""
        gate = hang(node, STATE_0)
        jobs = [Job(f"s{n}", "mlx5_0", STATE_0.lane) for n in range(20)]
        for job in (STATE_0, *jobs):
            assert reader.submit(job)
        gate.set()
        for _ in range(21):
            node.started.get(timeout=10)

        assert len(node.threads[STATE_0.lane]) == 1

    def test_same_job_once(self, node: Node, reader: ThreadReader) -> None:
        """A job that runs or waits already is not taken twice."""
        gate = hang(node, STATE_0)
        reader.submit(STATE_0)
        node.started.get(timeout=10)
        reader.submit(ERRORS_0)

        assert not reader.submit(STATE_0)
        assert not reader.submit(ERRORS_0)

        gate.set()
        node.started.get(timeout=10)
        wait_until(lambda: not reader.in_flight(), 10, "all have ended")
        assert node.started.empty()

    def test_bounded(self, node: Node, reader: ThreadReader) -> None:
        """What does not fit any more is answered, so that nobody waits for it."""
        hang(node, STATE_0)
        reader.submit(STATE_0)
        node.started.get(timeout=10)
        for n in range(module.MOST_WAITING):
            reader.submit(Job(f"s{n}", "mlx5_0", STATE_0.lane))

        assert reader.submit(ERRORS_0)

        node.hear()
        (outcome,) = reader.collect(0)
        assert outcome.job == ERRORS_0
        assert outcome.error == "too many jobs wait"

    def test_in_flight_longest_first(self, node: Node, reader: ThreadReader) -> None:
        """The poll that hangs longest comes first."""
        for number, job in enumerate((STATE_1, STATE_0), start=1):
            hang(node, job)
            reader.submit(job)
            wait_until(lambda: running(reader) == number, 10, "it hangs")  # noqa: B023

        first, second = reader.in_flight()

        assert (first.job, second.job) == (STATE_1, STATE_0)
        assert first.since <= second.since

    def test_idle_thread_ends(
        self, node: Node, reader: ThreadReader, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A thread without work ends, and a new one comes on demand."""
        monkeypatch.setattr(module, "IDLE_SECONDS", 0.01)
        reader.submit(STATE_0)
        wait_until(lambda: reader.threads == 0, 10, "the thread has ended")

        reader.submit(STATE_0)

        wait_until(lambda: node.started.qsize() == 2, 10, "it ran again")

    def test_one_thread_while_all_is_well(
        self, node: Node, reader: ThreadReader
    ) -> None:
        """Lanes share a thread: several would fight for the interpreter."""
        for job in (STATE_0, STATE_1, ERRORS_0):
            reader.submit(job)
        wait_until(lambda: node.started.qsize() == 3, 10, "all have run")

        assert len(set().union(*node.threads.values())) == 1

    def test_spare_thread_ends(self, node: Node, reader: ThreadReader) -> None:
        """The thread of a read that hung is one too many when it returns."""
        gate = hang(node, STATE_0)
        reader.submit(STATE_0)
        node.started.get(timeout=10)
        reader.submit(STATE_1)
        wait_until(lambda: relieved(node, reader), 10, "another thread took over")
        assert reader.threads == 2

        gate.set()

        wait_until(lambda: reader.threads == 1, 10, "one is left")

    def test_many_jobs_and_short_idle_times(
        self, node: Node, reader: ThreadReader, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A job that comes as its lane gives up is not lost."""
        monkeypatch.setattr(module, "IDLE_SECONDS", 1e-5)
        jobs = [Job("state", str(n), f"lane {n % 3}") for n in range(600)]
        for job in jobs:
            reader.submit(job)

        outcomes: list[Outcome] = []

        def all_ended() -> bool:
            outcomes.extend(reader.collect(0))
            return len(outcomes) == len(jobs)

        wait_until(all_ended, 20, "all have ended")
        assert {outcome.job for outcome in outcomes} == set(jobs)

    def test_outcome_before_a_read_that_hangs(
        self, node: Node, reader: ThreadReader
    ) -> None:
        """It is not held back: either the bell is rung, or the loop looks again."""
        gate = hang(node, ERRORS_0)
        reader.submit(STATE_0)
        reader.submit(ERRORS_0)
        wait_until(lambda: node.started.qsize() == 2, 10, "the second hangs")

        assert reader.is_waiting or not node.bell.empty()
        assert [outcome.job for outcome in reader.collect(0)] == [STATE_0]
        gate.set()


def repeating(job: Job, times: int, every: float = 0.01, slow: float = 30.0) -> Job:
    """Return a job that runs so many times, from now on."""
    now = LiveHost().monotonic()
    last = now + (times - 0.5) * every
    return replace(job, repeats=Repeats(now, every, last, slow))


class TestRepeats:
    def test_rings_at_the_end(self, node: Node, reader: ThreadReader) -> None:
        """The loop sleeps while a job repeats, and gets every outcome."""
        reader.submit(repeating(STATE_0, 3, 0.1))
        node.hear()
        outcomes = reader.collect(0)
        assert node.bell.empty()
        assert {outcome.job for outcome in outcomes} == {STATE_0}
        assert 1 <= len(outcomes) == node.started.qsize() <= 3
        ended = [outcome.ended for outcome in outcomes]
        assert ended == sorted(ended)
        assert reader.progress() == ()
        assert reader.look_seconds > WATCH_SECONDS

    def test_what_has_ended_is_given_earlier(
        self, node: Node, reader: ThreadReader
    ) -> None:
        """Whoever collects for another reason gets what there is."""
        reader.submit(repeating(STATE_0, 10_000))
        assert not reader.submit(STATE_0)
        wait_until(lambda: node.started.qsize() > 1, 10, "it has run twice")
        assert reader.collect(0)
        assert reader.look_seconds <= WATCH_SECONDS
        (progress,) = reader.progress()
        assert (progress.job, progress.ended is None) == (STATE_0, False)

    def test_others_ring(self, node: Node, reader: ThreadReader) -> None:
        """What ends beside a job that repeats does not wait for its end."""
        reader.submit(repeating(STATE_0, 10_000))
        for _ in range(3):
            assert reader.submit(STATE_1)
            node.hear()
            assert STATE_1 in {outcome.job for outcome in reader.collect(0)}

    def test_hangs(self, node: Node, reader: ThreadReader) -> None:
        """It is told since when, and the others that repeat go on."""
        gate = hang(node, STATE_0)
        reader.submit(repeating(STATE_1, 10_000))
        reader.submit(repeating(STATE_0, 10_000))
        wait_until(lambda: bool(reader.in_flight()), 10, "one hangs")
        done = node.started.qsize()

        def goes_on() -> bool:
            reader.relieve()
            return node.started.qsize() > done + 10

        wait_until(goes_on, 10, "the other one goes on")
        since = {each.job: each.since for each in reader.progress()}
        assert since[STATE_0] is not None
        gate.set()

    @pytest.mark.parametrize("slow", [30.0, 0.0])
    def test_ends_early(self, node: Node, reader: ThreadReader, slow: float) -> None:
        """With an error, and with a poll that takes too long."""
        if slow:
            node.errors[STATE_0] = HostError("no such device")
        reader.submit(repeating(STATE_0, 10_000, slow=slow))
        node.hear()
        assert len(reader.collect(0)) == node.started.qsize() == 1
        assert reader.progress() == ()

    def test_new_configuration_ends_it(self, node: Node, reader: ThreadReader) -> None:
        """Who takes over plans anew."""
        reader.submit(repeating(STATE_0, 10_000))
        node.started.get(timeout=10)
        reader.take_over(lambda _job: (), lambda _job, _error: None)
        assert reader.progress() == ()


class TestTakeOver:
    def test_new_poll(self, node: Node, reader: ThreadReader) -> None:
        """With a new configuration old jobs are dropped and new ones done anew."""
        reader.submit(STATE_1)
        node.hear()

        reader.take_over(lambda _job: (), lambda _job, _error: None)

        assert reader.collect(0) == ()
        reader.submit(STATE_1)
        node.hear()
        assert reader.collect(0)[0].records == ()

    def test_hung_lane(self, node: Node, reader: ThreadReader) -> None:
        """A lane that hangs stays in flight and gets no second thread."""
        gate = hang(node, STATE_0)
        reader.submit(STATE_0)
        node.started.get(timeout=10)
        reader.submit(ERRORS_0)

        reader.take_over(lambda _job: (), lambda _job, _error: None)

        assert [poll.job for poll in reader.in_flight()] == [STATE_0]
        assert not reader.submit(STATE_0)
        gate.set()
        node.hear()
        (outcome,) = reader.collect(0)
        assert outcome.job == STATE_0
        assert outcome.records
        assert node.started.empty()


class TestClose:
    def test_hung(self, node: Node) -> None:
        """Closing waits for a hung read no longer than it was told, and names it."""
        reader = ThreadReader(LiveHost(), node.poll)
        gate = hang(node, STATE_0)
        reader.submit(STATE_0)
        node.started.get(timeout=10)
        reader.submit(ERRORS_0)

        left = reader.close(0.05)

        assert left == reader.in_flight()
        assert [poll.job for poll in left] == [STATE_0]
        assert not reader.submit(STATE_1)
        gate.set()
        assert reader.close(10) == ()
        assert node.started.empty()

    def test_process_ends_with_a_hung_read(self, tmp_path: Path) -> None:
        """A real hung read does not keep the process from ending, nor asyncio."""
        os.mkfifo(tmp_path / "state")
        program = f"""
import asyncio
from fabricmon.host.live import LiveHost
from fabricmon.model import Job
from fabricmon.runtime.reader import ThreadReader

async def main():
    host = LiveHost({str(tmp_path)!r})
    reader = ThreadReader(host, lambda job: (host.read("/state"),))
    reader.submit(Job("state", "mlx5_0", "device:mlx5_0"))
    while not reader.in_flight():
        await asyncio.sleep(0)
    assert reader.close(0.05)
    host.close()

asyncio.run(main())
print("ended")
"""
        ended = subprocess.run(
            [sys.executable, "-c", program],
            capture_output=True,
            timeout=20,
            check=False,
        )

        assert (ended.returncode, ended.stdout, ended.stderr) == (0, b"ended\n", b"")
