"""The agents themselves: whether they see, what they cannot see, what they cost."""

from panel import CLUSTER, FLEET, NODE, NODES, Board, Colours, Look, Panel, Query, Row

_SIGHT = Row(
    "What they see",
    (
        Panel(
            "Agents by version",
            "A fleet that is being upgraded shows two.",
            Look.SERIES,
            "none",
            (
                Query(
                    f"count by (version) (fabricmon_build_info{{{FLEET}}})",
                    "{{version}}",
                ),
            ),
            8,
        ),
        Panel(
            "Configurations",
            "Nodes by hash of their configuration.",
            Look.SERIES,
            "none",
            (Query(f"count by (hash) (fabricmon_config_info{{{FLEET}}})", "{{hash}}"),),
            8,
        ),
        Panel(
            "Blind",
            "Kinds that cannot be judged, and why. Silence about them is no health.",
            Look.TABLE,
            "none",
            (
                Query(
                    f"count by (kind, reason) (fabricmon_detector_blind{{{NODE}}})",
                    "nodes",
                ),
            ),
            8,
            columns_shown=("kind", "reason"),
        ),
        Panel(
            "Oldest source",
            "Time since a source last succeeded.",
            Look.SERIES,
            "s",
            (
                Query(
                    "topk(10, max by (node, source) (fabricmon_source_age_seconds"
                    f"{{{NODE}}}))",
                    "{{node}} {{source}}",
                ),
            ),
            8,
        ),
        Panel(
            "Failed reads",
            "By source and error.",
            Look.SERIES,
            "eps",
            (
                Query(
                    "sum by (source, errno) (rate(fabricmon_read_errors_total"
                    f"{{{NODE}}}[$__rate_interval]))",
                    "{{source}} {{errno}}",
                ),
            ),
            8,
        ),
        Panel(
            "Counters at their ceiling",
            "They show nothing until somebody clears them.",
            Look.SERIES,
            "none",
            (
                Query(
                    f"count by (counter) (fabricmon_port_count_saturated{{{NODE}}})",
                    "{{counter}}",
                ),
            ),
            8,
        ),
        Panel(
            "Counters that fell",
            "Reset by somebody or something.",
            Look.SERIES,
            "short",
            (
                Query(
                    "sum by (node) (increase(fabricmon_port_count_resets_total"
                    f"{{{NODE}}}[$__rate_interval])) > 0",
                    "{{node}}",
                ),
            ),
            8,
        ),
        Panel(
            "Clock error",
            "Above a second no order of events over nodes is judged.",
            Look.SERIES,
            "s",
            (Query(f"topk(10, fabricmon_clock_error_seconds{{{NODE}}})", "{{node}}"),),
            8,
        ),
        Panel(
            "Under maintenance",
            "Places about which nothing is told.",
            Look.SERIES,
            "none",
            (Query(f"count by (node) (fabricmon_maintenance{{{NODE}}})", "{{node}}"),),
            8,
        ),
    ),
)

_COST = Row(
    "What they cost",
    (
        Panel(
            "Processor",
            "Share of one core.",
            Look.SERIES,
            "percentunit",
            (
                Query(
                    "topk(10, rate(process_cpu_seconds_total"
                    f'{{{NODE},job=~".*fabricmon.*"}}[$__rate_interval]))',
                    "{{node}}",
                ),
            ),
            8,
        ),
        Panel(
            "Memory",
            "Resident.",
            Look.SERIES,
            "bytes",
            (
                Query(
                    "topk(10, process_resident_memory_bytes"
                    f'{{{NODE},job=~".*fabricmon.*"}})',
                    "{{node}}",
                ),
            ),
            8,
        ),
        Panel(
            "Reads that reach firmware",
            "Commands to devices; the bar is 40 a second at rest for eight ports.",
            Look.SERIES,
            "ops",
            (
                Query(
                    "topk(10, rate(fabricmon_firmware_reads_total"
                    f"{{{NODE}}}[$__rate_interval]))",
                    "{{node}}",
                ),
            ),
            8,
        ),
        Panel(
            "Polls",
            "Longest last poll of a lane.",
            Look.SERIES,
            "s",
            (
                Query(
                    "topk(10, max by (node, lane) (fabricmon_lane_duration_seconds"
                    f"{{{NODE}}}))",
                    "{{node}} {{lane}}",
                ),
            ),
            8,
        ),
        Panel(
            "Scrapes",
            "How long Prometheus took.",
            Look.SERIES,
            "s",
            (
                Query(
                    f'topk(10, scrape_duration_seconds{{{NODE},job=~".*fabricmon.*"}})',
                    "{{node}}",
                ),
            ),
            8,
        ),
        Panel(
            "Series",
            "What a scrape brought.",
            Look.SERIES,
            "none",
            (
                Query(
                    f'topk(10, scrape_samples_scraped{{{NODE},job=~".*fabricmon.*"}})',
                    "{{node}}",
                ),
            ),
            8,
            colours=Colours.PLAIN,
        ),
    ),
)

BOARD = Board(
    "fabricmon-agents",
    "Fabric / Agents",
    "Whether the agents see, what they cannot see, what they cost.",
    (CLUSTER, NODES),
    (_SIGHT, _COST),
)
