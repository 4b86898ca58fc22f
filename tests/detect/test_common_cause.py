"""Ports that fall together are one event in the fabric, told once and early (A10)."""

from __future__ import annotations

from dataclasses import replace

from fabricmon.detect.flaps import Flaps
from fabricmon.detect.link_state import LinkState
from fabricmon.model import (
    Action,
    Incident,
    IncidentState,
    Part,
    PortId,
    PortInfo,
    Severity,
)
from fabricmon.parse.words import PhysState, PortState
from tests.node import RAILS, Node, pid
from tests.views import port


def node(**options: object) -> Node:
    """Return a node whose findings are weighed as the agent does."""
    options.setdefault("fused", True)
    return Node(LinkState, Flaps, **options)  # type: ignore[arg-type]


def opened(changes: list[Incident]) -> list[str]:
    """Return the kinds that opened."""
    return [i.finding.kind for i in changes if i.state is IncidentState.OPEN]


class TestOneCause:
    def test_four_of_eight_are_one_finding(self) -> None:
        """Not four dead cables: nobody is blamed and nothing is advised."""
        made = node()
        for rail in range(4):
            made.down(rail)
        made.run(30, each=1)
        assert made.opened == ["common_cause"]
        finding = made.open_of("common_cause").finding
        assert (finding.action, finding.part) == (Action.NONE, Part.OBSERVER)
        assert finding.severity is Severity.WARNING

    def test_it_is_told_within_ten_seconds(self) -> None:
        """Sooner than a single port would be called down."""
        made = node()
        made.step_all(1)
        for rail in range(8):
            made.down(rail)
        assert opened(made.run(8, each=1)) == ["common_cause"]

    def test_three_are_three(self) -> None:
        """Too few for one cause: each is down on its own."""
        made = node()
        for rail in range(3):
            made.down(rail)
        made.run(30)
        assert made.opened == ["port_down"] * 3

    def test_minutes_apart_are_several_causes(self) -> None:
        """They did not fall together."""
        made = node()
        for rail in range(4):
            made.down(rail)
            made.run(40)
        assert "common_cause" not in made.opened

    def test_their_flaps_are_not_told(self) -> None:
        """They are back: the event is over, and no port is called flapping for it."""
        made = node()
        for rail in range(8):
            made.down(rail)
        made.run(60)
        for rail in range(8):
            made.up(rail)
        made.run(120)
        assert made.opened == ["common_cause"]
        assert made.kinds == []

    def test_the_one_that_stays_down_is_told(self) -> None:
        """When the others are back, the port that is left speaks for itself."""
        made = node()
        for rail in range(4):
            made.down(rail)
        made.run(60)
        for rail in range(3):
            made.up(rail)
        made.run(10)
        finding = made.open_of("port_down").finding
        assert (finding.subject.device, finding.action) == ("mlx5_3", Action.DRAIN_NOW)
        assert "common_cause" not in made.kinds

    def test_after_ten_minutes_each_is_down(self) -> None:
        """A switch that reboots is back by then: now the ports are told."""
        made = node()
        for rail in range(4):
            made.down(rail)
        made.run(640)
        assert sorted(made.kinds) == ["port_down"] * 4

    def test_another_outage_later_is_told(self) -> None:
        """What fell with others once is not excused for ever."""
        made = node()
        for rail in range(4):
            made.down(rail)
        made.run(30)
        for rail in range(4):
            made.up(rail)
        made.run(900)
        made.down(2)
        made.run(30)
        assert made.kinds == ["port_down"]

    def test_switched_off_by_hand_is_no_event(self) -> None:
        """Somebody did it: no cause is looked for."""
        made = node()
        for rail in range(4):
            made.down(rail, phys=PhysState.DISABLED)
        made.run(30)
        assert "common_cause" not in made.opened

    def test_a_young_boot_trains(self) -> None:
        """All ports of a node that has just booted are down together."""
        made = node(uptime=20.0)
        for rail in range(8):
            made.down(rail)
        made.run(30)
        assert made.opened == []


