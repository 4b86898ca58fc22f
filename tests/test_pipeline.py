"""One node, step by step: polls, judgement, snapshot, and what survives a restart."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest

from fabricmon.model import IncidentState, ReadFailure, Severity, Verdict
from fabricmon.pipeline import JUDGE_SECONDS, WATCHFUL_SECONDS, Moment
from fabricmon.sources.paths import RDMA_CLASS
from tests.fake_host import FakeHost
from tests.running import Running
from tests.sources.mlx5_node import mlx5_node

FOLDER = f"{RDMA_CLASS}/mlx5_0/ports/1"
OPEN, RESOLVED = IncidentState.OPEN, IncidentState.RESOLVED


@pytest.fixture
def host() -> FakeHost:
    """Return a node with four HCAs that has been up for long."""
    node = mlx5_node(4)
    node.put("/proc/uptime", "8640000.00 8640000.00\n")
    return node


@pytest.fixture
def node(host: FakeHost) -> Running:
    """Return the pipeline on that node after its first look."""
    return Running(host).settle()


def down(host: FakeHost) -> None:
    """Let port 1 of mlx5_0 lose its link."""
    host.put(f"{FOLDER}/phys_state", "2: Polling\n")
    host.put(f"{FOLDER}/state", "1: DOWN\n")


def up(host: FakeHost) -> None:
    """Let it have its link again."""
    host.put(f"{FOLDER}/phys_state", "5: LinkUp\n")
    host.put(f"{FOLDER}/state", "4: ACTIVE\n")


class TestStep:
    def test_before_the_first_step(self, host: FakeHost) -> None:
        """Nothing is known, so nothing is healthy; nothing was read."""
        node = Running(host)
        assert node.pipeline.snapshot.verdict is Verdict.UNKNOWN
        assert not host.opened

    def test_after_the_first_look(self, node: Running) -> None:
        """Every port is there, with its values and its verdict."""
        snapshot = node.pipeline.snapshot
        assert len(snapshot.ports) == 4
        assert snapshot.verdict is Verdict.HEALTHY
        assert all(port.readings for port in snapshot.ports)

    def test_nothing_due_costs_nothing(self, node: Running) -> None:
        """Between two polls a step neither reads nor judges."""
        steps = node.pipeline.snapshot.steps
        node.reader.take()
        node.step(0.1)
        assert node.reader.take() == []
        assert node.pipeline.snapshot.steps == steps

    def test_things_also_age(self, node: Running) -> None:
        """Where nothing comes in, it is judged once a second all the same."""
        steps = node.pipeline.snapshot.steps
        for n in range(4):
            node.reader.hanging.add(f"device:mlx5_{n}")
        node.reader.hanging.add("node")
        node.run(10 * JUDGE_SECONDS, each=0.5)
        assert node.pipeline.snapshot.steps - steps == pytest.approx(10, abs=1)

    def test_judging_on_demand(self, node: Running) -> None:
        """Whoever looks once wants the judgement of this moment."""
        steps = node.pipeline.snapshot.steps
        node.host.now += 0.1
        node.pipeline.step(node.moment, judge=True)
        assert node.pipeline.snapshot.steps == steps + 1

    def test_next_due_is_never_far(self, node: Running) -> None:
        """Whoever sleeps until then does so for five seconds at most."""
        for _ in range(60):
            node.host.now = node.pipeline.next_due
            node.step()
            assert 0 < node.pipeline.next_due - node.host.now <= 5

    def test_a_starved_reader_does_not_make_it_spin(self, host: FakeHost) -> None:
        """Where nothing comes in for seconds, it is not to be called without pause."""
        node = Running(host, {"periods": {"devices_seconds": 1}}).settle()
        node.run(WATCHFUL_SECONDS + 5)
        node.reader.hanging |= {"node", *(f"device:mlx5_{n}" for n in range(4))}
        steps, end = 0, node.host.now + 4
        while node.host.now < end:
            node.host.now = max(node.pipeline.next_due, node.host.now + 1e-4)
            node.step()
            steps += 1
        assert steps < 50

    def test_the_moment_is_in_the_snapshot(self, node: Running) -> None:
        """Times and costs are the host's."""
        node.host.now += 5
        node.pipeline.step(Moment(node.host.now, 1.5, firmware_reads=77), judge=True)
        snapshot = node.pipeline.snapshot
        assert (snapshot.now, snapshot.wall) == (node.host.now, 1.5)
        assert snapshot.firmware_reads == 77

    def test_a_second_look(self, node: Running) -> None:
        """Every device is read again, and seen only once that is done."""
        node.reader.take()
        node.pipeline.read_again()
        assert not node.pipeline.has_seen_all()
        node.step()
        polled = node.reader.take()
        assert {"errors mlx5_0", "state mlx5_3", "identity mlx5_1"} <= set(polled)
        assert node.pipeline.has_seen_all()


