"""A real agent with the site's topology file."""

from __future__ import annotations

import signal
from pathlib import Path

from tests.agent.conftest import MakeAgent
from tests.support.agent import Node

TEXT = """\
cluster: east
nodes:
  gpu-7:
    rack: {rack}
    addresses: [10.0.0.7]
    ports:
      mlx5_0/1: {{leaf: leaf-1, rail: 5}}
"""


def test_place_of_the_node(node: Node, make_agent: MakeAgent, tmp_path: Path) -> None:
    """Rack, address and leaf are exported; a reload reads the file again."""
    file = tmp_path / "topology.yaml"
    file.write_text(TEXT.format(rack="r1"))
    agent = make_agent({"node": "gpu-7", "topology": str(file)}).start()
    place = 'node_info{nvlink_domain="",rack="%s",topology_cluster="east"}'
    assert agent.metric(place % "r1") == 1
    assert agent.metric('node_address_info{address="10.0.0.7"}') == 1
    ports = [
        each for each in agent.metrics() if each.startswith("infiniband_port_info")
    ]
    assert any('leaf="leaf-1"' in each and 'rail="5"' in each for each in ports)

    file.write_text(TEXT.format(rack="r2"))
    agent.signal(signal.SIGHUP)
    agent.until(lambda: place % "r2" in agent.metrics(), "the file is read again")
