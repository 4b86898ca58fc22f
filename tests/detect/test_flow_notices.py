"""Congestion control that is off on a rail, or on all of a node."""

from __future__ import annotations

from typing import Any

import pytest

from fabricmon.catalogue import Directory
from fabricmon.detect.congestion import Congestion
from fabricmon.model import Action, Part, Severity, Subject
from tests.rails import MLX5, Rails

FILES = {**MLX5, "rp_cnp_ignored": Directory.HW_COUNTERS}


def node_of(**options: Any) -> Rails:
    """Return a node whose driver counts notifications that are ignored."""
    return Rails(Congestion, files=FILES, **options)


IGNORING = {"rp_cnp_ignored": 20_000.0, "rp_cnp_handled": 0.0}
SILENT = {"np_ecn_marked_roce_packets": 300_000.0, "np_cnp_sent": 0.0}
HEALTHY = {
    "rp_cnp_handled": 500.0, "np_cnp_sent": 500.0, "np_ecn_marked_roce_packets": 5e4,
}  # fmt: skip


@pytest.mark.parametrize(
    ("rates", "counter"),
    [(IGNORING, "rp_cnp_ignored"), (SILENT, "np_ecn_marked_roce_packets")],
)
class TestBothSides:
    """The sender's side, and the receiver's."""

    def test_one_rail_of_eight(self, rates: dict[str, float], counter: str) -> None:
        """The others answer: a setting of this rail, with nothing to drain."""
        node = node_of()
        node.all(**HEALTHY)
        node.run(200)
        node.every(2, **rates)
        node.run(400)
        (finding,) = node.found("config_mismatch")
        assert finding.subject.device == "mlx5_2"
        assert (finding.severity, finding.action) == (Severity.WARNING, Action.NONE)
        assert finding.evidence[0].signal == counter
        assert finding.evidence[1].value == 0

    def test_all_rails(self, rates: dict[str, float], counter: str) -> None:
        """Nobody answers: it may be meant so, and is told once, of the node."""
        node = node_of()
        node.all(**rates)
        node.run(400)
        (finding,) = node.found("config_mismatch")
        assert finding.subject == Subject()
        assert finding.severity is Severity.INFO
        assert finding.part is not Part.OBSERVER  # that is a leaf that does not mark
        assert finding.evidence[0].signal == counter

    def test_not_before_it_lasted(self, rates: dict[str, float], counter: str) -> None:
        """A phase of a job says nothing."""
        node = node_of()
        node.all(**HEALTHY)
        node.every(2, **rates)
        node.run(200)
        node.every(2, **{counter: 0.0} | HEALTHY)
        node.run(300)
        assert "config_mismatch" not in node.opened

    def test_over_when_it_answers(self, rates: dict[str, float], counter: str) -> None:
        """One answer proves that it is on."""
        node = node_of()
        node.all(**rates)
        node.run(400)
        node.all(**{counter: 0.0} | HEALTHY)
        node.run(120)
        assert node.found("config_mismatch") == []


def test_little_is_ignored() -> None:
    """Notifications for queue pairs that are gone come to nobody."""
    node = node_of()
    node.all(**HEALTHY)
    node.every(2, rp_cnp_ignored=400)
    node.every(3, rp_cnp_ignored=50, rp_cnp_handled=0)
    node.run(500)
    assert node.found("config_mismatch") == []


def test_a_driver_that_does_not_count_answers() -> None:
    """Marks alone say nothing where nobody counts the notifications."""
    files = {name: where for name, where in FILES.items() if name != "np_cnp_sent"}
    node = Rails(Congestion, files=files)
    node.every(2, np_ecn_marked_roce_packets=300_000)
    node.run(500)
    assert node.found("config_mismatch") == []


def test_a_rail_without_traffic_again() -> None:
    """Nothing is asked any more, so nothing is known of its setting."""
    node = node_of()
    node.all(**IGNORING)
    node.run(400)
    assert node.found("config_mismatch")
    node.still()
    node.run(400)
    assert node.found("config_mismatch") == []
