"""Who holds the network up: the origin of pause, its onset, and its victims."""

from __future__ import annotations

import pytest

from fabricmon.catalogue import Directory
from fabricmon.detect.congestion import Congestion
from fabricmon.detect.protocol import KnowsPause
from fabricmon.model import Action, Part, Severity
from tests.rails import Rails

SECOND = 1e6  # microseconds
STORM = {"tx_prio3_pause": 10_000, "tx_prio3_pause_duration": 0.8 * SECOND}


def onset(node: Rails, rail: int) -> float | None:
    """Return what is exported of a rail."""
    (detector,) = node.detectors
    assert isinstance(detector, KnowsPause)
    return detector.pause_onset(node.rail(rail))


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
        """Intel's driver counts frames: each stands for a longest pause."""
        files = {
            "tx_priority_3_xoff.nic": Directory.ETHTOOL,
            "rx_priority_3_xoff.nic": Directory.ETHTOOL,
        }
        node = Rails(Congestion, files=files, driver="irdma")
        node.every(2, **{"tx_priority_3_xoff.nic": 6000})
        node.run(60)
        (finding,) = node.found("pause_origin")
        assert finding.evidence[0].signal == "tx_priority_3_xoff.nic"
        assert onset(node, 2) is not None

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

    def test_the_origin_is_no_victim(self) -> None:
        """Nor does it suffer from congestion, whatever it counts beside."""
        node = Rails(Congestion)
        node.every(3, **STORM, np_cnp_sent=9000, outbound_pci_stalled_wr_events=1)
        node.run(60)
        assert {finding.kind for finding in node.findings} == {"pause_origin"}
