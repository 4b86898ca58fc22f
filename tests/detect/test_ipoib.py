"""IPoIB interfaces that are down beside a port that is up."""

from __future__ import annotations

from typing import Any

from fabricmon.detect.flaps import Flaps
from fabricmon.detect.ipoib import IpoibState
from fabricmon.detect.link_state import LinkState
from fabricmon.model import Action, Severity
from fabricmon.parse.words import LinkLayer, PortState
from tests.node import Node, pid
from tests.views import port


class Interfaces(Node):
    """A node whose interfaces are read every five seconds."""

    def __init__(self, **options: Any) -> None:
        super().__init__(IpoibState, LinkState, Flaps, **options)
        self.states: dict[int, str | None] = dict.fromkeys(range(8), "up")

    def step_all(self, seconds: float = 5.0) -> None:
        """Read the interfaces, too."""
        for rail, state in getattr(self, "states", {}).items():
            if state is not None and rail < len(self.ids):
                self.interface(rail, state, carrier=True if state == "up" else None)
        super().step_all(seconds)


class TestInterface:
    def test_one_that_is_down_is_told(self) -> None:
        """RDMA works, IP does not: a ticket, not a port that is down."""
        node = Interfaces()
        node.put(pid(6), carrier_down_count=49)
        node.states[6] = "down"
        node.run(60)
        assert node.kinds == ["config_mismatch"]
        finding = node.open_of("config_mismatch").finding
        assert (finding.severity, finding.action) == (Severity.WARNING, Action.INSPECT)
        assert "ib6 is down after 49 carrier losses" in finding.summary
        assert finding.subject.device == "mlx5_6"

    def test_a_moment_is_nothing(self) -> None:
        """Somebody reconfigured it."""
        node = Interfaces()
        node.states[6] = "down"
        node.run(20)
        node.states[6] = "up"
        node.run(60)
        assert node.changes == []

    def test_sites_without_ipoib(self) -> None:
        """Where most interfaces are down nobody uses them."""
        node = Interfaces()
        node.states.update(dict.fromkeys(range(1, 8), "down"))
        node.run(120)
        assert node.changes == []

    def test_a_port_that_is_not_active_is_another_story(self) -> None:
        """An interface falls with its port."""
        node = Interfaces()
        node.link(PortState.INIT, where=pid(6))
        node.states[6] = "down"
        node.run(120)
        assert node.kinds == ["port_not_active"]

    def test_comes_back_after_its_port(self) -> None:
        """Of a long outage nothing is left when the port is ACTIVE first."""
        node = Interfaces()
        node.link(PortState.DOWN, where=pid(6))
        node.states[6] = "down"
        node.run(600)
        node.link(PortState.ACTIVE, where=pid(6))
        node.run(20)
        node.states[6] = "up"
        node.run(20)
        assert "config_mismatch" not in node.opened
        node.states[6] = "down"
        node.run(60)
        assert "config_mismatch" in node.opened

    def test_ethernet_falls_as_one(self) -> None:
        """On RoCE port and interface are the same link."""
        infos = tuple(
            port(f"mlx5_{rail}", link_layer=LinkLayer.ETHERNET) for rail in range(8)
        )
        node = Interfaces(infos=infos)
        node.states[6] = "down"
        node.run(120)
        assert node.changes == []

    def test_one_that_left_is_not_down(self) -> None:
        """An interface that moved to a pod is read no more (N49)."""
        node = Interfaces()
        node.states[6] = "down"
        node.run(60)
        node.states[6] = None
        node.run(120)
        assert node.kinds == []
