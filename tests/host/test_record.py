import errno
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabricmon.errors import TraceError
from fabricmon.host import record as record_module
from fabricmon.host.live import LiveHost
from fabricmon.host.protocol import CommandOutput, Host, ReadError, Statistic
from fabricmon.host.record import RecordingHost
from fabricmon.host.replay import ReplayHost
from fabricmon.host.trace import Ramp, TraceRecord
from fabricmon.host.trace_read import TraceReader
from fabricmon.host.trace_write import TraceWriter
from fabricmon.host.node import Node
from fabricmon.model import LinkEvent
from tests.manifest import SYSFS
from tests.traces import START, of_manifest

NET = "/sys/class/net"


class FakeHost:
    """A node made of records, at a time that the test sets; starts at 1,000 s."""

    firmware_reads = 0

    def __init__(self, *records: TraceRecord) -> None:
        self.now = 0.0
        self.step = 0.0
        self.events: tuple[LinkEvent, ...] = ()
        self.outputs: dict[str, CommandOutput | ReadError] = {}
        self.node = Node("b1")
        for each in records:
            self.change(each)

    def change(self, record: TraceRecord) -> None:
        self.now = max(self.now, record.t)
        self.node.apply(record)
        self.node.link_events(record.t)

    def monotonic(self) -> float:
        return 1000 + self.now

    def wall(self) -> float:
        return START + self.now + self.step

    def boot_id(self) -> str:
        return self.node.boot_id

    def read(self, path: str, firmware_reads: int = 0) -> bytes | ReadError:
        self.firmware_reads += firmware_reads
        return self.node.tree.read(path, self.now)

    def read_many(
        self, paths: Sequence[str], firmware_reads: int = 0
    ) -> list[bytes | ReadError]:
        self.firmware_reads += firmware_reads
        return self.node.tree.read_many(paths, self.now)

    def names(self, path: str) -> tuple[str, ...] | ReadError:
        return self.node.tree.names(path)

    def target(self, path: str) -> str | None:
        return self.node.tree.target(path)

    def statistics(self, netdev: str) -> tuple[Statistic, ...] | ReadError:
        return self.node.statistics.read(netdev, self.now)

    def link_events(self) -> tuple[LinkEvent, ...]:
        events, self.events = self.events, ()
        return events

    def command(self, name: str, seconds: float) -> CommandOutput | ReadError:
        self.now += min(seconds, 2)
        return self.outputs.get(name, ReadError("ENOENT"))


Call = Callable[[Host], Any]


class Session:
    """A recording: calls at their times, with the answers that were given."""

    def __init__(self, inner: FakeHost, folder: Path) -> None:
        self.inner = inner
        self.path = folder / "node01.trace.jsonl"
        self.host = RecordingHost(inner, self.path, "node01")
        self.answers: list[tuple[float, Call, Any]] = []

    def ask(self, *calls: Call) -> None:
        at = self.inner.now
        self.answers += [(at, call, call(self.host)) for call in calls]

    def change(self, **changes: Any) -> None:
        self.inner.change(TraceRecord(**changes))

    def check(self) -> list[TraceRecord]:
        """Replay: every call has the same answer at the same time; return the records."""
        self.host.close()
        assert self.host.error is None
        assert self.host.unfaithful == 0
        with TraceReader(self.path) as reader:
            host = ReplayHost(reader)
            for at, call, answer in self.answers:
                host.advance(at)
                assert call(host) == answer
            host.advance(1e6)
        assert host.problems == ()
        with TraceReader(self.path) as reader:
            return list(reader)


def read(*paths: str) -> Call:
    return lambda host: host.read_many(paths)


def names(path: str) -> Call:
    return lambda host: host.names(path)


def target(path: str) -> Call:
    return lambda host: host.target(path)


def statistics(netdev: str) -> Call:
    return lambda host: host.statistics(netdev)


