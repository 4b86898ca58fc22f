"""Who holds the network up: the origin of pause, its onset, and its victims."""

from __future__ import annotations

import pytest

from fabricmon.catalogue import Directory
from fabricmon.detect.congestion import Congestion
from fabricmon.detect.protocol import KnowsPause
from fabricmon.model import Action, Part, Severity
from tests.rails import MLX5, Rails

SECOND = 1e6  # microseconds
STORM = {"tx_prio3_pause": 10_000, "tx_prio3_pause_duration": 0.8 * SECOND}


def onset(node: Rails, rail: int) -> float | None:
    """Return what is exported of a rail."""
    (detector,) = node.detectors
    assert isinstance(detector, KnowsPause)
    return detector.pause_onset(node.rail(rail))


def intel(rate: float, bytes_received: float) -> Rails:
    """Return rails that Intel's driver counts; one sent pause for a minute."""
    files = {
        "ip4InOctets": Directory.HW_COUNTERS,
        "tx_priority_3_xoff.nic": Directory.ETHTOOL,
        "rx_priority_3_xoff.nic": Directory.ETHTOOL,
    }
    node = Rails(Congestion, files=files, driver="irdma")
    node.all(ip4InOctets=15e9)
    node.every(2, ip4InOctets=bytes_received, **{"tx_priority_3_xoff.nic": rate})
    node.run(90)
    return node


