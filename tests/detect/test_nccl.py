"""What logs say of a job, held against what the ports show."""

from __future__ import annotations

from dataclasses import replace

from fabricmon.detect.nccl import NcclErrors
from fabricmon.model import (
    FollowedLog,
    Gid,
    GidTable,
    IncidentState,
    JobUse,
    JobView,
    LogEvent,
    LogField,
    LogSeverity,
    Part,
    PeerAddress,
    PortId,
    Severity,
)
from fabricmon.parse.words import PortState
from tests.detect.nccl_node import PEER, Logged, context, event, port_event
from tests.node import RAILS, pid
from tests.views import port


class TestError:
    def test_a_storm_on_a_port_that_retries(self) -> None:
        """One incident that names port, peer and job, with both kinds of evidence."""
        node = Logged()
        node.grow(pid(3), local_ack_timeout_err=16, req_transport_retries_exceeded=16)
        node.hear(*[event(pid=100 + n % 8, line_number=n) for n in range(500)])
        assert node.kinds == ["nccl_error"]
        subject = node.error.finding.subject
        assert (subject.device, subject.port, subject.rail) == ("mlx5_3", 1, 3)
        assert (subject.peer, subject.job) == (PEER, "42")
        assert "C1 ib_completion_error" in node.signals()
        assert "req_transport_retries_exceeded" in node.signals()
        assert "local_ack_timeout_err" in node.signals()
        assert "500 lines of 8 processes" in node.error.finding.summary

    def test_within_five_seconds(self) -> None:
        """The operator is told while the job still dies."""
        node = Logged()
        node.logged = [event()]
        began = node.now
        node.step_all(1)
        while "nccl_error" not in node.kinds:
            node.step_all(1)
        assert node.now - began <= 5

    def test_retries_are_no_guilt(self) -> None:
        """They may be the peer's doing: this node observes."""
        node = Logged()
        node.grow(pid(3), local_ack_timeout_err=16)
        node.hear(event())
        assert node.error.finding.part is Part.OBSERVER

    def test_a_port_that_fell_is_the_culprit(self) -> None:
        """Its own state in the same minutes confirms what the log suspects."""
        node = Logged()
        node.hear(event())
        assert self.part(node) is Part.OBSERVER
        node.down(3)
        node.step_all(1)
        changes = [i for i in node.changes if i.finding.kind == "nccl_error"]
        assert changes[-1].state is IncidentState.UPDATE
        assert self.part(node) is Part.CULPRIT
        assert "link_downed" in node.signals()
        assert "state" in node.signals()

    def part(self, node: Logged) -> Part:
        """Return the part that the open error gives this node."""
        return node.error.finding.part

    def test_the_finding_of_the_port_has_the_log(self) -> None:
        """Evidence of one appears in the other."""
        node = Logged()
        node.down(3)
        node.hear(port_event("port error"), event(line_number=9))
        node.run(15)
        assert "A1 ib_async_event" in node.signals("port_down")
        other = Logged()
        other.down(4)
        other.hear(port_event("port error"))
        other.run(15)
        assert other.signals("port_down") == [
            s for s in other.signals("port_down") if not s.startswith("A1")
        ]

    def test_severity_of_what_is_no_network(self) -> None:
        """A protection fault is the node's memory: it warns, and blames no link."""
        node = Logged()
        node.hear(event(status=4))
        assert node.error.finding.severity is Severity.WARNING
        assert "host memory path" in node.error.finding.summary

    def test_consequences_alone_are_silent(self) -> None:
        """A user who ends a job leaves closed sockets and aborted proxies."""
        node = Logged()
        closed = context("socket_closed_by_peer", severity=LogSeverity.INFO, rule="S5")
        node.hear(closed, replace(closed, kind="proxy_error", rule="X1"))
        assert node.kinds == []

    def test_flushes_fold_under_the_first_error(self) -> None:
        """A thousand lines follow from one."""
        node = Logged()
        flushes = [event(status=5, line_number=n, pid=100) for n in range(2, 1000)]
        node.hear(event(), *flushes)
        assert node.opened == ["nccl_error"]
        assert node.error.finding.evidence[0].value == 12

    def test_all_rails_to_one_peer(self) -> None:
        """A crashed peer is seen by every rail: one incident names it, and no port."""
        node = Logged()
        node.hear(*[event(device=f"mlx5_{n}", pid=100 + n) for n in range(8)])
        assert node.opened.count("nccl_error") == 1
        subject = node.error.finding.subject
        assert (subject.device, subject.peer) == (None, PEER)

    def test_several_rails_of_which_one_fell(self) -> None:
        """The one that shows a fault is it."""
        node = Logged()
        node.down(5)
        node.hear(*[event(device=f"mlx5_{n}", pid=100 + n) for n in (2, 5, 6)])
        assert node.error.finding.subject.device == "mlx5_5"

    def test_a_cause_that_is_read_late(self) -> None:
        """It is another line of what was told, not another incident."""
        node = Logged()
        node.hear(*[event(pid=100 + n) for n in range(8)])
        told = node.error.id
        node.hear(port_event("port error", device=None, port=None, pid=200))
        assert node.kinds == ["nccl_error"]
        assert node.error.id == told
        assert node.error.finding.subject.device == "mlx5_3"
        assert "A1 ib_async_event" in node.signals()

    def test_a_clock_that_is_set_back(self) -> None:
        """What was told stays told, what comes then is told in time."""
        node = Logged()
        node.hear(event())
        told = node.error.id
        node.wall -= 3600
        node.run(10)
        assert node.error.id == told
        other = Logged()
        other.logged = [event()]
        other.step_all(1)
        other.wall -= 3600
        other.run(5, each=1)
        assert other.opened == ["nccl_error"]

    def test_two_jobs_are_two(self) -> None:
        """Each has its own story."""
        node = Logged()
        node.hear(event(), event(job="43", device="mlx5_6", pid=200, peer="10.20.0.9"))
        assert node.opened.count("nccl_error") == 2

    def test_resolved_when_nothing_more_is_logged(self) -> None:
        """After the closing time; the same error later is another one."""
        node = Logged()
        node.hear(event())
        node.run(290)
        assert node.kinds == ["nccl_error"]
        node.run(30)
        assert node.kinds == []

    def test_a_port_error_is_over_although_no_line_says_that_it_is_back(self) -> None:
        """The job died before: nobody was left to log `port active`."""
        node = Logged()
        node.down(3)
        node.hear(port_event("port error"))
        node.up(3)
        node.run(290)
        assert "nccl_error" in node.kinds
        node.run(30)
        assert "nccl_error" not in node.kinds

    def test_what_the_port_showed_stays_joined(self) -> None:
        """Lines go on after the port's signs are old: it is still the culprit."""
        node = Logged()
        node.down(3)
        node.hear(port_event("port error"))
        node.up(3)
        for _ in range(4):
            node.run(200)
            node.hear(event(status=5))
        assert node.part is Part.CULPRIT
        assert "link_downed" in node.signals()
        changes = [i for i in node.changes if i.finding.kind == "nccl_error"]
        assert [i.state for i in changes] == [IncidentState.OPEN]

    def test_the_same_error_later_is_another_one(self) -> None:
        """Each flap has its own onset and id, and none opens twice."""
        node = Logged()
        onsets = []
        for _ in range(3):
            node.down(3)
            onsets.append(node.wall + 1)
            node.hear(port_event("port error"))
            node.up(3)
            node.run(700)
        told = [
            incident
            for incident in node.changes
            if incident.finding.kind == "nccl_error"
            and incident.state is IncidentState.OPEN
        ]
        assert [incident.finding.onset for incident in told] == onsets
        assert len({incident.id for incident in told}) == len(onsets)

    def test_a_clock_that_is_set_back_opens_nothing_that_is_over(self) -> None:
        """What was resolved stays so; a line that comes then is another error."""
        node = Logged()
        node.hear(event())
        node.run(320)
        assert node.kinds == []
        node.wall -= 200
        node.run(60)
        assert node.opened == ["nccl_error"]
        node.hear(event(line_number=2))
        told = [i for i in node.changes if i.state is IncidentState.OPEN]
        assert len({incident.id for incident in told}) == 2

    def test_a_restart_neither_ends_nor_repeats_it(self) -> None:
        """The log says it once; the agent may be new."""
        node = Logged()
        node.hear(event())
        told = node.error.id
        node.restart()
        node.run(60)
        assert node.error.id == told
        node.run(300)
        assert node.kinds == []
        assert node.opened == ["nccl_error"]

    def test_how_long_the_job_would_have_survived(self) -> None:
        """Its own settings decide it: 4.096 us x 2^22 x 7."""
        node = Logged()
        setting = context(
            "env_setting",
            fields=(LogField("name", "NCCL_IB_TIMEOUT"), LogField("value", "22")),
        )
        node.hear(setting, event())
        found = {e.signal: e.value for e in node.error.finding.evidence}
        assert found["outage_budget"] == 120.3
        facts = node.detectors[-1].job_facts()  # type: ignore[attr-defined]
        assert [(b.job, round(b.seconds)) for b in facts.budgets] == [("42", 120)]