class TestFiles:
    def test_only_changes_are_written(self, tmp_path: Path) -> None:
        """A file is written when it is first read and when it reads otherwise."""
        made = Session(FakeHost(TraceRecord(t=0, set={"/a": "1\n", "/b": "x"})), tmp_path)
        for t in range(5):
            made.change(t=t, set={"/a": f"{t // 2}\n"})
            made.ask(read("/a", "/b"))
        assert [(each.t, each.set) for each in made.check()] == [
            (0, {"/a": "0\n", "/b": "x"}),
            (2, {"/a": "1\n"}),
            (4, {"/a": "2\n"}),
            (4, {}),
        ]

    def test_what_is_not_read_is_not_written(self, tmp_path: Path) -> None:
        """A recording holds what sources asked for, and nothing else."""
        made = Session(FakeHost(TraceRecord(t=0, set={"/a": "1", "/b": "1"})), tmp_path)
        made.ask(read("/a"))
        (record, _) = made.check()
        assert record == TraceRecord(t=0, set={"/a": "1"})

    def test_bytes_and_errors(self, tmp_path: Path) -> None:
        """Any bytes, every errno, absence, and the way back."""
        made = Session(FakeHost(TraceRecord(t=0, err={"/d/a": "EINVAL"})), tmp_path)
        made.ask(read("/d/a", "/d/b", "/d"))
        made.change(t=1, set={"/d/a": "\udcff\udced\udcb2\udc80", "/d/b": ""})
        made.ask(read("/d/a", "/d/b"))
        made.change(t=2, deleted=["/d/a"], err={"/d/b": "EIO"})
        made.ask(read("/d/a", "/d/b"))
        made.change(t=3, deleted=["/d"])
        made.ask(read("/d/a", "/d/b", "/d"))
        made.check()

    def test_uptime(self, tmp_path: Path) -> None:
        """It moves by itself in a trace, so it is written where that is not enough."""
        made = Session(FakeHost(TraceRecord(t=0, set={"/proc/uptime": "9.00 1\n"})), tmp_path)
        made.ask(read("/proc/uptime"))
        made.inner.now = 7.25
        made.ask(read("/proc/uptime"))
        made.change(t=8, set={"/proc/uptime": "12.00 1\n"})
        made.ask(read("/proc/uptime"))
        assert len(made.check()) == 3

    def test_time_is_when_the_read_began(self, tmp_path: Path) -> None:
        """So it holds for the whole of the poll that made it."""
        inner = FakeHost(TraceRecord(t=0, set={"/a": "1"}))
        made = Session(inner, tmp_path)

        def slow_read(path: str, firmware_reads: int = 0) -> bytes:
            inner.now += 30
            return b"2"

        inner.now = 1.2345678
        inner.read = slow_read  # type: ignore[method-assign]
        made.host.read("/a")
        records = made.check()
        assert [each.t for each in records] == [1.234567, 31.234567]


class TestFolders:
    def test_listing(self, tmp_path: Path) -> None:
        """Names come and go; those never read exist, and cannot be read."""
        made = Session(FakeHost(TraceRecord(t=0, set={"/d/a": "1", "/d/b": "1"})), tmp_path)
        made.ask(names("/d"), read("/d/a"), names("/e"))
        made.change(t=1, set={"/d/c": "1"}, deleted=["/d/a"])
        made.ask(names("/d"))
        made.change(t=2, deleted=["/d/b", "/d/c"], dir=["/d"])
        made.ask(names("/d"), names("/"))
        made.change(t=3, deleted=["/d"])
        made.ask(names("/d"))
        made.check()
        host = ReplayHost(TraceReader(made.path))
        assert host.read("/d/b") == ReadError("ENODATA")
        host.close()

    def test_folder_that_was_a_mere_name(self, tmp_path: Path) -> None:
        """A listed name turns out to be a folder, a link or a file."""
        first = TraceRecord(t=0, set={"/d/f/x": "1", "/d/g": "2"}, link={"/d/l": "f"})
        made = Session(FakeHost(first), tmp_path)
        made.ask(names("/d"))
        made.ask(names("/d/f"), read("/d/l/x", "/d/g"), target("/d/l"), read("/d/f/x"))
        made.ask(names("/d"))
        made.check()

    def test_listing_fails(self, tmp_path: Path) -> None:
        """For a time; what lies in the folder stays readable."""
        made = Session(FakeHost(TraceRecord(t=0, set={"/d/a": "1"})), tmp_path)
        made.ask(names("/d"), read("/d/a"), names("/d/a"))
        made.change(t=1, err={"/d": "EACCES"})
        made.ask(names("/d"), read("/d/a"))
        made.change(t=2, dir=["/d"])
        made.ask(names("/d"), read("/d/a"))
        made.check()

    def test_name_without_file_behind_it(self, tmp_path: Path) -> None:
        """A link that leads nowhere is listed all the same."""
        made = Session(FakeHost(TraceRecord(t=0, link={"/d/l": "gone"})), tmp_path)
        made.ask(names("/d"), read("/d/l"), target("/d/l"), names("/d"))
        made.change(t=1, set={"/d/gone": "1"})
        made.ask(read("/d/l"), target("/d/l"), names("/d"))
        made.check()


