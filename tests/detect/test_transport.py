"""Retries: who is a victim, who is the cause, and what is no story at all."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fabricmon.catalogue import Directory
from fabricmon.detect.transport import Transport
from fabricmon.kinds import BY_SLUG
from fabricmon.model import Action, Burst, Finding, Part, Role, Severity
from fabricmon.parse.words import PortState
from fabricmon.replaying import Replay
from tests.manifest import SYSFS
from tests.node import RAILS
from tests.rails import LINE, MLX5, ROCE, Rails
from tests.traces import of_manifest, write

SLOW = 0.15  # share of the rails' rate that a port has with stale connections


def victims(findings: Iterable[Finding]) -> bool:
    """Tell whether nobody is blamed or asked for anything."""
    return all(
        each.part is not Part.CULPRIT and each.action is Action.NONE
        for each in findings
    )


class TestRetries:
    """``transport_retries``: too many, for the traffic and for the time."""

    def test_three_timeouts_in_a_minute(self) -> None:
        """Told for information, as a victim, with what an operator needs to vote."""
        node = Rails(Transport)
        node.grow(node.rail(2), local_ack_timeout_err=3)
        node.run(15)
        (finding,) = node.found("transport_retries")
        assert (finding.severity, finding.part) == (Severity.INFO, Part.VICTIM)
        assert finding.subject.device == "mlx5_2"
        shown = {item.signal: item for item in finding.evidence}
        assert shown["local_ack_timeout_err"].value == 3
        assert shown["local_ack_timeout_err"].threshold == 3
        assert shown["local_evidence"].value == "none"
        assert "not this port" in finding.summary

    def test_single_counts_of_a_day(self) -> None:
        """One time-out and a few adaptive retransmissions are any day's (N25)."""
        node = Rails(Transport)
        for _ in range(5):
            node.grow(node.rail(1), roce_adp_retrans=1)
            node.run(90)
        node.grow(node.rail(4), local_ack_timeout_err=1)
        node.run(120)
        assert node.opened == []

    def test_reordering_is_no_loss(self) -> None:
        """A hundred thousand packets a second out of order, none lost (N24)."""
        node = Rails(Transport)
        node.all(out_of_sequence=100_000)
        node.run(120)
        assert node.opened == []

    def test_reordering_with_losses_is_loss(self) -> None:
        """The pair of the case before: the sender hears of packets that are missing."""
        node = Rails(Transport)
        node.every(3, out_of_sequence=100, packet_seq_err=20)
        node.run(60)
        (finding,) = node.found("transport_retries")
        assert finding.evidence[0].signal == "packet_seq_err"

    def test_losses_are_held_against_the_traffic(self) -> None:
        """Twelve a minute are many of a million packets, and nothing of a billion."""
        node = Rails(Transport)
        node.every(0, packet_seq_err=0.25)
        node.run(180)
        assert node.found("transport_retries") == []
        idle = Rails(Transport)
        idle.load = 0.001
        idle.every(0, packet_seq_err=0.25)
        idle.run(180)
        assert len(idle.found("transport_retries")) == 1

    def test_adaptive_timers_are_held_against_the_traffic(self) -> None:
        """Four in a minute cost microseconds each: nothing, until they are a share."""
        files = {**MLX5, "roce_adp_retrans_to": Directory.HW_COUNTERS}
        node = Rails(Transport, files=files)
        for _ in range(24):
            node.grow(node.rail(2), roce_adp_retrans_to=1)
            node.run(15)
        assert node.opened == []
        node.every(2, roce_adp_retrans_to=2000)
        node.run(300)
        assert node.open_of("transport_retries").finding.severity is Severity.WARNING

    def test_acknowledge_timers_count_at_any_traffic(self) -> None:
        """Each one stops a connection for seconds, however much the others send."""
        node = Rails(Transport)
        node.load = 0.9
        for _ in range(24):
            node.grow(node.rail(2), local_ack_timeout_err=1)
            node.run(15)
        assert node.open_of("transport_retries").finding.severity is Severity.WARNING

    def test_rare_losses_that_do_not_end(self) -> None:
        """One in a few seconds is found over ten minutes, a burst of as many is not."""
        node = Rails(Transport)
        node.load = 0.1
        node.every(5, packet_seq_err=0.2)
        node.run(600)
        assert [f.subject.device for f in node.found("transport_retries")] == ["mlx5_5"]
        other = Rails(Transport)
        other.run(300)
        other.grow(other.rail(5), packet_seq_err=120)
        other.run(400)
        assert other.found("transport_retries") == []

    def test_a_warning_when_it_lasts(self) -> None:
        """A peer's outage is over after a minute; a bad path is not."""
        node = Rails(Transport)
        node.every(2, packet_seq_err=2000)
        node.run(120)
        assert node.open_of("transport_retries").finding.severity is Severity.INFO
        node.run(120)
        assert node.open_of("transport_retries").finding.severity is Severity.WARNING
        node.still()
        node.run(300)
        assert node.kinds == []

    def test_losses_of_little_effect(self) -> None:
        """Every port behind a bad hop feels it: information, however long."""
        node = Rails(Transport)
        node.every(2, packet_seq_err=30)
        node.run(400)
        assert node.open_of("transport_retries").finding.severity is Severity.INFO

    def test_culprit_with_a_fault_of_its_own(self) -> None:
        """Bit errors at this end turn the victim into the cause, in their window."""
        node = Rails(Transport)
        node.grow(node.rail(2), symbol_error=500)
        node.run(60)
        node.every(2, packet_seq_err=30)
        node.run(60)
        (finding,) = node.found("transport_retries")
        assert (finding.part, finding.action) == (Part.CULPRIT, Action.INSPECT)
        assert "symbol_error" in {item.signal for item in finding.evidence}
        node.run(900)
        assert victims(node.found("transport_retries"))

    def test_a_sender_of_a_slow_receiver(self) -> None:
        """Refusals that are heard stay information, however long: it is the peer."""
        node = Rails(Transport)
        node.every(2, rnr_nak_retry_err=5000)
        node.run(400)
        (finding,) = node.found("transport_retries")
        assert finding.severity is Severity.INFO
        assert finding.part is Part.VICTIM

    def test_rails_that_retry_alike_are_one_story(self) -> None:
        """The first one speaks and names the others; another rack's crash is one."""
        node = Rails(Transport)
        for rail in range(8):
            node.grow(node.rail(rail), local_ack_timeout_err=16)
        node.run(20)
        (finding,) = node.found("transport_retries")
        assert "and 7 more" in finding.summary
        assert node.opened == ["transport_retries"]

    def test_a_saturated_or_cleared_counter_says_nothing(self) -> None:
        """Its first sight, a fall and a restart of the device are no retries."""
        node = Rails(Transport)
        node.put(node.rail(0), local_ack_timeout_err=4000)
        node.window.rebaseline("mlx5_0", "driver")
        node.run(20)
        node.put(node.rail(0), local_ack_timeout_err=0)
        node.run(60)
        assert node.opened == []

    def test_a_storage_port_stands_for_itself(self) -> None:
        """It is no rail: it never counts among ports that retry alike."""
        storage = tuple(replace(rail, role=Role.STORAGE) for rail in ROCE[:4])
        node = Rails(Transport, infos=(*storage, *ROCE[4:]))
        for rail in range(4):
            node.grow(node.rail(rail), local_ack_timeout_err=16)
        node.run(20)
        assert len(node.found("transport_retries")) == 4

    def test_the_end_of_a_job(self) -> None:
        """Ten thousand flushed requests within two seconds on every rail (N19)."""
        node = Rails(Transport)
        node.load = 0.0
        for rail in range(8):
            where = node.rail(rail)
            node.grow(where, req_cqe_flush_error=10_000, resp_cqe_flush_error=10_000)
        node.run(120)
        assert node.opened == []


