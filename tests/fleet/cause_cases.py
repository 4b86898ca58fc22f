"""Cases of what many ports have in common: one cause, pause."""

from __future__ import annotations

from collections.abc import Iterator

from tests.fleet.promtool import Case, Told, series
from tests.fleet.small_cluster import JOB, cluster, every, ports, told


def cases() -> Iterator[Case]:
    """Yield them."""
    yield from _causes()
    yield from _pauses()


def _causes() -> Iterator[Case]:
    down = "_x20 300x40"
    yield Case(
        "FabricCommonCause",
        {
            **cluster(),
            **ports("fabricmon_port_last_down_timestamp_seconds", {
                "n1": down, "n2": "_x20 300.5x40", "n3": down, "n4": "_x20 301x40",
            }),
        },
        silent_at="4m45s",
        fires_at="5m",
        told=[
            told(
                "FabricCommonCause", "common_cause", {"leaf": "leaf1", "rail": "1"},
                "leaf leaf1: 4 ports went down within seconds: one cause",
                "At least 50% of its ports fell within 2 s of each other. It stays "
                "one event for 10m, and while so many are down. What it is not: so "
                "many bad cables or nodes: what these ports tell meanwhile is not "
                "held against them.", notice="ticket",
            )
        ],
    )  # fmt: skip
    yield Case(
        "FabricCommonCause",
        {
            **cluster(leaf=""),
            **ports("fabricmon_port_last_down_timestamp_seconds", {
                "n1": down, "n2": down, "n3": down, "n4": down,
            }),
        },
        silent_at="4m45s",
        fires_at="5m",
        told=[
            told(
                "FabricCommonCause", "common_cause", {"rail": "1"},
                "rail 1: 4 ports went down within seconds: one cause",
                "At least 50% of its ports fell within 2 s of each other. It stays "
                "one event for 10m, and while so many are down. What it is not: so "
                "many bad cables or nodes: what these ports tell meanwhile is not "
                "held against them.", notice="ticket",
            )
        ],
        what="of a rail",
    )  # fmt: skip
    left = {
        **cluster(),
        **ports("fabricmon_port_last_down_timestamp_seconds", every(down)),
        **ports("fabricmon_infiniband_state_id", every("4x19 1x8 4x100")),
        series("fabricmon_infiniband_state_id", node="n2", device="mlx5_1", port=1):
            "4x19 1x100",
        series("fabricmon_finding_open", node="n2", device="mlx5_1", port=1,
               kind="port_down", severity="critical", role="culprit",
               action="inspect"): "_x20 1x100",
        series("fabricmon_finding_onset_timestamp_seconds", node="n2", device="mlx5_1",
               port=1, kind="port_down"): "_x20 300x100",
    }  # fmt: skip
    yield Case(
        "FabricPortLeftDown",
        left,
        silent_at="7m",
        fires_at="8m",
        told=[
            Told(
                {
                    "alertname": "FabricPortLeftDown", "cluster": "c1", "node": "n2",
                    "device": "mlx5_1", "port": "1", "leaf": "leaf1", "rail": "1",
                    "kind": "port_down", "severity": "critical", "role": "culprit",
                    "action": "inspect", "origin": "fleet", "notice": "page",
                },
                "n2 mlx5_1/1: still down while leaf leaf1 is up again, fault at this "
                "end",
                "It fell with the other ports of its leaf, and they came back. It "
                "began at 1970-01-01 00:05:00 UTC. Severity critical, advice inspect."
                " What it is not: the leaf: most of its ports are ACTIVE.",
                "/d/fabricmon-node?var-cluster=c1&var-node=n2&var-device=mlx5_1",
            )
        ],
    )  # fmt: skip
    trained = {
        **cluster(),
        **ports("fabricmon_infiniband_physical_state_id", every("5x60"), (1, 2)),
    }
    yield Case(
        "FabricLeafNotConfigured",
        {
            **trained,
            **ports("fabricmon_infiniband_state_id", every("4x19 2x40")),
        },
        silent_at="5m15s",
        fires_at="5m30s",
        told=[
            told(
                "FabricLeafNotConfigured", "fabric_control",
                {"leaf": "leaf1", "rail": "1"},
                "leaf leaf1: 5 ports are trained and not configured: the subnet "
                "manager",
                "The links of these ports are up and stay in INIT or ARMED for 30s or"
                " longer: nobody gives them an address. What it is not: cables or "
                "nodes: their links are trained.", notice="ticket",
            )
        ],
    )  # fmt: skip
    changes_over = told(
        "FabricControlChange", "fabric_control", {},
        "6 ports on several rails stand or stood in INIT at once: the subnet "
        "manager changes over",
        "Their links are trained. A changeover takes 5 to 60 s; jobs wait for"
        " so long. What it is not: a fault of ports or nodes, nor an outage: "
        "no link went down.", severity="info",
    )  # fmt: skip
    yield Case(
        "FabricControlChange",
        {
            **trained,
            **ports(
                "fabricmon_infiniband_state_id",
                {"n1": "4x19 2x40", "n2": "4x19 2x40", "n3": "4x19 2x40"},
                (1, 2),
            ),
        },
        silent_at="4m45s",
        fires_at="5m",
        told=[changes_over],
    )  # fmt: skip
    fell = every("4x19 1x8 4x40", ("n4", "n5"))
    yield Case(
        "FabricControlChange",
        {
            **trained,
            **ports("fabricmon_infiniband_state_id", {**every("4x80"), **fell}, (1, 2)),
            **ports(
                "fabricmon_port_last_down_timestamp_seconds",
                every("_x19 300x80", ("n4", "n5")),
                (1, 2),
            ),
            **ports(
                "fabricmon_port_downtime_seconds_total",
                {
                    **every("0x19 7x80", ("n1", "n2", "n3")),
                    **every("0x19 0+15x8 120x80", ("n4", "n5")),
                },
                (1, 2),
            ),
        },
        silent_at="4m45s",
        fires_at="5m",
        told=[changes_over],
        what="between two scrapes",
    )  # fmt: skip
    yield Case(
        "FabricStall",
        {
            **cluster(),
            **ports(
                "fabricmon_infiniband_local_ack_timeout_errors_total",
                every("0x19 16x40", ("n1", "n2", "n3")),
                (1, 2),
            ),
        },
        silent_at="4m45s",
        fires_at="5m15s",
        told=[
            told(
                "FabricStall", "fabric_control", {"training": JOB},
                "job train: timers ran out on 3 nodes and several rails at once: the "
                "whole fabric stalled",
                "No port of the job went down, no node fell silent, no peer is named."
                " Rails share nothing but the control of the fabric: look for a "
                "changeover of the subnet manager, or a change of routes. What it is "
                "not: a fault of these nodes: they waited, and went on.", severity="info",
            )
        ],
    )  # fmt: skip