class TestOrigin:
    """``pause_origin``: this host does not take what arrives."""

    def test_a_storm_is_found_at_once(self) -> None:
        """Critical within 15 s, with the stall that marks it; drained now."""
        node = Rails(Congestion)
        node.run(60)
        node.every(2, **STORM, outbound_pci_stalled_wr_events=1)
        node.run(15)
        (finding,) = node.found("pause_origin")
        assert (finding.severity, finding.part) == (Severity.CRITICAL, Part.CULPRIT)
        assert finding.action is Action.DRAIN_NOW
        assert finding.subject.device == "mlx5_2"
        names = [item.signal for item in finding.evidence]
        assert names[0] == "tx_prio3_pause_duration"
        assert "outbound_pci_stalled_wr_events" in names

    def test_a_storm_that_goes_on(self) -> None:
        """After minutes it is still to be drained now."""
        node = Rails(Congestion)
        node.every(2, **STORM, outbound_pci_stalled_wr_events=1)
        node.run(300)
        (finding,) = node.found("pause_origin")
        assert finding.action is Action.DRAIN_NOW

    def test_the_storm_that_the_device_tells_of(self) -> None:
        """Its own warning is a mark, whatever else is counted."""
        node = Rails(Congestion)
        node.every(2, **STORM)
        node.run(10)
        node.grow(node.rail(2), tx_pause_storm_warning_events=1)
        node.run(5)
        (finding,) = node.found("pause_origin")
        assert finding.severity is Severity.CRITICAL

    def test_a_stalling_host_at_a_hundredth(self) -> None:
        """A warning: the host holds the device up for a part of the time."""
        node = Rails(Congestion)
        node.every(2, tx_prio3_pause_duration=0.03 * SECOND)
        node.put(node.rail(2), outbound_pci_stalled_wr=60)
        node.run(60)
        (finding,) = node.found("pause_origin")
        assert (finding.severity, finding.action) == (Severity.WARNING, Action.INSPECT)

    def test_without_a_sign_of_a_stall(self) -> None:
        """A hundredth is nothing then, and a tenth a warning without advice."""
        node = Rails(Congestion)
        node.every(2, tx_prio3_pause_duration=0.03 * SECOND)
        node.run(60)
        assert node.opened == []
        node.every(2, tx_prio3_pause_duration=0.3 * SECOND)
        node.run(60)
        (finding,) = node.found("pause_origin")
        assert (finding.severity, finding.action) == (Severity.WARNING, Action.NONE)

    def test_nothing_comes_in_while_the_rails_are_busy(self) -> None:
        """A port that is stuck receives nothing: that is a sign too."""
        node = Rails(Congestion)
        node.load = 0.0
        node.all(port_rcv_data=1e9)
        node.every(2, port_rcv_data=0, tx_prio3_pause_duration=0.3 * SECOND)
        node.run(60)
        (finding,) = node.found("pause_origin")
        assert finding.severity is Severity.CRITICAL
        assert "received_ratio" in {item.signal for item in finding.evidence}

    def test_pause_in_answer_to_pause(self) -> None:
        """Who receives as much as it sends did not begin."""
        node = Rails(Congestion)
        node.every(2, **STORM, rx_prio3_pause_duration=0.7 * SECOND)
        node.run(60)
        assert node.found("pause_origin") == []

    @pytest.mark.parametrize("received", [0.14, 0.16, 0.5])
    def test_a_storm_that_is_paused_itself(self, received: float) -> None:
        """Its own marks tell, though the fabric it holds up pauses it in turn."""
        node = Rails(Congestion)
        node.run(60)
        node.every(2, tx_prio3_pause_duration=0.6 * SECOND,
                   rx_prio3_pause_duration=received * SECOND,
                   tx_pause_storm_warning_events=1,
                   outbound_pci_stalled_wr_events=1)  # fmt: skip
        node.run(120)
        (finding,) = node.findings
        assert (finding.kind, finding.subject.rail) == ("pause_origin", 2)
        assert finding.severity is Severity.CRITICAL
        assert "rx_prio3_pause_duration" in {item.signal for item in finding.evidence}

    @pytest.mark.parametrize("sent", [0.15, 0.17])
    def test_a_stalling_host_where_pause_is_usual(self, sent: float) -> None:
        """A fabric that lives with pause on all rails hides no host that stalls."""
        node = Rails(Congestion)
        node.all(rx_prio3_pause_duration=0.04 * SECOND)
        node.run(300)
        node.every(2, tx_prio3_pause_duration=sent * SECOND,
                   outbound_pci_stalled_wr_events=1)  # fmt: skip
        node.run(120)
        (finding,) = node.found("pause_origin")
        assert finding.severity is Severity.CRITICAL

    def test_a_stall_of_one_that_is_paused_more_than_it_pauses(self) -> None:
        """Its host stalls as well, but the network holds it up: no origin."""
        node = Rails(Congestion)
        node.every(2, tx_prio3_pause_duration=0.3 * SECOND,
                   rx_prio3_pause_duration=0.5 * SECOND,
                   outbound_pci_stalled_wr_events=1)  # fmt: skip
        node.run(120)
        assert node.found("pause_origin") == []

    def test_a_full_buffer_alone_needs_the_excess(self) -> None:
        """Line rate fills it too: it does not outweigh the pause that is received."""
        files = MLX5 | {"rx_buffer_passed_thres_phy": Directory.ETHTOOL}
        node = Rails(Congestion, files=files)
        node.every(2, tx_prio3_pause_duration=0.6 * SECOND,
                   rx_prio3_pause_duration=0.3 * SECOND,
                   rx_buffer_passed_thres_phy=100)  # fmt: skip
        node.run(120)
        assert node.found("pause_origin") == []

    def test_short_bursts_are_healthy(self) -> None:
        """Below a thousandth of the time (``faults``, 3)."""
        node = Rails(Congestion)
        node.all(tx_prio3_pause=5, tx_prio3_pause_duration=0.0008 * SECOND,
                 outbound_pci_stalled_wr_events=0.05)  # fmt: skip
        node.run(180)
        assert node.opened == []
        assert onset(node, 2) is None

    def test_all_rails_of_a_node(self) -> None:
        """The host is slow, no device: one warning (F23, not eight F34)."""
        node = Rails(Congestion)
        node.all(**STORM, outbound_pci_stalled_wr_events=1)
        node.run(60)
        (finding,) = node.found("pause_origin")
        assert (finding.severity, finding.action) == (Severity.WARNING, Action.INSPECT)
        assert "8 rails" in finding.summary

    def test_frames_where_no_times_are_counted(self) -> None:
        """Intel's driver counts frames: that is at most so long, and nothing comes in."""
        node = intel(6000, bytes_received=0)
        (finding,) = node.found("pause_origin")
        names = [item.signal for item in finding.evidence]
        assert names[0] == "tx_priority_3_xoff.nic"
        assert "received_ratio" in names
        assert "at most" in finding.summary
        assert finding.severity is Severity.CRITICAL
        assert finding.action is Action.DRAIN_AFTER_JOB
        assert onset(node, 2) is not None

    def test_few_frames_of_unknown_length(self) -> None:
        """What may be a hundredth of what it is at most is nothing to drain for."""
        (finding,) = intel(1500, bytes_received=0).found("pause_origin")
        assert (finding.severity, finding.action) == (Severity.WARNING, Action.INSPECT)

    @pytest.mark.parametrize("rate", [1500, 6000, 12_000])
    def test_frames_alone_blame_nobody(self, rate: int) -> None:
        """Each may have been over at once: without a sign of a stall, no origin."""
        node = intel(rate, bytes_received=15e9)
        assert node.findings == []

    def test_over_after_the_storm(self) -> None:
        """It resolves, and its onset is no longer exported."""
        node = Rails(Congestion)
        node.every(2, **STORM, outbound_pci_stalled_wr_events=1)
        node.run(60)
        node.still()
        node.run(180)
        assert node.kinds == []
        assert onset(node, 2) is None


