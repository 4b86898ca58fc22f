"""In which rhythm a node is read: seldom at rest, closely where something happened."""

from __future__ import annotations

import pytest

from fabricmon.model import LinkEvent, PortId
from fabricmon.sources.paths import RDMA_CLASS, port_folder
from tests.fake_host import FakeHost
from tests.running import Running
from tests.sources.mlx5_node import mlx5_node

PORT = PortId("mlx5_0", 1)
FOLDER = port_folder(PORT)


@pytest.fixture
def host() -> FakeHost:
    """Return a node with two HCAs that has been up for long."""
    node = mlx5_node(2)
    node.put("/proc/uptime", "8640000.00 8640000.00\n")
    return node


@pytest.fixture
def node(host: FakeHost) -> Running:
    """Return the pipeline on that node after its first look."""
    running = Running(host).settle()
    running.run(5)
    running.reader.take()
    return running


def polls(node: Running, seconds: float, what: str) -> int:
    """Return how often something was polled in so many seconds."""
    node.reader.take()
    node.run(seconds)
    return node.reader.take().count(what)


def pace(node: Running) -> tuple[int, int]:
    """Return how often state and the counter of outages are polled in a minute."""
    node.reader.take()
    node.run(60)
    jobs = node.reader.take()
    return jobs.count("state mlx5_0"), jobs.count("outages mlx5_0")


def alone(host: FakeHost) -> Running:
    """Return the pipeline on a node after its first look, its rhythm found."""
    node = Running(host).settle()
    node.run(5)
    node.reader.take()
    return node


def hear(node: Running) -> None:
    """Let a link event wake the agent, and leave what it polls then in `take`."""
    node.pipeline.hasten("link_events")
    node.step(1)
    node.reader.take()
    node.step()


def down(host: FakeHost, number: int = 0) -> None:
    """Let a port go down, as its files tell."""
    folder = f"{RDMA_CLASS}/mlx5_{number}/ports/1"
    host.put(f"{folder}/state", "1: DOWN\n")
    host.put(f"{folder}/phys_state", "2: Polling\n")


class TestPace:
    def test_at_rest(self, node: Running) -> None:
        """Where the kernel tells of changes, nothing is read every second."""
        assert pace(node) == (12, 12)

    def test_without_a_network_device(self, host: FakeHost) -> None:
        """A counter tells of changes instead: it costs a fifth of what state does."""
        node = alone(mlx5_node(1, netdevs=False))
        assert pace(node) == (12, 60)

    def test_without_a_counter_of_outages(self) -> None:
        """Where nothing at all tells of changes, state is read every second."""
        host = mlx5_node(1, netdevs=False)
        host.remove(f"{FOLDER}/counters/link_downed")
        assert pace(alone(host)) == (60, 12)

    def test_with_a_counter_that_cannot_be_read(self) -> None:
        """A restricted function answers for its state and for no counter."""
        host = mlx5_node(1, netdevs=False)
        host.fail(f"{FOLDER}/counters/link_downed", "EINVAL")
        assert polls(alone(host), 60, "state mlx5_0") == 60

    def test_with_a_full_counter_of_outages(self) -> None:
        """At its ceiling it tells nothing more; a reset makes it tell again."""
        host = mlx5_node(1, netdevs=False)
        host.put(f"{FOLDER}/counters/link_downed", 255)
        node = alone(host)
        assert pace(node) == (60, 12)
        host.put(f"{FOLDER}/counters/link_downed", 0)
        node.run(90)
        assert pace(node) == (12, 60)

    def test_with_a_counter_of_the_other_link_layer(self) -> None:
        """On Ethernet the InfiniBand counters exist and may never count."""
        host = mlx5_node(1, netdevs=False)
        host.put(f"{FOLDER}/link_layer", "Ethernet\n")
        assert pace(alone(host)) == (60, 12)

    def test_with_two_ports_of_which_one_counts(self) -> None:
        """State is read for a whole device: the port that needs it most decides."""
        host = mlx5_node(1, netdevs=False)
        for file in ("state", "link_layer"):
            raw = host.read(f"{FOLDER}/{file}")
            assert isinstance(raw, bytes)
            host.put(f"{RDMA_CLASS}/mlx5_0/ports/2/{file}", raw)
        assert pace(alone(host)) == (60, 12)

    def test_where_link_events_do_not_arrive(self, host: FakeHost) -> None:
        """In a network namespace of one's own nothing tells of changes."""
        host.tells_links = False
        assert pace(alone(host)) == (12, 60)

    def test_after_a_change(self, host: FakeHost, node: Running) -> None:
        """Flaps come in groups: state is read every second for a minute."""
        down(host)
        node.run(5)
        assert polls(node, 30, "state mlx5_0") == 30
        node.run(60)
        assert polls(node, 60, "state mlx5_0") == 12

    def test_a_counter_that_remembers_an_outage(
        self, host: FakeHost, node: Running
    ) -> None:
        """The port was down between two polls: look closely, and at its details."""
        host.put(f"{FOLDER}/counters/link_downed", 1)
        node.run(5)
        node.reader.take()
        node.run(5)
        jobs = node.reader.take()
        assert jobs.count("state mlx5_0") == 5
        assert jobs.count("state mlx5_1") == 1

    def test_a_counter_of_outages_where_nothing_else_tells(self) -> None:
        """Details, which are state too, are read at once, and state every second."""
        host = mlx5_node(2, netdevs=False)
        node = alone(host)
        host.put(f"{FOLDER}/counters/link_downed", 1)
        node.run(2)
        assert "link_detail mlx5_0" in node.reader.take()
        node.run(20)
        jobs = node.reader.take()
        assert jobs.count("state mlx5_0") == 20
        assert jobs.count("state mlx5_1") == 4

    def test_details_follow_a_change_at_once(
        self, host: FakeHost, node: Running
    ) -> None:
        """Physical state and rate of the old state are no knowledge of the new one."""
        down(host)
        node.reader.take()
        node.run(6)
        assert node.reader.take().count("link_detail mlx5_0") == 1
        status = node.port().status
        assert status is not None
        assert status.phys_state == "Polling"

    def test_an_event_of_its_network_device(
        self, host: FakeHost, node: Running
    ) -> None:
        """State is read at once; other devices are left alone."""
        host.events.append(LinkEvent(host.now, "ib0", up=False))
        hear(node)
        assert {"state mlx5_0", "netdev mlx5_0"} <= set(node.reader.take())

    def test_events_that_were_lost(self, host: FakeHost, node: Running) -> None:
        """The kernel dropped some: every port is looked at."""
        host.events.append(LinkEvent(host.now, "", up=None))
        hear(node)
        assert {"state mlx5_0", "state mlx5_1"} <= set(node.reader.take())

    def test_slow_driver_statistics(self, host: FakeHost, node: Running) -> None:
        """They hold a lock that the whole node needs: the slower, the rarer."""
        node.reader.seconds["driver"] = 0.1
        node.run(100)
        assert polls(node, 100, "driver mlx5_0") <= 2
        node.reader.seconds.clear()
        node.run(600)
        assert polls(node, 100, "driver mlx5_0") == 10

    def test_quick_driver_statistics(self, node: Running) -> None:
        """They keep their rhythm."""
        assert polls(node, 100, "driver mlx5_0") == 10
