"""The last minutes on disk: each segment alone, bounded, and never in the way."""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Event

import pytest

from fabricmon.host import segments as segments_module
from fabricmon.host.history import SEGMENT_SHARE, HistoryHost
from fabricmon.host.replay import ReplayHost
from fabricmon.host.segments import Segments, segments_in
from fabricmon.host.trace import TraceRecord
from fabricmon.host.trace_read import TraceReader
from fabricmon.host.trace_write import PART, TraceWriter
from tests.recording import FakeNode
from tests.support.servers import wait_until

SECONDS = 40.0
PART_SECONDS = SECONDS * SEGMENT_SHARE
ROOM = 10**6
RARE = "/sys/rare"


class Kept:
    """A node and the history that is kept of it."""

    def __init__(
        self, folder: Path, most_bytes: int = ROOM, seconds: float = SECONDS
    ) -> None:
        self.folder = folder / "history"
        first = TraceRecord(t=0, set={RARE: "once", "/sys/often": "0"})
        self.node = FakeNode(first)
        self.segments = Segments(self.folder, seconds, most_bytes)
        config = {"cluster": "c"}
        self.host = HistoryHost(self.node, "n7", config, self.segments, seconds)

    def pass_time(self, seconds: int) -> None:
        """Let it read one file each second, which is another one each time."""
        for _ in range(seconds):
            at = self.node.now + 1
            self.node.change(TraceRecord(t=at, set={"/sys/often": f"{at:.0f}"}))
            self.host.read("/sys/often")

    def is_written(self) -> None:
        """Wait until the disk has all of it."""
        wait_until(lambda: not self.segments._waiting, 10, "all is written")

    def traces(self) -> list[Path]:
        """Return what lies there."""
        if not self.folder.exists():
            return []
        return [each.path for each in segments_in(self.folder)]


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the disk be written to all the time."""
    monkeypatch.setattr(segments_module, "FLUSH_SECONDS", 0.02)


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[Kept]:
    """Return a history that is closed in the end."""
    made = Kept(tmp_path)
    yield made
    made.host.close()


class TestSegments:
    def test_each_stands_alone(self, kept: Kept) -> None:
        """What was read once is in all of them, also what is in a folder."""
        kept.host.read(RARE)
        kept.host.names("/sys")
        kept.pass_time(35)
        kept.host.close()
        traces = kept.traces()
        assert len(traces) == 4
        for path in traces:
            host = ReplayHost(TraceReader(path))
            assert host.header.node == "n7"
            assert host.header.config == {"cluster": "c"}
            host.advance(0.5)
            assert host.read(RARE) == b"once"
            assert host.names("/sys") == ("often", "rare")
            host.close()

    def test_they_follow_at_once(self, kept: Kept) -> None:
        """One begins when the one before it ends, by each clock."""
        kept.pass_time(25)
        kept.host.close()
        ends = []
        for path in kept.traces():
            with TraceReader(path) as reader:
                start = reader.header.start
                ends.append((start, start + [each.t for each in reader][-1]))
        assert [start for start, _ in ends[1:]] == [end for _, end in ends[:-1]]

    def test_values_are_at_their_time(self, kept: Kept) -> None:
        """A segment shows the changes of its own time."""
        kept.pass_time(25)
        kept.host.close()
        host = ReplayHost(TraceReader(kept.traces()[1]))
        host.advance(3.0)
        assert host.read("/sys/often") == b"%d" % (PART_SECONDS + 3)
        host.close()

    def test_only_the_owner_reads_them(self, kept: Kept) -> None:
        """They hold what the kernel says of jobs; so does their folder."""
        kept.pass_time(15)
        kept.host.close()
        modes = {stat.S_IMODE(path.stat().st_mode) for path in kept.traces()}
        assert modes == {0o600}
        assert stat.S_IMODE(kept.folder.stat().st_mode) == 0o700

    def test_no_log_of_a_job(self, kept: Kept) -> None:
        """Nothing that jobs wrote is copied."""
        kept.node.change(TraceRecord(t=1, append={"/log": "NCCL WARN secret\n"}))
        (file,) = kept.host.log_files(["/log"])
        read = kept.host.read_log("/log", file.serial, 0, 99)  # type: ignore[union-attr]
        assert read == b"NCCL WARN secret\n"
        kept.host.processes()
        kept.host.close()
        (path,) = kept.traces()
        with TraceReader(path) as reader:
            assert not any(record.append for record in reader)

    def test_a_step_of_the_clock(self, kept: Kept) -> None:
        """It is told in its own segment, and the next one begins by the new time."""
        kept.pass_time(3)
        kept.node.step = 3600
        kept.host.wall()
        kept.pass_time(10)
        kept.host.wall()
        kept.host.close()
        steps = []
        for path in kept.traces():
            with TraceReader(path) as reader:
                steps.append([r.wall_step for r in reader if r.wall_step])
        assert steps == [[3600], []]


class TestBounds:
    def test_old_ones_go(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """What ended longer ago than is asked for is removed, and not before."""
        kept = Kept(tmp_path)
        monkeypatch.setattr(time, "monotonic", kept.node.monotonic)
        for _ in range(100):
            kept.pass_time(1)
            kept.is_written()
        oldest = TraceReader(kept.traces()[0])
        covered = kept.node.wall() - oldest.header.start
        oldest.close()
        assert SECONDS <= covered <= SECONDS + 2 * PART_SECONDS
        kept.host.close()

    def test_room(self, tmp_path: Path) -> None:
        """However much there is to keep, it has the room that it was given."""
        room = 200_000
        kept = Kept(tmp_path, room)
        sizes = []
        for n in range(300):
            text = "".join(f"{(n * 7919 + i) ** 5:x}" for i in range(300))
            kept.node.change(TraceRecord(t=n / 10, set={"/sys/often": text}))
            kept.host.read("/sys/often")
            kept.is_written()
            sizes.append(_size(kept.folder))
        kept.host.close()
        assert kept.host.error is None
        assert max(sizes) < 1.1 * room
        assert sizes[-1] > room / 2
        assert len(kept.traces()) > 3

    def test_next_to_nothing_to_keep(self, tmp_path: Path) -> None:
        """Not every read begins a file."""
        kept = Kept(tmp_path, seconds=1e-5)
        for n in range(100):
            kept.node.change(TraceRecord(t=n / 100, set={"/sys/often": str(n)}))
            kept.host.read("/sys/often")
        assert kept.segments._number <= 3
        kept.host.close()

    def test_folders_that_come_and_go(self, kept: Kept) -> None:
        """Those of jobs do, for months: what is gone is not remembered."""
        for n in range(200):
            at = kept.node.now + 1
            kept.node.change(
                TraceRecord(t=at, deleted=["/pods"], set={f"/pods/{n}/log": "x"})
            )
            kept.host.names("/pods")
            kept.host.names(f"/pods/{n}")
        transcript = kept.host._transcript
        assert len(transcript._listed) < 20
        assert len(transcript._tree._folders) < 10

    def test_a_new_life(self, tmp_path: Path) -> None:
        """What a killed agent left is read and kept for its time, under its name."""
        first = Kept(tmp_path)
        first.pass_time(15)
        wait_until(lambda: len(first.traces()) == 2, 10, "both are there")
        left = first.traces()
        assert left[-1].name.endswith(PART)
        first.segments.finish()  # as a kill: nothing completes the last one
        second = Kept(tmp_path)
        second.pass_time(1)
        second.host.close()
        lives = [each.life for each in segments_in(second.folder)]
        assert lives == [1, 1, 2]
        with TraceReader(left[-1]) as reader:
            assert [*reader][-1].set == {"/sys/often": "15"}

    def test_what_is_too_old_goes_at_the_start(self, tmp_path: Path) -> None:
        """An agent that comes back after hours has no use for what was before."""
        first = Kept(tmp_path)
        first.pass_time(1)
        first.host.close()
        (old,) = first.traces()
        os.utime(old, (1, 1))
        second = Kept(tmp_path)
        second.pass_time(1)
        second.host.close()
        assert [each.life for each in segments_in(second.folder)] == [2]


class TestTrouble:
    def test_full_disk(self, kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
        """It ends with one reason; every read is answered as before."""

        def fail(self: TraceWriter) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr(TraceWriter, "flush", fail)
        kept.pass_time(1)
        wait_until(lambda: kept.host.error is not None, 10, "it is said")
        expected = f"{kept.folder}: the history has ended: No space left on device"
        assert kept.host.error == expected
        kept.pass_time(30)
        assert kept.host.read(RARE) == b"once"
        assert len(kept.traces()) == 1
        assert not kept.segments._waiting

    def test_a_disk_that_hangs(
        self, kept: Kept, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """No read waits for it; what is to be written is bounded."""
        monkeypatch.setattr(segments_module, "MOST_WAITING", 20)
        monkeypatch.setattr(Segments, "_take", lambda *_: wait_until(
            lambda: kept.host.error is not None, 10, "it is given up"))  # fmt: skip
        kept.pass_time(100)
        assert kept.host.error is not None
        assert "the disk does not answer" in kept.host.error
        assert kept.host.read(RARE) == b"once"

    def by_its_clock(self, kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
        """Let the time of the node be that of the disk."""
        monkeypatch.setattr(time, "monotonic", kept.node.monotonic)
        kept.segments._gave_at = kept.node.now

    def test_a_disk_that_hangs_with_little_to_write(
        self, kept: Kept, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """It is given up after a minute, and not when the memory is full."""
        hangs, ends = Event(), Event()

        def hang(*_: object) -> None:
            hangs.set()
            ends.wait(10)

        monkeypatch.setattr(Segments, "_take", hang)
        self.by_its_clock(kept, monkeypatch)
        kept.pass_time(1)
        assert hangs.wait(10)
        monkeypatch.setattr(segments_module, "FLUSH_SECONDS", 5.0)
        kept.pass_time(50)
        errors = [kept.host.error]
        kept.pass_time(20)
        errors.append(kept.host.error)
        assert errors[0] is None
        assert "the disk does not answer" in str(errors[1])
        ends.set()

    def test_a_process_that_was_stopped(
        self, kept: Kept, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """It has not waited for the disk."""
        self.by_its_clock(kept, monkeypatch)
        kept.pass_time(1)
        kept.node.now += 3600
        kept.pass_time(5)
        assert kept.host.error is None

    def test_another_agent(self, kept: Kept, tmp_path: Path) -> None:
        """The folder is of the first; the second says so, and removes nothing."""
        kept.pass_time(1)
        wait_until(lambda: kept.segments._lock is not None, 10, "it is held")
        second = Kept(tmp_path)
        wait_until(lambda: second.host.error is not None, 10, "it is said")
        assert "another agent keeps its own here" in (second.host.error or "")
        kept.pass_time(15)
        kept.host.close()
        second.host.close()
        assert kept.host.error is None
        assert [each.life for each in segments_in(kept.folder)] == [1, 1]

    def test_a_link_in_the_place_of_the_folder(self, tmp_path: Path) -> None:
        """It is not followed."""
        elsewhere = tmp_path / "elsewhere"
        elsewhere.mkdir()
        (tmp_path / "history").symlink_to(elsewhere)
        made = Kept(tmp_path)
        wait_until(lambda: made.host.error is not None, 10, "it is said")
        assert "is a link" in (made.host.error or "")
        made.host.close()
        assert list(elsewhere.iterdir()) == []

    def test_a_flaw(self, kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
        """A bug of the writer ends the history and nothing else."""
        monkeypatch.setattr(TraceWriter, "flush", lambda _self: 1 / 0)
        kept.pass_time(1)
        wait_until(lambda: kept.host.error is not None, 10, "it is said")
        assert "ZeroDivisionError" in (kept.host.error or "")


def _size(folder: Path) -> int:
    total = 0
    for path in folder.iterdir():
        try:
            total += path.stat().st_size
        except FileNotFoundError:  # completed or removed in between
            continue
    return total