class TestSeen:
    def test_an_empty_node(self) -> None:
        """A node without RDMA is seen after one look, and unknown."""
        node = Running(FakeHost()).settle()
        assert node.pipeline.has_seen_all()
        assert node.pipeline.snapshot.verdict is Verdict.UNKNOWN
        assert node.pipeline.snapshot.class_error == "ENOENT"

    def test_what_hangs_is_given_up(self, host: FakeHost) -> None:
        """A start does not wait for ever; after the deadline all is seen."""
        node = Running(host)
        node.reader.hanging.add("device:mlx5_0")
        node.settle()
        assert not node.pipeline.has_seen_all()
        node.run(6)
        assert node.pipeline.has_seen_all()


class TestFindings:
    def test_the_life_of_a_finding(self, host: FakeHost, node: Running) -> None:
        """It opens once, is in every snapshot, and resolves once."""
        down(host)
        node.run(60)
        assert node.port().verdict is Verdict.DOWN
        assert node.pipeline.snapshot.verdict is Verdict.DOWN
        up(host)
        node.run(60)
        assert node.told("port_down")[0] is OPEN
        assert node.told("port_down")[-1] is RESOLVED
        assert node.told("port_down").count(OPEN) == 1
        assert "port_down" not in node.kinds

    def test_maintenance(self, host: FakeHost, node: Running) -> None:
        """What is worked on opens nothing, and opens after it if still there."""
        text = '[{"until": "2023-11-14T22:33:00Z", "ports": ["mlx5_0/1"]}]'
        host.put("/run/fabricmon/maintenance.json", text)
        node.run(10)
        (window,) = node.pipeline.snapshot.maintenance
        down(host)
        node.run(100)
        assert node.told("port_down") == []
        host.now += window.until - host.wall()
        node.run(60)
        assert node.told("port_down")[:1] == [OPEN]
        assert node.pipeline.snapshot.maintenance == ()

    def test_a_device_that_goes(self, host: FakeHost, node: Running) -> None:
        """Its port findings do not stay behind; the missing device is the story."""
        down(host)
        node.run(60)
        host.remove(f"{RDMA_CLASS}/mlx5_0")
        node.run(120)
        assert node.kinds >= {"device_missing"}
        assert "port_down" not in node.kinds
        assert node.pipeline.snapshot.verdict is Verdict.DOWN

    def test_a_hung_device_keeps_its_findings(
        self, host: FakeHost, node: Running
    ) -> None:
        """That nothing is seen of a dead port does not mean that it is well."""
        down(host)
        node.run(60)
        node.reader.hanging.add("device:mlx5_0")
        node.run(300)
        assert "port_down" in node.kinds
        assert RESOLVED not in node.told("port_down")

    def test_an_agent_that_was_starved(self, node: Running) -> None:
        """A gap is told, as information; the sources are not blamed."""
        node.step(120)
        (gap,) = [c for c in node.changes if c.finding.kind == "telemetry_stale"]
        assert gap.finding.severity is Severity.INFO
        assert node.pipeline.snapshot.verdict is Verdict.HEALTHY

    def test_blind_kinds(self) -> None:
        """On a node without an RDMA driver nothing about ports can be judged."""
        node = Running(FakeHost()).settle()
        blind = {each.kind for each in node.pipeline.snapshot.blind}
        assert {"port_down", "link_errors"} <= blind

    def test_blindness_ends(self, host: FakeHost) -> None:
        """A driver that is loaded later is seen to be there."""
        empty = FakeHost()
        node = Running(empty).settle()
        empty.__dict__.update({**host.__dict__, "now": empty.now})
        node.run(20)
        blind = {each.kind for each in node.pipeline.snapshot.blind}
        assert "port_down" not in blind


