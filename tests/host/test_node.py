from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabricmon.host.node import Node
from fabricmon.host.protocol import (
    CommandOutput,
    KernelLine,
    LogFile,
    ReadError,
    Statistic,
)
from fabricmon.host.trace import Bridging, Module, Printed, Ramp, TraceRecord
from fabricmon.model import HealthReporter, LinkEvent

BOOT_ID = "/proc/sys/kernel/random/boot_id"


def node(**first: Any) -> Node:
    """Make a node of one record at t = 0."""
    made = Node("b1")
    change(made, 0, **first)
    return made


def change(changed: Node, t: float, **changes: Any) -> None:
    """Apply a record that can be used whole."""
    assert changed.apply(TraceRecord(t=t, **changes)) == []


PATHS = ("/a", "/a/b", "/a/b/c", "/d", "/d/e", "/sys/class/net/eth0/carrier")
some_path = st.sampled_from(PATHS)


@st.composite
def records(draw: st.DrawFn) -> TraceRecord:
    """Make a record that does anything to a few paths; not all of it is possible."""
    texts = st.dictionaries(some_path, st.sampled_from(["0\n", "", "\udcff"]))
    figures = st.dictionaries(st.sampled_from(["x", "y"]), st.integers(0, 9))
    return TraceRecord(
        t=1,
        deleted=draw(st.lists(some_path, max_size=2)),
        dir=draw(st.lists(some_path, max_size=2)),
        link=draw(st.dictionaries(some_path, st.sampled_from(["b", "/d", "../a"]))),
        set=draw(texts),
        err=draw(st.dictionaries(some_path, st.sampled_from(["EIO", "ENOENT"]))),
        ethtool=draw(st.dictionaries(st.just("eth0"), st.one_of(st.none(), figures))),
        module=draw(st.dictionaries(st.just("m/1"), st.just(Module(vendor="v")))),
        command=draw(st.dictionaries(st.just("ibstat"), st.just(Printed("\udcff")))),
        devlink=draw(st.dictionaries(st.just("0:1"), st.just({"fw": "error"}))),
    )


class TestWhole:
    @given(st.lists(records(), max_size=6))
    def test_makes_another_node_of_nothing(self, changes: list[TraceRecord]) -> None:
        """Every question has the same answer there, and no part is impossible."""
        first, second = Node("b1"), Node("b1")
        for each in changes:
            first.apply(each)
        assert second.apply(first.whole(2.0, 0.0)) == []
        old, new = first.tree, second.tree
        for path in (*PATHS, "/", "/a/x", "/d/e/f", BOOT_ID):
            assert old.read(path, 2.0) == new.read(path, 2.0)
            assert old.names(path) == new.names(path)
            assert old.target(path) == new.target(path)
        assert first.statistics.read("eth0", 2.0) == second.statistics.read("eth0", 2.0)
        assert first.module("m/1") == second.module("m/1")
        assert first.command("ibstat") == second.command("ibstat")
        assert first.reporters("0:1") == second.reporters("0:1")

    def test_uptime_goes_on(self) -> None:
        """It is what it is by then, and grows from there."""
        first = node(set={"/proc/uptime": "10.00 1.00\n"})
        second = Node("b1")
        second.apply(first.whole(5.0, 0.0))
        assert second.tree.read("/proc/uptime", 1.0) == b"16.00 1.00\n"


