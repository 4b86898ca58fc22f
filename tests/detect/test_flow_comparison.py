"""Settings of flow control that do not agree, between the rails or within one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from fabricmon.detect.congestion import Congestion
from fabricmon.model import (
    NO_CLASS,
    Action,
    Finding,
    HostPath,
    JobView,
    Part,
    PortInfo,
    PriorityUse,
    Severity,
    Subject,
)
from tests.rails import ROCE, Rails

DSCP_26_TO_3 = tuple(3 if dscp == 26 else 0 for dscp in range(64))
DSCP_26_TO_4 = tuple(4 if dscp == 26 else 0 for dscp in range(64))
GOOD: dict[str, Any] = {
    "pfc_enabled": (3,),
    "ecn_enabled": (3,),
    "dscp_to_priority": DSCP_26_TO_3,
    "traffic_class": NO_CLASS,
    "default_tos": 106,
}


def told(
    *others: dict[str, Any], rails: int = 8, infos: tuple[PortInfo, ...] = ROCE
) -> list[Finding]:
    """Return what is told where the first rails have these settings, others good."""
    parts = [*others, *[{}] * (rails - len(others))]
    uses = [PriorityUse(f"eth{n}", **GOOD | part) for n, part in enumerate(parts)]
    node = Rails(Congestion, infos=infos[:rails])
    node.job = JobView(host_path=HostPath(0.0, priorities=tuple(uses)))
    node.run(60)
    return node.found("config_mismatch")


class TestBetweenRails:
    @pytest.mark.parametrize(
        "part",
        [
            {"pfc_enabled": ()},
            {"ecn_enabled": ()},
            {"dscp_to_priority": ()},
            {"traffic_class": 106},
            {"default_tos": 0},
        ],
    )
    def test_one_of_eight(self, part: dict[str, Any]) -> None:
        """Each setting that is another on one rail names that rail."""
        (finding,) = told(part)
        assert finding.subject.device == "mlx5_0"
        assert finding.severity is Severity.WARNING
        assert finding.evidence[0].threshold is not None

    @pytest.mark.parametrize("name", [name for name in GOOD if name != "netdev"])
    def test_what_cannot_be_read_is_not_different(self, name: str) -> None:
        """A rail that nobody could ask says nothing, nor do seven."""
        assert told({name: None}) == []
        assert told(*[{name: None}] * 7) == []

    def test_one_that_lost_its_traffic_class(self) -> None:
        """The driver of one rail enforces none, those of the others do."""
        (finding,) = told({}, *[{"traffic_class": 106}] * 7)
        assert finding.subject.device == "mlx5_0"
        assert finding.evidence[0].value == "none"

    @pytest.mark.parametrize(("rails", "off"), [(8, 4), (4, 2)])
    def test_half_of_them(self, rails: int, off: int) -> None:
        """No side has most: the node is told of, no port is, and nothing is advised."""
        (finding,) = told(*[{"pfc_enabled": ()}] * off, rails=rails)
        assert finding.subject == Subject()
        assert (finding.severity, finding.action) == (Severity.WARNING, Action.NONE)
        assert {item.value for item in finding.evidence} == {"none", "3"}
        assert "mlx5_0/1" in finding.summary
        assert f"mlx5_{off}/1" in finding.summary

    def test_three_that_all_differ(self) -> None:
        """With a value each there is no usual one."""
        (finding,) = told({"pfc_enabled": ()}, {"pfc_enabled": (3, 4)}, rails=3)
        assert finding.subject == Subject()
        assert len(finding.evidence) == 3

    def test_two_rails(self) -> None:
        """They may be two networks on purpose: information, of the node."""
        (finding,) = told({"pfc_enabled": ()}, rails=2)
        assert (finding.subject, finding.severity) == (Subject(), Severity.INFO)
        assert finding.part is not Part.OBSERVER  # that is a leaf that does not mark

    def test_a_map_is_not_written_out(self) -> None:
        """64 numbers on each side would say nothing to people."""
        (finding,) = told(*[{"dscp_to_priority": ()}] * 4)
        assert "0,0,0" not in finding.summary

    def test_a_port_that_was_never_up(self) -> None:
        """What nobody uses needs no settings."""
        node = Rails(Congestion, infos=ROCE[:2])
        node.down(1)
        node.of(node.rail(1)).ever_active = False
        uses = (PriorityUse("eth0", **GOOD), PriorityUse("eth1", pfc_enabled=()))
        node.job = JobView(host_path=HostPath(0.0, priorities=uses))
        node.run(60)
        assert node.found("config_mismatch") == []

    def test_a_bond(self) -> None:
        """Its members have the settings, under their own names."""
        bonds = tuple(
            replace(info, netdev=f"bond{n}", netdevs=(f"bond{n}", f"eth{n}"))
            for n, info in enumerate(ROCE)
        )
        (finding,) = told({"pfc_enabled": ()}, infos=bonds)
        assert finding.subject.netdev == "bond0"
        assert finding.evidence[0].source == "dcb:eth0"


class TestWithinAPort:
    def test_pause_and_marks_for_different_priorities(self) -> None:
        """What is paused is never marked: all rails have it so, one finding."""
        (finding,) = told(*[{"ecn_enabled": (4,)}] * 8)
        assert finding.subject == Subject()
        assert [item.value for item in finding.evidence] == ["3", "4"]

    def test_on_one_rail(self) -> None:
        """Then that rail is named, by both mismatches."""
        findings = told({"ecn_enabled": (4,)})
        assert len(findings) == 2
        assert {finding.subject.device for finding in findings} == {"mlx5_0"}

    def test_a_map_that_misses_the_lossless_priority(self) -> None:
        """DSCP 26 leads to 4, PFC is on for 3: nothing is lossless."""
        (finding,) = told(*[{"dscp_to_priority": DSCP_26_TO_4}] * 8)
        assert [item.value for item in finding.evidence] == ["3", "0,4"]

    def test_a_class_of_the_driver_that_misses_it(self) -> None:
        """Every packet has DSCP 8, whatever else the map holds."""
        (finding,) = told(*[{"traffic_class": 32}] * 8)
        assert [item.value for item in finding.evidence] == ["3", "0", "32"]

    @pytest.mark.parametrize(
        "part",
        [
            {"traffic_class": 106},
            {"ecn_enabled": (3, 4)},
            {"pfc_enabled": (3, 4)},
            {"ecn_enabled": ()},
            {"ecn_enabled": None},
            {"pfc_enabled": (), "ecn_enabled": (4,)},
            {"pfc_enabled": (), "dscp_to_priority": DSCP_26_TO_4},
            {"pfc_enabled": None, "dscp_to_priority": DSCP_26_TO_4},
            {"pfc_enabled": (4,), "ecn_enabled": None, "dscp_to_priority": ()},
            {"dscp_to_priority": None},
            {"traffic_class": 4096},
        ],
    )
    def test_what_may_be_meant_so(self, part: dict[str, Any]) -> None:
        """Fabrics without PFC or without ECN, ports that go by the tag, more of both."""
        assert told(*[part] * 8) == []
