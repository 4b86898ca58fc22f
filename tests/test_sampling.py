"""One look at a node's files without an agent, or two some seconds apart."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fabricmon.config_load import build
from fabricmon.model import PortId, Verdict
from fabricmon.sampling import Sampler
from tests.manifest import SYSFS
from tests.support.agent import CLASS, FAST, Json, Node, merged

Look = Callable[..., Sampler]


@pytest.fixture
def node(tmp_path: Path) -> Node:
    """Return the files of a node with four HCAs."""
    return Node(tmp_path)


@pytest.fixture
def look(node: Node) -> Iterator[Look]:
    """Look at that node: `look(interval=None, **configuration)`."""
    opened: list[Sampler] = []

    def begin(interval: float | None = None, **config: Json) -> Sampler:
        tree = merged({"deadlines": {"read_seconds": 0.3}}, config)
        opened.append(Sampler(build(tree, (), ()), "node-1", str(node.root)))
        opened[-1].look(interval)
        return opened[-1]

    yield begin
    for sampler in opened:
        sampler.close()


def test_everything_is_read_once(look: Look) -> None:
    """State and counters of every port are there after one look."""
    snapshot = look().pipeline.snapshot
    assert len(snapshot.ports) == 4
    assert all(port.status and port.readings for port in snapshot.ports)
    assert snapshot.verdict is Verdict.HEALTHY


@pytest.mark.parametrize("file", ["node_guid", "ports/1/state", "ports/1/counters/x"])
def test_a_read_that_hangs(node: Node, look: Look, file: str) -> None:
    """It is given up, named, and costs the others nothing, wherever it hangs."""
    node.hang(f"{CLASS}/mlx5_0/{file}".replace("/x", "/symbol_error"))
    snapshot = look().pipeline.snapshot
    (failure,) = snapshot.failures
    assert (failure.device, failure.errno) == ("mlx5_0", "ETIMEDOUT")
    well = {port.info.id.device for port in snapshot.ports if port.readings}
    assert well >= {"mlx5_1", "mlx5_4", "mlx5_bond_0"}
    assert snapshot.verdict is Verdict.UNKNOWN


def test_no_driver(tmp_path: Path) -> None:
    """A look at a node without RDMA ends at once, and knows nothing."""
    (tmp_path / "bare").mkdir()
    node = Node(tmp_path / "bare", None)
    sampler = Sampler(build({}, (), ()), "node-1", str(node.root))
    sampler.look()
    snapshot = sampler.pipeline.snapshot
    sampler.close()
    assert (snapshot.class_error, snapshot.verdict) == ("ENOENT", Verdict.UNKNOWN)


def test_growth_between_two_looks(node: Node, look: Look) -> None:
    """Errors that grow are told; traffic, congestion and what stands still are not."""
    sampler = look()
    for file, value in (
        ("symbol_error", 500),
        ("port_rcv_data", 230_539_874_932_999),  # 516 more
        ("port_xmit_wait", 2_489_604_000),  # 313 more
    ):
        node.put(node.port("mlx5_0", f"counters/{file}"), f"{value}\n")
    sampler.look(0.1)
    deltas = sampler.growth(PortId("mlx5_0", 1), 60)
    assert [(d.spec.file, d.increase) for d in deltas] == [("symbol_error", 500)]
    assert sampler.growth(PortId("mlx5_1", 1), 60) == ()


def test_one_look_shows_no_growth(look: Look) -> None:
    """There is nothing to compare with."""
    assert look().growth(PortId("mlx5_0", 1), 10) == ()


def test_virtual_functions_are_read_whole(tmp_path: Path) -> None:
    """Metrics fold them; somebody who looks once wants to see them."""
    (tmp_path / "vf").mkdir()
    node = Node(tmp_path / "vf", SYSFS / "sysfs-odd-state-text-vf.manifest")
    sampler = Sampler(build({}, (), ()), "node-1", str(node.root))
    sampler.look()
    virtual = [p for p in sampler.pipeline.snapshot.ports if p.info.is_vf]
    sampler.close()
    assert virtual
    assert all(port.readings for port in virtual)


def test_virtual_functions_that_are_not_wanted(node: Node, look: Look) -> None:
    """A configuration that ignores them is kept to."""
    sampler = look(devices={"virtual_functions": "ignore"})
    assert sampler.pipeline.config.devices.virtual_functions == "ignore"


def test_no_tool_and_no_lock(look: Look) -> None:
    """Neither ibstat nor driver statistics: both may take long and disturb the node."""
    sources = {health.source for health in look(**FAST).pipeline.snapshot.health}
    assert {"state", "errors"} <= sources
    assert not sources & {"ibstat", "driver"}
