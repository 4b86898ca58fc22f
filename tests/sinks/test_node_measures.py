"""Metrics of the node itself: clock, addresses, place."""

from dataclasses import replace

from fabricmon.model import ClockStatus, HostSide, Snapshot, Topology
from tests.sinks import nodes
from tests.sinks.scraping import exposition, scrape

ERROR = "fabricmon_clock_error_seconds"
KEPT = "fabricmon_clock_synchronized"


def clock(*args: float | str | None) -> dict[str, str]:
    """Return what is exported of a clock."""
    status = ClockStatus(1.0, *args)  # type: ignore[arg-type]
    side = HostSide(clock=status)
    found = scrape(exposition(replace(nodes.node(), host_side=side)))
    return {name: found[name] for name in (ERROR, KEPT) if name in found}


def placed(topology: Topology) -> Snapshot:
    """Return a node that stands there."""
    return replace(nodes.node(), topology=topology)


class TestClock:
    def test_kept(self) -> None:
        """Its error, and that something keeps it."""
        assert clock(0.002) == {ERROR: "0.002", KEPT: "1"}

    def test_left_alone(self) -> None:
        """An error that nobody knows is absent, not zero."""
        assert clock(None) == {KEPT: "0"}

    def test_refused(self) -> None:
        """Nothing is known of it, not even whether it is kept."""
        assert clock(None, "EPERM") == {}


class TestAddresses:
    def test_each(self) -> None:
        """The name that other rules rely on."""
        shown = placed(Topology(addresses=("10.0.0.7", "fd00::7")))
        found = scrape(exposition(shown))
        assert found['fabricmon_node_address_info{address="10.0.0.7"}'] == "1"
        assert found['fabricmon_node_address_info{address="fd00::7"}'] == "1"

    def test_bounded(self) -> None:
        """One value for the rest would stand for many nodes."""
        many = Topology(addresses=tuple(f"10.0.0.{n}" for n in range(99)))
        found = [s for s in scrape(exposition(placed(many))) if "address_info" in s]
        assert len(found) == 32
        assert not any("other" in series for series in found)


class TestPlace:
    def test_known(self) -> None:
        """What is not known of it is an empty label."""
        found = scrape(exposition(placed(Topology(rack="r7", cluster="east"))))
        labels = 'nvlink_domain="",rack="r7",topology_cluster="east"'
        assert found[f"fabricmon_node_info{{{labels}}}"] == "1"

    def test_unknown(self) -> None:
        """Nothing is exported of a node whose place nobody knows."""
        found = scrape(exposition(nodes.node()))
        assert not any("node_info" in series for series in found)