@pytest.mark.parametrize(
    ("driver", "file"),
    [
        ("bnxt_re", "to_retransmits"), ("irdma", "RTO"), ("mlx4_core", "sq_num_to"),
        ("ionic", "tx_rdma_ack_timeout"), ("mana", "requester_timeout"),
        ("hfi1", "RcTimeOut"),
    ],
)  # fmt: skip
def test_whatever_its_driver_calls_it(driver: str, file: str) -> None:
    """Timers that ran out have another name in each driver, and one meaning."""
    files = {file: Directory.HW_COUNTERS}
    node = Rails(Transport, files=files, driver=driver)
    node.grow(node.rail(1), **{file: 5})
    node.run(15)
    (finding,) = node.found("transport_retries")
    assert finding.evidence[0].signal == file


def test_efa_resends_by_design() -> None:
    """Its transport sprays packets; only a thousand a second are too many."""
    files = dict.fromkeys(
        ("retrans_pkts", "retrans_timeout_events"), Directory.HW_COUNTERS
    )
    node = Rails(Transport, files=files, driver="efa")
    node.every(0, retrans_pkts=200, retrans_timeout_events=1)
    node.run(120)
    assert node.found("transport_retries") == []
    node.every(0, retrans_pkts=2000)
    node.run(120)
    assert len(node.found("transport_retries")) == 1


