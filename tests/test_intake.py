"""Where records go: what is known of a node after its polls."""

from __future__ import annotations

import pytest

from fabricmon import intake as module
from fabricmon.catalogue import Group, Signal
from fabricmon.host.protocol import ReadError
from fabricmon.host.trace import Module
from fabricmon.model import LinkEvent, Mark, Outcome, PortId, Verdict
from fabricmon.parse.words import PortState
from fabricmon.sources.paths import NET_CLASS, RDMA_CLASS, port_folder
from tests.fake_host import FakeHost
from tests.running import Running
from tests.sources.mlx5_node import add_hca, add_ipoib, mlx5_node

PORT = PortId("mlx5_0", 1)
FOLDER = port_folder(PORT)


@pytest.fixture
def host() -> FakeHost:
    """Return a node with two HCAs that has been up for long."""
    node = mlx5_node(2)
    node.put("/proc/uptime", "8640000.00 8640000.00\n")
    return node


@pytest.fixture
def node(host: FakeHost) -> Running:
    """Return the pipeline on that node after its first look."""
    running = Running(host).settle()
    running.run(5)
    running.reader.take()
    return running


def polls(node: Running, seconds: float, what: str) -> int:
    """Return how often something was polled in so many seconds."""
    node.reader.take()
    node.run(seconds)
    return node.reader.take().count(what)


def target_plans(node: Running) -> object:
    """Return the plans by which the errors of the first HCA are polled."""
    entry = node.pipeline.schedule.entry("errors", "mlx5_0")
    assert entry is not None
    assert entry.job.target.hca is not None
    return entry.job.target.hca.plans


def down(host: FakeHost, number: int = 0) -> None:
    """Let a port go down, as its files tell."""
    folder = f"{RDMA_CLASS}/mlx5_{number}/ports/1"
    host.put(f"{folder}/state", "1: DOWN\n")
    host.put(f"{folder}/phys_state", "2: Polling\n")


class TestDevices:
    def test_the_first_look_reads_everything_once(self, host: FakeHost) -> None:
        """Details of a link cost 25 firmware commands: never twice for nothing."""
        node = Running(host).settle()
        jobs = node.reader.take()
        assert len(jobs) == len(set(jobs))
        assert node.pipeline.has_seen_all()

    def test_nothing_is_read_of_a_device_that_is_not_known(
        self, host: FakeHost
    ) -> None:
        """Identity comes first: it says what there is to read."""
        node = Running(host)
        node.step()
        node.step()
        assert node.reader.take()[-2:] == ["identity mlx5_0", "identity mlx5_1"]

    def test_a_device_that_appears(self, host: FakeHost, node: Running) -> None:
        """It is read at once, whatever the rhythm of its sources."""
        add_hca(host, 2)
        node.run(8)
        assert node.port("mlx5_2").status is not None

    def test_state_is_read_closely_after_a_change_and_then_rarely(
        self, host: FakeHost, node: Running
    ) -> None:
        """Flaps come in groups; a calm link is told of by its network device."""
        assert polls(node, 20, "state mlx5_0") == 4
        down(host)
        node.run(6)
        assert polls(node, 20, "state mlx5_0") == 20
        node.run(60)
        assert polls(node, 20, "state mlx5_0") == 4

    def test_a_device_that_vanishes(self, host: FakeHost, node: Running) -> None:
        """Its last values are not shown, and nothing of it is read any more."""
        host.remove(f"{RDMA_CLASS}/mlx5_0")
        node.run(6)
        assert [p.info.id.device for p in node.pipeline.snapshot.ports] == ["mlx5_1"]
        node.reader.take()
        node.run(10)
        assert not [job for job in node.reader.take() if job.endswith("mlx5_0")]
        assert node.pipeline.intake.window.specs(PORT) == ()

    def test_an_answer_after_the_device_has_gone(
        self, host: FakeHost, node: Running
    ) -> None:
        """A read that hung until then must not bring the port back."""
        node.reader.hanging.add("device:mlx5_0")
        node.run(5)
        host.remove(f"{RDMA_CLASS}/mlx5_0")
        node.run(6)
        node.reader.hanging.clear()
        node.run(2)
        assert [p.info.id.device for p in node.pipeline.snapshot.ports] == ["mlx5_1"]

    def test_the_class_is_gone(self, host: FakeHost, node: Running) -> None:
        """The driver was unloaded: no port is left, and that is not healthy."""
        host.remove(RDMA_CLASS)
        node.run(6)
        snapshot = node.pipeline.snapshot
        assert (snapshot.ports, snapshot.class_error) == ((), "ENOENT")
        assert snapshot.verdict is not Verdict.HEALTHY

    def test_the_class_cannot_be_listed(self, host: FakeHost, node: Running) -> None:
        """Then nothing is known to be gone: the ports go on being read."""
        host.fail_folder(RDMA_CLASS, "EIO")
        node.run(6)
        snapshot = node.pipeline.snapshot
        assert (len(snapshot.ports), snapshot.class_error) == (2, "EIO")
        assert snapshot.verdict is Verdict.UNKNOWN