class TestBoot:
    def test_boot_id_is_a_file(self) -> None:
        """The file says what the header and later records say."""
        made = node()
        assert made.tree.read(BOOT_ID, 0) == b"b1\n"
        change(made, 5, boot_id="b2")
        assert (made.boot_id, made.boots) == ("b2", 1)
        assert made.tree.read(BOOT_ID, 5) == b"b2\n"
        change(made, 6, set={BOOT_ID: "b3"})
        assert made.tree.read(BOOT_ID, 6) == b"b3"

    def test_trace_without_boot_id_has_no_such_file(self) -> None:
        """What nobody says does not exist."""
        assert Node("").tree.read(BOOT_ID, 0) == ReadError("ENOENT")

    def test_uptime_grows_from_its_set(self) -> None:
        """Exactly as set at that moment, then with time; the idle time stays."""
        made = node(set={"/proc/uptime": "8640000.00 8640000.00\n"})
        assert made.tree.read("/proc/uptime", 0) == b"8640000.00 8640000.00\n"
        assert made.tree.read("/proc/uptime", 12.5) == b"8640012.50 8640000.00\n"

    def test_uptime_without_idle_time(self) -> None:
        """One number is enough."""
        made = node(set={"/proc/uptime": "10"})
        assert made.tree.read("/proc/uptime", 1) == b"11.00 \n"

    def test_uptime_that_is_no_number_stands_still(self) -> None:
        """It reads as it was set."""
        made = node(set={"/proc/uptime": "none\n"})
        assert made.tree.read("/proc/uptime", 9) == b"none\n"

    def test_uptime_absent(self) -> None:
        """The node has been up for long, and nothing says how long."""
        assert node().tree.read("/proc/uptime", 9) == ReadError("ENOENT")

    @pytest.mark.parametrize("known", [True, False])
    def test_reboot_starts_uptime(self, known: bool) -> None:  # noqa: FBT001
        """Where the new boot does not set it, it counts from the reboot."""
        made = node(set={"/proc/uptime": "500.00 1.00\n"} if known else {})
        change(made, 100, boot_id="b2")
        assert made.tree.read("/proc/uptime", 130) == b"30.00 0.00\n"

    @pytest.mark.parametrize("together", [True, False])
    def test_uptime_set_in_the_new_boot(self, together: bool) -> None:  # noqa: FBT001
        """It counts from there, in the record of the reboot or a later one."""
        made = node(set={"/proc/uptime": "500.00 1.00\n"})
        text = {"/proc/uptime": "42.00 1.00\n"}
        if together:
            change(made, 100, boot_id="b2", set=text)
        else:
            change(made, 90, boot_id="b2")
            change(made, 100, set=text)
        assert made.tree.read("/proc/uptime", 103) == b"45.00 1.00\n"

    def test_same_boot_id_is_no_reboot(self) -> None:
        """A record may repeat what holds."""
        made = node(set={"/proc/uptime": "500.00 1.00\n"})
        change(made, 100, boot_id="b1")
        assert made.boots == 0
        assert made.tree.read("/proc/uptime", 100) == b"600.00 1.00\n"

    def test_reboot_forgets_what_nobody_fetched(self) -> None:
        """Kernel log and link events start anew with the kernel."""
        made = node(kmsg=["old"], set={"/sys/class/net/e/carrier": "1\n"})
        change(
            made, 5, boot_id="b2", kmsg=["new"], set={"/sys/class/net/e/carrier": "0"}
        )
        assert made.kernel_log() == (KernelLine(5, "new"),)
        assert made.link_events(5) == ()


class TestStatistics:
    def test_fixed_and_moving(self) -> None:
        """Numbers as given, moving ones as at the time, in the order of the trace."""
        made = node(ethtool={"e": {"b": 5, "a": Ramp(1, 2.5), "c": Ramp(1, 9, 20)}})
        assert made.statistics.read("e", 3) == (
            Statistic("b", 5),
            Statistic("a", 8),
            Statistic("c", 20),
        )

    def test_names_not_given_keep_their_value(self) -> None:
        """A record names what changes; a ramp goes on from its own start."""
        made = node(ethtool={"e": {"a": Ramp(0, 1), "b": 1}})
        change(made, 10, ethtool={"e": {"b": 2}})
        assert made.statistics.read("e", 15) == (Statistic("a", 15), Statistic("b", 2))

    def test_null_removes_them(self) -> None:
        """Then the driver has none, or there is no such device."""
        made = node(ethtool={"e": {"a": 1}}, dir=["/sys/class/net/e"])
        change(made, 1, ethtool={"e": None})
        assert made.statistics.read("e", 1) == ReadError("EOPNOTSUPP")
        assert made.statistics.read("f", 1) == ReadError("ENODEV")
        change(made, 2, ethtool={"e": {"b": 1}})
        assert made.statistics.read("e", 2) == (Statistic("b", 1),)

    @pytest.mark.parametrize(
        "end",
        [
            {"deleted": ["ethtool:e"]},
            {"set": {"ethtool:e": ""}},
            {"ramp": {"ethtool:e": Ramp(0, 0)}},
        ],
    )
    def test_error(self, end: dict[str, Any]) -> None:
        """It lasts until a set, ramp or del of that name, whatever is given meanwhile."""
        made = node(ethtool={"e": {"a": 1}}, err={"ethtool:e": "EBUSY"})
        change(made, 1, ethtool={"e": {"a": 2}})
        assert made.statistics.read("e", 1) == ReadError("EBUSY")
        change(made, 2, **end)
        assert made.statistics.read("e", 2) == (Statistic("a", 2),)
        assert made.tree.names("/") == ("proc",)

    def test_impossible_numbers(self) -> None:
        """They are refused, one by one."""
        made = node()
        figures: dict[str, int | Ramp] = {"a": 1 << 70, "b": Ramp(0, 1e300), "c": 1}
        assert len(made.apply(TraceRecord(t=0, ethtool={"e": figures}))) == 2
        assert made.statistics.read("e", 1e6) == (Statistic("c", 1),)


