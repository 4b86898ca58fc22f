"""The place of a node, out of a document."""

from dataclasses import replace
from pathlib import Path

import pytest

from fabricmon.config import Config
from fabricmon.errors import ConfigError
from fabricmon.expectations import Expectations
from fabricmon.model import (
    Gid,
    GidTable,
    HostSide,
    JobView,
    NodeAddresses,
    PeerAddress,
    PortId,
    PortPlace,
    Topology,
)
from fabricmon.topology import addresses_of, of_fleet, of_node
from fabricmon.topology_load import load_topology
from tests.sinks import nodes


def test_whole_document() -> None:
    """Rack, domain, cluster, ports, peers, and which of these the node is itself."""
    document = {
        "rack": "r7",
        "nvlink_domain": "n1",
        "cluster": "east",
        "addresses": ["10.1.0.7"],
        "ports": {"mlx5_0/1": {"leaf": "leaf-1", "rail": 0}},
    }
    found = of_node(document, {"::ffff:10.0.0.7": "me", "10.0.0.8": "other"}, "me")
    assert (found.rack, found.nvlink_domain, found.cluster) == ("r7", "n1", "east")
    assert found.ports == (PortPlace("mlx5_0/1", leaf="leaf-1", rail=0),)
    assert PeerAddress("10.0.0.8", "other") in found.peers
    assert found.addresses == ("10.1.0.7", "10.0.0.7")


def test_what_does_not_fit_is_left_out() -> None:
    """Documents come from elsewhere."""
    document = {
        "rack": 7,
        "addresses": "10.0.0.1",
        "ports": {"mlx5_0/1": {"leaf": 3}, "mlx5_1/1": None, "mlx5_2/1": {"rail": 2}},
    }
    found = of_node(document, {}, "me")
    assert (found.rack, found.addresses) == (None, ())
    assert found.ports == (PortPlace("mlx5_2/1", rail=2),)


FLEET = {
    "cluster": "east",
    "rails": [["mlx5_0", "mlx5_1/1"], ["mlx5_2"]],
    "nodes": {
        "n1.example": {
            "rack": "r1",
            "addresses": ["10.0.0.1"],
            "ports": {"mlx5_0/1": {"leaf": "leaf-1"}},
        },
        "n2.example": {"addresses": ["10.0.0.2", "FD00:0::2"]},
    },
}


@pytest.mark.parametrize("name", ["n1.example", "n1"])
def test_node_of_a_site(name: str) -> None:
    """Its own place by its long or short name, and the addresses of all."""
    found = of_fleet(FLEET, name)
    assert (found.rack, found.cluster, found.addresses) == ("r1", "east", ("10.0.0.1",))
    assert found.ports == (PortPlace("mlx5_0/1", leaf="leaf-1"),)
    assert set(found.peers) == {
        PeerAddress("10.0.0.1", name),
        PeerAddress("10.0.0.2", "n2.example"),
        PeerAddress("fd00::2", "n2.example"),
    }


def test_node_that_the_site_does_not_know() -> None:
    """Its peers are known all the same."""
    found = of_fleet(FLEET, "n9")
    assert (found.rack, found.ports, len(found.peers)) == (None, (), 3)


def test_rails_by_patterns() -> None:
    """A port without a rail of its own has that whose pattern fits it."""
    expectations = Expectations(Config())
    expectations.take_topology(of_fleet(FLEET, "n1"))
    ports = (PortId("mlx5_0", 1), PortId("mlx5_1", 1), PortId("mlx5_2", 1))
    assert [expectations.of(port, None).rail for port in ports] == [0, 0, 1]
    assert expectations.of(PortId("mlx5_9", 1), None).rail is None
    assert expectations.of(ports[0], None).leaf == "leaf-1"


class TestFile:
    @staticmethod
    def load(folder: Path, text: str | bytes) -> Topology:
        """Read a file with this content."""
        file = folder / "topology.yaml"
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
        return load_topology(str(file), "n1")

    def test_good(self, tmp_path: Path) -> None:
        """YAML as the site writes it."""
        text = "nodes:\n  n1:\n    rack: r1\n    addresses: [10.0.0.1]\n"
        found = self.load(tmp_path, text)
        assert (found.rack, found.addresses) == ("r1", ("10.0.0.1",))

    @pytest.mark.parametrize(
        ("text", "why"),
        [
            ("nodes:\n  n1: [\n", "topology.yaml:"),
            ("cluster: east\n", "has no nodes"),
            (
                b"nodes:\n  n1: \xff\n",
                r"/topology.yaml:2: topology: not UTF-8 text \(write the file",
            ),
            (
                b"#" * (9 << 20),
                r"/topology.yaml: topology: larger than 8 MiB \(leave out the ports",
            ),
        ],
    )
    def test_bad(self, tmp_path: Path, text: str | bytes, why: str) -> None:
        """One error says where and why."""
        with pytest.raises(ConfigError, match=why):
            self.load(tmp_path, text)

    def test_missing(self, tmp_path: Path) -> None:
        """The file and the key are named, and what to do."""
        why = r"/none.yaml: topology: No such file or directory \(name .* remove"
        with pytest.raises(ConfigError, match=why):
            load_topology(str(tmp_path / "none.yaml"), "n1")

    def test_impossible_name(self) -> None:
        """A name that no file can have is an error as any other."""
        with pytest.raises(ConfigError, match=r"topology: .*null .*remove"):
            load_topology("/etc/\0", "n1")


def test_addresses_from_everywhere() -> None:
    """What is written down comes first, then interfaces, then RoCE ports."""
    gids = (
        Gid(0, "fe80:0000:0000:0000:0000:0000:0000:0001", "RoCE v2"),
        Gid(3, "0000:0000:0000:0000:0000:ffff:c0a8:0001", "RoCE v2"),
    )
    snapshot = replace(
        nodes.node(),
        topology=of_node({"addresses": ["10.0.0.7"]}, {}, "me"),
        host_side=HostSide(addresses=NodeAddresses(1.0, ("10.1.0.7", "10.0.0.7"))),
        job=JobView(gids=(GidTable(PortId("mlx5_0", 1), 1.0, gids),)),
    )
    assert addresses_of(snapshot) == ("10.0.0.7", "10.1.0.7", "192.168.0.1")