class TestLinks:
    @pytest.mark.parametrize("listed_first", [True, False])
    def test_links_are_found_on_the_way(
        self,
        tmp_path: Path,
        listed_first: bool,  # noqa: FBT001
    ) -> None:
        """A path through links leads to the same place, as does every other path."""
        function = "/sys/devices/0000:1a:00.0"
        inner = FakeHost(
            TraceRecord(
                t=0,
                link={
                    "/sys/class/infiniband/mlx5_0": "../../devices/0000:1a:00.0/ib/mlx5_0",
                    f"{function}/ib/mlx5_0/device": "../../../0000:1a:00.0",
                },
                set={f"{function}/ib/mlx5_0/a": "1", f"{function}/vendor": "2"},
            )
        )
        made = Session(inner, tmp_path)
        device = "/sys/class/infiniband/mlx5_0"
        if listed_first:
            made.ask(names("/sys/class/infiniband"))
        made.ask(read(f"{device}/a", f"{device}/device/vendor", f"{device}/device/no"))
        made.ask(target(device), target(f"{device}/device"), target(f"{device}/no"))
        made.ask(names("/sys/class/infiniband"), read(f"{function}/vendor"))
        records = made.check()
        links = {path: to for each in records for path, to in each.link.items()}
        assert links == {
            device: "../../devices/0000:1a:00.0/ib/mlx5_0",
            f"{function}/ib/mlx5_0/device": "../..",
        }

    def test_device_comes_back_elsewhere(self, tmp_path: Path) -> None:
        """The link leads to the new place, and the old one is no longer reached."""
        made = Session(
            FakeHost(TraceRecord(t=0, link={"/l": "a"}, set={"/a/x": "1"})), tmp_path
        )
        made.ask(read("/l/x"), target("/l"), names("/"))
        made.change(t=1, deleted=["/l", "/a"])
        made.ask(read("/l/x"), target("/l"), names("/"))
        made.change(t=2, link={"/l": "b"}, set={"/b/x": "2"})
        made.ask(names("/"), read("/l/x"), target("/l/x"), read("/b/x", "/a/x"))
        made.check()


