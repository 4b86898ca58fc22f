"""Jobs: what carries their data, what their logs say, whom they suspect."""

from panel import CLUSTER, FLEET, Board, Colours, Look, Panel, Query, Row, training

_KNOWN = training(f"fabricmon_job_info{{{FLEET}}}")

_WHAT = Row(
    "Jobs",
    (
        Panel(
            "Jobs by node",
            "Jobs that agents know of, and the rails they use.",
            Look.TABLE,
            "none",
            (Query(f"count by (training, rails) ({_KNOWN})", "nodes"),),
            columns_shown=("training", "rails"),
        ),
        Panel(
            "Transport",
            "What carries the data between nodes, as the log says. Sockets beside "
            "active RDMA ports are a fall back.",
            Look.TABLE,
            "none",
            (
                Query(
                    "count by (training, transport) ("
                    + training(f"fabricmon_job_transport_info{{{FLEET}}}")
                    + ")",
                    "nodes",
                ),
            ),
            columns_shown=("training", "transport"),
        ),
        Panel(
            "Outage that a job survives",
            "By its own retry settings; a link takes 7 s or more to train again.",
            Look.SERIES,
            "s",
            (
                Query(
                    "min by (training) ("
                    + training(f"fabricmon_job_outage_budget_seconds{{{FLEET}}}")
                    + ")",
                    "{{training}}",
                ),
            ),
        ),
        Panel(
            "Findings from logs",
            "Roots of errors; what followed from them is not counted.",
            Look.SERIES,
            "none",
            (
                Query(
                    "sum by (kind, severity) (fabricmon_finding_open"
                    f'{{{FLEET},kind=~"nccl_.*|peer_suspect|retries_exhausted"}})',
                    "{{kind}} {{severity}}",
                ),
            ),
        ),
    ),
)

_LOGS = Row(
    "Logs",
    (
        Panel(
            "Events in logs",
            "By kind.",
            Look.SERIES,
            "short",
            (
                Query(
                    "sum by (kind) (increase(fabricmon_log_events_total"
                    f"{{{FLEET}}}[$__rate_interval]))",
                    "{{kind}}",
                ),
            ),
        ),
        Panel(
            "Suspected peers",
            "HCAs and processes that failed towards a peer: several nodes that name "
            "one are worth more than one that names several.",
            Look.TABLE,
            "none",
            (
                Query(f"sum by (peer) (fabricmon_peer_votes{{{FLEET}}})", "votes"),
                Query(f"count by (peer) (fabricmon_peer_votes{{{FLEET}}})", "nodes"),
            ),
            columns_shown=("peer",),
        ),
        Panel(
            "Last event",
            "When the last event of a kind came in.",
            Look.TABLE,
            "dateTimeAsIso",
            (
                Query(
                    "1000 * max by (kind) (fabricmon_log_last_event_timestamp_seconds"
                    f"{{{FLEET}}})",
                    "at",
                ),
            ),
            columns_shown=("kind",),
        ),
        Panel(
            "Logs behind",
            "Bytes of logs that are there and not read yet.",
            Look.SERIES,
            "bytes",
            (Query(f"topk(10, fabricmon_log_unread_bytes{{{FLEET}}})", "{{node}}"),),
            colours=Colours.PLAIN,
        ),
    ),
)

BOARD = Board(
    "fabricmon-jobs",
    "Fabric / NCCL jobs",
    "Transports, events and suspects of jobs, out of the logs of NCCL, RCCL and OFI.",
    (CLUSTER,),
    (_WHAT, _LOGS),
)
