"""A tool beside the files: what differs is noted, what merely changes is not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fabricmon.detect.telemetry import Telemetry
from fabricmon.incidents import Incidents
from fabricmon.model import (
    Action,
    Finding,
    Health,
    LinkStatus,
    PortId,
    Severity,
    Subject,
    ToolReport,
)
from fabricmon.parse.words import PhysState, PortState, Rate
from tests.views import Feed, port

HOUR = 3600.0
FIRST, SECOND = PortId("mlx5_0", 1), PortId("mlx5_1", 1)


class Node(Feed):
    """Two ports and a tool; `tool` is a run of it, `look` judges a step."""

    def __init__(self) -> None:
        super().__init__(port(), port("mlx5_1"))
        self.detector = Telemetry(self.config)
        self.reports: tuple[ToolReport, ...] = ()
        self.took = 0.0  # seconds that the tool runs
        self.look()

    def tool(self, where: PortId = FIRST, **said: object) -> None:
        """Let the tool print what the files say, but for ``said`` of one port."""
        told = [self.of(each).status for each in self.ids]
        statuses = [replace(each, at=self.now) for each in told if each is not None]
        self.reports = (
            ToolReport(
                "ibstat",
                self.now - self.took,
                self.now,
                tuple(
                    replace(each, **said) if each.port == where else each  # type: ignore[arg-type]
                    for each in statuses
                ),
            ),
        )

    def look(self, seconds: float = 5.0) -> list[Finding]:
        """Let time pass, read everything, and judge."""
        view = self.step(seconds, reports=self.reports)
        return list(self.detector.judge(view))

    def without_details(self) -> list[Finding]:
        """Read the states alone, and judge."""
        view = self.step(reports=self.reports)
        alone = tuple(replace(each, complete=False) for each in view.statuses)
        return list(self.detector.judge(replace(view, statuses=alone)))


@pytest.fixture
def node() -> Node:
    """Return a node whose tool agrees with its files."""
    node = Node()
    node.tool()
    return node


def test_same(node: Node) -> None:
    """A tool that says what the files say is no news."""
    assert node.look() == node.look(HOUR) == []


@pytest.mark.parametrize(
    ("field", "said", "shown"),
    [
        ("state", PortState.DOWN, "DOWN"),
        ("phys_state", PhysState.POLLING, "Polling"),
        ("lid", 8, 8),
        ("sm_lid", 2, 2),
        ("rate", Rate(200), 200),
    ],
)
def test_different(node: Node, field: str, said: object, shown: object) -> None:
    """What the files still say after the tool said otherwise is noted, as a note."""
    node.tool(SECOND, **{field: said})
    (finding,) = node.look()
    (evidence,) = finding.evidence
    assert (finding.kind, finding.subject) == (
        "telemetry_stale",
        Subject(device="mlx5_1"),
    )
    assert (finding.severity, finding.action) == (Severity.INFO, Action.NONE)
    assert (evidence.value, evidence.source) == (shown, "ibstat mlx5_1/1")
    assert "ibstat says" in finding.summary


def test_holds_until_the_tool_agrees(node: Node) -> None:
    """It is one story with one onset over the runs that say so, and ends with them."""
    node.tool(lid=8)
    (first,) = node.look()
    node.look(HOUR)
    node.tool(lid=8)
    (again,) = node.look()
    assert again.onset == first.onset
    node.tool()
    assert node.look() == []


def test_link_that_changes_meanwhile(node: Node) -> None:
    """A tool that saw a change first is not contradicted by the files before it."""
    node.tool(state=PortState.DOWN, phys_state=PhysState.POLLING)
    node.link(PortState.DOWN, PhysState.POLLING)
    assert [f for f in node.look() if f.kind == "telemetry_stale"] == []


def test_link_that_changes_while_the_tool_runs(node: Node) -> None:
    """What it read before the change is not held against what the files say since."""
    node.link(PortState.DOWN, PhysState.POLLING)
    node.look()
    node.took = 10.0
    node.tool(state=PortState.ACTIVE, phys_state=PhysState.LINK_UP)
    assert [f for f in node.look() if f.kind == "telemetry_stale"] == []


def test_tool_that_says_nothing_any_more(node: Node) -> None:
    """A tool that hangs, or is gone, does not go on to contradict the files."""
    node.tool(lid=8)
    assert len(node.look()) == 1
    node.reports = ()
    assert node.look() == []


def test_files_that_follow(node: Node) -> None:
    """Once the files say something else, the old comparison is void."""
    node.tool(state=PortState.INIT)
    assert len(node.look()) == 1
    node.link(PortState.INIT)
    assert node.look() == []


def test_details_wait_for_details(node: Node) -> None:
    """A sample of the state alone bears out no LID: it repeats the last known one."""
    node.tool(lid=8)
    assert node.without_details() == []
    assert len(node.look()) == 1


@pytest.mark.parametrize("rate", [Rate(2.0), Rate(None)])
def test_rate_without_fraction(node: Node, rate: Rate) -> None:
    """Old tools print 2 for 2.5 Gb/s, and some print no rate that can be read."""
    node.link(PortState.ACTIVE, rate=Rate(2.5))
    node.tool(rate=rate)
    assert node.look() == []


def test_port_that_only_one_knows(node: Node) -> None:
    """A port that the tool leaves out, or has alone, is not compared."""
    alone = LinkStatus(PortId("mlx5_9", 1), node.now, PortState.DOWN)
    node.reports = (ToolReport("ibstat", node.now, node.now, (alone,)),)
    assert node.look() == []


def test_several(node: Node) -> None:
    """Differences of several devices are one finding about the node."""
    node.tool(lid=8, sm_lid=9)
    (report,) = node.reports
    other = tuple(
        replace(each, lid=5) if each.port == SECOND else each
        for each in report.statuses
    )
    node.reports = (replace(report, statuses=other),)
    (finding,) = node.look()
    assert finding.subject == Subject()
    assert len(finding.evidence) == 3
    assert "and 2 more" in finding.summary


def test_device_that_goes(node: Node) -> None:
    """What is said of a device that is gone is no difference."""
    node.tool(lid=8)
    assert len(node.look()) == 1
    view = node.step(reports=node.reports)
    left = tuple(each for each in view.ports if each.info.id != FIRST)
    gone = replace(view, ports=left, statuses=())
    assert list(node.detector.judge(gone)) == []


def late(source: str, unit: str, node: Node) -> Health:
    """Return the health of a source that answers no more."""
    return Health(source, unit, True, node.now, 0.0, 5.0, None)


@pytest.mark.parametrize(("source", "unit"), [("errors", "mlx5_0"), ("ibstat", "")])
def test_old_values_explain_it(node: Node, source: str, unit: str) -> None:
    """While values of the device or the tool are known to be old, that is told alone."""
    node.tool(lid=8)
    node.health = (late(source, unit, node),)
    node.look()
    (finding,) = node.look(HOUR)
    assert "ibstat says" not in finding.summary


@pytest.mark.parametrize(("source", "unit"), [("errors", "mlx5_1"), ("pci", "")])
def test_old_values_of_others(node: Node, source: str, unit: str) -> None:
    """A source that is late elsewhere explains nothing, and hides nothing."""
    node.tool(lid=8)
    node.health = (late(source, unit, node),)
    node.look()
    stale, differing = node.look(HOUR)
    assert "No values of" in stale.summary
    assert "ibstat says lid 8 of mlx5_0/1" in differing.summary


def test_beside_old_values_at_one_place() -> None:
    """What differs is told with what is late where both are about the node."""
    node = Node()
    node.tool(lid=8)
    node.health = (late("pci", "", node), late("errors", "mlx5_9", node))
    node.look()
    findings = node.look(HOUR)
    node_wide = [replace(each, subject=Subject()) for each in findings]
    incidents = Incidents(node.config, "node01")
    (incident,) = incidents.update(node.now, node.now, node_wide, lambda _: False, ())
    signals = [each.signal for each in incident.finding.evidence]
    assert signals == ["pci", "errors", "lid"]
    assert incident.finding.severity >= Severity.WARNING
