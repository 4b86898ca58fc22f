"""Cases of what several nodes see of one: votes, losses."""

from __future__ import annotations

from collections.abc import Iterator

from tests.fleet.promtool import Case, series
from tests.fleet.small_cluster import NODES, cluster, every, ports, told


def cases() -> Iterator[Case]:
    """Yield them."""
    yield from _votes()
    yield from _losses()


def _votes() -> Iterator[Case]:
    yield Case(
        "FabricPeerSuspect",
        {
            **cluster(),
            series("fabricmon_node_address_info", node="n5", address="10.0.0.5"):
                "1x60",
            **{
                series("fabricmon_peer_votes", node=node, peer="10.0.0.5"):
                    "_x20 8x40"
                for node in ("n1", "n2", "n3")
            },
        },
        silent_at="4m45s",
        fires_at="5m15s",
        told=[
            told(
                "FabricPeerSuspect", "peer_suspect", {"node": "n5", "peer": "n5"},
                "n5: 3 nodes failed towards it, fault at its end",
                "Their connections to it were given up. What its own agent says tells"
                " whether it is the node or one of its ports; if that is silent, the "
                "node is likely down. What it is not: a fault of those who name it: "
                "they are observers.", role="culprit", dashboard="fabricmon-jobs",
                shown="&var-node=n5",
            )
        ],
    )  # fmt: skip
    yield Case(
        "FabricPeerUnexplained",
        {
            **cluster(),
            **{
                series("fabricmon_peer_votes", node=node, peer="n5"): "_x20 8x40"
                for node in ("n1", "n2", "n3")
            },
        },
        silent_at="8m45s",
        fires_at="9m",
        told=[
            told(
                "FabricPeerUnexplained", "peer_suspect", {"node": "n5", "peer": "n5"},
                "n5: 3 nodes failed towards it, and nothing is told of it",
                "Their connections to it were given up, and its own agent found "
                "nothing, or is silent: look whether the node is alive, then at its "
                "switch ports, which see what it cannot. What it is not: a fault of "
                "those who name it: they are observers.", role="culprit",
                notice="ticket", dashboard="fabricmon-jobs", shown="&var-node=n5",
            )
        ],
    )  # fmt: skip
    alive = cluster(NODES[:4])
    gone = cluster(("n5",), values="1x20 _x40")
    yield Case(
        "FabricPeerSuspect",
        {
            **alive,
            **gone,
            **{
                series("fabricmon_peer_votes", node=node, peer="n5"): "_x16 8x40"
                for node in ("n1", "n2")
            },
        },
        silent_at="5m",
        fires_at="10m15s",
        told=[
            told(
                "FabricPeerSuspect", "peer_suspect", {"node": "n5", "peer": "n5"},
                "n5: 2 nodes failed towards it, fault at its end",
                "Their connections to it were given up. What its own agent says tells"
                " whether it is the node or one of its ports; if that is silent, the "
                "node is likely down. What it is not: a fault of those who name it: "
                "they are observers.", role="culprit", dashboard="fabricmon-jobs",
                shown="&var-node=n5",
            )
        ],
        what="that fell silent",
    )  # fmt: skip
    yield Case(
        "FabricObserverSuspect",
        {
            **cluster(),
            **{
                series("fabricmon_peer_votes", node="n1", peer=peer): "_x20 2x40"
                for peer in ("n2", "n3", "n4")
            },
        },
        silent_at="4m45s",
        fires_at="5m15s",
        told=[
            told(
                "FabricObserverSuspect", "peer_suspect", {"node": "n1", "peer": "n1"},
                "n1: it failed towards 3 peers that nobody else names, fault at its "
                "end",
                "Peers that only one node cannot reach are well: this node, or its "
                "way into the fabric, is not. What it is not: a fault of the peers "
                "that it names.", role="culprit", dashboard="fabricmon-jobs",
                shown="&var-node=n1",
            )
        ],
    )  # fmt: skip


def _losses() -> Iterator[Case]:
    lost = "fabricmon_infiniband_packet_sequence_errors_total"
    gaps = "fabricmon_infiniband_out_of_sequence_packets_received_total"
    yield Case(
        "FabricSenderLossy",
        {
            **cluster(),
            **ports(lost, {"n1": "0x19 0+30x40", "n2": "0x60"}),
            **ports(gaps, every("0x19 0+10x40", ("n2", "n3", "n4"))),
        },
        silent_at="5m",
        fires_at="10m",
        told=[
            told(
                "FabricSenderLossy", "fabric_suspect",
                {"node": "n1", "device": "mlx5_1", "port": "1", "leaf": "leaf1",
                 "rail": "1"},
                "n1 mlx5_1/1: what it sends gets lost, 600 packets in 5m; its switch "
                "port counts them",
                "Nearly all losses of rail 1 are of this sender, and several "
                "receivers have gaps: its cable or module towards leaf1 damages what "
                "goes out, which only the switch can count. Read that port's symbol "
                "errors. What it is not: a fault of the receivers, nor of a peer: "
                "they all see it alike.", notice="ticket", dashboard="fabricmon-node",
                shown="&var-node=n1&var-device=mlx5_1",
            )
        ],
    )  # fmt: skip
    yield Case(
        "FabricCorruption",
        {
            **cluster(leaf="leaf{node}"),
            **ports(lost, every("0x19 0+10x40", ("n1", "n2", "n3"))),
            **ports(gaps, every("0x19 0+10x40", ("n4", "n5"))),
        },
        silent_at="5m",
        fires_at="10m",
        told=[
            told(
                "FabricCorruption", "fabric_suspect", {"rail": "1"},
                "rail 1: packets get lost towards 2 ports behind several leafs, none "
                "of which has a bad link",
                "Senders send again, receivers have gaps, and no port of the rail "
                "counts errors of its link: a spine, a link between switches, or the "
                "memory of one damages what crosses it. What it is not: a fault of "
                "these ports or nodes: draining them changes nothing.", notice="ticket",
            )
        ],
    )  # fmt: skip
