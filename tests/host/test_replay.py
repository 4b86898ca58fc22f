from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, closing
from math import inf
from pathlib import Path

import pytest

from fabricmon.host.protocol import (
    ClockState,
    CommandOutput,
    Host,
    ReadError,
    Statistic,
)
from fabricmon.host.replay import Gap, ReplayHost, Wake
from fabricmon.host.trace import Bridging, Module
from fabricmon.host.trace_read import TraceReader
from fabricmon.model import LinkEvent
from tests.manifest import SYSFS
from tests.traces import HEADER, START, Json, of_manifest, replay, write

CARRIER = "/sys/class/net/eth0/carrier"
Replay = Callable[..., ReplayHost]


@pytest.fixture(name="of")
def _of(tmp_path: Path) -> Iterator[Replay]:
    """Replay records, from t = 0."""
    with ExitStack() as stack:

        def start(*records: Json) -> ReplayHost:
            return stack.enter_context(closing(replay(tmp_path, *records)))

        yield start


class TestTime:
    def test_starts_with_what_holds_at_zero(self, of: Replay) -> None:
        """Every record at t = 0 applies before anything is asked."""
        host = of({"t": 0, "set": {"/a": "1"}}, {"t": 0, "set": {"/a": "2"}}, {"t": 1})
        assert host.read("/a") == b"2"
        assert host.monotonic() == 0
        assert (host.next_record, host.end) == (1, inf)

    def test_advance(self, of: Replay) -> None:
        """At time T all records with t <= T hold, in the order of the file."""
        host = of({"t": 1, "set": {"/a": "1"}}, {"t": 2, "set": {"/a": "2"}}, {"t": 3})
        host.advance(0.999)
        assert host.read("/a") == ReadError("ENOENT")
        host.advance(1)
        assert host.read("/a") == b"1"
        host.advance(2.5)
        assert host.read_many(["/a"]) == [b"2"]
        assert host.monotonic() == 2.5

    def test_end(self, of: Replay) -> None:
        """The trace ends at its last record, which may hold nothing else."""
        host = of({"t": 1}, {"t": 7.5})
        host.advance(1)
        assert host.end == inf
        host.advance(9)
        assert (host.end, host.next_record) == (7.5, inf)

    def test_trace_without_records(self, of: Replay) -> None:
        """It ends where it starts."""
        assert of().end == 0

    def test_clocks(self, of: Replay) -> None:
        """The wall clock steps, monotonic time does not."""
        host = of({"t": 10, "wall_step": -3600, "clock_error": 0.5}, {"t": 20})
        assert (host.wall(), host.clock()) == (START, ReadError("ENOENT"))
        host.advance(10)
        assert host.wall() == START + 10 - 3600
        assert (host.monotonic(), host.clock()) == (10, ClockState(0.5))

    def test_ramp_reads_as_at_now(self, of: Replay) -> None:
        """A number moves from the t of its record."""
        host = of({"t": 0, "ramp": {"/a": [5, 2.5, 30]}}, {"t": 99})
        host.advance(2)
        assert host.read("/a") == b"10\n"
        host.advance(50)
        assert host.read_many(["/a", "/a"]) == [b"30\n"] * 2