class TestRest:
    def test_statistics(self, tmp_path: Path) -> None:
        """Only what changed, errors, other names, and no statistics at all."""
        made = Session(FakeHost(TraceRecord(t=0, ethtool={"e": {"a": 1, "b": 2}})), tmp_path)
        made.ask(statistics("e"), statistics("f"))
        made.change(t=1, ethtool={"e": {"b": 3}})
        made.ask(statistics("e"))
        made.change(t=2, err={"ethtool:e": "EBUSY"})
        made.ask(statistics("e"))
        made.change(t=3, deleted=["ethtool:e"], ethtool={"e": {"c": 1}})
        made.ask(statistics("e"))
        made.change(t=4, ethtool={"e": None})
        made.ask(statistics("e"))
        made.change(t=5, ethtool={"e": {"c": 1, "a": 1}})
        made.ask(statistics("e"))
        records = made.check()
        assert records[1].ethtool == {"e": {"b": 3}}

    def test_command(self, tmp_path: Path) -> None:
        """Its text, how it ended and how long it took."""
        inner = FakeHost(TraceRecord(t=0))
        made = Session(inner, tmp_path)
        ibstat: Call = lambda host: host.command("ibstat", 20)  # noqa: E731
        made.ask(ibstat)
        inner.outputs["ibstat"] = CommandOutput(b"CA\xff", b"w", 1)
        made.ask(ibstat)
        inner.outputs["ibstat"] = CommandOutput(b"half", b"", None)
        made.ask(ibstat)
        records = made.check()
        assert records[0].command["ibstat"].seconds == 2

    def test_link_events(self, tmp_path: Path) -> None:
        """A reader derives the same changes from the files that it is given."""
        made = Session(FakeHost(TraceRecord(t=0, set={f"{NET}/e/carrier": "1\n"})), tmp_path)
        made.ask(names(NET), read(f"{NET}/e/carrier"))
        events = (
            LinkEvent(1003.25, "e", up=False),
            LinkEvent(1003.75, "e", up=True),
            LinkEvent(1004, "f", up=False),
            LinkEvent(1004.5, "", up=None),
            LinkEvent(1005, "f", up=None, gone=True),
        )
        made.inner.now = 6
        made.inner.events = events
        assert made.host.link_events() == events
        made.ask(read(f"{NET}/e/carrier"), names(NET))
        made.check()
        with TraceReader(made.path) as reader:
            host = ReplayHost(reader)
            host.advance(6)
            assert host.link_events() == (
                LinkEvent(3.25, "e", up=False),
                LinkEvent(3.75, "e", up=True),
                LinkEvent(4, "f", up=False),
                LinkEvent(5, "f", up=None, gone=True),
            )

    def test_operstate_follows_an_event(self, tmp_path: Path) -> None:
        """A device that is operational again is up, also where its state was read."""
        files = {f"{NET}/e/carrier": "0\n", f"{NET}/e/operstate": "down\n"}
        made = Session(FakeHost(TraceRecord(t=0, set=files)), tmp_path)
        made.ask(read(*files))
        made.inner.now = 6
        made.inner.events = (LinkEvent(1005, "e", up=True),)
        made.host.link_events()
        made.check()
        with TraceReader(made.path) as reader:
            host = ReplayHost(reader)
            host.advance(6)
            assert host.link_events() == (LinkEvent(5, "e", up=True),)

    def test_clock_and_boot(self, tmp_path: Path) -> None:
        """Steps of the wall clock and reboots are records, drift is none."""
        made = Session(FakeHost(TraceRecord(t=0)), tmp_path)
        made.change(t=5)
        made.inner.step = 0.05
        made.host.wall()
        made.inner.step = -3.5
        assert made.host.wall() == START + 1.5
        made.change(t=6, boot_id="b2")
        made.ask(lambda host: host.boot_id())
        records = made.check()
        assert [(each.t, each.wall_step, each.boot_id) for each in records] == [
            (5, -3.5, None),
            (6, 0, "b2"),
            (6, 0, None),
        ]

    def test_header(self, tmp_path: Path) -> None:
        """Node, boot, start and configuration, as of the start of the recording."""
        path = tmp_path / "x.trace.jsonl.gz"
        RecordingHost(FakeHost(), path, "n7", {"cluster": "c"}).close()
        with TraceReader(path) as reader:
            assert (reader.header.node, reader.header.boot_id) == ("n7", "b1")
            assert reader.header.start == START
            assert reader.header.config == {"cluster": "c"}
            assert list(reader) == [TraceRecord(t=0)]

    def test_counts_of_the_node_are_passed_on(self, tmp_path: Path) -> None:
        """Recording asks the node's devices nothing by itself."""
        inner = FakeHost(TraceRecord(t=0, set={"/a": "1"}))
        host = RecordingHost(inner, tmp_path / "x", "n")
        host.read("/a", 2)
        host.read_many(["/a"], 5)
        assert host.firmware_reads == 7
        assert host.monotonic() == 1000
        host.close()


