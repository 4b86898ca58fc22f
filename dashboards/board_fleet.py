"""The fleet at a glance: what is wrong, where, and since when."""

from panel import (
    CLUSTER,
    FLEET,
    PLACE,
    Board,
    Colours,
    Look,
    Panel,
    Query,
    Row,
    compute,
)

_ALERTS = f'ALERTS{{{FLEET},alertname=~"Fabric.*",alertstate="firing"}}'
_FLAPPED = (
    f"increase(fabricmon_port_flaps_total{{{FLEET}}}[$__range]) > 0"
    f" or increase(fabricmon_port_downtime_seconds_total{{{FLEET}}}[$__range]) > 0"
)


def _ports(title: str, verdict: int, colours: Colours, what: str) -> Panel:
    query = f"count(fabricmon_port_verdict{{{FLEET}}} == {verdict}) or vector(0)"
    return _tile(title, query, colours, what)


def _tile(title: str, query: str, colours: Colours, what: str) -> Panel:
    return Panel(title, what, Look.STAT, "none", (Query(query),), 3, 4, colours=colours)


_NOW = Row(
    "Now",
    (
        _tile(
            "Nodes",
            f"count(fabricmon_node_verdict{{{FLEET}}})",
            Colours.PLAIN,
            "Nodes whose agent answers.",
        ),
        _ports("Healthy ports", 0, Colours.PLAIN, "Ports without any finding."),
        _ports("Down", 3, Colours.GOOD_AT_ZERO, "Ports that should be up and are not."),
        _ports("Degraded", 2, Colours.GOOD_AT_ZERO, "Ports with a finding."),
        _ports("Unknown", 1, Colours.PLAIN, "Ports that cannot be judged."),
        _tile(
            "Pages",
            f'count({_ALERTS[:-1]},notice="page"}}) or vector(0)',
            Colours.GOOD_AT_ZERO,
            "Alerts that wake somebody: critical, to be acted on, with a job there.",
        ),
        _tile(
            "Tickets",
            f'count({_ALERTS[:-1]},notice="ticket"}}) or vector(0)',
            Colours.GOOD_AT_ZERO,
            "Alerts to be acted on that can wait.",
        ),
        _tile(
            "Advice open",
            f"sum(fabricmon_finding_actionable{{{FLEET}}}) or vector(0)",
            Colours.PLAIN,
            "Findings that advise to act. More than the alert budget at once is a "
            "fault of the fabric, not of so many nodes.",
        ),
        Panel(
            "Alerts",
            "What fires now, of nodes and of the fleet. Causes hide their consequences "
            "in Alertmanager, not here.",
            Look.TABLE,
            "none",
            (
                Query(
                    "sum by (cluster,alertname,kind,notice,severity,role,action,node,"
                    f"device,port,rail,leaf,peer,training) ({_ALERTS})",
                    "alerts",
                ),
            ),
            24,
            8,
            columns_shown=(
                "notice", "alertname", "severity", "role", "action", "node", "device",
                "port", "rail", "leaf", "peer", "training",
            ),
        ),
    ),
)  # fmt: skip

