"""Congestion on RoCE: who holds whom up."""

from panel import (
    CLUSTER,
    DEVICE,
    DEVICES,
    NODES,
    Board,
    Colours,
    Look,
    Panel,
    Query,
    Row,
)

_PORT = "{{node}} {{device}}/{{port}}"
_IB = "fabricmon_infiniband"


def _top(expr: str) -> str:
    return f"topk(15, {expr})"


def _rate(metric: str) -> str:
    return f"rate({metric}{{{DEVICE}}}[$__rate_interval])"


def _panel(title: str, what: str, unit: str, *metrics: tuple[str, str]) -> Panel:
    queries = tuple(
        Query(_top(_rate(metric)), f"{_PORT} {word}".strip())
        for metric, word in metrics
    )
    return Panel(title, what, Look.SERIES, unit, queries)


_PAUSE = Row(
    "Pause",
    (
        _panel(
            "Pause sent: share of time",
            "This host cannot absorb what it gets. One port far above all others is "
            "the origin of a storm.",
            "percentunit",
            ("fabricmon_pause_transmitted_seconds_total", "priority {{priority}}"),
        ),
        _panel(
            "Pause received: share of time",
            "The network cannot absorb what the port sends: it suffers.",
            "percentunit",
            ("fabricmon_pause_received_seconds_total", "priority {{priority}}"),
        ),
        _panel(
            "Pause frames received",
            "Of devices that do not count the time.",
            "pps",
            ("fabricmon_pause_frames_received_total", "priority {{priority}}"),
        ),
        Panel(
            "Who paused first",
            "Since when a port holds the network up, by its own clock.",
            Look.TABLE,
            "dateTimeAsIso",
            (
                Query(
                    f"1000 * fabricmon_port_pause_onset_timestamp_seconds{{{DEVICE}}}",
                    "since",
                ),
            ),
            columns_shown=("node", "device", "port"),
        ),
    ),
)

_MARKS = Row(
    "Marks and notifications",
    (
        _panel(
            "ECN marks received",
            "Packets that a switch marked on their way here.",
            "pps",
            (f"{_IB}_np_ecn_marked_roce_packets_received_total", ""),
        ),
        _panel(
            "Notifications sent",
            "CNPs of the receiver: it is where flows meet.",
            "pps",
            (f"{_IB}_np_cnp_packets_sent_total", ""),
        ),
        _panel(
            "Notifications obeyed",
            "CNPs that made a sender slow down.",
            "pps",
            (f"{_IB}_rp_cnp_packets_handled_total", ""),
        ),
        _panel(
            "Resends",
            "Lost packets, as the sender sees them.",
            "pps",
            (f"{_IB}_roce_adp_retransmits_total", "resent"),
            (f"{_IB}_packet_sequence_errors_total", "sequence errors"),
        ),
    ),
)

_DROPS = Row(
    "Drops and the host behind them",
    (
        _panel(
            "Discards",
            "Packets dropped at the port for want of buffer.",
            "pps",
            ("fabricmon_phy_discards_received_total", "received"),
            (f"{_IB}_out_of_buffer_drops_total", "no receive posted"),
        ),
        _panel(
            "PCIe stalls",
            "Seconds per second in which the device waited for the host: beside pause "
            "sent, the mark of a host that is the cause.",
            "percentunit",
            ("fabricmon_pci_outbound_stalled_seconds_total", "{{operation}}"),
        ),
        _panel(
            "Storms",
            "Alarms of the firmware: pause for seconds on end.",
            "short",
            ("fabricmon_pause_storms_total", "{{level}}"),
        ),
        Panel(
            "Findings about congestion",
            "What agents make of it.",
            Look.SERIES,
            "none",
            (
                Query(
                    "sum by (kind, role) (fabricmon_finding_open"
                    f'{{{DEVICE},kind=~"congestion|pause_.*|receiver_stall"}})',
                    "{{kind}} {{role}}",
                ),
            ),
            colours=Colours.PLAIN,
        ),
    ),
)

_SETTINGS = ("pfc", "ecn", "dscp", "traffic_class", "default_tos")

_PRIORITIES = Row(
    "Settings of priorities",
    (
        Panel(
            "Ports by their settings",
            "Compute ports with equal PFC, ECN, DSCP map and traffic class. A row with "
            "few ports is a node that was not set up, or a change under way.",
            Look.TABLE,
            "none",
            (
                Query(
                    f"count by (cluster, {', '.join(_SETTINGS)}) "
                    f"(fabricmon_port_priorities_info{{{DEVICE}}})",
                    "ports",
                ),
            ),
            width=24,
            columns_shown=("cluster", *_SETTINGS),
        ),
    ),
)

BOARD = Board(
    "fabricmon-roce",
    "Fabric / RoCE congestion",
    "Pause in and out, ECN marks, congestion notifications, discards, PCIe stalls.",
    (CLUSTER, NODES, DEVICES),
    (_PAUSE, _MARKS, _DROPS, _PRIORITIES),
)