class TestPlace:
    def test_no_device_but_one_port_retries(self) -> None:
        """Old versions name none: the counters do."""
        node = Logged()
        node.grow(pid(6), req_transport_retries_exceeded=3)
        node.grow(pid(2), local_ack_timeout_err=1)
        node.hear(event(device=None))
        assert node.error.finding.subject.device == "mlx5_6"

    def test_no_device_but_one_port_was_refused(self) -> None:
        """Queue pairs that died as their peer was never ready show the port, too."""
        node = Logged()
        node.grow(pid(6), req_rnr_retries_exceeded=3)
        node.grow(pid(2), local_ack_timeout_err=1)
        node.hear(event(device=None, status=13))
        assert node.error.finding.subject.device == "mlx5_6"

    def test_no_device_and_two_ports_retry(self) -> None:
        """Nothing is invented."""
        node = Logged()
        node.grow(pid(6), local_ack_timeout_err=3)
        node.grow(pid(2), local_ack_timeout_err=1)
        node.hear(event(device=None))
        assert node.error.finding.subject.device is None

    def test_by_gid(self) -> None:
        """RoCE logs name the GID, the port's table knows it."""
        node = Logged()
        table = GidTable(
            pid(5), 0, (Gid(3, "0000:0000:0000:0000:0000:ffff:0a09:0001", ""),)
        )
        node.job = JobView(gids=(table,))
        gid = (LogField("local_gid", "::ffff:10.9.0.1"),)
        node.hear(event(device=None, fields=gid))
        assert node.error.finding.subject.device == "mlx5_5"

    def test_a_device_of_another_node(self) -> None:
        """The log of a shared folder: no port here is named."""
        node = Logged()
        node.hear(event(device="mlx5_77"))
        assert node.error.finding.subject.device is None
        assert "no such port" in node.error.finding.summary

    def test_the_twin_of_data_direct(self) -> None:
        """mlx5_3_dma is mlx5_3 by another way."""
        node = Logged()
        node.hear(event(device="mlx5_3_dma"))
        assert node.error.finding.subject.device == "mlx5_3"

    def test_the_wrong_port_of_a_device_with_two(self) -> None:
        """NCCL prints the wrong one: sysfs shows which fell."""
        two = (port("mlx5_0", 1, rail=0), port("mlx5_0", 2, rail=1))
        node = Logged(infos=two)
        where = PortId("mlx5_0", 2)
        node.link(PortState.DOWN, where=where)
        node.grow(where, link_downed=1)
        node.hear(port_event("port error", device="mlx5_0"))
        assert node.error.finding.subject.port == 2

    def test_a_port_that_only_a_line_of_text_knows(self) -> None:
        """Anybody can write one: no port here shows it, so it is information."""
        node = Logged()
        node.hear(port_event("port error", device="../../x"))
        assert node.error.finding.severity is Severity.INFO

    def test_a_peer_with_a_name(self) -> None:
        """The topology knows whose address it is."""
        node = Logged()
        node.peers = (PeerAddress(PEER, "node-7"),)
        node.hear(event())
        assert node.error.finding.subject.peer == "node-7"