class TestIdentity:
    def test_plans_stay_in_use_while_they_are_the_same(
        self, host: FakeHost, node: Running
    ) -> None:
        """Descriptors and counters hang on them; a new look makes equal ones."""
        before = target_plans(node)
        node.run(120)
        assert target_plans(node) is before
        host.put(f"{FOLDER}/counters/new_counter", "0\n")
        node.run(120)
        assert target_plans(node) != before


def test_a_device_that_was_replaced_is_read_anew_at_once(
    host: FakeHost, node: Running
) -> None:
    """Its values are no growth of the old one's, and nothing has failed."""
    folder = f"{FOLDER}/counters"
    names = host.names(folder)
    assert isinstance(names, tuple)
    for name in names:
        host.fail(f"{folder}/{name}", "ESTALE")  # as the live host says once
    node.run(5)
    for name in names:
        host.put(f"{folder}/{name}", 9)
    assert polls(node, 1, "errors mlx5_0") >= 1
    node.run(30)
    assert node.pipeline.snapshot.failures == ()
    kinds = {item.finding.kind for item in node.pipeline.snapshot.incidents}
    assert "port_flap" not in kinds


class TestFailures:
    def test_a_poll_that_fails_is_said_until_it_succeeds(
        self, host: FakeHost, node: Running
    ) -> None:
        """With device, file and errno; the rest of the node goes on."""
        host.fail_folder(f"{RDMA_CLASS}/mlx5_0", "EACCES")
        node.run(60)
        (failure,) = node.pipeline.snapshot.failures
        assert (failure.device, failure.errno) == ("mlx5_0", "EACCES")
        host._folder_errors.clear()
        node.run(60)
        assert node.pipeline.snapshot.failures == ()

    def test_a_folder_of_counters_that_cannot_be_listed(self, host: FakeHost) -> None:
        """A port without counters is not taken for one without errors."""
        host.fail_folder(f"{FOLDER}/counters", "EACCES")
        node = Running(host).settle()
        (failure,) = node.pipeline.snapshot.failures
        assert (failure.file, failure.errno) == (f"{FOLDER}/counters", "EACCES")
        assert node.pipeline.snapshot.verdict is Verdict.UNKNOWN

    def test_a_poll_that_crashes(self, host: FakeHost) -> None:
        """A bug in a source costs its values and is told as a failure of it."""
        node = Running(host)
        node.reader.crashing["pci"] = "ZeroDivisionError: division by zero"
        node.settle()
        told = {(f.device, f.file, f.message) for f in node.pipeline.snapshot.failures}
        message = "ZeroDivisionError: division by zero"
        assert told == {(f"mlx5_{n}", "pci", message) for n in range(2)}

    def test_a_poll_that_hangs(self, node: Running) -> None:
        """It is said once it took longer than a read may; the first one is named."""
        node.reader.hanging.add("device:mlx5_0")
        node.run(5)
        assert not node.pipeline.snapshot.failures
        node.run(5)
        (failure,) = node.pipeline.snapshot.failures
        assert (failure.device, failure.errno) == ("mlx5_0", "ETIMEDOUT")

    def test_an_unknown_identity_that_hangs(self, host: FakeHost) -> None:
        """A device that nobody can describe is not passed over in silence."""
        node = Running(host)
        node.reader.hanging.add("device:mlx5_0")
        node.settle()
        node.run(6)
        (failure,) = node.pipeline.snapshot.failures
        assert (failure.device, failure.file) == ("mlx5_0", "identity")
        assert node.pipeline.snapshot.verdict is Verdict.UNKNOWN

    def test_single_files_are_counted_by_errno(self, host: FakeHost) -> None:
        """One bad file costs itself: the others of its poll have values."""
        host.fail(f"{FOLDER}/counters/symbol_error", "EIO")
        node = Running(host).settle()
        health = {(h.source, h.unit): h for h in node.pipeline.snapshot.health}
        errors = health["errors", "mlx5_0"]
        assert errors.ok
        assert [(e.errno, e.count) for e in errors.errors] == [("EIO", 1)]

    def test_a_group_that_fails_as_a_whole(self, host: FakeHost) -> None:
        """It is read rarely, because each read writes to the kernel's log."""
        folder = f"{FOLDER}/hw_counters"
        names = host.names(folder)
        assert isinstance(names, tuple)
        for name in names:
            host.fail(f"{folder}/{name}", "EINVAL")
        node = Running(host).settle()
        node.run(20)
        assert polls(node, 50, "hardware mlx5_0") <= 1
        health = {(h.source, h.unit): h for h in node.pipeline.snapshot.health}
        assert health["hardware", "mlx5_0"].quarantined == "EINVAL"

    def test_a_maintenance_file_that_is_wrong(
        self, host: FakeHost, node: Running
    ) -> None:
        """Whoever wrote it must learn that it has no effect."""
        host.put("/run/fabricmon/maintenance.json", "{}")
        node.run(6)
        error = node.pipeline.snapshot.maintenance_error
        assert error is not None
        assert "/run/fabricmon/maintenance.json" in error