class TestExhausted:
    """``retries_exhausted``: a job is dead, the question is whose fault."""

    def test_a_peer_that_crashed(self) -> None:
        """Warning, victim, one finding for all rails (N26, F50 from the observer)."""
        node = Rails(Transport)
        for _ in range(7):
            for rail in range(8):
                node.grow(node.rail(rail), local_ack_timeout_err=16)
            node.run(4.3, 4.3)
        for rail in range(8):
            node.grow(node.rail(rail), req_transport_retries_exceeded=16)
        node.run(15)
        (finding,) = node.found("retries_exhausted")
        assert finding.severity is Severity.WARNING
        assert victims(node.findings)
        loud = [i for i in node.changes if i.finding.severity > Severity.INFO]
        assert [i.finding.kind for i in loud] == ["retries_exhausted"]

    def test_after_an_outage_of_this_port(self) -> None:
        """Critical: the port itself was down a moment before."""
        node = Rails(Transport)
        node.link(PortState.DOWN, where=node.rail(3))
        node.run(30)
        node.link(PortState.ACTIVE, where=node.rail(3))
        node.grow(node.rail(3), req_transport_retries_exceeded=16)
        node.run(15)
        (finding,) = node.found("retries_exhausted")
        assert (finding.severity, finding.part) == (Severity.CRITICAL, Part.CULPRIT)
        assert finding.action is Action.INSPECT

    def test_other_counters_are_no_death(self) -> None:
        """A checksum that was wrong is one packet, and no queue pair."""
        node = Rails(Transport)
        node.grow(node.rail(2), rx_icrc_encapsulated=3)
        node.run(20)
        assert node.opened == []


class TestReceiver:
    """``receiver_stall``: the receiver is the place, its senders only wait."""

    def test_packets_refused_here(self) -> None:
        """Warning at the receiver; the device is not to blame, so nothing is asked."""
        node = Rails(Transport)
        node.every(0, out_of_buffer=2000)
        node.run(30)
        (finding,) = node.found("receiver_stall")
        assert (finding.severity, finding.part) == (Severity.WARNING, Part.CULPRIT)
        assert finding.action is Action.NONE

    def test_bursts_are_one_story(self) -> None:
        """A minute of quiet between two bursts does not end it."""
        node = Rails(Transport)
        for _ in range(3):
            node.every(0, out_of_buffer=2000)
            node.run(30)
            node.still()
            node.run(60)
        assert node.opened == ["receiver_stall"]

    def test_a_few_are_nothing(self) -> None:
        """One in a million packets, or a handful a second, is load."""
        node = Rails(Transport)
        node.every(0, out_of_buffer=3)
        node.run(120)
        assert node.opened == []


class TestUpstream:
    """``fabric_suspect``: damaged before this port's link."""

    def test_packets_marked_by_a_hop_before(self) -> None:
        """The rail is named, nobody is blamed."""
        node = Rails(Transport, infos=RAILS)
        node.every(6, port_rcv_remote_physical_errors=0.5)
        node.run(600)
        (finding,) = node.found("fabric_suspect")
        assert (finding.subject.device, finding.subject.rail) == (None, 6)
        assert (finding.part, finding.action) == (Part.OBSERVER, Action.NONE)

    def test_damage_of_this_link_explains_it(self) -> None:
        """Symbol errors of the port itself: then the fault is here (F01, not F38)."""
        node = Rails(Transport, infos=RAILS)
        node.every(6, port_rcv_remote_physical_errors=0.5, symbol_error=0.5)
        node.run(600)
        assert node.found("fabric_suspect") == []


class TestPartition:
    """``config_mismatch``: the port is in the wrong partition."""

    def test_packets_refused(self) -> None:
        """Also where the counter of eight bits runs into its ceiling (F57)."""
        node = Rails(Transport, infos=RAILS)
        node.every(4, port_xmit_constraint_errors=30)
        node.run(60)
        (finding,) = node.found("config_mismatch")
        assert finding.subject.device == "mlx5_4"
        assert (finding.severity, finding.action) == (Severity.WARNING, Action.NONE)

    def test_a_single_probe(self) -> None:
        """One refused packet is somebody who tried."""
        node = Rails(Transport, infos=RAILS)
        node.grow(node.rail(4), port_xmit_constraint_errors=1)
        node.run(60)
        assert node.opened == []