class TestJobs:
    def test_jobs_that_share_an_adapter(self) -> None:
        """One trouble of one adapter; the name of no job that suffers it is lost."""
        node = Logged()
        node.hear(event(job="a"), event(job="b", pid=101), event(job="b", pid=102))
        finding = node.error.finding
        assert finding.subject.job == "a"
        assert "3 processes of 2 jobs" in finding.summary
        assert ("jobs", "a, b") in [(e.signal, e.value) for e in finding.evidence]

    def test_jobs_that_see_one_event(self) -> None:
        """What every process of a host sees is folded before it is judged."""
        node = Logged()
        node.hear(
            port_event("port error", job="a"), port_event("port error", job="b", pid=9)
        )
        (jobs,) = [e for e in node.error.finding.evidence if e.signal == "jobs"]
        assert jobs.value == "a, b"

    def test_one_job(self) -> None:
        """Its name is in the subject, and nowhere else."""
        node = Logged()
        node.hear(event(), event(pid=101))
        assert "jobs" not in [each.signal for each in node.error.finding.evidence]


class TestFallback:
    def lines(self, nodes: int) -> tuple[LogEvent, ...]:
        """Return what a job on sockets logs."""
        return (
            context(
                "comm_shape", rule="I2", comm="0xab", fields=(LogField("nodes", nodes),)
            ),
            context("net_name", rule="T3", status="Socket",
                    fields=(LogField("network", "Socket"),)),
            context("net_fallback_socket", rule="T3", severity=LogSeverity.WARNING,
                    status="Socket", fields=(LogField("network", "Socket"),)),
        )  # fmt: skip

    def test_sockets_between_nodes(self) -> None:
        """No error is ever printed: this is."""
        node = Logged()
        node.hear(*self.lines(4))
        assert node.kinds == ["nccl_fallback"]
        finding = node.open_of("nccl_fallback").finding
        assert finding.severity is Severity.WARNING
        assert finding.subject.job == "42"

    def test_a_job_on_one_node(self) -> None:
        """Shared memory carries its data."""
        node = Logged()
        node.hear(*self.lines(1))
        assert node.kinds == []

    def test_a_node_without_rdma_that_works(self) -> None:
        """Sockets are all it has: its ports have findings of their own."""
        node = Logged(infos=RAILS[:1])
        node.link(PortState.DOWN, where=pid(0))
        node.run(15)
        node.hear(*self.lines(4))
        assert "nccl_fallback" not in node.kinds

    def test_it_lasts_as_long_as_the_job(self) -> None:
        """NCCL says it once, at the start."""
        node = Logged()
        node.job = JobView(jobs=(JobUse("42", "slurm"),))
        node.hear(*self.lines(4))
        node.run(900, each=30)
        assert node.kinds == ["nccl_fallback"]
        node.job = JobView()
        node.run(330, each=30)
        assert node.kinds == []


