"""A trace that plays faster than it happened, on a clock that no test waits for."""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fabricmon.model import Job, Record
from fabricmon.timelapse import STEP_SECONDS, TimelapseDrive
from tests import traces
from tests.support.loop import pass_time, run_fast

FILE = "/sys/class/dmi/id/product_name"
STORY = (
    {"t": 0, "set": {FILE: "0"}},
    {"t": 40, "set": {FILE: "1"}},
    {"t": 100, "set": {FILE: "2"}},
)


Start = Callable[..., TimelapseDrive]


@pytest.fixture
def drive(tmp_path: Path) -> Iterator[Start]:
    """Start drives on traces, by default one of 100 s, and close them."""
    started = []

    def start(
        speed: float = 10.0, story: tuple[traces.Json, ...] = STORY
    ) -> TimelapseDrive:
        started.append(TimelapseDrive(traces.write(tmp_path, story), speed))
        return started[-1]

    yield start
    for each in started:
        each.close(1.0)


async def reach(played: TimelapseDrive, due: float) -> float:
    """Wait as an agent does until ``due``; return the real seconds that took."""
    begun = asyncio.get_running_loop().time()
    while played.host.monotonic() < due:
        await played.wait(due)
    return asyncio.get_running_loop().time() - begun


def test_time_passes_at_the_speed_that_was_asked_for(drive: Start) -> None:
    """Thirty seconds of the trace take three at ten times the speed."""

    async def play() -> None:
        played = drive()
        await played.open(lambda: None)
        assert round(await reach(played, 30.0), 6) == 3.0
        assert played.host.read(FILE) == b"0"
        assert round(await reach(played, 60.0), 6) == 3.0
        assert played.host.read(FILE) == b"1"

    run_fast(play())


def test_agent_wakes_at_every_change(drive: Start) -> None:
    """What happens between two polls is seen at the moment when it happens."""

    async def play() -> None:
        played = drive(speed=1000.0)
        await played.open(lambda: None)
        await played.wait(90.0)
        assert played.host.monotonic() == 40.0

    run_fast(play())


def test_no_sleep_is_long(drive: Start) -> None:
    """The page and the watchdog live on while nothing is due for minutes."""

    async def play() -> None:
        played = drive(speed=0.1)
        await played.open(lambda: None)
        loop = asyncio.get_running_loop()
        begun = loop.time()
        await played.wait(30.0)
        assert loop.time() - begun <= STEP_SECONDS + 1e-6
        assert 0 < played.host.monotonic() < 30.0

    run_fast(play())


def test_slow_machine_misses_nothing(drive: Start) -> None:
    """An agent that cannot keep up plays slower; it does not skip polls."""

    async def play() -> None:
        played = drive()
        await played.open(lambda: None)
        pass_time(60.0)
        await played.wait(5.0)
        assert played.host.monotonic() == 5.0
        await played.wait(90.0)
        assert played.host.monotonic() == 40.0

    run_fast(play())


def test_end_is_told_once_it_is_reached(drive: Start) -> None:
    """Who plays the trace learns of its end, and not before it."""

    async def play() -> None:
        played = drive()
        ends: list[float] = []
        played.ended = lambda: ends.append(played.host.monotonic())
        await played.open(lambda: None)
        await reach(played, 99.0)
        assert ends == []
        await played.wait(200.0)
        await reach(played, 101.0)
        assert ends[0] >= 100.0

    run_fast(play())


def test_link_events_are_asked_for(drive: Start) -> None:
    """The agent is told to look for link events whenever time has passed."""

    async def play() -> None:
        news: list[float] = []
        played = drive()
        await played.open(lambda: news.append(played.host.monotonic()))
        await reach(played, 1.0)
        assert news
        assert news[-1] == 1.0

    run_fast(play())


def test_poll_that_takes_time_wakes_the_agent(drive: Start) -> None:
    """A read that is slow in the trace ends when it ended there."""

    def poll(job: Job) -> tuple[Record, ...]:
        played.host.read(FILE)
        return ()

    slow = ({"t": 0, "set": {FILE: "0"}, "slow": {FILE: 7.0}}, {"t": 100})
    played = drive(1000.0, slow)
    reader = played.make_reader(poll, lambda job, error: None)

    async def play() -> None:
        await played.open(lambda: None)
        assert reader.submit(Job("boot", "", "node"))
        assert reader.collect(0.0) == ()
        await played.wait(90.0)
        assert played.host.monotonic() == 7.0
        (outcome,) = reader.collect(7.0)
        assert (outcome.started, outcome.ended) == (0.0, 7.0)

    run_fast(play())
