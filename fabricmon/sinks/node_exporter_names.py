"""The names that node_exporter's infiniband collector has, for who moves from it.

Off unless ``metrics.node_exporter_names`` is set. The tables are of the collector as of
August 2026: older ones export fewer of these, and none another value. It goes by the
names of files alone, whatever the driver; so do these aliases.
"""

from __future__ import annotations

from fabricmon.catalogue import CounterSpec, Directory
from fabricmon.sinks import port_measures
from fabricmon.sinks.families import PORT, Family
from fabricmon.sinks.port_measures import Hardware, each_port
from fabricmon.value import Value

PREFIX = "node_infiniband_"

_FAMILY_PREFIX = "node"

LIFESPAN = "lifespan_seconds"
"""It rounds milliseconds down to whole seconds, so nearly always to 0."""

_COUNTERS = {
    "VL15_dropped": "vl15_dropped",
    "excessive_buffer_overrun_errors": "excessive_buffer_overrun_errors",
    "link_downed": "link_downed",
    "link_error_recovery": "link_error_recovery",
    "local_link_integrity_errors": "local_link_integrity_errors",
    "multicast_rcv_packets": "multicast_packets_received",
    "multicast_xmit_packets": "multicast_packets_transmitted",
    "port_rcv_constraint_errors": "port_constraint_errors_received",
    "port_rcv_data": "port_data_received_bytes",
    "port_rcv_discards": "port_discards_received",
    "port_rcv_errors": "port_errors_received",
    "port_rcv_packets": "port_packets_received",
    "port_rcv_remote_physical_errors": "port_receive_remote_physical_errors",
    "port_rcv_switch_relay_errors": "port_receive_switch_relay_errors",
    "port_xmit_constraint_errors": "port_constraint_errors_transmitted",
    "port_xmit_data": "port_data_transmitted_bytes",
    "port_xmit_discards": "port_discards_transmitted",
    "port_xmit_packets": "port_packets_transmitted",
    "port_xmit_wait": "port_transmit_wait",
    "symbol_error": "symbol_error",
    "unicast_rcv_packets": "unicast_packets_received",
    "unicast_xmit_packets": "unicast_packets_transmitted",
}
_COUNTERS_EXT = {
    "port_multicast_rcv_packets": "legacy_multicast_packets_received",
    "port_multicast_xmit_packets": "legacy_multicast_packets_transmitted",
    "port_rcv_data_64": "legacy_data_received_bytes",
    "port_rcv_packets_64": "legacy_packets_received",
    "port_unicast_rcv_packets": "legacy_unicast_packets_received",
    "port_unicast_xmit_packets": "legacy_unicast_packets_transmitted",
    "port_xmit_data_64": "legacy_data_transmitted_bytes",
    "port_xmit_packets_64": "legacy_packets_transmitted",
}
_HW_COUNTERS = {
    "duplicate_request": "duplicate_requests_packets",
    "implied_nak_seq_err": "implied_nak_seq_errors",
    "local_ack_timeout_err": "local_ack_timeout_errors",
    "np_cnp_sent": "np_cnp_packets_sent",
    "np_ecn_marked_roce_packets": "np_ecn_marked_roce_packets_received",
    "out_of_buffer": "out_of_buffer_drops",
    "out_of_sequence": "out_of_sequence_packets_received",
    "packet_seq_err": "packet_sequence_errors",
    "req_cqe_error": "req_cqes_errors",
    "req_cqe_flush_error": "req_cqes_flush_errors",
    "req_remote_access_errors": "req_remote_access_errors",
    "req_remote_invalid_request": "req_remote_invalid_request_errors",
    "resp_cqe_error": "resp_cqes_errors",
    "resp_cqe_flush_error": "resp_cqes_flush_errors",
    "resp_local_length_error": "resp_local_length_errors",
    "resp_remote_access_errors": "resp_remote_access_errors",
    "rnr_nak_retry_err": "rnr_nak_retry_packets_received",
    "roce_adp_retrans": "roce_adp_retransmits",
    "roce_adp_retrans_to": "roce_adp_retransmits_timeout",
    "roce_slow_restart": "roce_slow_restart_used",
    "roce_slow_restart_cnps": "roce_slow_restart_cnps",
    "roce_slow_restart_trans": "roce_slow_restart",
    "rp_cnp_handled": "rp_cnp_packets_handled",
    "rp_cnp_ignored": "rp_cnp_ignored_packets_received",
    "rx_atomic_requests": "rx_atomic_requests",
    "rx_dct_connect": "rx_dct_connect_requests",
    "rx_icrc_encapsulated": "rx_icrc_encapsulated_errors",
    "rx_read_requests": "rx_read_requests",
    "rx_write_requests": "rx_write_requests",
}


class Alias(Value, frozen=True):
    """What node_exporter calls a file's number; ``factor`` is its conversion."""

    metric: str
    kind: str = "counter"
    factor: float = 1


_WORDS = frozenset(
    {"port_rcv_data", "port_xmit_data", "port_rcv_data_64", "port_xmit_data_64"}
)  # of four octets

ALIASES: dict[tuple[Directory, str], Alias] = {
    **{
        (directory, file): Alias(
            f"{PREFIX}{stem}_total", factor=4 if file in _WORDS else 1
        )
        for directory, names in (
            (Directory.COUNTERS, _COUNTERS),
            (Directory.COUNTERS_EXT, _COUNTERS_EXT),
            (Directory.HW_COUNTERS, _HW_COUNTERS),
        )
        for file, stem in names.items()
    },
    (Directory.HW_COUNTERS, "lifespan"): Alias(
        f"{PREFIX}{LIFESPAN}", "gauge", factor=0.001
    ),
}
"""Every file that it exports as a number of a port."""


def alias_of(spec: CounterSpec) -> Alias | None:
    """Return what node_exporter calls this counter, None if it does not export it."""
    return ALIASES.get((spec.directory, spec.file))


ALIAS_FAMILIES: tuple[Family[Hardware], ...] = (
    Family(
        "infiniband_info",
        "Identity of a device by node_exporter's name, always 1",
        ("device", "board_id", "firmware_version", "hca_type"),
        port_measures.node_exporter_info,
        prefix=_FAMILY_PREFIX,
    ),
    Family(
        "infiniband_state_id",
        "fabricmon_infiniband_state_id by node_exporter's name",
        PORT,
        each_port(port_measures.state),
        prefix=_FAMILY_PREFIX,
    ),
    Family(
        "infiniband_physical_state_id",
        "fabricmon_infiniband_physical_state_id by node_exporter's name",
        PORT,
        each_port(port_measures.phys_state),
        prefix=_FAMILY_PREFIX,
    ),
    Family(
        "infiniband_rate_bytes_per_second",
        "fabricmon_infiniband_rate_bytes_per_second by node_exporter's name",
        PORT,
        each_port(port_measures.rate),
        prefix=_FAMILY_PREFIX,
    ),
)
"""What it exports beside counters, of the ports that are shown."""
