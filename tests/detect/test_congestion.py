"""Congestion is told apart from what is healthy, and never blamed on a node."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fabricmon.catalogue import Directory
from fabricmon.detect.congestion import Congestion
from fabricmon.model import (
    Action,
    HostPath,
    JobView,
    Part,
    PriorityUse,
    Role,
    Severity,
)
from tests.node import RAILS
from tests.rails import MLX5, ROCE, Rails

SECOND = 1e6  # microseconds
TICKS = 400e9 / 64  # of transmit wait in a second without credit

LOSSLESS = (3,)
BY_DSCP = tuple(3 if dscp == 26 else 0 for dscp in range(64))


def bridged(*rails: PriorityUse) -> JobView:
    """Return what a node can read of its flow control."""
    return JobView(host_path=HostPath(0.0, priorities=rails))


def use(rail: int, pfc: tuple[int, ...] = LOSSLESS) -> PriorityUse:
    """Return the settings of a rail; PFC on priority 3 unless told otherwise."""
    return PriorityUse(f"eth{rail}", pfc, LOSSLESS, BY_DSCP)


class TestClasses:
    """The matrix of ``health-systems`` 4.4, from one node."""

    def test_incast(self) -> None:
        """Many notify-worthy senders, no pause, no stall: observer, information."""
        node = Rails(Congestion)
        node.all(np_cnp_sent=200, rp_cnp_handled=200)
        node.run(150)
        node.every(1, np_cnp_sent=20_000, np_ecn_marked_roce_packets=300_000)
        node.run(40)
        (finding,) = node.found("congestion")
        assert (finding.severity, finding.part) == (Severity.INFO, Part.OBSERVER)
        assert "incast" in finding.summary
        assert finding.evidence[0].signal == "np_cnp_sent"
        assert finding.action is Action.NONE

    def test_a_slow_host_is_no_incast(self) -> None:
        """Pause and a PCIe stall come along: the host is the cause (F20, not F30)."""
        node = Rails(Congestion)
        node.every(1, np_cnp_sent=20_000, tx_prio3_pause_duration=0.2 * SECOND,
                   outbound_pci_stalled_wr_events=1)  # fmt: skip
        node.run(60)
        assert {finding.kind for finding in node.findings} == {"pause_origin"}

    def test_a_host_that_pauses_a_little_is_no_incast(self) -> None:
        """Without a stall it is no origin; but who pauses makes the network notify."""
        node = Rails(Congestion)
        node.run(150)
        node.every(1, np_cnp_sent=20_000, tx_prio3_pause_duration=0.03 * SECOND)
        node.run(60)
        assert node.findings == []

    def test_a_sender_that_pauses_a_little(self) -> None:
        """What it sends says nothing of the notifications that it obeys."""
        node = Rails(Congestion)
        node.all(rp_cnp_handled=100)
        node.run(150)
        node.every(2, rp_cnp_handled=20_000, tx_prio3_pause_duration=0.02 * SECOND)
        node.run(60)
        (finding,) = node.found("congestion")
        assert (finding.part, finding.subject.rail) == (Part.VICTIM, 2)

    def test_a_path_that_is_shared(self) -> None:
        """A sender obeys notifications that its rails do not get (F31)."""
        node = Rails(Congestion)
        node.all(rp_cnp_handled=100)
        node.run(150)
        node.every(6, rp_cnp_handled=9000)
        node.run(40)
        (finding,) = node.found("congestion")
        assert (finding.part, finding.subject.rail) == (Part.VICTIM, 6)

    def test_waiting_for_credit(self) -> None:
        """InfiniBand has neither pause nor notifications; its senders wait (N27)."""
        files = {"port_rcv_data", "port_xmit_data", "port_xmit_wait"}
        node = Rails(
            Congestion, infos=RAILS, files={file: MLX5[file] for file in files}
        )
        node.run(150)
        node.every(2, port_xmit_wait=0.4 * TICKS)
        node.run(60)
        (finding,) = node.found("congestion")
        assert finding.evidence[0].signal == "port_xmit_wait"
        assert finding.part is Part.VICTIM

    def test_waiting_that_fills_its_counter(self) -> None:
        """Quiet for minutes, then at its ceiling at once: that much it was at least."""
        node = Rails(Congestion, infos=RAILS)
        node.all(port_xmit_wait=1000)
        node.run(240)
        node.still()
        node.put(node.rail(2), port_xmit_wait=2**32 - 1)
        node.run(30)
        (finding,) = node.found("congestion")
        assert finding.evidence[0].signal == "port_xmit_wait"
        assert "at least" in finding.summary
        node.run(60)
        assert node.found("congestion") == []

    def test_over_when_it_is_over(self) -> None:
        """It resolves a minute after the burst."""
        node = Rails(Congestion)
        node.run(150)
        node.every(1, np_cnp_sent=20_000)
        node.run(60)
        assert node.kinds == ["congestion"]
        node.every(1, np_cnp_sent=0)
        node.run(120)
        assert node.kinds == []


class TestHealthyFabrics:
    """What is normal is learnt from the rails and from the past."""

    def test_notifications_alike_on_all_rails(self) -> None:
        """Five thousand a second each: a fabric that lives with DCQCN (N23)."""
        node = Rails(Congestion)
        for rail in range(8):
            node.every(rail, np_cnp_sent=4000 + 200 * rail, rp_cnp_handled=5000)
        node.run(240)
        assert node.opened == []

    def test_pause_only(self) -> None:
        """Pause under load up to a twentieth of the time, unlike by rail (N22)."""
        node = Rails(Congestion)
        for rail in range(8):
            share = 0.04 if rail == 3 else 0.003
            node.every(rail, rx_prio3_pause=1e4, rx_prio3_pause_duration=share * SECOND)
        node.run(300)
        assert node.opened == []

    def test_a_rail_that_was_always_so(self) -> None:
        """What stands out against the rails and not against its past is no news."""
        node = Rails(Congestion)
        node.every(3, rx_prio3_pause_duration=0.04 * SECOND)
        node.run(300)
        node.every(3, rx_prio3_pause_duration=0.08 * SECOND)
        node.run(120)
        assert node.opened == []
        node.every(3, rx_prio3_pause_duration=0.2 * SECOND)
        node.run(60)
        assert node.opened == ["congestion"]

    def test_a_benchmark_on_all_rails(self) -> None:
        """The line rate and a third of the ticks waited, everywhere (N36)."""
        node = Rails(Congestion)
        node.load = 0.95
        node.all(rx_prio3_pause_duration=0.3 * SECOND, rp_cnp_handled=4000)
        node.run(240)
        assert node.found("congestion") == []

    def test_a_pegged_counter(self) -> None:
        """Transmit wait at its ceiling for ever says nothing (N07)."""
        node = Rails(Congestion, infos=RAILS)
        node.put(node.rail(1), port_xmit_wait=2**32 - 1)
        node.run(240)
        assert node.opened == []

    def test_a_job_that_starts(self) -> None:
        """Rough on some rails while connections are made and just after (N18)."""
        node = Rails(Congestion)
        node.load = 0.003
        for rail in (3, 6):
            node.every(rail, np_cnp_sent=4000, rp_cnp_handled=4000)
        node.run(120)
        node.load = 0.3
        node.run(110)
        assert node.opened == []
        node.run(60)
        assert node.opened == ["congestion", "congestion"]

    def test_a_storage_port_is_no_rail(self) -> None:
        """Its bursts of notifications and drops are its own (N12)."""
        storage = replace(ROCE[0], role=Role.STORAGE)
        node = Rails(Congestion, infos=(storage, *ROCE[1:]))
        node.every(0, np_cnp_sent=50_000, rx_prio3_pause_duration=0.2 * SECOND,
                   rx_discards_phy=50, out_of_sequence=50)  # fmt: skip
        node.run(240)
        assert node.opened == []

    def test_two_rails_say_nothing(self) -> None:
        """One of two cannot stand out."""
        node = Rails(Congestion, infos=ROCE[:2])
        node.every(0, np_cnp_sent=50_000)
        node.run(240)
        assert node.opened == []

    @pytest.mark.parametrize("rate", [50, 400])
    def test_few_notifications(self, rate: int) -> None:
        """Below the floor nobody is slowed down."""
        node = Rails(Congestion)
        node.every(4, rp_cnp_handled=rate)
        node.run(240)
        assert node.opened == []


DROPS = {"rx_discards_phy": 500.0, "out_of_sequence": 500.0, "rx_prio0_bytes": 1e9}


class TestSettings:
    """``config_mismatch``: flow control that does not fit."""

    def test_a_rail_that_is_set_differently(self) -> None:
        """PFC is off on one rail of eight: that one is named."""
        node = Rails(Congestion)
        node.job = bridged(
            *(use(rail, () if rail == 5 else LOSSLESS) for rail in range(8))
        )
        node.run(10)
        (finding,) = node.found("config_mismatch")
        assert finding.subject.device == "mlx5_5"
        (item,) = finding.evidence
        assert (item.signal, item.value, item.threshold) == ("pfc_enabled", "none", "3")

    def test_all_alike_or_not_readable(self) -> None:
        """Rails that agree, and one that cannot be read, are no mismatch."""
        node = Rails(Congestion)
        rails = [use(rail) for rail in range(7)]
        node.job = bridged(*rails, PriorityUse("eth7"))
        node.run(10)
        assert node.opened == []

    def test_gone_when_it_was_set_right(self) -> None:
        """The next look at the settings ends it."""
        node = Rails(Congestion)
        node.job = bridged(
            *(use(rail, () if rail == 5 else LOSSLESS) for rail in range(8))
        )
        node.run(10)
        node.job = bridged(*map(use, range(8)))
        node.run(60)
        assert node.kinds == []

    def test_drops_without_any_pause(self) -> None:
        """Packets are lost on a lossy priority of all rails: one finding (F36)."""
        node = Rails(Congestion)
        node.job = bridged(*(use(rail, ()) for rail in range(8)))
        node.all(**DROPS)
        node.run(120)
        (finding,) = node.found("config_mismatch")
        names = {item.signal for item in finding.evidence}
        assert {"rx_discards_phy", "rx_prio0_bytes", "pfc_enabled"} <= names
        assert "and 7 more" in finding.summary

    def test_drops_on_priority_0_without_settings_to_read(self) -> None:
        """Where the kernel shows no settings, the priority used tells."""
        node = Rails(Congestion)
        node.every(2, **DROPS)
        node.run(120)
        assert node.found("config_mismatch")[0].subject.device == "mlx5_2"

    def test_drops_with_pause_are_congestion(self) -> None:
        """Flow control works, it only comes too late."""
        node = Rails(Congestion)
        node.every(2, **DROPS, tx_prio3_pause=10)
        node.run(120)
        assert node.found("config_mismatch") == []

    def test_drops_of_a_lossless_priority(self) -> None:
        """The data goes where it should: the settings are right."""
        node = Rails(Congestion)
        node.job = bridged(*map(use, range(8)))
        node.every(2, rx_discards_phy=500, out_of_sequence=500, rx_prio3_bytes=1e9)
        node.run(120)
        assert node.found("config_mismatch") == []

    def test_a_rail_that_is_never_marked(self) -> None:
        """Paused without notifications while the other rails have them (F37)."""
        node = Rails(Congestion)
        node.all(rx_prio3_pause_duration=0.004 * SECOND, rp_cnp_handled=300)
        node.every(4, rx_prio3_pause_duration=0.03 * SECOND, rp_cnp_handled=0)
        node.run(300)
        (finding,) = node.found("config_mismatch")
        assert (finding.severity, finding.part) == (Severity.INFO, Part.OBSERVER)
        assert finding.subject.rail == 4

    def test_no_marks_is_over_with_the_job(self) -> None:
        """Without traffic nothing says that the setting is still so."""
        node = Rails(Congestion)
        node.all(rx_prio3_pause_duration=0.004 * SECOND, rp_cnp_handled=300)
        node.every(4, rx_prio3_pause_duration=0.03 * SECOND, rp_cnp_handled=0)
        node.run(300)
        assert "config_mismatch" in node.kinds
        node.load = 0.0
        node.still()
        node.run(400)
        assert node.kinds == []

    def test_a_fabric_that_marks_nowhere(self) -> None:
        """Pause on all rails and no notifications is how some fabrics are built."""
        node = Rails(Congestion)
        node.all(rx_prio3_pause_duration=0.03 * SECOND)
        node.run(400)
        assert node.opened == []


NETWORK = (
    "np_cnp_sent", "rp_cnp_handled", "np_ecn_marked_roce_packets", "rx_prio3_pause",
    "rx_prio3_pause_duration", "port_xmit_wait", "rx_discards_phy", "out_of_sequence",
)  # fmt: skip


@settings(max_examples=15, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 7), st.sampled_from(NETWORK), st.integers(0, 10**7)),
        max_size=12,
    )
)
def test_the_network_is_never_a_node_s_fault(steps: list[tuple[int, str, int]]) -> None:
    """Whatever is heard of the network: nothing is asked of this node."""
    node = Rails(Congestion)
    node.run(150, 10.0)
    for rail, file, amount in steps:
        node.grow(node.rail(rail), **{file: amount})
        node.run(20, 10.0)
        assert all(finding.action is Action.NONE for finding in node.findings)
        assert "pause_origin" not in {finding.kind for finding in node.findings}


def test_a_driver_without_such_counters_is_blind() -> None:
    """InfiniBand has no pause: that is said, not taken for health."""
    files = {"port_xmit_wait": Directory.COUNTERS}
    node = Rails(Congestion, files=files, infos=RAILS)
    blind = {each.kind for each in node.detectors[0].blind(node.step())}
    assert blind == {"pause_origin", "pause_victim"}


@pytest.mark.parametrize(("rails", "kinds"), [(1, {"congestion"}), (2, {"congestion"}),
                                              (3, set())])  # fmt: skip
def test_too_few_rails_are_blind(rails: int, kinds: set[str]) -> None:
    """One of two cannot stand out, and that is said; pause is judged all the same."""
    node = Rails(Congestion, infos=ROCE[:rails])
    found = list(node.detectors[0].blind(node.step()))
    assert {each.kind for each in found} == kinds
    assert all(each.reason == f"{rails} rails: too few to compare" for each in found)


def test_nothing_is_measured_while_nothing_moves() -> None:
    """A quiet node costs a look at its traffic every ten seconds, no more."""
    node = Rails(Congestion)
    node.load = 0.0
    asked = 0
    counters = node.window.delta

    def counted(*arguments: object) -> object:
        nonlocal asked
        asked += 1
        return counters(*arguments)  # type: ignore[arg-type]

    node.window.delta = counted  # type: ignore[assignment,method-assign]
    node.run(120)
    assert asked <= 2 * len(node.ids) * 12