class TestLogs:
    START = 1000.0  # Unix seconds at t = 0

    def files(self, made: Node) -> tuple[LogFile, ...]:
        """Return the logs that there are."""
        return made.logs.known(self.START)

    def look(self, made: Node, path: str) -> LogFile:
        """Return what the log at a path is."""
        found = made.logs.look(path, self.START)
        assert isinstance(found, LogFile)
        return found

    def read(self, made: Node, path: str, offset: int = 0) -> bytes | ReadError:
        """Read the log that a path leads to now."""
        return made.logs.read(path, self.look(made, path).serial, offset, 2)

    def test_append_makes_and_extends(self) -> None:
        """A file that is appended to is a log; it is a file like others, too."""
        made = node(set={"/var/log/b": "0"}, append={"/var/log/a": "1\n"})
        change(made, 1, append={"/var/log/a": "2\n\udcff", "/var/log/b": "1"})
        assert made.tree.read("/var/log/a", 1) == b"1\n2\n\xff"
        assert made.tree.read("/var/log/b", 1) == b"01"
        first, second = self.files(made)
        assert (first.path, first.size) == ("/var/log/a", 5)
        assert (second.path, second.size) == ("/var/log/b", 2)
        assert first.modified == self.START + 1
        assert self.read(made, "/var/log/a", 2) == b"2\n"
        assert self.read(made, "/var/log/a", 99) == b""

    def test_truncate(self) -> None:
        """The same file, empty; what is appended in that record stays."""
        made = node(append={"/a": "123"})
        before = self.files(made)
        change(made, 1, truncate=["/a"], append={"/a": "4"})
        after = self.files(made)
        assert after == (LogFile("/a", before[0].serial, 1, self.START + 1),)
        assert self.read(made, "/a") == b"4"

    def test_rotate(self) -> None:
        """The old file goes on under its new name, the path is another file."""
        made = node(append={"/a": "1"})
        (old,) = self.files(made)
        change(made, 1, rotate={"/a": "/a.1"}, append={"/a": "2"})
        (new,) = self.files(made)
        assert new.serial != old.serial
        assert self.read(made, "/a") == b"2"
        assert made.tree.read("/a.1", 1) == b"1"
        change(made, 2, append={"/a.1": "!"})
        assert self.files(made)[1] == LogFile("/a.1", old.serial, 2, self.START + 2)

    def test_a_file_that_was_opened_is_read_on_after_it_is_gone(self) -> None:
        """As through an open descriptor; one that was not is another file by now."""
        made = node(append={"/a": "1", "/b": "1"})
        first, second = self.files(made)
        made.logs.read("/a", first.serial, 0, 9)
        change(made, 1, deleted=["/a", "/b"])
        change(made, 2, append={"/b": "2"})
        assert made.logs.read("/a", first.serial, 0, 9) == b"1"
        assert made.logs.read("/b", second.serial, 0, 9) == ReadError("ESTALE")

    def test_patterns(self) -> None:
        """Files of every kind are found, newest first; folders and links are none."""
        made = node(set={"/l/a.log": "x"}, dir=["/l/c.log"], link={"/l/d.log": "a.log"})
        change(made, 1, append={"/l/b.log": "y"})
        found = made.logs.find("/l/*.log", 9, self.START)
        assert [file.path for file in found.files] == ["/l/b.log", "/l/a.log"]

    def test_log_that_is_not_there(self) -> None:
        """A deleted log is no candidate, and rotating or cutting nothing is refused."""
        made = node(append={"/a": "1"})
        change(made, 1, deleted=["/a"])
        assert self.files(made) == ()
        assert made.logs.read("/a", "1", 0, 9) == ReadError("ENOENT")
        assert made.logs.look("/a", 0) == ReadError("ENOENT")
        record = TraceRecord(t=2, rotate={"/a": "/b"}, truncate=["/a"])
        assert len(made.apply(record)) == 2

    def test_log_that_fails(self) -> None:
        """It grows unseen until the error ends."""
        made = node(append={"/a": "1"}, err={"/b": "EACCES"})
        serial = self.look(made, "/a").serial
        change(made, 1, err={"/a": "EIO"})
        change(made, 2, append={"/a": "2", "/b": "3"})
        assert made.logs.read("/a", serial, 0, 9) == ReadError("EIO")
        assert made.tree.read("/b", 2) == ReadError("EACCES")


