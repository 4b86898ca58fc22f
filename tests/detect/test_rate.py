"""Slow links: what is expected of a link, and what a rate can mean."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from fabricmon.config import Config
from fabricmon.detect.rate import LinkRate
from fabricmon.model import (
    Action,
    MissingDevice,
    Role,
    Severity,
)
from fabricmon.parse.words import PhysState, PortState, Rate
from tests.node import RAILS, Node, pid
from tests.views import NDR, boot, port

HDR = Rate(200.0, 4, "HDR")
HALF = Rate(200.0, 2, "NDR")
UNKNOWN = Rate(10.0, 4, "SDR")
ONE_LANE = Rate(2.5, 1, "SDR")


def node(**options: Any) -> Node:
    """Return a node whose links ran at their full rate for a while."""
    made = Node(LinkRate, files=(), **options)
    made.run(30)
    return made


def slow(made: Node, rail: int = 3, rate: Rate = HALF) -> None:
    """Let a link come up slower than it was."""
    made.link(PortState.ACTIVE, rate=rate, where=made.rail(rail))


class TestExpectation:
    def test_its_own_best(self) -> None:
        """A link that was faster before is degraded, whatever the others have."""
        made = node(infos=RAILS[:1])
        slow(made, 0)
        made.run(10)
        finding = made.open_of("rate_degraded").finding
        assert finding.severity is Severity.CRITICAL
        assert finding.action is Action.DRAIN_AFTER_JOB
        evidence = {item.signal: item for item in finding.evidence}
        assert (evidence["rate"].value, evidence["rate"].threshold) == (200, 400)
        assert evidence["width"].value == 2
        assert evidence["speed"].value == "NDR"
        assert evidence["expected_by"].value == "its own best"
        assert finding.summary.startswith("mlx5_0/1 runs at 200 of 400 Gb/s since ")

    def test_evidence_is_that_of_the_slow_link(self) -> None:
        """When the link goes down, what was measured is still told."""
        made = node(infos=RAILS[:1])
        slow(made, 0)
        made.run(10)
        before = made.open_of("rate_degraded").finding.evidence
        made.link(PortState.DOWN, PhysState.POLLING, Rate(), where=made.rail(0))
        made.run(5)
        assert made.open_of("rate_degraded").finding.evidence == before

    def test_its_peers(self) -> None:
        """A link that was slow from the start is compared with its equals (F11)."""
        made = Node(LinkRate, files=(), begin=False)
        slow(made)
        made.run(30)
        finding = made.open_of("rate_degraded").finding
        assert finding.subject.device == "mlx5_3"
        assert finding.evidence[3].value == "its peers"
        assert finding.confidence < 1

    def test_configuration(self) -> None:
        """What is configured counts without any history or peer."""
        wanted = replace(RAILS[0], expected_rate_gbps=400.0, is_rate_configured=True)
        made = Node(LinkRate, files=(), infos=(wanted,), begin=False)
        slow(made, 0)
        made.run(30)
        assert made.open_of("rate_degraded").finding.evidence[3].value == "configured"

    def test_expectation_of_its_peers(self) -> None:
        """What equal ports run at is not called configured."""
        usual = replace(RAILS[0], expected_rate_gbps=400.0)
        made = Node(LinkRate, files=(), infos=(usual,), begin=False)
        slow(made, 0)
        made.run(30)
        assert made.open_of("rate_degraded").finding.evidence[3].value == "its peers"

    def test_configuration_wins_over_history(self) -> None:
        """A link that is meant to be slow now is not held against its past."""
        infos = (replace(RAILS[0], expected_rate_gbps=200.0),)
        made = node(infos=infos)
        slow(made, 0)
        made.run(30)
        assert made.changes == []

    def test_nothing_is_guessed(self) -> None:
        """One port that was never faster may be right as it is."""
        made = Node(LinkRate, files=(), infos=RAILS[:1], begin=False)
        slow(made, 0)
        made.run(600)
        assert made.changes == []

    def test_half_of_the_peers_is_no_majority(self) -> None:
        """Four fast and four slow rails are a plan, not a fault."""
        made = Node(LinkRate, files=(), begin=False)
        for rail in range(4):
            slow(made, rail)
        made.run(60)
        assert made.changes == []

    def test_two_ports_are_no_majority(self) -> None:
        """With one peer nobody knows who is right."""
        made = Node(LinkRate, files=(), infos=RAILS[:2], begin=False)
        slow(made, 0)
        made.run(60)
        assert made.changes == []

    @pytest.mark.parametrize(
        "other", [{"role": Role.STORAGE}, {"board_id": "MT_0000000223"}]
    )
    def test_unequal_ports_are_not_compared(self, other: dict[str, Any]) -> None:
        """Storage is not held against compute, nor one card against another (N12)."""
        odd = replace(RAILS[7], **other)
        made = Node(LinkRate, files=(), infos=(*RAILS[:7], odd), begin=False)
        slow(made, 7)
        made.run(60)
        assert made.changes == []

    def test_a_fabric_that_was_recabled_over_a_boot(self) -> None:
        """Every link has the new rate after a boot: that is how it is now."""
        made = node()
        made.restart()
        made.boot = replace(boot(made.now, 3600.0), boot_id="boot-2")
        for rail in range(8):
            slow(made, rail, HDR)
        made.run(60)
        assert made.changes == []

    def test_one_slow_link_after_a_boot(self) -> None:
        """The others kept their rate over the boot: this one lost its own (F11)."""
        made = node()
        made.restart()
        made.boot = replace(boot(made.now, 3600.0), boot_id="boot-2")
        slow(made, 3)
        made.run(60)
        assert made.open_of("rate_degraded").finding.subject.device == "mlx5_3"

    def test_all_links_slow_in_the_same_boot(self) -> None:
        """Within a boot a rate that all ports lose is still lost."""
        made = node()
        for rail in range(8):
            slow(made, rail)
        made.run(60)
        assert made.kinds == ["rate_degraded"] * 8


class TestSamples:
    def test_one_odd_sample_is_nothing(self) -> None:
        """Rates are odd while a link trains."""
        made = node()
        slow(made)
        made.run(5)
        slow(made, 3, NDR)
        made.run(60)
        assert made.changes == []

    def test_a_rate_read_while_down_is_nothing(self) -> None:
        """A port that is down shows a default, not a measurement."""
        made = node()
        made.link(PortState.DOWN, PhysState.POLLING, Rate(10.0, 4, "SDR"), pid(3))
        made.run(60)
        assert made.changes == []

    def test_partial_samples_do_not_count(self) -> None:
        """A sample of state alone repeats the rate that was read before."""
        made = node()
        slow(made)
        made.run(5)
        each = made.of(pid(3))
        assert each.status is not None
        each.status = replace(each.status, complete=False)
        made.run(60)
        assert made.changes == []

    def test_it_ends_with_the_full_rate(self) -> None:
        """A link that trained anew at its full rate is sound."""
        made = node()
        slow(made)
        made.run(60)
        slow(made, 3, NDR)
        (change,) = made.run(5)
        assert change.state == "resolved"

    def test_an_outage_proves_nothing(self) -> None:
        """A slow link that is down for a moment is the same incident after it."""
        made = node()
        slow(made)
        made.run(60)
        made.link(PortState.DOWN, PhysState.POLLING, HALF, pid(3))
        made.run(20)
        slow(made)
        made.run(20)
        assert len(made.changes) == 1

    def test_a_device_that_is_gone_has_no_rate(self) -> None:
        """The missing device is the story."""
        made = node()
        slow(made)
        made.run(60)
        made.missing = (MissingDevice("mlx5_3", made.now, 1, (RAILS[3],)),)
        made.link(None, None, where=pid(3))
        made.run(5)
        assert made.kinds == []

    def test_virtual_functions_have_no_rate_of_their_own(self) -> None:
        """A virtual function shows what it is allowed."""
        made = node(infos=(port("mlx5_8", is_vf=True),))
        slow(made, 0)
        made.run(60)
        assert made.changes == []

    def test_an_unreadable_rate_is_nothing(self) -> None:
        """EINVAL is no rate, so it is not slow."""
        made = node()
        slow(made, 3, Rate(None, None, None))
        each = made.of(pid(3))
        assert each.status is not None
        each.status = replace(each.status, rate=Rate())
        made.run(60)
        assert made.changes == []


class TestUnknownSpeed:
    def test_a_kernel_that_knows_no_speed(self) -> None:
        """Every port says SDR: the speed is not known, nothing is degraded."""
        infos = tuple(replace(info, expected_rate_gbps=400.0) for info in RAILS)
        made = Node(LinkRate, files=(), infos=infos, begin=False)
        for rail in range(8):
            slow(made, rail, UNKNOWN)
        made.run(60)
        assert made.changes == []
        (blind,) = made.detectors[0].blind(made.step())
        assert "kernel" in blind.reason

    def test_lanes_are_still_compared(self) -> None:
        """Of ports that all say SDR one has lost three lanes."""
        made = Node(LinkRate, files=(), begin=False)
        for rail in range(8):
            slow(made, rail, ONE_LANE if rail == 3 else UNKNOWN)
        made.run(60)
        finding = made.open_of("rate_degraded").finding
        assert (finding.evidence[0].value, finding.evidence[0].unit) == (1, "lanes")

    def test_one_port_that_says_sdr(self) -> None:
        """The others show that the kernel knows the speed: this link is slow."""
        made = node()
        slow(made, 3, UNKNOWN)
        made.run(60)
        finding = made.open_of("rate_degraded").finding
        assert finding.evidence[0].value == 10

    def test_a_lone_port_that_knew_better(self) -> None:
        """The kernel printed its speed before, so SDR is what it runs at now."""
        made = node(infos=RAILS[:1])
        slow(made, 0, UNKNOWN)
        made.run(60)
        finding = made.open_of("rate_degraded").finding
        assert (finding.evidence[0].value, finding.evidence[0].unit) == (10, "Gb/s")

    def test_no_rate_at_all_is_admitted(self) -> None:
        """Where every rate is refused the node says so."""
        made = node(infos=RAILS[:1])
        each = made.of()
        assert each.status is not None
        each.status = replace(each.status, rate=Rate())
        (blind,) = made.detectors[0].blind(made.step())
        assert blind.reason == "no rate can be read"


class TestJudgement:
    def test_a_bond_carries_on(self) -> None:
        """A bond that lost a member is degraded, no card is missing (N11)."""
        made = node(infos=(port("mlx5_bond_0", role=Role.MANAGEMENT),))
        slow(made, 0)
        made.run(30)
        finding = made.open_of("rate_degraded").finding
        assert (finding.severity, finding.action) == (Severity.INFO, Action.NONE)
        assert "bond degraded" in finding.summary

    def test_a_bond_that_is_a_rail(self) -> None:
        """A job waits for it: it is told aloud, and no card is missing."""
        made = node(infos=(port("mlx5_bond_0", rail=0), *RAILS[:3]))
        slow(made, 0)
        made.run(30)
        finding = made.open_of("rate_degraded").finding
        assert (finding.severity, finding.action) == (Severity.WARNING, Action.NONE)

    def test_management_is_not_the_fabric(self) -> None:
        """A slow management port is a ticket."""
        made = node(infos=(port("mlx5_8", role=Role.MANAGEMENT),))
        slow(made, 0)
        made.run(30)
        finding = made.open_of("rate_degraded").finding
        assert (finding.severity, finding.action) == (Severity.WARNING, Action.INSPECT)


class TestRestart:
    def test_the_best_rate_is_remembered(self) -> None:
        """A link that came up slow while the agent was away is found."""
        made = node(infos=RAILS[:1])
        made.restart()
        slow(made, 0)
        made.run(30)
        assert made.kinds == ["rate_degraded"]

    def test_an_open_finding_goes_on(self) -> None:
        """A restart neither forgets a slow link nor tells of it again."""
        made = node()
        slow(made)
        made.run(30)
        told = made.open_of("rate_degraded")
        made.restart()
        assert made.run(60) == []
        again = made.open_of("rate_degraded")
        assert (again.id, again.finding.onset) == (told.id, told.finding.onset)

    def test_bytes_of_others_are_refused(self) -> None:
        """What cannot be read is an error, not a guess."""
        with pytest.raises(ValueError, match="SavedRates"):
            LinkRate(Config()).restore(b"\x01", 0.0)