class TestPostFlap:
    """``post_flap_degraded``: the link is back, its traffic is not."""

    def _bursts(self, node: Rails, slow: int | None, busy: float = 0.9) -> None:
        """Let one window of bursts pass on all rails."""
        node.run(30)
        rates = dict.fromkeys(range(8), busy * LINE)
        if slow is not None:
            rates[slow] *= SLOW
        windows = tuple(
            Burst(node.rail(rail), "transmitted", node.now - 3, node.now, 15,
                  0.5 if busy else 0.0, rate, rate / 2, 2)
            for rail, rate in rates.items()
        )  # fmt: skip
        view = node.step(1.0, bursts=windows)
        node.findings = list(node.detectors[0].judge(view))

    def _flap(self, node: Rails, rail: int) -> None:
        node.down(rail)
        node.run(10)
        node.up(rail)
        node.run(5)

    def _node(self) -> Rails:
        node = Rails(Transport)
        for rail in range(8):
            node.put(node.rail(rail), carrier_down_count=0)
        node.run(5)
        return node

    def test_a_fraction_of_its_rails_and_of_before(self) -> None:
        """Three windows are enough, two with timers that run out."""
        node = self._node()
        for _ in range(4):
            self._bursts(node, None)
        self._flap(node, 5)
        for _ in range(2):
            self._bursts(node, 5)
        assert node.found("post_flap_degraded") == []
        self._bursts(node, 5)
        (finding,) = node.found("post_flap_degraded")
        assert finding.subject.device == "mlx5_5"
        assert "15% of its rails" in finding.summary

    def test_over_when_its_rate_is_back(self) -> None:
        """Connections that were made anew are as fast as before."""
        node = self._node()
        self._flap(node, 5)
        node.grow(node.rail(5), local_ack_timeout_err=4)
        for _ in range(2):
            self._bursts(node, 5)
        assert len(node.found("post_flap_degraded")) == 1
        for _ in range(4):
            self._bursts(node, None)
        assert node.found("post_flap_degraded") == []

    def test_a_job_that_ended_is_none(self) -> None:
        """All rails are idle after the flap: there is nothing to compare (N19)."""
        node = self._node()
        self._bursts(node, None)
        self._flap(node, 5)
        for _ in range(6):
            self._bursts(node, 5, busy=0.0)
        assert node.found("post_flap_degraded") == []

    def test_a_port_of_another_job(self) -> None:
        """Nothing is known of before and no timer runs out: the job may be slower."""
        node = self._node()
        self._flap(node, 5)
        for _ in range(6):
            self._bursts(node, 5)
        assert node.found("post_flap_degraded") == []

    def test_a_slow_port_that_never_flapped(self) -> None:
        """Slow it may be, but not of this."""
        node = self._node()
        for _ in range(6):
            self._bursts(node, 5)
        assert node.found("post_flap_degraded") == []


def test_a_driver_without_such_counters_is_blind() -> None:
    """Silence is not health: each kind says that nothing counts it."""
    files = {"port_rcv_data": Directory.COUNTERS}
    node = Rails(Transport, files=files)
    blind = {each.kind for each in node.detectors[0].blind(node.step())}
    assert blind == {
        "transport_retries", "retries_exhausted", "receiver_stall", "fabric_suspect",
    }  # fmt: skip
    seeing = Rails(Transport)
    assert list(seeing.detectors[0].blind(seeing.step())) == []


def test_a_node_with_a_past_is_silent(tmp_path: Path) -> None:
    """A recorded tree with many old retries: what is old is no finding."""
    tree: dict[str, Any] = msgspec.to_builtins(
        of_manifest(SYSFS / "sysfs-roce-retrans-heavy.manifest")
    )
    played = Replay(write(tmp_path, [tree, {"t": 200}]))
    for _change in played.changes():
        pass
    kinds = {i.finding.kind for i in played.pipeline.snapshot.incidents}
    assert kinds & {*Transport.kinds} == set()


TRANSPORT = (
    "local_ack_timeout_err", "packet_seq_err", "implied_nak_seq_err", "out_of_sequence",
    "roce_adp_retrans", "rnr_nak_retry_err", "req_transport_retries_exceeded",
)  # fmt: skip


@settings(max_examples=15, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 7), st.sampled_from(TRANSPORT), st.integers(0, 10**6)),
        max_size=12,
    )
)
def test_nobody_is_blamed_for_retries(steps: list[tuple[int, str, int]]) -> None:
    """Whatever transport counters do: without local evidence it is a victim."""
    node = Rails(Transport)
    for rail, file, amount in steps:
        node.grow(node.rail(rail), **{file: amount})
        node.run(10)
        assert victims(node.findings)


def test_summaries_fit_a_line() -> None:
    """Sinks accept 120 characters."""
    node = Rails(Transport)
    node.all(packet_seq_err=9000, out_of_buffer=90_000, rnr_nak_retry_err=90_000,
             req_transport_retries_exceeded=12)  # fmt: skip
    node.run(60)
    assert {f.kind for f in node.findings} <= {*BY_SLUG}
    assert len(node.findings) == 3
    assert all(len(f.summary) <= 120 and "…" not in f.summary for f in node.findings)