class TestDelays:
    def test_slow(self) -> None:
        """Every read takes that long, under any name of the file, until 0 ends it."""
        made = node(link={"/l": "a"}, set={"/a": "1"}, slow={"/l": 2})
        assert [made.delay(path) for path in ("/a", "/l", "/b")] == [2, 2, 0]
        change(made, 1, slow={"/a": 3})
        assert made.delay("/a") == 3
        change(made, 2, slow={"/a": 0})
        assert made.delay("/a") == 0
        assert not made.has_delays

    def test_hang(self) -> None:
        """The next read takes that long, the one after not; a second replaces it."""
        made = node(slow={"/a": 2}, hang={"/a": 30})
        change(made, 1, hang={"/a": 40})
        assert [made.delay("/a") for _ in range(2)] == [40, 2]
        change(made, 2, hang={"/a": 40})
        change(made, 2, hang={"/a": 0})
        assert made.delay("/a") == 2

    def test_impossible_durations(self) -> None:
        """They are refused."""
        record = TraceRecord(
            t=0,
            slow={"/a": -1},
            hang={"/a": 1e18},
            command={"x": Printed(seconds=-1)},
            wall_step=1e30,
        )
        made = node()
        assert len(made.apply(record)) == 4
        assert not made.has_delays


class TestRest:
    def test_kernel_log(self) -> None:
        """Each line once, with its time."""
        made = node(kmsg=["a", "b"])
        change(made, 3, kmsg=["c"])
        assert made.kernel_log() == (
            KernelLine(0, "a"),
            KernelLine(0, "b"),
            KernelLine(3, "c"),
        )
        assert made.kernel_log() == ()

    def test_put_back(self) -> None:
        """What was fetched for nothing comes again, before what came since."""
        made = node(kmsg=["a"], set={"/sys/class/net/e/carrier": "1\n"})
        lines, events = made.kernel_log(), made.link_events(0)
        change(made, 1, kmsg=["b"], set={"/sys/class/net/e/carrier": "0\n"})
        made.put_back(events, lines)
        assert [line.text for line in made.kernel_log()] == ["a", "b"]
        assert made.link_events(1) == (
            LinkEvent(0, "e", up=True),
            LinkEvent(1, "e", up=False),
        )

    def test_command(self) -> None:
        """The newest output, until another record replaces it."""
        made = node(command={"ibstat": Printed("a\udcff", "b", 1, 2.5)})
        known = made.command("ibstat")
        assert known is not None
        assert known.within(2.5) == CommandOutput(b"a\xff", b"b", 1)
        assert known.within(2.4) == CommandOutput(b"", b"", None)
        assert made.command("ibstatus") is None

    def test_module(self) -> None:
        """Fields not given keep their value; null forgets the module."""
        made = node(module={"mlx5_0/1": Module(temperature_c=50, vendor="V")})
        change(made, 1, module={"mlx5_0/1": Module(temperature_c=71.5)})
        assert made.module("mlx5_0/1") == Module(temperature_c=71.5, vendor="V")
        change(made, 2, module={"mlx5_0/1": None})
        assert made.module("mlx5_0/1") is None

    def test_bridging_and_reporters(self) -> None:
        """They merge by field and by name."""
        made = node(
            dcb={"e": Bridging(pfc_enabled=(3,))}, devlink={"p": {"fw": "healthy"}}
        )
        change(
            made, 1, dcb={"e": Bridging(ecn={"a": 1})}, devlink={"p": {"tx": "error"}}
        )
        assert made.bridging("e") == Bridging((3,), {"a": 1})
        assert made.reporters("p") == (
            HealthReporter("fw", "healthy"),
            HealthReporter("tx", "error"),
        )
        change(made, 2, devlink={"p": None})
        assert made.reporters("p") == ()

    def test_clock(self) -> None:
        """Steps add up; the error is the newest."""
        made = node(wall_step=1.5, clock_error=0.1)
        change(made, 1, wall_step=-4)
        assert (made.wall_offset, made.clock_error) == (-2.5, 0.1)
