from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from fabricmon.errors import HostError
from fabricmon.host.inline import InlineReader
from fabricmon.host.protocol import ReadError
from fabricmon.host.replay import ReplayHost
from fabricmon.lanes import InFlight
from fabricmon.model import Job, LinkEvent, Outcome, ReadFailure, Record
from tests.traces import Json, replay

HCA0, HCA1, NODE = "device:mlx5_0", "device:mlx5_1", "node"


def job(source: str, lane: str = HCA0) -> Job:
    """Return a job; its unit is its lane."""
    return Job(source, lane, lane)


class _Reader:
    """A reader whose jobs read the file named as their source and tell its content."""

    def __init__(self, host: ReplayHost) -> None:
        self.host = host
        self.reader = InlineReader(host, self._poll)

    def _poll(self, job: Job) -> tuple[Record, ...]:
        if job.source == "events":
            self.host.read("/hangs")
            return self.host.link_events()
        if job.source == "command":
            self.host.command("ibstat", 20)
            return ()
        if job.source == "broken":
            raise ValueError("no such key")
        if job.source == "refused":
            raise HostError("cannot be asked", path="/a", errno="EIO")
        content = self.host.read(job.source, 5)
        text = content.errno if isinstance(content, ReadError) else content.decode()
        return (ReadFailure(job.unit, None, job.source, None, text),)

    def submit(self, *jobs: Job) -> list[bool]:
        return [self.reader.submit(each) for each in jobs]

    def at(self, now: float) -> list[tuple[str, str, float, float]]:
        """Move on, and tell what has ended: source, text, start and end."""
        self.host.advance(now)
        return [
            (outcome.job.source, _text(outcome), outcome.started, outcome.ended)
            for outcome in self.reader.collect(now)
        ]


def _text(outcome: Outcome) -> str:
    (record,) = outcome.records
    assert isinstance(record, ReadFailure)
    return record.message


FILES = {"/a": "a", "/b": "b", "/c": "c"}
Make = Callable[..., _Reader]


@pytest.fixture(name="reader")
def _start(tmp_path: Path) -> Iterator[Make]:
    """Read a node with some files, and what the records make of it."""
    with ExitStack() as stack:

        def make(*records: Json) -> _Reader:
            lines = ({"t": 0, "set": FILES}, *records, {"t": 1000})
            return _Reader(stack.enter_context(closing(replay(tmp_path, *lines))))

        yield make


class TestAtOnce:
    def test_outcome_is_there(self, reader: Make) -> None:
        """Reads that take no time end when they start, in the order of the jobs."""
        made = reader()
        made.host.advance(3)
        assert made.submit(job("/a"), job("/b", NODE), job("/c")) == [True] * 3
        assert made.reader.next_event() is None
        assert made.reader.in_flight() == ()
        assert made.at(3) == [("/a", "a", 3, 3), ("/b", "b", 3, 3), ("/c", "c", 3, 3)]
        assert made.at(3) == []

    def test_same_job_waits_once(self, reader: Make) -> None:
        """Until its outcome was fetched."""
        made = reader()
        assert made.submit(job("/a"), job("/a"), job("/a", NODE)) == [True, False, True]
        made.at(0)
        assert made.submit(job("/a")) == [True]

    def test_flaw_is_an_outcome(self, reader: Make) -> None:
        """A poll that raises ends with an error and stops nothing else."""
        made = reader()
        made.submit(job("broken"), job("refused"), job("/a"))
        broken, refused, sound = made.reader.collect(0)
        assert (broken.records, broken.error) == ((), "ValueError: no such key")
        assert refused.error == "/a: cannot be asked (EIO)"
        assert sound.error is None


class TestSlow:
    def test_lane_is_held(self, reader: Make) -> None:
        """A slow read ends that much later; the jobs behind it wait, other lanes not."""
        made = reader({"t": 0, "slow": {"/a": 2.5}})
        made.submit(job("/a"), job("/b"), job("/c", HCA1))
        assert made.at(0) == [("/c", "c", 0, 0)]
        assert made.reader.in_flight() == (InFlight(job("/a"), 0),)
        assert made.reader.next_event() == 2.5
        assert made.at(2.4) == []
        assert made.at(2.5) == [("/a", "a", 0, 2.5), ("/b", "b", 2.5, 2.5)]
        assert made.reader.next_event() is None

    def test_every_read_is_slow_until_zero(self, reader: Make) -> None:
        """Zero ends it for the reads that start then."""
        made = reader({"t": 0, "slow": {"/a": 2}}, {"t": 3, "slow": {"/a": 0}})
        for start in (0, 2):
            made.submit(job("/a"))
            made.host.advance(start)
            assert made.at(start + 2) == [("/a", "a", start, start + 2)]
        made.submit(job("/a"))
        assert made.at(4) == [("/a", "a", 4, 4)]

    def test_waiting_job_may_be_slow_itself(self, reader: Make) -> None:
        """Then the lane is held on, from when the first was done."""
        made = reader({"t": 0, "slow": {"/a": 2, "/b": 3}})
        made.submit(job("/a"), job("/b"))
        assert made.submit(job("/b"), job("/a")) == [False, False]
        assert made.at(2) == [("/a", "a", 0, 2)]
        assert made.reader.in_flight() == (InFlight(job("/b"), 2),)
        assert made.reader.next_event() == 5
        assert made.at(5) == [("/b", "b", 2, 5)]