class TestCounters:
    def test_a_first_sight_is_no_outage(self, host: FakeHost) -> None:
        """A counter that stood at three before the agent came tells of the past."""
        host.put(f"{FOLDER}/counters/link_downed", 3)
        node = Running(host).settle()
        node.run(30)
        assert node.told("port_flap") == []

    def test_outages_while_the_agent_was_away(
        self, host: FakeHost, node: Running
    ) -> None:
        """The last value is saved, and the next agent goes on from it."""
        host.put(f"{FOLDER}/counters/link_downed", 1)
        host.now += 60
        following = node.restart().settle()
        moves = following.pipeline.intake.window
        (spec,) = moves.by_signal(PORT, Signal.LINK_DOWN)
        delta = moves.delta(PORT, spec, 100)
        assert delta is not None
        assert delta.increase == 1

    def test_another_boot(self, host: FakeHost, node: Running) -> None:
        """Counters began anew: what was saved of them means nothing."""
        host.put(f"{FOLDER}/counters/link_downed", 1)
        host.boot = "boot-2"
        host.now += 60
        following = node.restart().settle()
        following.run(30)
        assert following.told("port_flap") == []

    def test_a_reboot_that_the_agent_sees(self, host: FakeHost, node: Running) -> None:
        """A container may outlive a boot id: nothing is counted across it."""
        host.put(f"{FOLDER}/counters/symbol_error", 1000)
        host.boot = "boot-2"
        node.step(5)
        window = node.pipeline.intake.window
        (spec,) = window.by_signal(PORT, Signal.SYMBOL_ERROR)[:1]
        delta = window.delta(PORT, spec, 100)
        assert delta is None or delta.mark in {Mark.FIRST, Mark.RESET}

    def test_damaged_counters(self, host: FakeHost) -> None:
        """A saved state that nobody can read costs that outage, not the agent."""
        node = Running(host)
        node.pipeline.intake.resume_counters(b"\xff{")
        node.settle()
        assert node.pipeline.snapshot.verdict is Verdict.HEALTHY

    def test_a_folder_of_counters_that_vanishes(
        self, host: FakeHost, node: Running
    ) -> None:
        """No value of the past is shown, though nothing reads the files any more."""
        intake, port = node.pipeline.intake, node.pipeline.intake.observed.port(PORT)
        (spec,) = intake.window.by_signal(PORT, Signal.LINK_DOWN)
        node.reader.held_sources = {"outages", "errors", "traffic"}
        assert intake.window.value(PORT, spec) == 0
        assert {Group.OUTAGES, Group.ERRORS, Group.TRAFFIC} < port.readings.keys()
        before = intake.layout
        host.remove(f"{FOLDER}/counters")
        node.run(70)
        assert intake.window.value(PORT, spec) is None
        assert port.readings.keys() == {Group.HARDWARE, Group.NETDEV}
        assert intake.layout != before

    @pytest.mark.parametrize("errno", ["ENODEV", "EPERM"])
    def test_driver_statistics_that_vanish(self, host: FakeHost, errno: str) -> None:
        """They are in no plan: a netdev that left its namespace keeps no old values."""
        for name in ("ib0", "ib1"):
            host.netdev_statistics[name] = {"rx_discards_phy": 7}
        node = Running(host).settle()
        node.run(20)
        intake = node.pipeline.intake
        port, other = map(intake.observed.port, (PORT, PortId("mlx5_1", 1)))
        (spec,) = port.readings[Group.DRIVER].specs
        assert intake.window.value(PORT, spec) == 7
        layout = intake.layout

        host.netdev_statistics["ib0"] = ReadError(errno)
        node.run(70)
        assert Group.DRIVER not in port.readings
        assert intake.window.value(PORT, spec) is None
        assert other.readings[Group.DRIVER].values == (7,)
        assert intake.layout != layout

        host.netdev_statistics["ib0"] = {"rx_discards_phy": 9}
        node.run(70)
        delta = intake.window.delta(PORT, spec, 300)
        assert delta is not None
        assert (delta.value, delta.increase) == (9, 2)

    def test_a_transceiver_that_is_taken_out(self, host: FakeHost) -> None:
        """Its last temperature does not keep a finding open for ever."""
        host.modules["mlx5_0/1"] = Module(temperature_c=85.0)
        node = Running(host).settle()
        node.run(100)
        assert "module_hot" in node.kinds
        host.modules.clear()
        node.run(1000, each=5)
        assert node.pipeline.snapshot.host_side.modules == ()
        assert "module_hot" not in node.kinds


