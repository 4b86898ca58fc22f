from __future__ import annotations

from typing import Any

import pytest

from fabricmon.sim.score_places import answers, blames_culprit, place_text
from fabricmon.sim.score_stories import ToldSubject
from tests.sim.scoring import fault, told

RAIL: dict[str, Any] = {"node": None, "device": None, "port": None, "rail": 3}
LEAF: dict[str, Any] = {"node": None, "device": None, "port": None, "leaf": "leaf-3"}
NOWHERE: dict[str, Any] = {"device": None, "port": None}


@pytest.mark.parametrize(
    ("subject", "is_right"),
    [
        ({"rail": 3, **NOWHERE}, True),
        ({"rail": "3", **NOWHERE, "node": "node01"}, True),
        ({"rail": 4, **NOWHERE}, False),
        (NOWHERE, False),
    ],
)
def test_rail(subject: dict[str, Any], *, is_right: bool) -> None:
    """A rail is named by its number or label, whoever saw it."""
    slow = fault(accept=("rail_slow",), **RAIL)
    assert answers(told(kind="rail_slow", subject=subject), slow) is is_right


def test_rail_of_a_known_port() -> None:
    """A kind that cannot name the port is right with the rail."""
    slow = fault(accept=("rail_slow", "straggler_link"), rail=3)
    assert answers(told(kind="rail_slow", subject={"rail": 3, **NOWHERE}), slow)
    wrong = told(kind="straggler_link", subject={"rail": 3, "device": "mlx5_4"})
    assert not answers(wrong, slow)


@pytest.mark.parametrize(
    ("subject", "is_right"),
    [
        ({"leaf": "leaf-3", **NOWHERE}, True),
        ({"leaf": "leaf-4", **NOWHERE}, False),
        (NOWHERE, False),
    ],
)
def test_leaf(subject: dict[str, Any], *, is_right: bool) -> None:
    """An event of a leaf is answered by the leaf's name."""
    event = fault(accept=("common_cause",), **LEAF)
    assert answers(told(kind="common_cause", subject=subject), event) is is_right


def test_leaf_or_rail() -> None:
    """Where the truth knows both, either will do, but none may be wrong."""
    both = fault(accept=("fabric_suspect",), **(LEAF | {"rail": 3}))
    kind = "fabric_suspect"
    assert answers(told(kind=kind, subject={"rail": 3, **NOWHERE}), both)
    wrong = {"rail": 3, "leaf": "leaf-4", **NOWHERE}
    assert not answers(told(kind=kind, subject=wrong), both)


def test_the_fabric() -> None:
    """An event of the whole fabric has no place to name."""
    storm = fault(accept=("fabric_control",), node=None, device=None, port=None)
    assert answers(told(kind="fabric_control", subject=NOWHERE), storm)


def test_peer() -> None:
    """A crashed node is named as peer, by whoever talks to it."""
    crash = fault(accept=("peer_suspect",), device=None, port=None)
    seen = {"node": "node01", "peer": "node00", **NOWHERE}
    assert answers(told(kind="peer_suspect", subject=seen), crash)
    assert not answers(told(kind="peer_suspect", subject=seen | {"peer": "n9"}), crash)
    assert not answers(told(kind="peer_suspect", subject=NOWHERE), crash)


@pytest.mark.parametrize(
    ("node", "peer", "is_right"),
    [
        ("node00", "node01", True),
        ("node01", "node00", True),
        ("node02", "node00", False),
    ],
)
def test_pair(node: str, peer: str, *, is_right: bool) -> None:
    """A broken path is a pair: either end may name the other."""
    path = fault(accept=("peer_suspect",), device=None, port=None, peer="node01")
    seen = told(kind="peer_suspect", subject={"node": node, "peer": peer, **NOWHERE})
    assert answers(seen, path) is is_right


def test_node_kind_on_a_port() -> None:
    """A kind about the node may leave the port open, but not name another."""
    wrong = fault(accept=("config_mismatch",))
    assert answers(told(kind="config_mismatch", subject=NOWHERE), wrong)
    assert not answers(told(kind="config_mismatch", subject={"port": 2}), wrong)


def test_device_kind() -> None:
    """A kind about the device needs no port."""
    narrow = fault(accept=("pcie_degraded",))
    assert answers(told(kind="pcie_degraded", subject={"port": None}), narrow)
    assert not answers(told(kind="pcie_degraded", subject=NOWHERE), narrow)


def test_port_kind_where_only_the_node_is_true() -> None:
    """What the truth leaves open is not asked for."""
    crash = fault(accept=("port_down",), device=None, port=None)
    assert answers(told(), crash)


def test_work_at_the_culprit() -> None:
    """Any kind about the place is work at the right place, also a coarser one."""
    assert blames_culprit(told(kind="host_path_slow", subject=NOWHERE), fault())
    assert not blames_culprit(told(subject={"device": "mlx5_1"}), fault())
    assert not blames_culprit(told(), fault(**LEAF))


def test_place_text() -> None:
    """A place as one word."""
    assert place_text(ToldSubject(node="a", device="mlx5_0", port=1)) == "a/mlx5_0/1"
    assert place_text(ToldSubject(rail=3)) == "rail=3"
    assert place_text(ToldSubject(node="a", peer="b")) == "a/peer=b"
    assert place_text(ToldSubject(leaf="l")) == "leaf=l"
    assert place_text(ToldSubject()) == "fabric"
