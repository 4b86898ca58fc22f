"""Stragglers: rails against each other, nodes against each other, ranks."""

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
    Variable,
    compute,
)

_RAIL = Variable(
    "rail", "Rail", f'fabricmon_infiniband_port_info{{{FLEET},role="compute"}}'
)
_BUSY = compute(
    f"max by (cluster,node,device,port) (fabricmon_port_busy_ratio{{{FLEET}}})", "rail"
)
_PEAK = compute(
    "max by (cluster,node,device,port) (fabricmon_port_burst_rate_bytes_per_second"
    f'{{{FLEET},quantile="0.99"}})',
    "rail",
)

_RAILS = Row(
    "Rails",
    (
        Panel(
            "Busy by rail",
            "Median over nodes. The rail that paces a job is busy longer than its "
            "peers, on all nodes.",
            Look.SERIES,
            "percentunit",
            (Query(f"quantile by (rail) (0.5, {_BUSY})", "rail {{rail}}"),),
        ),
        Panel(
            "Peak rate by rail",
            "Median over nodes. A capped rail peaks lower.",
            Look.SERIES,
            "bps",
            (Query(f"8 * quantile by (rail) (0.5, {_PEAK})", "rail {{rail}}"),),
        ),
        Panel(
            "Slow rails as nodes tell them",
            "Nodes that hold a finding about a rail.",
            Look.SERIES,
            "none",
            (
                Query(
                    f"count by (rail, kind) (fabricmon_rail_finding_open{{{FLEET}}})",
                    "rail {{rail}} {{kind}}",
                ),
            ),
        ),
        Panel(
            "Places found",
            "Ports that local evidence makes the straggler, and jobs that are slow for "
            "another reason than the network.",
            Look.SERIES,
            "none",
            (
                Query(
                    "sum by (node, device, kind) (fabricmon_finding_open"
                    f'{{{FLEET},kind=~"straggler_link|host_path_slow|not_network|'
                    'post_flap_degraded|rate_degraded|pcie_degraded"})',
                    "{{kind}} {{node}} {{device}}",
                ),
            ),
        ),
    ),
)

_NODES = Row(
    "Nodes on the chosen rail",
    (
        Panel(
            "Busy",
            "Nodes of one rail against each other: the slow hop is busy without a gap.",
            Look.SERIES,
            "percentunit",
            (
                Query(
                    f"topk(12, max by (node) (({_BUSY}) and on ({PLACE}) "
                    f'fabricmon_infiniband_port_info{{{FLEET},rail=~"$rail"}}))',
                    "{{node}}",
                ),
            ),
            to_node=True,
        ),
        Panel(
            "Peak rate",
            "The lowest 12.",
            Look.SERIES,
            "bps",
            (
                Query(
                    f"8 * bottomk(12, max by (node) (({_PEAK}) and on ({PLACE}) "
                    f'fabricmon_infiniband_port_info{{{FLEET},rail=~"$rail"}}) > 0)',
                    "{{node}}",
                ),
            ),
            to_node=True,
        ),
        Panel(
            "Pauses within a burst",
            "Healthy rails pause between steps; the slow hop does not.",
            Look.MATRIX,
            "short",
            (
                Query(
                    "min by (node, rail) ("
                    + compute(f"fabricmon_port_burst_idle_gaps{{{FLEET}}}", "rail")
                    + ")"
                ),
            ),
            24,
            9,
            Colours.BAD_WHEN_LOW,
            rows="node",
            columns="rail",
            high=10,
        ),
    ),
)

_RANKS = Row(
    "Ranks",
    (
        Panel(
            "Time in a collective",
            "The shortest is the rank that comes late: the others wait for it. Needs "
            "NCCL's Inspector.",
            Look.SERIES,
            "s",
            (
                Query(
                    "bottomk(8, min by (node, comm, rank, collective) "
                    f"(fabricmon_collective_execution_seconds{{{FLEET}}}))",
                    "{{comm}} rank {{rank}} {{collective}} {{node}}",
                ),
            ),
        ),
        Panel(
            "Bus bandwidth",
            "The lowest, by rank.",
            Look.SERIES,
            "Bps",
            (
                Query(
                    "bottomk(8, min by (node, comm, rank, collective) "
                    "(fabricmon_collective_bus_bandwidth_bytes_per_second"
                    f"{{{FLEET}}}))",
                    "{{comm}} rank {{rank}} {{collective}} {{node}}",
                ),
            ),
        ),
    ),
)

BOARD = Board(
    "fabricmon-stragglers",
    "Fabric / Stragglers",
    "Rails and nodes against each other on busy time and peak rate, and late ranks.",
    (CLUSTER, _RAIL),
    (_RAILS, _NODES, _RANKS),
)