class TestOnset:
    """The first to pause is the origin: the agent exports since when."""

    @pytest.mark.parametrize("each", [5.0, 10.0])
    def test_within_a_poll(self, each: float) -> None:
        """A step that was paused for less than its length began in it."""
        node = Rails(Congestion)
        node.run(60, each)
        began = node.wall
        node.every(1, **STORM)
        node.run(40, each)
        found = onset(node, 1)
        assert found is not None
        assert abs(found - began) <= 0.2 * each

    def test_the_origin_is_the_first(self) -> None:
        """Of two that pause, the one that began before has the smaller onset."""
        node = Rails(Congestion)
        node.every(4, **STORM)
        node.run(20)
        node.every(1, **STORM)
        node.run(20)
        first, second = onset(node, 4), onset(node, 1)
        assert first is not None
        assert second is not None
        assert first < second


class TestVictim:
    """``pause_victim``: the network holds it up, it holds nobody."""

    def test_held_for_most_of_the_time(self) -> None:
        """Information, victim, no advice (F34 and F35 from the others' side)."""
        node = Rails(Congestion)
        node.run(60)
        node.every(3, rx_prio3_pause=9000, rx_prio3_pause_duration=0.7 * SECOND)
        node.run(40)
        (finding,) = node.found("pause_victim")
        assert (finding.severity, finding.part) == (Severity.INFO, Part.VICTIM)
        assert finding.action is Action.NONE

    @pytest.mark.parametrize("stalls", [0, 1])
    def test_that_pauses_a_little_itself(self, stalls: int) -> None:
        """A fiftieth of pause sent does not hide who is held up, stalls or not."""
        node = Rails(Congestion)
        node.run(60)
        node.every(3, rx_prio3_pause_duration=0.6 * SECOND,
                   tx_prio3_pause_duration=0.02 * SECOND,
                   outbound_pci_stalled_wr_events=stalls)  # fmt: skip
        node.run(120)
        (finding,) = node.found("pause_victim")
        assert (finding.severity, finding.part) == (Severity.INFO, Part.VICTIM)
        shown = {item.signal: item.value for item in finding.evidence}
        assert shown["pause_sent_ratio"] == pytest.approx(0.02, rel=0.05)
        assert "local_evidence" not in shown
        assert node.found("pause_origin") == []

    def test_frames_alone_are_at_most(self) -> None:
        """Where no times are counted nobody says for how long it was held."""
        files = {
            "tx_priority_3_xoff.nic": Directory.ETHTOOL,
            "rx_priority_3_xoff.nic": Directory.ETHTOOL,
        }
        node = Rails(Congestion, files=files, driver="irdma")
        node.run(60)
        node.every(3, **{"rx_priority_3_xoff.nic": 6000})
        node.run(60)
        (finding,) = node.found("pause_victim")
        assert "at most" in finding.summary

    def test_the_origin_is_no_victim(self) -> None:
        """Nor does it suffer from congestion, whatever it counts beside."""
        node = Rails(Congestion)
        node.every(3, **STORM, np_cnp_sent=9000, outbound_pci_stalled_wr_events=1)
        node.run(60)
        assert {finding.kind for finding in node.findings} == {"pause_origin"}