class TestFailure:
    def test_trace_that_cannot_be_made(self, tmp_path: Path) -> None:
        """It is said before anything is read."""
        with pytest.raises(TraceError, match="cannot be written: No such file"):
            RecordingHost(FakeHost(), tmp_path / "no" / "x", "n")

    def test_full_disk(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Recording ends with one reason, reads go on, the part stays readable."""
        made = Session(FakeHost(TraceRecord(t=0, set={"/a": "1"})), tmp_path)
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
        made = Session(FakeHost(TraceRecord(t=0, set={"/a": "1"})), tmp_path)

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
        made = Session(FakeHost(TraceRecord(t=0, set={"/a": "1"})), tmp_path)
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
        made = Session(FakeHost(TraceRecord(t=0)), tmp_path)
        for t in range(100):
            made.change(t=t, set={"/a": str(t)})
            made.ask(read("/a"))
        with TraceReader(f"{made.path}.part") as reader:
            assert [each.t for each in reader] == list(range(61))
        made.check()


def test_many_threads(tmp_path: Path) -> None:
    """Lanes that read at the same time leave a trace whose lines are whole."""
    files = {f"/{lane}/{n}": "1" for lane in range(4) for n in range(20)}
    made = Session(FakeHost(TraceRecord(t=0, set=files)), tmp_path)

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


@pytest.mark.parametrize("manifest", sorted(SYSFS.glob("*.manifest")), ids=lambda p: p.stem)
def test_walk_of_a_recorded_tree(manifest: Path, tmp_path: Path) -> None:
    """A tree that was walked through its links replays as it was seen."""
    made = Session(FakeHost(of_manifest(manifest)), tmp_path)
    folders = ["/sys/class/infiniband", "/sys/class/net", "/sys/class/dmi"]
    seen = set(folders)
    while folders:
        folder = folders.pop()
        made.ask(names(folder), target(folder))
        listed = made.inner.names(folder)
        for name in listed if isinstance(listed, tuple) else ():
            path = f"{folder}/{name}"
            made.ask(read(path))
            place = made.inner.target(path)
            if made.inner.node.tree.is_folder(path) and place not in seen:
                seen.add(place or "")
                folders.append(path)
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


parts = st.sampled_from(["a", "b", "c"])
paths = st.lists(parts, min_size=1, max_size=3).map(lambda each: "/" + "/".join(each))
targets = st.lists(parts | st.just(".."), min_size=1, max_size=3).map("/".join)
changes = st.builds(
    dict,
    deleted=st.lists(paths, max_size=2),
    dir=st.lists(paths, max_size=1),
    link=st.dictionaries(paths, targets, max_size=2),
    set=st.dictionaries(paths, st.sampled_from(["1", "2\n", "\udcff"]), max_size=3),
    ramp=st.dictionaries(paths, st.just(Ramp(0, 1)), max_size=1),
    err=st.dictionaries(paths, st.sampled_from(["EIO", "EINVAL"]), max_size=1),
    ethtool=st.dictionaries(
        st.just("e"), st.none() | st.dictionaries(parts, st.integers(0, 3)), max_size=1
    ),
)
calls = st.one_of(
    paths.map(lambda path: ("read", path)),
    paths.map(lambda path: ("names", path)),
    paths.map(lambda path: ("target", path)),
    st.just(("statistics", "e")),
)


@given(
    st.lists(
        st.tuples(st.floats(0.001, 3), changes, st.lists(calls, max_size=6)), max_size=6
    )
)
def test_replay_answers_as_the_node_did(
    tmp_path_factory: pytest.TempPathFactory,
    course: list[tuple[float, dict[str, Any], list[tuple[str, str]]]],
) -> None:
    """Whatever happens and whatever is asked, the same calls have the same answers.

    Links are looked at first: one that has moved is noticed when it is asked for, or
    when a read through it differs. And a name that fails is not asked for both as a
    file and as a folder in one moment: the format has one errno for both.
    """
    made = Session(FakeHost(), tmp_path_factory.mktemp("record"))
    links: set[str] = set()
    for seconds, change, asked in course:
        made.change(t=made.inner.now + seconds, **change)
        links.update(change["link"])
        made.ask(*(target(path) for path in sorted(links)))
        ways = {path: name for name, path in reversed(asked) if name != "target"}
        for name, path in asked:
            if name in {"target", ways.get(path)}:
                made.ask(lambda host, name=name, path=path: getattr(host, name)(path))
    made.check()
