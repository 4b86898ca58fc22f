"""What is there and cannot be looked into is counted, not passed over."""

from __future__ import annotations

from dataclasses import replace

from fabricmon.model import BootInfo, PortSnapshot, Snapshot
from fabricmon.parse.words import LinkLayer
from fabricmon.sinks.measures import scene_of
from fabricmon.sinks.sight_measures import functions_out_of_sight
from tests.sinks import nodes


def roce(netdev: str | None, *, is_vf: bool = False) -> PortSnapshot:
    """Return a RoCE port with a network device in sight, or without."""
    port = nodes.port()
    ethernet = LinkLayer.ETHERNET
    info = replace(port.info, link_layer=ethernet, netdev=netdev, is_vf=is_vf)
    return replace(port, info=info)


def counted(snapshot: Snapshot) -> dict[str, float]:
    """Return what is counted, by the kind of function."""
    samples = functions_out_of_sight(scene_of(snapshot, nodes.NOW, 0))
    return {str(sample.labels[0]): sample.value for sample in samples}


def booted(*, tells_links: bool) -> BootInfo:
    """Return a boot in which link events reach the agent, or not."""
    return BootInfo(0.0, "b", 100.0, None, tells_links)


class TestFunctionsOutOfSight:
    def test_function_that_was_moved(self) -> None:
        """A virtual function given to a pod takes its network device along."""
        ports = (roce("eth0"), roce(None, is_vf=True), roce(None, is_vf=True))
        assert counted(nodes.node(*ports)) == {"virtual": 2}

    def test_agent_that_is_outside(self) -> None:
        """It sees the names below /sys and can ask none of them."""
        boot = booted(tells_links=False)
        assert counted(nodes.node(roce("eth0"), boot=boot)) == {"physical": 1}

    def test_node_that_is_seen_whole(self) -> None:
        """No series."""
        boot = booted(tells_links=True)
        assert counted(nodes.node(roce("eth0"), boot=boot)) == {}

    def test_infiniband_has_no_such_device(self) -> None:
        """Its counters are those of the RDMA class."""
        port = nodes.port()
        info = replace(port.info, link_layer=LinkLayer.INFINIBAND, netdev=None)
        boot = booted(tells_links=False)
        assert counted(nodes.node(replace(port, info=info), boot=boot)) == {}