class TestAnswers:
    def test_is_a_host(self, of: Replay) -> None:
        """It can stand wherever a Host is wanted, and says what trace it is."""
        host: Host = of({"t": 0})
        assert host.boot_id() == "b0071d"
        assert of().header.node == "node01"

    def test_counts_reads_that_reach_firmware(self, of: Replay) -> None:
        """As told by whoever reads."""
        host = of({"t": 0})
        host.read("/a", 5)
        host.read_many(["/a", "/b"], 2)
        assert host.firmware_reads == 7

    def test_problems_name_the_line(self, of: Replay) -> None:
        """Also those that only show when a record is applied."""
        host = of(
            {"t": 0, "set": {"/a": "1"}},
            {"t": 1, "set": {"/a/b": "1"}, "gap": -1},
            {"t": 2, "restart": True, "set": {"c": "1"}},
        )
        host.advance(5)
        assert [(each.line, each.message.split(",")[0]) for each in host.problems] == [
            (3, "/a/b: /a is a file"),
            (3, "gap: -1 s is no duration"),
            (4, "c: not an absolute path"),
            (4, "restart: without a gap it says nothing"),
        ]
        assert host.problem_count == 4

    def test_command(self, of: Replay) -> None:
        """It prints what the trace says, nothing at its deadline, or is not installed."""
        printed = {"stdout": "CA 'mlx5_0'\n", "stderr": "w", "exit": 3, "seconds": 2}
        host = of({"t": 0, "command": {"ibstat": printed}})
        output = CommandOutput(b"CA 'mlx5_0'\n", b"w", 3)
        assert host.command("ibstat", 20) == output
        assert host.command("ibstat", 1.9) == CommandOutput(b"", b"", None)
        assert host.command("other", 20) == ReadError("ENOENT")

    def test_what_later_sources_ask(self, of: Replay) -> None:
        """Statistics, kernel log, log files, transceivers, DCB, devlink."""
        host = of(
            {
                "t": 0,
                "ethtool": {"eth0": {"rx": [1, 1]}},
                "kmsg": ["x"],
                "append": {"/log": "0123\n"},
                "module": {"mlx5_0/1": {"vendor": "V"}},
                "dcb": {"eth0": {"pfc_enabled": [3]}},
                "devlink": {"0000:1a:00.0": {"fw": "error"}},
            }
        )
        host.advance(4)
        assert host.statistics("eth0") == (Statistic("rx", 5),)
        lines = host.kernel_log()
        assert isinstance(lines, tuple)
        assert [line.text for line in lines] == ["x"]
        (log,) = host.known_logs()
        assert log.path == "/log"
        assert host.read_log("/log", log.serial, 1, 3) == b"123"
        assert host.module("mlx5_0/1") == Module(vendor="V")
        assert host.dcb("eth0") == Bridging(pfc_enabled=(3,))
        assert [each.state for each in host.devlink("0000:1a:00.0")] == ["error"]

    def test_kernel_log_that_was_refused(self, of: Replay) -> None:
        """A node that could not read it is not one that had nothing to say."""
        host = of({"t": 0, "err": {"/dev/kmsg": "EPERM"}}, {"t": 5, "kmsg": ["x"]})
        assert host.kernel_log() == ReadError("EPERM")


class TestLinkEvents:
    def test_start_is_no_event(self, of: Replay) -> None:
        """Whoever starts looks at every link; then come changes, at the record's time."""
        host = of(
            {"t": 0, "set": {CARRIER: "1\n"}}, {"t": 2.5, "set": {CARRIER: "0\n"}}
        )
        assert host.link_events() == ()
        host.advance(4)
        assert host.link_events() == (LinkEvent(2.5, "eth0", up=False),)
        assert host.link_events() == ()

    def test_node_that_tells_none(self, tmp_path: Path) -> None:
        """A container that cannot listen was recorded: it hears nothing here, either."""
        records = [{"t": 0, "set": {CARRIER: "1"}}, {"t": 3, "set": {CARRIER: "0"}}]
        header = {**HEADER, "tells_links": False}
        host = replay(tmp_path, *records, header=header)
        assert not host.tells_links
        assert _Clockwork(host, 10).times() == [0, 3]
        host = replay(tmp_path, *records, {"t": 9}, header=header)
        assert _Clockwork(host, 10).times() == [0, 9]
        assert host.link_events() == ()

    def test_moving_counter(self, of: Replay) -> None:
        """Its steps are seen when the events are asked for."""
        folder = "/sys/class/net/eth0"
        ramp = {f"{folder}/carrier_changes": [2, 0.1]}
        host = of({"t": 0, "set": {CARRIER: "1\n"}, "ramp": ramp})
        host.advance(9)
        assert host.link_events() == ()
        host.advance(10)
        assert host.link_events() == (LinkEvent(10, "eth0", up=True),)


