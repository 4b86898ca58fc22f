"""Nodes whose RoCE ports handle priorities otherwise than most (F36, F37).

A node holds its rails against each other; where all of them lack PFC, ECN or a DSCP map,
only other nodes show it. Each setting is compared alone, so that one that some drivers
do not show makes no difference, and among equal boards, as drift is. What every node
has on some of its rails is usual, however few rails these are.
"""

from __future__ import annotations

from collections.abc import Iterator

from fabricmon.fleet.comparing import Site, laid_out, told
from fabricmon.fleet.comparisons_drift import FIRMWARE
from fabricmon.fleet.rule import Alert, Notice, Recording

PORTS = "node:fabricmon_priorities:ports"
NODES = "board:fabricmon_priorities:nodes"
ODD = "node:fabricmon_priorities_odd:ports"

_METRIC = "fabricmon_port_priorities_info"
_SETTINGS = {
    "pfc": "PFC priorities",
    "ecn": "ECN priorities",
    "dscp": "DSCP map",
    "traffic_class": "traffic class",
    "default_tos": "default type of service",
}
"""What each label is called in alerts, as on a node."""


def recordings(site: Site) -> Iterator[Recording]:
    """Yield them."""
    board = f"{site.cluster}, board_id, setting"
    yield Recording(
        PORTS,
        _ports(site),
        "Compute RoCE ports of a node by board, setting and its value.",
        level=2,
    )
    yield Recording(
        NODES,
        f"count by ({board}, value) ({PORTS})",
        "Nodes that have a value of a setting on any port.",
        level=3,
    )
    yield Recording(
        ODD,
        _odd(site),
        "Ports of nodes that have another value of a setting than most nodes; the usual "
        "one is in the label usual.",
        level=4,
    )


def _ports(site: Site) -> str:
    """Return how many ports of a node have a value: a union of settings, then boards."""
    settings = "\nor\n".join(
        laid_out(f"""
            label_replace(
              label_replace(
                group by ({site.port}, {label}) ({site.series(_METRIC, f'{label}!=""')}),
                "value", "$1", "{label}", "(.+)"
              ),
              "setting", "{text}", "", ""
            )
        """)
        for label, text in _SETTINGS.items()
    )
    known = f"group by ({site.device}, board_id) ({FIRMWARE})"
    there = f"group by ({site.device}) ({site.series(_METRIC)})"
    return laid_out(f"""
        sum by ({site.node}, board_id, setting, value) (
          sum by ({site.device}, setting, value) (
            {settings}
          )
          * on ({site.device}) group_left (board_id) (
            {known}
            or on ({site.device})
            {there}
          )
        )
    """)


def _odd(site: Site) -> str:
    """Return the ports of nodes whose value few have, and most another one."""
    limits = site.options.comparisons.priorities
    board = f"{site.cluster}, board_id, setting"
    node = f"{site.node}, board_id, setting"
    most = f"max by ({board}) ({NODES})"
    there = f"count by ({board}) (group by ({node}) ({PORTS}))"
    usual = (
        f'label_replace(topk by ({board}) (1, {NODES}), "usual", "$1", "value", "(.+)")'
    )
    return laid_out(f"""
        (
          {PORTS}
          and on ({board}, value) (
            {NODES} <= on ({board}) group_left () {limits.minority_ratio:g} * {most}
          )
          and on ({board}) ({there} >= {limits.least_nodes})
          and on ({node}, value) (
            {PORTS} >= on ({node}) group_left ()
            {limits.ports_ratio:g} * sum by ({node}) ({PORTS})
          )
        )
        * on ({board}) group_left (usual) group by ({board}, usual) (
          {usual}
        )
        unless on ({site.node}) {site.series("fabricmon_maintenance")}
    """)


def alerts(site: Site) -> Iterator[Alert]:
    """Yield the alerts: a few odd nodes one by one, many as one story."""
    limits = site.options.comparisons.priorities
    board = f"{site.cluster}, board_id, setting"
    node = f"{site.node}, board_id, setting"
    odd = f"count by ({board}) (group by ({node}) ({ODD}))"
    there = f"count by ({board}) (group by ({node}) ({PORTS}))"
    few = f"clamp_min({limits.single_ratio:g} * {there}, {limits.single_nodes})"
    yield Alert(
        name="FabricPriorityDrift",
        kind="config_mismatch",
        expr=f"{ODD} and on ({board}) ({odd} <= on ({board}) {few})",
        notice=Notice.INFO,
        summary=f"{{{{ $labels.{site.names.node} }}}}: {{{{ $value }}}} ports have "
        "{{ $labels.setting }} {{ $labels.value }}, most equal nodes "
        "{{ $labels.usual }}",
        description="{{ with $labels.board_id }}Board {{ . }}. {{ end }}The agent there "
        "compares its rails with each other only. Traffic of this node may go by a "
        "priority that is not lossless or not marked: compare it with a node beside it "
        "(mlnx_qos, dcb), and look for the script that sets it at boot.",
        is_not="a fault of the link or the switch; where a change is being rolled out, "
        "the first nodes that have it are told so",
        for_seconds=limits.hold_seconds,
        keep_seconds=site.options.pace.keep_seconds,
        labels=told("warning"),
        dashboard="fabricmon-node",
    )
    yield Alert(
        name="FabricPriorityMixed",
        kind="config_mismatch",
        expr=f"{odd} > on ({board}) {few}",
        notice=Notice.INFO,
        summary="{{ $value }} nodes have other {{ $labels.setting }} than most"
        "{{ with $labels.board_id }} with board {{ . }}{{ end }}",
        description="So many that it is a change under way, one that stopped half way, "
        "or two kinds of nodes: a job that spans both has losses where they differ.",
        is_not="a fault of these nodes",
        for_seconds=limits.hold_seconds,
        keep_seconds=site.options.pace.keep_seconds,
        labels=told("info"),
    )
