"""One node: its ports, and everything that is known of them."""

from panel import (
    CLUSTER,
    DEVICE,
    DEVICES,
    NODE,
    NODES,
    PLACE,
    Board,
    Colours,
    Look,
    Panel,
    Query,
    Row,
)

_PORT = "{{node}} {{device}}/{{port}}"
_IB = "fabricmon_infiniband"


def _rate(metric: str, labels: str = DEVICE) -> str:
    return f"rate({metric}{{{labels}}}[$__rate_interval])"


def _rates(title: str, what: str, unit: str, *metrics: tuple[str, str]) -> Panel:
    """Return time series of counters, each metric with a word for its legend."""
    queries = tuple(
        Query(_rate(metric), f"{_PORT} {word}".strip()) for metric, word in metrics
    )
    return Panel(title, what, Look.SERIES, unit, queries)


_NOW = Row(
    "Now",
    (
        Panel(
            "Verdict",
            "The worst of the node's ports.",
            Look.STAT,
            "none",
            (Query(f"max(fabricmon_node_verdict{{{NODE}}})"),),
            4,
            5,
            Colours.VERDICT,
        ),
        Panel(
            "Findings",
            "What the agent holds open here; the status page of the node has the "
            "evidence.",
            Look.TABLE,
            "none",
            (Query(f"fabricmon_finding_open{{{NODE}}}", "open"),),
            20,
            5,
            columns_shown=(
                "node", "kind", "severity", "role", "action", "device", "port",
            ),
        ),
        Panel(
            "Verdicts of ports",
            "0 healthy, 1 unknown, 2 degraded, 3 down.",
            Look.TIMELINE,
            "none",
            (Query(f"fabricmon_port_verdict{{{DEVICE}}}", _PORT),),
            12,
            9,
            Colours.VERDICT,
        ),
        Panel(
            "States of ports",
            "The logical state as the driver tells it.",
            Look.TIMELINE,
            "none",
            (Query(f"{_IB}_state_id{{{DEVICE}}}", _PORT),),
            12,
            9,
            Colours.STATE,
        ),
    ),
)  # fmt: skip

_TRAFFIC = Row(
    "Traffic",
    (
        Panel(
            "Sent and received",
            "Mean rate between scrapes. All rails of a job show the same mean, also "
            "the slow one: look at busy and peak.",
            Look.SERIES,
            "bps",
            (
                Query(
                    f"8 * {_rate(f'{_IB}_port_data_transmitted_bytes_total')}",
                    f"{_PORT} sent",
                ),
                Query(
                    f"-8 * {_rate(f'{_IB}_port_data_received_bytes_total')}",
                    f"{_PORT} received",
                ),
            ),
        ),
        Panel(
            "Busy",
            "Share of a burst window in which the port carried data.",
            Look.SERIES,
            "percentunit",
            (
                Query(
                    f"fabricmon_port_busy_ratio{{{DEVICE}}}",
                    f"{_PORT} {{{{direction}}}}",
                ),
            ),
        ),
        Panel(
            "Peak rate",
            "99th percentile within a burst window.",
            Look.SERIES,
            "bps",
            (
                Query(
                    "8 * fabricmon_port_burst_rate_bytes_per_second"
                    f'{{{DEVICE},quantile="0.99"}}',
                    f"{_PORT} {{{{direction}}}}",
                ),
            ),
        ),
        Panel(
            "Link rate below expectation",
            "Rate of the link as a share of what is expected of it.",
            Look.SERIES,
            "percentunit",
            (
                Query(
                    f"{_IB}_rate_bytes_per_second{{{DEVICE}}} / on ({PLACE}) "
                    f"{_IB}_expected_rate_bytes_per_second{{{DEVICE}}}",
                    _PORT,
                ),
            ),
        ),
    ),
)

_LINK = Row(
    "Link",
    (
        _rates(
            "Bit errors",
            "What the line damages. On an idle link too: the line itself.",
            "eps",
            (f"{_IB}_symbol_error_total", "symbols"),
            (f"{_IB}_port_errors_received_total", "packets"),
        ),
        Panel(
            "Flaps and retraining",
            "In the chosen range.",
            Look.SERIES,
            "short",
            (
                Query(
                    f"increase(fabricmon_port_flaps_total{{{DEVICE}}}[$__rate_interval])",
                    f"{_PORT} flaps",
                ),
                Query(
                    f"increase({_IB}_link_error_recovery_total{{{DEVICE}}}"
                    "[$__rate_interval])",
                    f"{_PORT} recoveries",
                ),
                Query(
                    f"increase({_IB}_link_downed_total{{{DEVICE}}}[$__rate_interval])",
                    f"{_PORT} downs",
                ),
            ),
        ),
        _rates(
            "Transport",
            "What this port's connections suffer: the fault is usually elsewhere.",
            "eps",
            (f"{_IB}_packet_sequence_errors_total", "sequence errors"),
            (f"{_IB}_local_ack_timeout_errors_total", "time-outs"),
            (f"{_IB}_out_of_sequence_packets_received_total", "out of order"),
            (f"{_IB}_rnr_nak_retry_packets_received_total", "receiver not ready"),
        ),
        _rates(
            "Waiting to send",
            "Ticks in which data was queued and nothing was sent; the length of a tick "
            "depends on the device.",
            "short",
            (f"{_IB}_port_transmit_wait_total", ""),
        ),
    ),
)

_HOST = Row(
    "Host",
    (
        Panel(
            "PCIe width",
            "Lanes in use, and what both ends can do.",
            Look.SERIES,
            "none",
            (
                Query(
                    f'fabricmon_pci_current_link_width{{{DEVICE},end="device"}}',
                    "{{node}} {{device}} in use",
                ),
                Query(
                    f"min by (node, device) (fabricmon_pci_max_link_width{{{DEVICE}}})",
                    "{{node}} {{device}} possible",
                ),
            ),
        ),
        Panel(
            "PCIe errors",
            "Repaired by the link; a storm of them comes before a lost lane.",
            Look.SERIES,
            "eps",
            (
                Query(
                    _rate("fabricmon_pci_aer_correctable_errors_total"),
                    "{{node}} {{device}}",
                ),
            ),
        ),
        Panel(
            "What they are",
            "Identity of the ports.",
            Look.TABLE,
            "none",
            (Query(f"{_IB}_port_info{{{DEVICE}}}", "ports"),),
            12,
            8,
            columns_shown=(
                "node", "device", "port", "link_layer", "netdev", "pci_address", "rail",
                "role", "leaf", "guid",
            ),
        ),
        Panel(
            "Firmware",
            "Identity of the devices.",
            Look.TABLE,
            "none",
            (Query(f"{_IB}_device_info{{{DEVICE}}}", "devices"),),
            12,
            8,
            columns_shown=(
                "node", "device", "hca_type", "board_id", "firmware_version", "driver",
                "numa_node",
            ),
        ),
    ),
)  # fmt: skip

BOARD = Board(
    "fabricmon-node",
    "Fabric / Node",
    "Ports of one node: states, traffic, errors, bursts, PCIe, findings.",
    (CLUSTER, NODES, DEVICES),
    (_NOW, _TRAFFIC, _LINK, _HOST),
)