class _Clockwork:
    """An agent that polls every ``period`` seconds and notes when it is woken."""

    def __init__(
        self, host: ReplayHost, period: float, hang: float | None = None
    ) -> None:
        self._host = host
        self._period = period
        self._due = 0.0
        self._hang = hang

    def run(self) -> list[Wake]:
        wakes = []
        for wake in self._host.moments(lambda: self._due, lambda: self._hang):
            assert self._host.monotonic() == wake.now
            wakes.append(wake)
            self._host.link_events()
            while self._due <= wake.now:
                self._due += self._period
            if self._hang is not None and self._hang <= wake.now:
                self._hang = None
        return wakes

    def times(self) -> list[float]:
        return [wake.now for wake in self.run()]


class TestMoments:
    def test_due_times_until_the_end(self, of: Replay) -> None:
        """The agent looks when something is due and a last time at the end."""
        assert _Clockwork(of({"t": 25}), 10).times() == [0, 10, 20, 25]
        assert _Clockwork(of({"t": 20}), 10).times() == [0, 10, 20]

    def test_trace_that_ends_at_zero(self, of: Replay) -> None:
        """There is one moment, and the agent sees it."""
        assert _Clockwork(of(), 10).times() == [0]

    def test_everything_due_at_the_end_is_done(self, of: Replay) -> None:
        """Also what becomes due in the last moment."""
        dues = iter([0.0, 5.0, 5.0, 5.0, 6.0])
        host = of({"t": 5})
        wakes = list(host.moments(lambda: next(dues), lambda: None))
        assert [wake.now for wake in wakes] == [0, 5, 5, 5]

    def test_records_alone_wake_nobody(self, of: Replay) -> None:
        """Counters move unseen until the next poll."""
        records = [{"t": t / 10, "set": {"/a": str(t)}} for t in range(100)]
        assert _Clockwork(of(*records), 5).times() == [0, 5, 9.9]

    def test_link_event_wakes(self, of: Replay) -> None:
        """As the kernel wakes a live agent."""
        host = of(
            {"t": 0, "set": {CARRIER: "1\n"}},
            {"t": 3, "set": {CARRIER: "0"}},
            {"t": 12},
        )
        assert _Clockwork(host, 10).times() == [0, 3, 10, 12]

    def test_end_of_a_hang_wakes(self, of: Replay) -> None:
        """At exactly that time."""
        assert _Clockwork(of({"t": 12}), 10, hang=4.25).times() == [0, 4.25, 10, 12]


