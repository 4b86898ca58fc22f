"""Congestion that most rails share is told once, against their own past in a job."""

from __future__ import annotations

import pytest

from fabricmon.detect.congestion import Congestion
from fabricmon.model import Action, Part, Severity
from tests.rails import ROCE, Rails

SECOND = 1e6  # microseconds
TICKS = 400e9 / 64  # of transmit wait in a second without credit


class TestMostRails:
    """Against their own past in this job, where no rail stands out."""

    @pytest.mark.parametrize(
        ("usual", "now", "part"),
        [
            ({"np_cnp_sent": 100}, {"np_cnp_sent": 40_000}, Part.OBSERVER),
            ({"rp_cnp_handled": 100}, {"rp_cnp_handled": 40_000}, Part.VICTIM),
            ({}, {"rx_prio3_pause_duration": 0.2 * SECOND}, Part.VICTIM),
            ({}, {"port_xmit_wait": 0.6 * TICKS}, Part.VICTIM),
        ],
    )
    def test_all_at_once(
        self, usual: dict[str, float], now: dict[str, float], part: Part
    ) -> None:
        """One finding, information: the network is loaded, and nobody is to blame."""
        node = Rails(Congestion)
        node.all(**usual)
        node.run(300)
        node.all(**now)
        node.run(180)
        (finding,) = node.findings
        assert (finding.kind, finding.severity) == ("congestion", Severity.INFO)
        assert (finding.part, finding.action) == (part, Action.NONE)
        assert "and 7 more" in finding.summary
        shown = {item.signal: item.value for item in finding.evidence}
        assert str(shown["ports_alike"]).count("mlx5_") == 7
        assert next(iter(now)) in shown

    @pytest.mark.parametrize("rails", [1, 2])
    def test_of_a_node_with_few_rails(self, rails: int) -> None:
        """What cannot be compared with other rails has a past all the same."""
        node = Rails(Congestion, infos=ROCE[:rails])
        node.all(rp_cnp_handled=100)
        node.run(300)
        node.all(rp_cnp_handled=50_000)
        node.run(180)
        assert node.opened == ["congestion"]

    def test_one_that_comes_and_goes(self) -> None:
        """Told at one port as long as that shows it, whatever another one does."""
        node = Rails(Congestion)
        node.all(np_cnp_sent=100)
        node.run(300)
        node.all(np_cnp_sent=40_000)
        for _ in range(3):
            node.every(0, np_cnp_sent=40_000)
            node.run(180)
            node.every(0, np_cnp_sent=100)
            node.run(180)
        assert node.opened == ["congestion", "congestion"]

    def test_bursts(self) -> None:
        """Of a minute, alike on all rails, are healthy (N23)."""
        node = Rails(Congestion)
        node.all(np_cnp_sent=100)
        node.run(300)
        for _ in range(5):
            node.all(np_cnp_sent=40_000)
            node.run(60)
            node.all(np_cnp_sent=100)
            node.run(60)
        assert node.opened == []

    def test_more_load(self) -> None:
        """Three times the load explains five times and more of it (4.5, N36)."""
        node = Rails(Congestion)
        node.load = 0.1
        node.all(rp_cnp_handled=1000, rx_prio3_pause_duration=0.01 * SECOND)
        node.run(300)
        node.load = 0.3
        node.all(rp_cnp_handled=10_000, rx_prio3_pause_duration=0.1 * SECOND)
        node.run(300)
        assert node.opened == []

    def test_a_benchmark_after_a_quiet_time(self) -> None:
        """At the line rate ports wait for themselves (N36)."""
        node = Rails(Congestion)
        node.run(300)
        node.load = 0.95
        node.all(port_xmit_wait=0.4 * TICKS, rx_prio3_pause_duration=0.2 * SECOND)
        node.run(300)
        assert node.opened == []

    def test_another_job(self) -> None:
        """What one job does from its start is usual for it, whatever was before."""
        node = Rails(Congestion)
        node.all(np_cnp_sent=100)
        node.run(300)
        node.load = 0.0
        node.still()
        node.run(120)
        node.load = 0.3
        node.all(np_cnp_sent=5000)
        node.run(400)
        assert node.opened == []

    def test_what_stays_becomes_usual(self) -> None:
        """After an hour nobody needs to be told any more (N22)."""
        node = Rails(Congestion)
        node.run(300, 10.0)
        node.all(rx_prio3_pause_duration=0.2 * SECOND)
        node.run(180, 10.0)
        assert node.kinds == ["congestion"]
        node.run(3600, 10.0)
        assert node.kinds == []

    def test_a_slow_host(self) -> None:
        """Its own pause makes the network notify all its rails: no congestion."""
        node = Rails(Congestion)
        node.run(300)
        node.all(np_cnp_sent=20_000, tx_prio3_pause_duration=0.2 * SECOND,
                 outbound_pci_stalled_wr_events=1)  # fmt: skip
        node.run(300)
        assert {finding.kind for finding in node.findings} == {"pause_origin"}

    @pytest.mark.parametrize(("rails", "found"), [(4, 4), (5, 1)])
    def test_half_of_the_rails(self, rails: int, found: int) -> None:
        """Half of them stand out, each for itself; of most it is told once."""
        node = Rails(Congestion)
        node.all(np_cnp_sent=100)
        node.run(300)
        for rail in range(rails):
            node.every(rail, np_cnp_sent=9000)
        node.run(180)
        assert len(node.findings) == found
