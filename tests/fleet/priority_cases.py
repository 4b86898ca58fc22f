"""Cases of nodes whose RoCE ports handle priorities otherwise than most."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tests.fleet.promtool import Case, Labels, Told, series
from tests.fleet.small_cluster import told

NODES = tuple(f"n{number}" for number in range(10))
LONG = "200"
DRIFT = "FabricPriorityDrift"
MIXED = "FabricPriorityMixed"


def cases() -> Iterator[Case]:
    """Yield them."""
    nodes = NODES[:4]
    yield Case(
        DRIFT,
        settings({**all_with(nodes, pfc="3"), "n2": {"pfc": "none"}}),
        silent_at="14m",
        fires_at="20m",
        told=[odd("n2", "PFC priorities", "none", "3")],
    )
    unread = {node: {"pfc": "3", "ecn": "3", "dscp": ""} for node in NODES[:6]}
    unread["n1"] = {"pfc": "3", "ecn": "", "dscp": "default"}
    unread["n4"] = {"pfc": "3", "ecn": "4", "dscp": ""}
    unread["n5"] = {"pfc": "3", "ecn": "none", "dscp": ""}
    yield Case(
        DRIFT,
        settings(unread, board=""),
        silent_at="14m",
        fires_at="20m",
        told=[
            odd("n4", "ECN priorities", "4", "3", board=""),
            odd("n5", "ECN priorities", "none", "3", board=""),
        ],
        what="of nodes that cannot all read it",
    )
    half = {**all_with(NODES, pfc="3", traffic_class="106")}
    for node in NODES[:3]:
        half[node] = {"pfc": "3", "traffic_class": "none"}
    yield Case(
        MIXED,
        settings(half),
        silent_at="14m",
        fires_at="20m",
        told=[
            told(
                MIXED, "config_mismatch",
                {"board_id": "MT_1", "setting": "traffic class"},
                "3 nodes have other traffic class than most with board MT_1",
                "So many that it is a change under way, one that stopped half way, or "
                "two kinds of nodes: a job that spans both has losses where they "
                "differ. What it is not: a fault of these nodes.", severity="info",
            )
        ],
    )  # fmt: skip


def all_with(nodes: tuple[str, ...], **labels: str) -> dict[str, Mapping[str, str]]:
    """Return the same settings for all nodes."""
    return dict.fromkeys(nodes, labels)


def settings(
    nodes: Mapping[str, Mapping[str, str]], board: str = "MT_1", rails: int = 2
) -> dict[str, str]:
    """Return nodes with as many rails of the same settings, and their boards."""
    found: dict[str, str] = {}
    for node, labels in nodes.items():
        for rail in range(rails):
            found |= settings_of(node, rail, **labels)
            where = {"node": node, "device": f"mlx5_{rail}"}
            identity = {"board_id": board, "firmware_version": "1"}
            name = "fabricmon_infiniband_device_info"
            found[series(name, **where, **identity)] = f"1x{LONG}"
    return found


def settings_of(node: str, rail: int, **labels: str) -> dict[str, str]:
    """Return the settings of one port; an empty label is none."""
    where = {"node": node, "device": f"mlx5_{rail}", "port": 1}
    name = "fabricmon_port_priorities_info"
    return {series(name, **where, **labels): f"1x{LONG}"}


def odd(
    node: str,
    setting: str,
    value: str,
    usual: str,
    *,
    board: str = "MT_1",
) -> Told:
    """Return what is told of a node with two odd ports."""
    labels: Labels = {
        "node": node, "setting": setting, "value": value, "usual": usual,
    } | ({"board_id": board} if board else {})  # fmt: skip
    with_board = f"Board {board}. " if board else ""
    return told(
        DRIFT,
        "config_mismatch",
        labels,
        f"{node}: 2 ports have {setting} {value}, most equal nodes {usual}",
        f"{with_board}The agent there compares its rails with each other only. Traffic "
        "of this node may go by a priority that is not lossless or not marked: compare "
        "it with a node beside it (mlnx_qos, dcb), and look for the script that sets "
        "it at boot. What it is not: a fault of the link or the switch; where a change "
        "is being rolled out, the first nodes that have it are told so.",
        dashboard="fabricmon-node",
        shown=f"&var-node={node}",
    )