class TestGaps:
    @pytest.mark.parametrize("restart", [True, False])
    def test_agent_does_not_run(self, of: Replay, restart: bool) -> None:  # noqa: FBT001
        """It sees nothing of the time between, and then what holds at its end."""
        gap = {"t": 10, "gap": 35, **({"restart": True} if restart else {})}
        host = of(gap, {"t": 20, "set": {"/a": "1"}}, {"t": 60})
        wakes = _Clockwork(host, 10).run()
        assert [wake.now for wake in wakes] == [0, 45, 50, 60]
        assert wakes[1] == Wake(45, Gap(10, 45, restart))
        assert wakes[1].restarted is restart
        assert [wake.gap for wake in (wakes[0], *wakes[2:])] == [None] * 3
        assert host.read("/a") == b"1"

    def test_until_the_end(self, of: Replay) -> None:
        """A gap that reaches the end: the node stayed silent."""
        assert _Clockwork(of({"t": 10, "gap": 50}, {"t": 60}), 10).times() == [0]
        assert _Clockwork(of({"t": 15, "gap": 500}), 10).times() == [0, 10]

    def test_from_the_start(self, of: Replay) -> None:
        """The agent first runs when the gap is over."""
        assert _Clockwork(of({"t": 0, "gap": 5}, {"t": 12}), 10).times() == [5, 10, 12]

    def test_gap_within_a_gap(self, of: Replay) -> None:
        """The later end counts, and one restart is enough."""
        host = of({"t": 1, "gap": 5}, {"t": 4, "gap": 10, "restart": True}, {"t": 20})
        wakes = _Clockwork(host, 100).run()
        assert wakes[1] == Wake(14, Gap(1, 14, restart=True))

    def test_gap_right_after_a_gap(self, of: Replay) -> None:
        """Both are one."""
        host = of({"t": 1, "gap": 5}, {"t": 6, "gap": 5}, {"t": 20})
        assert _Clockwork(host, 100).run()[1] == Wake(11, Gap(1, 11, restart=False))

    def test_reboot_inside(self, of: Replay) -> None:
        """It is a reboot, whether or not the record says restart."""
        host = of({"t": 10, "gap": 60}, {"t": 30, "boot_id": "b2"}, {"t": 90})
        wake = _Clockwork(host, 100).run()[1]
        assert wake == Wake(70, Gap(10, 70, restart=False), rebooted=True)
        assert wake.restarted
        assert host.boot_id() == "b2"

    def test_reboot_without_gap(self, of: Replay) -> None:
        """The agent starts anew at that moment."""
        wakes = _Clockwork(of({"t": 30, "boot_id": "b2"}, {"t": 50}), 40).run()
        assert [(wake.now, wake.restarted) for wake in wakes] == [
            (0, False),
            (30, True),
            (40, False),
            (50, False),
        ]

    def test_link_events_are_heard_when_it_is_over(self, of: Replay) -> None:
        """They wait for an agent that kept its socket, with the time of its return."""
        host = of(
            {"t": 0, "set": {CARRIER: "1\n"}},
            {"t": 10, "gap": 30, "set": {CARRIER: "0\n"}},
            {"t": 20, "set": {CARRIER: "1\n"}},
            {"t": 50},
        )
        moments = host.moments(lambda: inf, lambda: None)
        assert next(moments).now == 40
        assert host.link_events() == (
            LinkEvent(40, "eth0", up=False),
            LinkEvent(40, "eth0", up=True),
        )

    @pytest.mark.parametrize("end", [{"restart": True}, {"boot_id": "b2"}])
    def test_link_events_are_lost_with_the_agent(self, of: Replay, end: Json) -> None:
        """An agent that was not there has not heard them."""
        host = of(
            {"t": 0, "set": {CARRIER: "1\n"}},
            {"t": 10, "gap": 30, **end},
            {"t": 20, "set": {CARRIER: "0\n"}},
            {"t": 50},
        )
        moments = host.moments(lambda: inf, lambda: None)
        assert next(moments).now == 40
        assert host.link_events() == ()


@pytest.mark.parametrize("case", ["sysfs-flap-pair", "sysfs-device-lost-pair"])
def test_recorded_pair(tmp_path: Path, case: str) -> None:
    """Two samples of a real node: the first at once, the second after its interval.

    Counters that grew move evenly between; links and files that are gone are deleted.
    """
    seconds = 30.0
    before = of_manifest(SYSFS / f"{case}.t0.manifest")
    after = of_manifest(SYSFS / f"{case}.t1.manifest")
    grown = {
        path: [int(text), (int(after.set[path]) - int(text)) / seconds]
        for path, text in before.set.items()
        if text.strip().isdecimal() and int(after.set.get(path, "0")) > int(text)
    }
    then = {"link": after.link, "set": after.set, "err": after.err}
    known = (*before.set, *before.link, *before.err)
    gone = [path for path in known if all(path not in paths for paths in then.values())]
    path = write(
        tmp_path,
        [
            {"t": 0, "link": before.link, "set": before.set, "err": before.err},
            {"t": 0, "ramp": grown},
            {"t": seconds, **then, "del": gone},
        ],
    )
    with closing(ReplayHost(TraceReader(path))) as host:
        assert _texts(host, before.set) == before.set
        host.advance(seconds / 2)
        for counter, text in _texts(host, grown).items():
            value, middle = grown[counter][0], int(text)
            assert value < middle < int(after.set[counter]) or middle - value <= 1
        host.advance(seconds)
        assert _texts(host, after.set) == after.set
        folder = "/sys/class/infiniband"
        devices = [path for path in after.link if path.startswith(f"{folder}/")]
        assert host.names(folder) == tuple(Path(path).name for path in sorted(devices))
        assert host.problems == ()


def _texts(host: ReplayHost, paths: Iterable[str]) -> dict[str, str]:
    contents = {path: host.read(path) for path in paths}
    return {
        path: content.decode() if isinstance(content, bytes) else content.errno
        for path, content in contents.items()
    }