_MAP = Row(
    "Rails by nodes",
    (
        Panel(
            "Busy",
            "Share of time in which a rail of a node carried data, by bursts. A slow "
            "link makes its whole rail busy longer.",
            Look.MATRIX,
            "percentunit",
            (
                Query(
                    "max by (node, rail) ("
                    + compute(
                        "max by (cluster,node,device,port) "
                        f"(fabricmon_port_busy_ratio{{{FLEET}}})",
                        "rail",
                    )
                    + ")"
                ),
            ),
            8,
            10,
            Colours.BAD_WHEN_HIGH,
            rows="node",
            columns="rail",
        ),
        Panel(
            "Peak rate",
            "Rate of a rail while it is busy (99th percentile within a burst), as a "
            "share of its link. A capped link never reaches what its peers reach.",
            Look.MATRIX,
            "percentunit",
            (
                Query(
                    "max by (node, rail) ("
                    + compute(
                        "max by (cluster,node,device,port) "
                        "(fabricmon_port_burst_rate_bytes_per_second"
                        f'{{{FLEET},quantile="0.99"}}) / on ({PLACE}) '
                        f"fabricmon_infiniband_rate_bytes_per_second{{{FLEET}}}",
                        "rail",
                    )
                    + ")"
                ),
            ),
            8,
            10,
            Colours.BAD_WHEN_LOW,
            rows="node",
            columns="rail",
        ),
        Panel(
            "Errors in an hour",
            "Damaged symbols and packets, and retraining, of the last hour.",
            Look.MATRIX,
            "short",
            (
                Query(
                    "sum by (node, rail) ("
                    + compute(
                        "increase(fabricmon_infiniband_symbol_error_total"
                        f"{{{FLEET}}}[1h])"
                        " + increase(fabricmon_infiniband_port_errors_received_total"
                        f"{{{FLEET}}}[1h])"
                        " + increase(fabricmon_infiniband_link_error_recovery_total"
                        f"{{{FLEET}}}[1h])",
                        "rail",
                    )
                    + ")"
                ),
            ),
            8,
            10,
            Colours.BAD_WHEN_HIGH,
            rows="node",
            columns="rail",
            high=100,
        ),
    ),
)

_WORST = Row(
    "Worst links",
    (
        Panel(
            "Worst links and the evidence",
            "The 20 worst ports by each sign; a link that is bad shows in several.",
            Look.TABLE,
            "short",
            (
                Query(
                    f"topk(20, increase(fabricmon_port_flaps_total{{{FLEET}}}[24h]) > 0)",
                    "flaps, 24 h",
                ),
                Query(
                    "topk(20, increase(fabricmon_port_downtime_seconds_total"
                    f"{{{FLEET}}}[24h]) > 0)",
                    "down, s in 24 h",
                ),
                Query(
                    "topk(20, increase(fabricmon_infiniband_symbol_error_total"
                    f"{{{FLEET}}}[1h]) > 0)",
                    "symbol errors, 1 h",
                ),
                Query(
                    "topk(20, increase(fabricmon_infiniband_packet_sequence_errors_total"
                    f"{{{FLEET}}}[1h]) > 0)",
                    "sequence errors, 1 h",
                ),
                Query(
                    f"topk(20, fabricmon_port_verdict{{{FLEET}}} >= 2)",
                    "verdict",
                ),
            ),
            24,
            10,
            columns_shown=("node", "device", "port"),
        ),
        Panel(
            "Flaps",
            "Ports that went down in this range; a leaf that reboots is a column.",
            Look.TIMELINE,
            "none",
            (
                Query(
                    f"fabricmon_infiniband_state_id{{{FLEET}}} and on ({PLACE}) "
                    f"({_FLAPPED})",
                    "{{node}} {{device}}/{{port}}",
                ),
            ),
            24,
            10,
            Colours.STATE,
            to_node=True,
        ),
    ),
)

_TREND = Row(
    "Over time",
    (
        Panel(
            "Open findings by kind",
            "What agents hold open.",
            Look.SERIES,
            "none",
            (Query(f"sum by (kind) (fabricmon_finding_open{{{FLEET}}})", "{{kind}}"),),
        ),
        Panel(
            "Traffic",
            "What all compute ports sent.",
            Look.SERIES,
            "bps",
            (
                Query(
                    "8 * sum by (rail) ("
                    + compute(
                        "rate(fabricmon_infiniband_port_data_transmitted_bytes_total"
                        f"{{{FLEET}}}[$__rate_interval])",
                        "rail",
                    )
                    + ")",
                    "rail {{rail}}",
                ),
            ),
        ),
    ),
)

BOARD = Board(
    "fabricmon-fleet",
    "Fabric / Fleet",
    "The RDMA fabric of a cluster: verdicts, alerts, rails by nodes, worst links.",
    (CLUSTER,),
    (_NOW, _MAP, _WORST, _TREND),
)
