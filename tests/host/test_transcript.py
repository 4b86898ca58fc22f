from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabricmon.host.protocol import CommandOutput, Host, ReadError
from fabricmon.host.replay import ReplayHost
from fabricmon.host.trace import Module, Ramp, TraceRecord
from fabricmon.host.trace_read import TraceReader
from fabricmon.model import LinkEvent
from tests.manifest import SYSFS
from tests.recording import Call, FakeNode, Session, names, read, statistics, target
from tests.traces import START, of_manifest

NET = "/sys/class/net"


class TestFiles:
    def test_only_changes_are_written(self, tmp_path: Path) -> None:
        """A file is written when it is first read and when it reads otherwise."""
        made = Session(
            FakeNode(TraceRecord(t=0, set={"/a": "1\n", "/b": "x"})), tmp_path
        )
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
        made = Session(FakeNode(TraceRecord(t=0, set={"/a": "1", "/b": "1"})), tmp_path)
        made.ask(read("/a"))
        (record, _) = made.check()
        assert record == TraceRecord(t=0, set={"/a": "1"})

    def test_bytes_and_errors(self, tmp_path: Path) -> None:
        """Any bytes, every errno, absence, and the way back."""
        made = Session(FakeNode(TraceRecord(t=0, err={"/d/a": "EINVAL"})), tmp_path)
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
        made = Session(
            FakeNode(TraceRecord(t=0, set={"/proc/uptime": "9.00 1\n"})), tmp_path
        )
        made.ask(read("/proc/uptime"))
        made.inner.now = 7.25
        made.ask(read("/proc/uptime"))
        made.change(t=8, set={"/proc/uptime": "12.00 1\n"})
        made.ask(read("/proc/uptime"))
        assert len(made.check()) == 3


class TestFolders:
    def test_listing(self, tmp_path: Path) -> None:
        """Names come and go; those never read exist, and cannot be read."""
        made = Session(
            FakeNode(TraceRecord(t=0, set={"/d/a": "1", "/d/b": "1"})), tmp_path
        )
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
        made = Session(FakeNode(first), tmp_path)
        made.ask(names("/d"))
        made.ask(names("/d/f"), read("/d/l/x", "/d/g"), target("/d/l"), read("/d/f/x"))
        made.ask(names("/d"))
        made.check()

    def test_listing_fails(self, tmp_path: Path) -> None:
        """For a time; what lies in the folder stays readable."""
        made = Session(FakeNode(TraceRecord(t=0, set={"/d/a": "1"})), tmp_path)
        made.ask(names("/d"), read("/d/a"), names("/d/a"))
        made.change(t=1, err={"/d": "EACCES"})
        made.ask(names("/d"), read("/d/a"))
        made.change(t=2, dir=["/d"])
        made.ask(names("/d"), read("/d/a"))
        made.check()

    def test_name_without_file_behind_it(self, tmp_path: Path) -> None:
        """A link that leads nowhere is listed all the same."""
        made = Session(FakeNode(TraceRecord(t=0, link={"/d/l": "gone"})), tmp_path)
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
        inner = FakeNode(
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
            FakeNode(TraceRecord(t=0, link={"/l": "a"}, set={"/a/x": "1"})), tmp_path
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
        made = Session(
            FakeNode(TraceRecord(t=0, ethtool={"e": {"a": 1, "b": 2}})), tmp_path
        )
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
        inner = FakeNode(TraceRecord(t=0))
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
        made = Session(
            FakeNode(TraceRecord(t=0, set={f"{NET}/e/carrier": "1\n"})), tmp_path
        )
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
        made = Session(FakeNode(TraceRecord(t=0, set=files)), tmp_path)
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
        made = Session(FakeNode(TraceRecord(t=0)), tmp_path)
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


@pytest.mark.parametrize(
    "manifest", sorted(SYSFS.glob("*.manifest")), ids=lambda p: p.stem
)
def test_walk_of_a_recorded_tree(manifest: Path, tmp_path: Path) -> None:
    """A tree that was walked through its links replays as it was seen."""
    made = Session(FakeNode(of_manifest(manifest)), tmp_path)
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


parts = st.sampled_from(["a", "b", "c"])
paths = st.lists(parts, min_size=1, max_size=3).map(lambda each: "/" + "/".join(each))
targets = st.lists(parts | st.just(".."), min_size=1, max_size=3).map("/".join)
changes: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {
        "deleted": st.lists(paths, max_size=2),
        "dir": st.lists(paths, max_size=1),
        "link": st.dictionaries(paths, targets, max_size=2),
        "set": st.dictionaries(
            paths, st.sampled_from(["1", "2\n", "\udcff"]), max_size=3
        ),
        "ramp": st.dictionaries(paths, st.just(Ramp(0, 1)), max_size=1),
        "err": st.dictionaries(paths, st.sampled_from(["EIO", "EINVAL"]), max_size=1),
        "ethtool": st.dictionaries(
            st.just("e"),
            st.none() | st.dictionaries(parts, st.integers(0, 3)),
            max_size=1,
        ),
    }
)
calls = st.one_of(
    paths.map(lambda path: ("read", path)),
    paths.map(lambda path: ("names", path)),
    paths.map(lambda path: ("target", path)),
    st.just(("statistics", "e")),
)


