"""Cases of rails, leafs that stand still, ranks, and boards that differ."""

from __future__ import annotations

from collections.abc import Iterator

from tests.fleet.promtool import Case, series
from tests.fleet.small_cluster import JOB, NODES, cluster, every, ports, told


def cases() -> Iterator[Case]:
    """Yield them."""
    yield from _rails()
    yield from _drifts()


def _rails() -> Iterator[Case]:
    busy = "fabricmon_port_busy_ratio"
    rate = "fabricmon_port_burst_rate_bytes_per_second"
    others = (0, 2, 3)
    usual, slow = every("0.4x60", NODES[:3]), every("0.4x19 0.7x60", NODES[:3])
    fast, half = every("4e10x60", NODES[:3]), every("4e10x19 2e10x60", NODES[:3])
    yield Case(
        "FabricRailSlow",
        {
            **cluster(NODES[:3]),
            **ports(busy, usual, others, direction="transmitted"),
            **ports(busy, slow, direction="transmitted"),
            **ports(rate, fast, others, direction="transmitted", quantile="0.99"),
            **ports(rate, half, direction="transmitted", quantile="0.99"),
        },
        silent_at="6m",
        fires_at="9m",
        told=[
            told(
                "FabricRailSlow", "rail_slow", {"rail": "1", "training": JOB},
                "rail 1 paces job train on 3 nodes, place not known",
                "On these nodes the rail is busy for longer than the others of the "
                "job, or sends at a lower rate, in 60% of the windows. One slow hop "
                "makes the whole rail slow: look for the port or leaf with a sign of "
                "its own. Duty of the rail now: 70%. What it is not: proof against "
                "any node: all of them see the same, and none has a reason of its "
                "own.", dashboard="fabricmon-stragglers",
            )
        ],
    )  # fmt: skip
    yield Case(
        "FabricRailJitter",
        {
            **cluster(NODES[:4]),
            **{
                series("fabricmon_rail_finding_open", node=node, kind="rail_slow",
                       severity="info", role="observer", rail=1, job=JOB):
                    "_x20 1x60"
                for node in NODES[:3]
            },
        },
        silent_at="5m15s",
        fires_at="6m",
        told=[
            told(
                "FabricRailJitter", "rail_slow", {"rail": "1", "training": JOB},
                "rail 1 of job train is slow for moments on 3 nodes, place not known",
                "Some steps take longer for it, most do not. Look for a port or leaf "
                "of the rail with retransmissions or pause at the same moments. What "
                "it is not: a rail that paces the job all the time (FabricRailSlow), "
                "nor proof against any node.", severity="info",
                dashboard="fabricmon-stragglers",
            )
        ],
    )  # fmt: skip
    yield Case(
        "FabricRailSlowLasting",
        {
            **cluster(NODES[:3]),
            **ports(
                busy, every("0.4x200", NODES[:3]), others, direction="transmitted"
            ),
            **ports(
                busy, every("0.4x19 0.7x180", NODES[:3]), direction="transmitted"
            ),
        },
        silent_at="37m",
        fires_at="39m",
        told=[
            told(
                "FabricRailSlowLasting", "rail_slow", {"rail": "1", "training": JOB},
                "rail 1 has paced job train for 30m or longer, on 3 nodes, place not "
                "known",
                "On these nodes the rail is busy for longer than the others of the "
                "job, or sends at a lower rate, in 60% of the windows. One slow hop "
                "makes the whole rail slow: look for the port or leaf with a sign of "
                "its own. Duty of the rail now: 70%. What it is not: proof against "
                "any node: all of them see the same, and none has a reason of its "
                "own.", notice="ticket", dashboard="fabricmon-stragglers",
            )
        ],
    )  # fmt: skip
    yield Case(
        "FabricLeafSlow",
        {
            **cluster(),
            **{
                series("fabricmon_rail_finding_open", node=node, kind="rail_slow",
                       severity="warning", role="observer", rail=1, job=JOB):
                    "_x20 1x40"
                for node in NODES
            },
            **ports(
                "fabricmon_finding_open",
                every("_x20 1x40", NODES[:4]),
                kind="congestion", severity="info", role="victim", action="none",
            ),
        },
        silent_at="4m45s",
        fires_at="5m",
        told=[
            told(
                "FabricLeafSlow", "fabric_suspect",
                {"leaf": "leaf1", "rail": "1", "training": JOB},
                "leaf leaf1: 4 ports of job train wait for the network and their rail "
                "is slow",
                "Nearly all ports of the job behind this leaf are held up, rail 1 "
                "paces the job, and no port has a reason of its own: look at the "
                "uplinks of the leaf. What it is not: a fault of these nodes: they are "
                "all held alike, and none of them receives from many.",
                notice="ticket", dashboard="fabricmon-stragglers",
            )
        ],
    )  # fmt: skip
    yield from _slow_nodes()
    line = "fabricmon_infiniband_rate_bytes_per_second"
    moved = "fabricmon_infiniband_port_data_transmitted_bytes_total"
    dropped = "fabricmon_infiniband_port_discards_transmitted_total"
    yield Case(
        "FabricDeadlock",
        {
            **cluster(),
            **ports(line, every("5e10x60")),
            **ports("fabricmon_infiniband_state_id", every("4x60")),
            **ports(moved, every("0+3e11x19 5.7e12x40")),
            **ports(dropped, every("0x19 0+3x40")),
        },
        silent_at="5m",
        fires_at="6m15s",
        told=[
            told(
                "FabricDeadlock", "fabric_suspect", {"leaf": "leaf1", "rail": "1"},
                "leaf leaf1: 5 ports wait for credit and nothing moves",
                "Their job is there, carried traffic 5m ago and none now. They waited"
                " without end, or dropped what waited for too long: look for a loop "
                "of credits (routing without deadlock avoidance), a receiver that is "
                "stuck, or a failing switch. What it is not: a fault of these ports "
                "or nodes, nor an idle job: idle ports do not wait.", notice="ticket",
            )
        ],
    )  # fmt: skip
    seconds = "fabricmon_collective_execution_seconds"
    yield Case(
        "FabricRankLate",
        {
            series(
                seconds, node=node, comm="c", rank=rank, collective="AllReduce",
                size="1GB",
            ): "0.8x19 0.1x40" if rank == 2 else "0.8x60"
            for rank, node in enumerate(NODES)
        },
        silent_at="5m",
        fires_at="10m",
        told=[
            told(
                "FabricRankLate", "not_network",
                {"node": "n3", "comm": "c", "rank": "2"},
                "n3: rank 2 comes late to collectives, the others wait 700ms",
                "Communicator c. It is in the collective for the shortest time of all"
                " ranks: what it does before takes longer (a slow GPU, a data loader,"
                " the host). What it is not: the network: no port of this node has a "
                "fault.", severity="info", role="culprit",
                dashboard="fabricmon-stragglers", shown="&var-node=n3",
            )
        ],
    )  # fmt: skip