class TestPeer:
    def test_several_name_one(self) -> None:
        """Three processes of this node fail towards it."""
        node = Logged()
        node.hear(*[event(device=f"mlx5_{n}", pid=100 + n) for n in range(3)])
        finding = node.open_of("peer_suspect").finding
        assert (finding.subject.peer, finding.part) == (PEER, Part.OBSERVER)
        assert finding.evidence[0].value == 3

    def test_one_process_is_not_enough(self) -> None:
        """A storm behind one port is one voice: it may be the port."""
        node = Logged()
        node.hear(*[event(pid=100 + n, line_number=n) for n in range(50)])
        assert "peer_suspect" not in node.kinds

    def test_many_name_many(self) -> None:
        """Then it is this node, not its peers."""
        node = Logged()
        lines = [
            event(device=f"mlx5_{n}", pid=100 + n, peer=f"10.20.0.{n % 2}")
            for n in range(8)
        ]
        node.hear(*lines)
        assert "peer_suspect" not in node.kinds

    def test_what_software_causes_accuses_nobody(self) -> None:
        """A flush names the peer, and means nothing."""
        node = Logged()
        node.hear(*[event(status=5, pid=100 + n) for n in range(8)])
        assert "peer_suspect" not in node.kinds

    def test_votes_are_told(self) -> None:
        """For those who export them."""
        node = Logged()
        node.hear(*[event(device=f"mlx5_{n}", pid=100 + n) for n in range(3)])
        facts = node.detectors[-1].job_facts()  # type: ignore[attr-defined]
        assert [(vote.peer, vote.votes) for vote in facts.votes] == [(PEER, 3)]

    def test_addresses_of_one_node_are_one_peer(self) -> None:
        """By its name, where that is known; who fails towards both has one vote."""
        node = Logged()
        other = "fd00::7"
        node.peers = (PeerAddress(PEER, "node-7"), PeerAddress(other, "node-7"))
        said = (f"{PEER}<4711>", "[FD00:0::7]", f"::ffff:{PEER}")
        node.hear(*[event(peer=each, device="mlx5_1") for each in said])
        node.hear(event(peer=PEER, device="mlx5_2"))
        facts = node.detectors[-1].job_facts()  # type: ignore[attr-defined]
        assert [(vote.peer, vote.votes) for vote in facts.votes] == [("node-7", 2)]


class TestBlindness:
    def test_without_a_log(self) -> None:
        """Silence is not health."""
        node = Logged()
        view = node.step()
        detector = NcclErrors(node.config)
        assert {each.kind for each in detector.blind(view)} == set(NcclErrors.kinds)

    def test_with_one(self) -> None:
        """It sees what is logged."""
        node = Logged()
        log = FollowedLog("/x", "1:1", 0, 0, "configured", 0)
        view = node.step(job=JobView(logs=(log,)))
        assert list(NcclErrors(node.config).blind(view)) == []