class TestHang:
    def test_values_are_those_of_the_end(self, reader: Make) -> None:
        """The poll is done whole when the hang is over."""
        made = reader({"t": 5, "hang": {"/a": 30}}, {"t": 20, "set": {"/a": "x"}})
        made.host.advance(10)
        made.submit(job("/a"), job("/b", HCA1))
        assert made.at(10) == [("/b", "b", 10, 10)]
        assert made.reader.next_event() == 40
        assert made.at(40) == [("/a", "x", 10, 40)]

    def test_one_read_only(self, reader: Make) -> None:
        """The next read of the file is quick again."""
        made = reader({"t": 0, "hang": {"/a": 30}})
        made.submit(job("/a"))
        made.at(30)
        made.submit(job("/a"))
        assert made.at(30) == [("/a", "a", 30, 30)]

    def test_hang_set_meanwhile_is_for_the_next_read(self, reader: Make) -> None:
        """The read that hangs now does not use it up when it ends."""
        made = reader({"t": 0, "hang": {"/a": 30}}, {"t": 10, "hang": {"/a": 5}})
        made.submit(job("/a"))
        assert made.at(30) == [("/a", "a", 0, 30)]
        made.submit(job("/a"))
        assert made.at(30) == []
        assert made.at(35) == [("/a", "a", 30, 35)]

    def test_pending_until_read(self, reader: Make) -> None:
        """Only a poll that reads the file uses it up."""
        made = reader({"t": 0, "hang": {"/a": 30}})
        made.host.read("/a")
        made.submit(job("/b"))
        assert made.at(0) == [("/b", "b", 0, 0)]
        made.submit(job("/a"))
        assert made.reader.next_event() == 30

    def test_driver_statistics_and_folders_hang_too(self, reader: Make) -> None:
        """Whatever can fail by name can take time by name."""
        delays = {"ethtool:e": 1, "/d": 2, "/d/f": 4}
        host = reader({"t": 0, "slow": delays}).host
        host.begin_charging()
        host.statistics("e")
        host.names("/d")
        host.read_many(["/d/f", "/d/g"])
        assert host.end_charging() == 7

    def test_longest_in_flight_comes_first(self, reader: Make) -> None:
        """Whoever looks for hung polls finds the worst at the top."""
        made = reader({"t": 0, "slow": {"/a": 50, "/b": 10}})
        made.submit(job("/b"))
        made.host.advance(1)
        made.submit(job("/a", HCA1))
        assert made.reader.in_flight() == (
            InFlight(job("/b"), 0),
            InFlight(job("/a", HCA1), 1),
        )

    def test_late_collect(self, reader: Make) -> None:
        """A poll that ended while the agent did not run ends when it runs again."""
        made = reader({"t": 0, "hang": {"/a": 5}})
        made.submit(job("/a"))
        assert made.at(60) == [("/a", "a", 0, 60)]

    def test_abandon(self, reader: Make) -> None:
        """An agent that starts anew knows nothing of the polls before."""
        made = reader({"t": 0, "hang": {"/a": 5}})
        made.submit(job("/a"), job("/b", NODE))
        made.reader.abandon()
        assert made.reader.next_event() is None
        assert made.at(10) == []
        assert made.submit(job("/a")) == [True]


class TestCost:
    def test_command_takes_its_time(self, reader: Make) -> None:
        """A tool holds its lane while it runs, at most until its deadline."""
        printed = {"stdout": "x", "seconds": 3}
        made = reader({"t": 0, "command": {"ibstat": printed}})
        made.submit(job("command", "tool"))
        assert made.reader.next_event() == 3
        endless = {"stdout": "x", "seconds": 3000}
        made = reader({"t": 0, "command": {"ibstat": endless}})
        made.submit(job("command", "tool"))
        assert made.reader.next_event() == 20

    def test_firmware_reads_are_counted_once(self, reader: Make) -> None:
        """A slow poll costs the device no more than a quick one."""
        made = reader({"t": 0, "slow": {"/a": 2}})
        made.submit(job("/a"))
        made.at(2)
        assert made.host.firmware_reads == 5

    @pytest.mark.parametrize("hang", [{}, {"/hangs": 5}])
    def test_link_events_come_once(self, reader: Make, hang: Json) -> None:
        """Those that a slow poll met at its start are in its outcome, with later ones."""
        carrier = "/sys/class/net/e/carrier"
        made = reader(
            {"t": 0, "set": {carrier: "1\n"}},
            {"t": 1, "set": {carrier: "0\n"}, "hang": hang},
            {"t": 3, "set": {carrier: "1\n"}},
        )
        made.host.advance(1)
        made.submit(job("events", NODE))
        made.host.advance(6)
        (outcome,) = made.reader.collect(6)
        down, up = LinkEvent(1, "e", up=False), LinkEvent(3, "e", up=True)
        assert outcome.records == ((down, up) if hang else (down,))
        made.submit(job("events", NODE))
        assert made.reader.collect(6)[0].records == (() if hang else (up,))
