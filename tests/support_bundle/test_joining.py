"""Recordings as one life: what a replay sees of the time between them."""

from __future__ import annotations

from pathlib import Path

from fabricmon.host.protocol import ReadError
from fabricmon.host.replay import Gap, ReplayHost
from fabricmon.host.trace import Header, Module, TraceRecord
from fabricmon.host.trace_read import TraceReader
from fabricmon.host.trace_write import TraceWriter
from fabricmon.support.joining import JoinedTraces, Source
from tests.traces import START

CARRIER = "/sys/class/net/ib0/carrier"


def trace(path: Path, start: float, *records: TraceRecord, boot_id: str = "b") -> Path:
    """Write a recording that begins ``start`` seconds after the first."""
    header = Header(node="n", boot_id=boot_id, start=START + start)
    with TraceWriter(path, header) as writer:
        for record in records:
            writer.write(record)
    return path


def joined(folder: Path, *sources: Source) -> ReplayHost:
    """Return the node of them all, at the beginning."""
    life = JoinedTraces(list(sources))
    path = folder / "joined.jsonl"
    with TraceWriter(path, life.header) as writer:
        for record in life:
            writer.write(record)
    return ReplayHost(TraceReader(path))


def gaps(host: ReplayHost) -> list[Gap]:
    """Play to the end; return when the agent did not run."""
    wakes = host.moments(lambda: host.monotonic() + 1, lambda: None)
    return [wake.gap for wake in wakes if wake.gap is not None]


