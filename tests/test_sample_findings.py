"""What one look can hold against a configuration, and against the network devices."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from fabricmon.catalogue import Directory
from fabricmon.config import Config
from fabricmon.model import Action, Finding, NetdevStatus, PortSnapshot, Severity
from fabricmon.parse.words import LinkLayer, PortState, Rate
from fabricmon.sample_findings import sample_findings
from tests.sinks import nodes


def found(*ports: PortSnapshot, **config: Any) -> tuple[Finding, ...]:
    """Return what a look at these ports proves."""
    return sample_findings(nodes.node(*ports), Config(**config))


def with_status(port: PortSnapshot, **changes: Any) -> PortSnapshot:
    """Return a port in another state or at another rate."""
    assert port.status is not None
    return replace(port, status=replace(port.status, **changes))


def ipoib(losses: int | None = 3, operstate: str = "down") -> PortSnapshot:
    """Return an ACTIVE port whose interface is in this state, with carrier losses."""
    port = nodes.port()
    spec = nodes.find(Directory.NETDEV, "carrier_down_count")
    reading = nodes.reading(port.info.id, [spec], {"carrier_down_count": losses})
    netdev = NetdevStatus(port.info.id, "ib0", nodes.NOW, operstate, carrier=None)
    return replace(port, netdev=netdev, readings=(reading,))


def test_all_is_well() -> None:
    """A node as it should be proves nothing."""
    assert found(nodes.port(), expected_devices=("mlx5_0",)) == ()


class TestMissing:
    def test_each_device_that_is_not_there(self) -> None:
        """In the order of the configuration, each on its own."""
        findings = found(nodes.port(), expected_devices=("mlx5_9", "mlx5_0", "mlx5_8"))
        assert [finding.subject.device for finding in findings] == ["mlx5_9", "mlx5_8"]
        assert {finding.kind for finding in findings} == {"device_missing"}
        assert {finding.severity for finding in findings} == {Severity.CRITICAL}

    def test_nothing_is_expected(self) -> None:
        """Without a list no device is missed."""
        assert found() == ()


class TestRate:
    def test_below(self) -> None:
        """The evidence is the rate and what it should be."""
        (finding,) = found(with_status(nodes.port(), rate=Rate(100.0, 1, "NDR")))
        (item,) = finding.evidence
        assert (finding.kind, item.value, item.threshold) == ("rate_degraded", 100, 400)
        assert finding.action is Action.DRAIN_AFTER_JOB
        assert "mlx5_0/1 runs at 100 of 400 Gb/s" in finding.summary

    def test_above(self) -> None:
        """More than expected is no fault."""
        assert found(with_status(nodes.port(), rate=Rate(800.0, 4, "XDR"))) == ()

    def test_nothing_is_expected(self) -> None:
        """A rate is judged by an expectation only."""
        port = with_status(nodes.port(), rate=Rate(10.0, 4, "SDR"))
        assert (
            found(replace(port, info=replace(port.info, expected_rate_gbps=None))) == ()
        )

    @pytest.mark.parametrize("state", [PortState.DOWN, PortState.INIT, None])
    def test_of_a_port_that_is_not_up(self, state: PortState | None) -> None:
        """Its rate is a default of the driver."""
        port = with_status(nodes.port(), rate=Rate(10.0, 4, "SDR"), state=state)
        assert found(port) == ()

    def test_unreadable(self) -> None:
        """A rate that cannot be read is unknown, not low."""
        assert found(with_status(nodes.port(), rate=Rate())) == ()


class TestInterface:
    def test_lost_its_carrier(self) -> None:
        """The port is up, IPoIB is not, and it was in use."""
        (finding,) = found(ipoib())
        assert finding.kind == "config_mismatch"
        assert finding.subject.netdev == "ib0"
        assert finding.evidence[0].value == 3

    @pytest.mark.parametrize("losses", [0, None])
    def test_never_in_use(self, losses: int | None) -> None:
        """An interface that never had a carrier is nobody's."""
        assert found(ipoib(losses)) == ()

    def test_up(self) -> None:
        """Losses of the past are past."""
        assert found(ipoib(operstate="up")) == ()

    def test_ethernet(self) -> None:
        """There port and interface fall together: the port tells."""
        port = ipoib()
        info = replace(port.info, link_layer=LinkLayer.ETHERNET)
        assert found(replace(port, info=info)) == ()

    def test_a_port_that_is_down(self) -> None:
        """Then the interface is only a consequence."""
        assert found(with_status(ipoib(), state=PortState.DOWN)) == ()