def _slow_nodes() -> Iterator[Case]:
    busy = "fabricmon_port_busy_ratio"
    rate = "fabricmon_port_burst_rate_bytes_per_second"
    sent = "transmitted"
    all_rails = (0, 1, 2, 3)
    working = {
        **cluster(),
        **ports(busy, every("0.4x80"), all_rails, direction=sent),
        **ports(
            rate,
            every("4e10x80", NODES[1:]),
            all_rails,
            direction=sent,
            quantile="0.99",
        ),
    }
    slow = {"n1": "4e10x19 2e10x60"}
    yield Case(
        "FabricNodeSlow",
        {
            **working,
            **ports(rate, slow, all_rails, direction=sent, quantile="0.99"),
        },
        silent_at="10m",
        fires_at="15m30s",
        told=[
            told(
                "FabricNodeSlow",
                "host_path_slow",
                {"node": "n1", "training": JOB},
                "n1: 4 rails of job train send slower than on all other nodes",
                "Their highest rate in 5m is below 75% of the median node's, and no "
                "port shows a fault: look at the host (GPU Direct, PCIe, a process "
                "that is late). What it is not: one bad link: most rails of the node "
                "are slow alike.",
                dashboard="fabricmon-stragglers",
                shown="&var-node=n1",
            )
        ],
    )
    yield Case(
        "FabricNodeRailSlow",
        {
            **working,
            **ports(rate, slow, direction=sent, quantile="0.99"),
            **ports(
                rate,
                {"n1": "4e10x80"},
                (0, 2, 3),
                direction=sent,
                quantile="0.99",
            ),
        },
        silent_at="10m",
        fires_at="15m30s",
        told=[
            told(
                "FabricNodeRailSlow",
                "rail_slow",
                {
                    "node": "n1",
                    "device": "mlx5_1",
                    "port": "1",
                    "leaf": "leaf1",
                    "rail": "1",
                    "training": JOB,
                },
                "n1 mlx5_1/1: rail 1 of job train sends at 50% of the median node",
                "That is its highest rate in 5m. The other nodes do not wait for it: a "
                "path that was failed over, or connections from before a flap. What it "
                "is not: a rail that paces a job (FabricRailSlow): only this node is "
                "slow.",
                severity="info",
                dashboard="fabricmon-stragglers",
                shown="&var-node=n1&var-device=mlx5_1",
            )
        ],
    )