class TestGap:
    def test_nobody_looks_between_two(self, tmp_path: Path) -> None:
        """From the end of one until the next has read everything once."""
        first = trace(tmp_path / "a", 0, TraceRecord(t=0, set={"/a": "1"}),
                      TraceRecord(t=5))  # fmt: skip
        second = trace(tmp_path / "b", 60, TraceRecord(t=0.25, set={"/a": "1"}),
                       TraceRecord(t=3))  # fmt: skip
        for restarts in (False, True):
            host = joined(tmp_path, Source(first), Source(second, restarts=restarts))
            (gap,) = gaps(host)
            assert (gap.start, round(gap.end, 3)) == (5, 60.25)
            assert gap.restart is restarts
            assert host.end == 63
            assert host.wall() == START + 63

    def test_what_is_gone_is_gone(self, tmp_path: Path) -> None:
        """Files, statistics, modules: only what was read again is there."""
        old = TraceRecord(
            t=0,
            set={"/a/x": "1", "/b/y": "1"},
            ethtool={"ib0": {"n": 1}, "ib1": {"n": 1}},
            module={"m/1": Module(vendor="v")},
            devlink={"0:1": {"fw": "error"}},
        )
        new = TraceRecord(t=0, set={"/a/z": "2"}, ethtool={"ib1": {"n": 2}})
        first = trace(tmp_path / "a", 0, old, TraceRecord(t=5))
        second = trace(tmp_path / "b", 9, new, TraceRecord(t=5))
        host = joined(tmp_path, Source(first), Source(second))
        host.advance(20)
        assert host.names("/a") == ("z",)
        assert host.read("/b/y") == ReadError("ENOENT")
        assert host.read("/a/z") == b"2"
        assert host.statistics("ib0") == ReadError("ENODEV")
        statistics = host.statistics("ib1")
        assert not isinstance(statistics, ReadError)
        assert [s.value for s in statistics] == [2]
        assert host.module("m/1") is None
        assert host.devlink("0:1") == ()
        assert host.problems == ()

    def test_no_event_of_a_link_that_stayed(self, tmp_path: Path) -> None:
        """That the second one reads a carrier anew is no change of it."""
        first = trace(tmp_path / "a", 0, TraceRecord(t=0, set={CARRIER: "1"}),
                      TraceRecord(t=5))  # fmt: skip
        second = trace(tmp_path / "b", 9, TraceRecord(t=0, set={"/x": "1"}),
                       TraceRecord(t=0.1, set={CARRIER: "1"}),
                       TraceRecord(t=4, set={CARRIER: "0"}))  # fmt: skip
        host = joined(tmp_path, Source(first), Source(second))
        host.advance(12)
        assert host.link_events() == ()
        host.advance(14)
        assert [event.up for event in host.link_events()] == [False]

    def test_news_are_not_part_of_the_first_look(self, tmp_path: Path) -> None:
        """A file that changes within the first second has both values."""
        first = trace(tmp_path / "a", 0, TraceRecord(t=0, set={"/a": "1"}))
        second = trace(tmp_path / "b", 9, TraceRecord(t=0.1, set={"/a": "2"}),
                       TraceRecord(t=0.5, set={"/a": "3"}))  # fmt: skip
        host = joined(tmp_path, Source(first), Source(second))
        host.advance(9.3)
        assert host.read("/a") == b"2"
        host.advance(9.6)
        assert host.read("/a") == b"3"

    def test_a_reboot_between(self, tmp_path: Path) -> None:
        """The boot is another one, and the kernel's lines of it are there."""
        first = trace(tmp_path / "a", 0, TraceRecord(t=0, set={"/a": "1"}))
        line = TraceRecord(t=0.1, kmsg=["6,1,1,-;new"])
        second = trace(tmp_path / "b", 9, line, TraceRecord(t=2), boot_id="c")
        host = joined(tmp_path, Source(first), Source(second, restarts=True))
        host.advance(11)
        assert host.boot_id() == "c"
        lines = host.kernel_log()
        assert not isinstance(lines, ReadError)
        assert [each.text for each in lines] == ["6,1,1,-;new"]

    def test_a_clock_that_stood_at_its_beginning(self, tmp_path: Path) -> None:
        """A boot without time is no gap of fifty years, which no trace can hold."""
        first = trace(tmp_path / "a", -START, TraceRecord(t=0, set={"/a": "1"}),
                      TraceRecord(t=5))  # fmt: skip
        second = trace(tmp_path / "b", 0, TraceRecord(t=0, set={"/a": "2"}),
                       TraceRecord(t=3, set={"/a": "3"}))  # fmt: skip
        host = joined(tmp_path, Source(first), Source(second, restarts=True))
        host.advance(9)
        assert host.read("/a") == b"3"
        assert host.problems == ()

    def test_a_clock_that_was_set_back(self, tmp_path: Path) -> None:
        """The second follows the first by time that passes, with the clock it had."""
        first = trace(tmp_path / "a", 0, TraceRecord(t=0, set={"/a": "1"}),
                      TraceRecord(t=50))  # fmt: skip
        second = trace(tmp_path / "b", 9, TraceRecord(t=0, set={"/a": "2"}),
                       TraceRecord(t=5))  # fmt: skip
        host = joined(tmp_path, Source(first), Source(second))
        host.advance(60)
        assert host.end == 55
        assert host.wall() == START + 9 + 10
        assert host.read("/a") == b"2"


class TestHeader:
    def test_the_configuration_in_force(self, tmp_path: Path) -> None:
        """A replay judges by what holds now; all else is as at the beginning."""
        first = trace(tmp_path / "a", 0, TraceRecord(t=0))
        second = trace(tmp_path / "b", 9, TraceRecord(t=0))
        sources = [Source(first), Source(second)]
        assert JoinedTraces(sources).header.config is None
        header = JoinedTraces(sources, {"cluster": "now"}).header
        assert (header.start, header.config) == (START, {"cluster": "now"})


class TestFollowing:
    def test_no_gap(self, tmp_path: Path) -> None:
        """A segment that goes on where the last one ended is no restart."""
        first = trace(tmp_path / "a", 0, TraceRecord(t=0, set={CARRIER: "1"}),
                      TraceRecord(t=5))  # fmt: skip
        second = trace(tmp_path / "b", 5.05, TraceRecord(t=0, set={CARRIER: "1"}),
                       TraceRecord(t=2, set={"/a": "2"}))  # fmt: skip
        host = joined(tmp_path, Source(first), Source(second, follows=True))
        assert gaps(host) == []
        assert host.end == 7
        assert host.wall() == START + 7.05
        assert host.link_events() == ()
        assert host.read("/a") == b"2"
