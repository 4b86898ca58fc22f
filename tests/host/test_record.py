import errno
import threading
from pathlib import Path

import pytest

from fabricmon.errors import TraceError
from fabricmon.host import record as record_module
from fabricmon.host.live import LiveHost
from fabricmon.host.record import RecordingHost
from fabricmon.host.replay import ReplayHost
from fabricmon.host.trace import TraceRecord
from fabricmon.host.trace_read import TraceReader
from fabricmon.host.trace_write import TraceWriter
from tests.recording import FakeNode, Session, names, read, target
from tests.traces import START


class TestRecording:
    def test_header(self, tmp_path: Path) -> None:
        """Node, boot, start and configuration, as of the start of the recording."""
        path = tmp_path / "x.trace.jsonl.gz"
        RecordingHost(FakeNode(), path, "n7", {"cluster": "c"}).close()
        with TraceReader(path) as reader:
            assert (reader.header.node, reader.header.boot_id) == ("n7", "b1")
            assert reader.header.start == START
            assert reader.header.config == {"cluster": "c"}
            assert reader.header.tells_links
            assert list(reader) == [TraceRecord(t=0)]

    def test_node_without_link_events(self, tmp_path: Path) -> None:
        """The header says so, and its replay has none."""
        inner = FakeNode()
        inner.tells_links = False
        RecordingHost(inner, tmp_path / "x", "n").close()
        host = ReplayHost(TraceReader(tmp_path / "x"))
        assert host.tells_links is False

    def test_counts_of_the_node_are_passed_on(self, tmp_path: Path) -> None:
        """Recording asks the node's devices nothing by itself."""
        inner = FakeNode(TraceRecord(t=0, set={"/a": "1"}))
        host = RecordingHost(inner, tmp_path / "x", "n")
        host.read("/a", 2)
        host.read_many(["/a"], 5)
        assert host.firmware_reads == 7
        assert host.monotonic() == 1000
        host.close()

    def test_time_is_when_the_read_began(self, tmp_path: Path) -> None:
        """So it holds for the whole of the poll that made it."""
        inner = FakeNode(TraceRecord(t=0, set={"/a": "1"}))
        made = Session(inner, tmp_path)

        def slow_read(path: str, firmware_reads: int = 0) -> bytes:
            inner.now += 30
            return b"2"

        inner.now = 1.2345678
        inner.read = slow_read  # type: ignore[method-assign]
        made.host.read("/a")
        records = made.check()
        assert [each.t for each in records] == [1.234567, 31.234567]


class TestFailure:
    def test_trace_that_cannot_be_made(self, tmp_path: Path) -> None:
        """It is said before anything is read."""
        with pytest.raises(TraceError, match="cannot be written: No such file"):
            RecordingHost(FakeNode(), tmp_path / "no" / "x", "n")

    def test_full_disk(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Recording ends with one reason, reads go on, the part stays readable."""
        made = Session(FakeNode(TraceRecord(t=0, set={"/a": "1"})), tmp_path)
        made.ask(read("/a"))

        def fail(self: TraceWriter, record: TraceRecord) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr(TraceWriter, "write", fail)
        made.host._transcript._write = made.host._writer.write
        made.change(t=1, set={"/a": "2"})
        assert made.host.read("/a") == b"2"
        assert made.host.error == (
            f"{made.path}.part: recording has ended: No space left on device"
        )
        assert made.host.read("/a") == b"2"
        made.host.close()
        assert not made.path.exists()
        with TraceReader(f"{made.path}.part") as reader:
            assert [each.set for each in reader] == [{"/a": "1"}]

    def test_flaw_of_the_recorder(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """It ends the recording, not the poll that met it."""
        made = Session(FakeNode(TraceRecord(t=0, set={"/a": "1"})), tmp_path)

        def fail(*args: object) -> None:
            raise KeyError("x")

        monkeypatch.setattr(made.host._transcript, "files", fail)
        assert made.host.read("/a") == b"1"
        assert made.host.error is not None
        assert made.host.error.endswith("recording has ended: KeyError: 'x'")

    def test_disk_that_does_not_answer(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A writer that hangs holds one lane; the others go on without recording."""
        monkeypatch.setattr(record_module, "MAX_LOCK_SECONDS", 0.01)
        made = Session(FakeNode(TraceRecord(t=0, set={"/a": "1"})), tmp_path)
        inside, free = threading.Event(), threading.Event()

        def hang(*args: object) -> None:
            inside.set()
            free.wait(10)

        monkeypatch.setattr(made.host._transcript, "files", hang)
        lane = threading.Thread(target=made.host.read, args=("/a",))
        lane.start()
        assert inside.wait(10)
        assert made.host.read("/a") == b"1"
        assert made.host.error is not None
        assert made.host.error.endswith("the disk does not answer")
        free.set()
        lane.join(10)
        made.host._writer.abandon()

    def test_killed_recorder(self, tmp_path: Path) -> None:
        """What is older than a minute is on the disk, under the name of the part."""
        made = Session(FakeNode(TraceRecord(t=0)), tmp_path)
        for t in range(100):
            made.change(t=t, set={"/a": str(t)})
            made.ask(read("/a"))
        with TraceReader(f"{made.path}.part") as reader:
            assert [each.t for each in reader] == list(range(61))
        made.check()


def test_many_threads(tmp_path: Path) -> None:
    """Lanes that read at the same time leave a trace whose lines are whole."""
    files = {f"/{lane}/{n}": "1" for lane in range(4) for n in range(20)}
    made = Session(FakeNode(TraceRecord(t=0, set=files)), tmp_path)

    def poll(lane: int) -> None:
        for n in range(20):
            made.host.names(f"/{lane}")
            made.host.read(f"/{lane}/{n}")

    lanes = [threading.Thread(target=poll, args=(lane,)) for lane in range(4)]
    for lane in lanes:
        lane.start()
    for lane in lanes:
        lane.join()
    made.ask(read(*files))
    made.check()


def test_live_files(tmp_path: Path) -> None:
    """A live node is recorded as it was read: files, links, folders, errors."""
    root = tmp_path / "root"
    (root / "sys/devices/a").mkdir(parents=True)
    (root / "sys/devices/a/x").write_text("1\n")
    (root / "sys/class").mkdir()
    (root / "sys/class/a").symlink_to("../devices/a")
    live = LiveHost(str(root))
    host = RecordingHost(live, tmp_path / "t", "n")
    paths = ["/sys/class/a/x", "/sys/class/a/y", "/sys/class/a"]
    calls = (read(*paths), names("/sys/class"), target("/sys/class/a"))
    answers = [call(host) for call in calls]
    host.close()
    live.close()
    assert (host.error, host.unfaithful) == (None, 0)
    with TraceReader(tmp_path / "t") as reader:
        replayed = ReplayHost(reader)
        replayed.advance(1e6)
    assert [call(replayed) for call in calls] == answers
    assert replayed.target("/sys/class/a/x") == "/sys/devices/a/x"