class TestNews:
    def test_each_sample_is_new_once(self, host: FakeHost, node: Running) -> None:
        """Detectors count samples: none may come twice."""
        intake = node.pipeline.intake
        intake.take_news()
        entry = node.pipeline.schedule.entry("state", "mlx5_0")
        assert entry is not None
        records = entry.source.poll(host, entry.target, node.pipeline.config)
        intake.feed(Outcome(entry.job, host.now, host.now, records))
        assert len(intake.take_news().statuses) == 1
        assert intake.take_news().statuses == ()

    def test_a_storm_is_bounded(
        self, host: FakeHost, node: Running, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Events between two judgements do not fill the memory; the newest stay."""
        monkeypatch.setattr(module, "MAX_NEWS", 5)
        bounded = Running(host).settle()
        host.events += [LinkEvent(float(n), "eth9", up=True) for n in range(9)]
        entry = bounded.pipeline.schedule.entry("link_events", "")
        assert entry is not None
        records = host.link_events()
        intake = bounded.pipeline.intake
        intake.feed(Outcome(entry.job, host.now, host.now, records))
        assert [event.at for event in intake.take_news().events] == [4, 5, 6, 7, 8]


class TestViews:
    def test_old_values_are_not_fresh(self, node: Running) -> None:
        """A port whose read hangs is known to have been well, and no more."""
        node.reader.hanging.add("device:mlx5_0")
        node.run(30)
        views = {
            v.info.id.device: v
            for v in node.pipeline.intake.port_views(node.host.monotonic())
        }
        assert (views["mlx5_0"].fresh, views["mlx5_1"].fresh) == (False, True)
        assert node.port().verdict is Verdict.UNKNOWN
        assert node.port("mlx5_1").verdict is Verdict.HEALTHY

    def test_ever_active_survives_a_restart(
        self, host: FakeHost, node: Running
    ) -> None:
        """A port that went down while the agent was away is missed."""
        down(host)
        host.now += 60
        following = node.restart().settle()
        assert following.port().status is not None
        assert "port_down" not in following.kinds
        following.run(20)
        assert "port_down" in following.kinds

    def test_layout_follows_what_can_be_read(
        self, host: FakeHost, node: Running
    ) -> None:
        """Series are found anew when a value disappears, and only then."""
        before = node.pipeline.intake.layout
        node.run(120)
        assert node.pipeline.intake.layout == before
        host.fail(f"{FOLDER}/counters/symbol_error", "EIO")
        node.run(5)
        assert node.pipeline.intake.layout != before

    def test_a_network_device_that_is_added(self, host: FakeHost) -> None:
        """It is found with the next identity, and its carrier is read from then on."""
        host = mlx5_node(1, netdevs=False)
        node = Running(host).settle()
        assert node.port().netdev is None
        add_ipoib(host, 0)
        node.run(70)
        netdev = node.port().netdev
        assert netdev is not None
        assert netdev.netdev == "ib0"
        assert host.opened[f"{NET_CLASS}/ib0/operstate"]

    def test_a_state_that_fails_is_unknown(self, host: FakeHost, node: Running) -> None:
        """The last good one is not shown in its place."""
        host.fail(f"{FOLDER}/state", "EINVAL")
        node.run(6)
        port = node.port()
        assert port.status is not None
        assert port.status.state is not PortState.ACTIVE
        assert port.verdict is Verdict.UNKNOWN