def planes(devices: int = 8, each: int = 4) -> tuple[PortInfo, ...]:
    """Return devices with several ports: one for each plane of the fabric."""
    return tuple(
        port(f"mlx5_{device}", plane, rail=f"{device}.{plane}")
        for device in range(devices)
        for plane in range(1, each + 1)
    )


class TestPlanes:
    def fall(self, made: Node, plane: int) -> None:
        """Let all ports of one plane fall."""
        for where in made.ids:
            if where.port == plane:
                made.link(PortState.DOWN, PhysState.POLLING, where=where)

    def test_one_of_several_is_information(self) -> None:
        """The other planes carry on: eight ports are down and nobody is called."""
        made = node(infos=planes())
        self.fall(made, 2)
        made.run(60)
        finding = made.open_of("common_cause").finding
        assert made.opened == ["common_cause"]
        assert finding.severity is Severity.INFO

    def test_it_stays_so_while_it_is_worked_on(self) -> None:
        """A plane that is down for hours does not become eight dead cables."""
        made = node(infos=planes())
        self.fall(made, 2)
        made.run(1500)
        assert made.opened == ["common_cause"]

    def test_a_port_beside_it_is_told(self) -> None:
        """Another plane's port that falls later is a fault of its own."""
        made = node(infos=planes())
        self.fall(made, 2)
        made.run(60)
        made.link(PortState.DOWN, PhysState.POLLING, where=PortId("mlx5_3", 1))
        made.run(30)
        assert made.open_of("port_down").finding.subject.device == "mlx5_3"

    def test_the_whole_node_is_more_than_a_plane(self) -> None:
        """All planes at once are a warning."""
        made = node(infos=planes())
        for plane in range(1, 5):
            self.fall(made, plane)
        made.run(10, each=1)
        assert made.open_of("common_cause").finding.severity is Severity.WARNING


class TestPlace:
    def test_ports_of_one_leaf_name_it(self) -> None:
        """The leaf is the subject, not the node's ports."""
        infos = tuple(replace(info, leaf="leaf-7") for info in RAILS)
        made = node(infos=infos)
        for rail in range(4):
            made.down(rail)
        made.run(10, each=1)
        subject = made.open_of("common_cause").finding.subject
        assert (subject.leaf, subject.device, subject.port) == ("leaf-7", None, None)

    def test_ports_of_several_leafs_name_none(self) -> None:
        """Then it is the fabric."""
        infos = tuple(
            replace(info, leaf=f"leaf-{rail}") for rail, info in enumerate(RAILS)
        )
        made = node(infos=infos)
        for rail in range(4):
            made.down(rail)
        made.run(10, each=1)
        assert made.open_of("common_cause").finding.subject.leaf is None

    def test_the_evidence_names_the_ports(self) -> None:
        """Who reads it need not guess which."""
        made = node()
        for rail in range(4):
            made.down(rail)
        made.run(10, each=1)
        evidence = made.open_of("common_cause").finding.evidence
        assert {each.signal: each.value for each in evidence}["ports"] == (
            "mlx5_0/1 mlx5_1/1 mlx5_2/1 mlx5_3/1"
        )


class TestFabricControl:
    def trained(self, made: Node, rails: range) -> None:
        """Let ports lose their configuration, not their link."""
        for rail in rails:
            made.link(PortState.INIT, where=pid(rail))

    def test_trained_ports_point_at_the_subnet_manager(self) -> None:
        """A failover is information (F42)."""
        made = node()
        self.trained(made, range(8))
        made.run(10, each=1)
        finding = made.open_of("fabric_control").finding
        assert (finding.severity, finding.action) == (Severity.INFO, Action.NONE)

    def test_it_becomes_a_warning(self) -> None:
        """After two minutes nobody fails over any more; the ports stay untold."""
        made = node()
        self.trained(made, range(8))
        made.run(150)
        assert made.open_of("fabric_control").finding.severity is Severity.WARNING
        assert made.kinds == ["fabric_control"]