_METHODS: dict[str, Callable[[str], Call]] = {
    "read": read,
    "names": names,
    "target": target,
    "statistics": statistics,
}


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

    Each is asked twice: what one answer shows of the node may uncover that an earlier
    one was right by chance. And a name that fails is not asked for both as a file and
    as a folder in one moment: the format has one errno for both.
    """
    made = Session(FakeNode(), tmp_path_factory.mktemp("record"))
    for seconds, change, asked in course:
        made.change(t=made.inner.now + seconds, **change)
        ways = {path: name for name, path in reversed(asked) if name != "target"}
        for name, path in asked * 2:
            if name in {"target", ways.get(path)}:
                made.ask(_METHODS[name](path))
    made.check()


class TestHostSide:
    """The kernel's log, transceivers and health reporters."""

    def test_kernel_log(self, tmp_path: Path) -> None:
        """Lines come once, at their poll; a refusal holds until it ends."""

        def kernel_log(host: Host) -> Any:
            return host.kernel_log()

        made = Session(FakeNode(), tmp_path)
        made.inner.kernel_error = ReadError("EPERM")
        made.ask(kernel_log)
        made.inner.kernel_error = None
        made.change(t=5, kmsg=["mlx5_core 0000:1a:00.0: Link down"])
        made.ask(kernel_log, kernel_log)
        made.check()

    def test_clock(self, tmp_path: Path) -> None:
        """Its error each time that it changes, also that nobody keeps it."""

        def clock(host: Host) -> Any:
            return host.clock()

        made = Session(FakeNode(), tmp_path)
        made.ask(clock)
        for t, error in ((5, 0.25), (6, 0.25), (7, 16.0)):
            made.change(t=t, clock_error=error)
            made.ask(clock)
        made.check()

    def test_module_and_reporters(self, tmp_path: Path) -> None:
        """What a trace has beyond files, and what of it goes."""

        def module(host: Host) -> Any:
            return host.module("mlx5_0/1")

        def devlink(host: Host) -> Any:
            return host.devlink("0000:1a:00.0")

        made = Session(FakeNode(), tmp_path)
        made.ask(module, devlink)
        made.change(
            t=5,
            module={"mlx5_0/1": Module(temperature_c=61.0, vendor="V")},
            devlink={"0000:1a:00.0": {"fw": "healthy", "tx": "error"}},
        )
        made.ask(module, devlink)
        made.change(t=9, devlink={"0000:1a:00.0": None}, module={"mlx5_0/1": None})
        made.change(t=9, module={"mlx5_0/1": Module(temperature_c=62.0)})
        made.ask(module, devlink)
        made.check()