def _device(node: str, firmware: str) -> str:
    return series(
        "fabricmon_infiniband_device_info",
        node=node,
        device="mlx5_0",
        board_id="MT_1",
        firmware_version=firmware,
    )


def _drifts() -> Iterator[Case]:
    nodes = tuple(f"n{number}" for number in range(10))
    yield Case(
        "FabricFirmwareDrift",
        {_device(node, "2" if node == "n3" else "1"): "_x3 1x60" for node in nodes[:5]},
        silent_at="1m30s",
        fires_at="3m",
        told=[
            told(
                "FabricFirmwareDrift", "config_drift",
                {"node": "n3", "board_id": "MT_1", "firmware_version": "2"},
                "n3: 1 devices have firmware 2, most equal boards another",
                "Board MT_1. Nodes of one job that differ behave differently under "
                "load; look for an update that was missed, or a card that was "
                "changed. What it is not: a fault of the device; during an update it "
                "is only information.", dashboard="fabricmon-node", shown="&var-node=n3",
            )
        ],
    )  # fmt: skip
    changing = {_device(node, "1"): "1x60" for node in nodes[1:5]}
    changing[_device("n0", "1")] = "1x19 stale"
    changing[_device("n0", "2")] = "_x20 1x60"
    yield Case(
        "FabricFirmwareDrift",
        changing,
        silent_at="5m15s",
        fires_at="12m",
        told=[
            told(
                "FabricFirmwareDrift", "config_drift",
                {"node": "n0", "board_id": "MT_1", "firmware_version": "2"},
                "n0: 1 devices have firmware 2, most equal boards another",
                "Board MT_1. Nodes of one job that differ behave differently under "
                "load; look for an update that was missed, or a card that was "
                "changed. What it is not: a fault of the device; during an update it "
                "is only information.", severity="info", dashboard="fabricmon-node",
                shown="&var-node=n0",
            )
        ],
        what="while it is updated",
    )  # fmt: skip
    yield Case(
        "FabricFirmwareMixed",
        {
            _device(node, "2" if node in nodes[:4] else "1"): "_x3 1x60"
            for node in nodes
        },
        silent_at="1m30s",
        fires_at="3m",
        told=[
            told(
                "FabricFirmwareMixed", "config_drift", {"board_id": "MT_1"},
                "4 nodes have another firmware on board MT_1 than most",
                "So many that it is an update under way, or one that stopped half "
                "way: finish it, or compare jobs only within one version. What it is "
                "not: a fault of these nodes.", severity="info",
            )
        ],
    )  # fmt: skip
    boards = {_device(node, "1"): "1x200" for node in nodes[:4]}
    where = {"device": "mlx5_0", "port": 1}
    yield Case(
        "FabricRateDrift",
        {
            **boards,
            **{
                series("fabricmon_infiniband_state_id", node=node, **where): "4x60"
                for node in nodes[:4]
            },
            **{
                series("fabricmon_infiniband_rate_bytes_per_second", node=node, **where):
                    "5e10x19 2.5e10x40" if node == "n2" else "5e10x60"
                for node in nodes[:4]
            },
        },
        silent_at="5m",
        fires_at="7m",
        told=[
            told(
                "FabricRateDrift", "config_drift", {"node": "n2", "board_id": "MT_1"},
                "n2: all ports run at 50% of the rate of equal boards",
                "Board MT_1, against the median node of the cluster. The node alone "
                "cannot see it, for all of its devices are alike: look at its "
                "firmware settings, its slots, and the leaf that it is on. What it is"
                " not: one bad link or slot: that is told of the port or device.", dashboard="fabricmon-node", shown="&var-node=n2",
            )
        ],
    )  # fmt: skip
    yield Case(
        "FabricPcieDrift",
        {
            **boards,
            **{
                series("fabricmon_pci_current_link_width", node=node, device="mlx5_0",
                       end=end): "16x19 8x200" if node == "n2" else "16x200"
                for node in nodes[:4]
                for end in ("device", "slot")
            },
        },
        silent_at="30m",
        fires_at="40m",
        told=[
            told(
                "FabricPcieDrift", "config_drift", {"node": "n2", "board_id": "MT_1"},
                "n2: all devices have 50% of the PCIe lanes of equal boards",
                "Board MT_1, against the median node of the cluster. The node alone "
                "cannot see it, for all of its devices are alike: look at its "
                "firmware settings, its slots, and the leaf that it is on. What it is"
                " not: one bad link or slot: that is told of the port or device.", dashboard="fabricmon-node", shown="&var-node=n2",
            )
        ],
    )  # fmt: skip