def _pauses() -> Iterator[Case]:
    roce = cluster(link_layer="Ethernet")
    yield Case(
        "FabricPauseTree",
        {
            **roce,
            **ports(
                "fabricmon_pause_received_seconds_total",
                every("0x19 0+7.5x40", ("n1", "n2", "n3", "n4")),
                priority=3,
            ),
        },
        silent_at="5m",
        fires_at="6m",
        told=[
            told(
                "FabricPauseTree", "fabric_suspect", {"leaf": "leaf1", "rail": "1"},
                "leaf leaf1: the network holds up 4 ports and no host sends pause",
                "Each of them is paused for over 25% of the time, and no compute port"
                " of the rail pauses the network: a switch does. Look for its "
                "watchdog, its buffers, and a port of it that is no host's. What it "
                "is not: a fault of these ports or nodes: they are all held alike.", notice="ticket", dashboard="fabricmon-roce",
            )
        ],
    )  # fmt: skip
    onsets = {
        **roce,
        **ports(
            "fabricmon_port_pause_onset_timestamp_seconds",
            {"n1": "_x19 290x40", "n2": "_x20 295x40", "n3": "_x20 296x40"},
        ),
    }
    yield Case(
        "FabricPauseFirst",
        onsets,
        silent_at="4m45s",
        fires_at="5m30s",
        told=[
            told(
                "FabricPauseFirst", "pause_origin",
                {"node": "n1", "device": "mlx5_1", "port": "1", "leaf": "leaf1",
                 "rail": "1"},
                "n1 mlx5_1/1: the first of its rail to pause the network, since "
                "00:04:50 UTC, fault at this end",
                "Other ports of rail 1 pause it as well, 2 s later or more: they "
                "answer this one. What its own agent found tells how much, and what "
                "to do. What it is not: a switch: this host began.", role="culprit", dashboard="fabricmon-roce",
                shown="&var-node=n1&var-device=mlx5_1",
            )
        ],
    )  # fmt: skip
    yield Case(
        "FabricPauseFollower",
        {
            **roce,
            **ports(
                "fabricmon_port_pause_onset_timestamp_seconds",
                {"n1": "_x19 290x40", "n2": "_x20 295x40"},
            ),
        },
        silent_at="4m45s",
        fires_at="5m30s",
        told=[
            told(
                "FabricPauseFollower", "pause_victim",
                {"node": "n2", "device": "mlx5_1", "port": "1", "leaf": "leaf1",
                 "rail": "1"},
                "n2 mlx5_1/1: pauses the network later than another of its rail, this "
                "end only suffers",
                "It began at 00:04:55 UTC. Who waits for a host that pauses fills up "
                "as well. What it is not: the origin: look for FabricPauseFirst on "
                "rail 1.", severity="info", role="victim", dashboard="fabricmon-roce",
                shown="&var-node=n2&var-device=mlx5_1",
            )
        ],
    )  # fmt: skip
    yield Case(
        "FabricLeafUnmarked",
        {
            **roce,
            **ports(
                "fabricmon_finding_open",
                every("_x20 1x40", ("n1", "n2", "n3")),
                kind="config_mismatch",
                severity="info",
                role="observer",
                action="none",
            ),
        },
        silent_at="5m15s",
        fires_at="5m30s",
        told=[
            told(
                "FabricLeafUnmarked", "config_mismatch",
                {"leaf": "leaf1", "rail": "1"},
                "leaf leaf1: 3 ports are paused and never notified of congestion: ECN "
                "of the switch",
                "The other rails of these nodes are notified before they are paused. "
                "Where a switch does not mark, pause takes the place of it and "
                "spreads: compare its ECN thresholds with those of its like. What it "
                "is not: a setting of these nodes: their other rails have the same.",
                severity="info", dashboard="fabricmon-roce",
            )
        ],
    )  # fmt: skip