class TestState:
    def test_an_open_finding_survives(self, host: FakeHost, node: Running) -> None:
        """It is neither forgotten nor told again, and its number goes on."""
        down(host)
        node.run(60)
        (before,) = [
            i for i in node.pipeline.snapshot.incidents if i.finding.kind == "port_down"
        ]
        host.now += 3
        following = node.restart().settle()
        following.run(60)
        (after,) = [
            i
            for i in following.pipeline.snapshot.incidents
            if i.finding.kind == "port_down"
        ]
        assert (after.id, after.finding.onset) == (before.id, before.finding.onset)
        assert OPEN not in following.told("port_down")
        up(host)
        following.run(60)
        (resolved,) = [c for c in following.changes if c.state is RESOLVED]
        assert resolved.id == before.id
        assert resolved.seq > max(change.seq for change in node.changes)

    def test_a_finding_about_counters_waits_for_them(
        self, host: FakeHost, node: Running
    ) -> None:
        """State is read first: until the counters are, nothing is over."""
        assert node.told("counter_saturated") == [OPEN] * 4
        following = node.restart()
        following.reader.held_sources.add("errors")
        following.settle()
        following.run(3)
        following.reader.held_sources.clear()
        following.run(60)
        assert following.told("counter_saturated") == []
        assert "counter_saturated" in following.kinds

    def test_a_port_that_came_back_meanwhile(
        self, host: FakeHost, node: Running
    ) -> None:
        """The restarted agent resolves what its predecessor had opened."""
        down(host)
        node.run(60)
        up(host)
        host.now += 30
        following = node.restart().settle()
        following.run(60)
        assert following.told("port_down") == [RESOLVED]

    def test_a_flap_meanwhile(self, host: FakeHost, node: Running) -> None:
        """A counter remembers what nobody saw."""
        node.run(30)
        host.put(f"{FOLDER}/counters/link_downed", 1)
        host.now += 30
        following = node.restart().settle()
        following.run(60)
        assert following.told("port_flap") == [OPEN]

    def test_saving_changes_nothing(self, host: FakeHost, node: Running) -> None:
        """It happens while the agent runs."""
        down(host)
        node.run(30)
        first = node.pipeline.save()
        assert node.pipeline.save() == first

    def test_damaged_parts_are_said(self, node: Running) -> None:
        """Each costs itself; the others are taken back."""
        saved = node.pipeline.save()
        assert {"link_state", "presence"} <= saved.detectors.keys()
        parts = {**saved.detectors, "link_state": b"\xc1", "presence": b"\xc1"}
        damaged = msgspec.structs.replace(saved, detectors=parts, inventory=b"{")
        problems = Running(node.host).pipeline.restore(damaged)
        assert len(problems) == 3
        assert any("inventory" in problem for problem in problems)

    def test_another_configuration(self, host: FakeHost, node: Running) -> None:
        """Counters, boot and findings pass over: nothing is a first sight again."""
        down(host)
        node.run(60)
        following = Running(host, {"link_state": {"down_seconds": 20}})
        following.pipeline.inherit(node.pipeline)
        window = node.pipeline.intake.window
        assert following.pipeline.intake.window is window
        following.settle()
        following.run(60)
        assert OPEN not in following.told("port_down")
        assert following.told("counter_saturated") == []
        assert "port_down" in following.kinds

    def test_state_that_cannot_be_saved(self, node: Running) -> None:
        """Whoever saves says why; it is in the snapshot and judges nothing."""
        node.pipeline.unsaved = ReadFailure(None, None, "/x/state", "ENOSPC", "full")
        node.step(5)
        snapshot = node.pipeline.snapshot
        assert snapshot.unsaved == node.pipeline.unsaved
        assert snapshot.verdict is Verdict.HEALTHY


def test_two_in_one_process() -> None:
    """What one node has seen is no business of the other's."""
    sick, well = mlx5_node(4), mlx5_node(4)
    alone = Running(mlx5_node(4)).settle()
    down(alone.host)
    alone.run(60)
    first, second = Running(sick).settle(), Running(well).settle()
    down(sick)
    for _ in range(60):
        first.step(1)
        second.step(1)
    assert [replace(c, id="") for c in first.changes] == [
        replace(c, id="") for c in alone.changes
    ]
    assert [c.id for c in first.changes] == [c.id for c in alone.changes]
    assert "port_down" not in second.kinds
