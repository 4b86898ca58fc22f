"""Names under which evidence of a cause can be given: files and driver statistics.

An answer that names one of them explains the injected cause. The names are those of
mlx5 and of the kernel; several can be of one meaning.
"""

from __future__ import annotations

BIT_ERRORS = (
    "symbol_error", "symbol_errors", "symbol_error_counter", "port_rcv_errors",
    "local_link_integrity_errors", "rx_pcs_symbol_err_phy", "rx_symbol_err_phy",
    "rx_crc_errors_phy", "rx_corrected_bits_phy", "rx_err_lane_0_phy",
    "rx_err_lane_1_phy", "rx_err_lane_2_phy", "rx_err_lane_3_phy", "bit_error_ratio",
)  # fmt: skip
RECOVERIES = ("link_error_recovery", "total_success_recovery_phy", *BIT_ERRORS)
DOWNS = (
    "link_downed", "state", "phys_state", "carrier", "carrier_changes",
    "carrier_down_count", "carrier_up_count", "operstate", "link_down_events_phy",
    "downs", "flaps", "outage", "downtime", "penalty", "kmsg",
)  # fmt: skip
RATE = ("rate", "active_width", "active_speed", "width", "speed", "rate_gbps")
MODULE = ("temperature", "temperature_c", "module_high_temp", "temp1_input", "kmsg")
OPTICS = ("rx_power_dbm", "rx_power", "receive_power", *BIT_ERRORS)
PCIE = (
    "current_link_width", "current_link_speed", "outbound_pci_stalled_wr",
    "outbound_pci_stalled_rd", "outbound_pci_stalled_wr_events",
    "outbound_pci_stalled_rd_events", "rx_buffer_passed_thres_phy",
    "aer_dev_correctable", "tx_prio3_pause", "tx_prio3_pause_duration", "kmsg",
)  # fmt: skip
AER = (
    "aer_dev_correctable", "aer_dev_nonfatal", "aer_dev_fatal",
    "rx_pci_signal_integrity", "tx_pci_signal_integrity", "kmsg",
)  # fmt: skip
HOST_PATH = (
    "outbound_pci_stalled_wr", "outbound_pci_stalled_rd",
    "outbound_pci_stalled_wr_events", "outbound_pci_stalled_rd_events", "nccl_log",
    "gdr", "busy_ratio", "p99", "p99_rate",
)  # fmt: skip
PRESENCE = (
    "device", "devices", "device_missing", "polls_without_device", "seconds_gone",
    "ENODEV", "state", "kmsg",
)  # fmt: skip
STUCK = (
    "frozen", "read_seconds", "read_duration", "port_xmit_data", "port_rcv_data",
    "fw_fatal", "fw", "kmsg",
)  # fmt: skip
POWER = ("power", "insufficient_power", "kmsg")
NOT_POSTED = (
    "out_of_buffer", "rnr_nak_retry_err", "rx_discards_phy", "req_rnr_retries_exceeded"
)  # fmt: skip
SETTINGS = (
    "pfc_enabled", "ecn", "dscp_to_priority", "rx_prio0_bytes", "tx_prio0_bytes",
    "rx_discards_phy", "rx_prio3_pause", "np_cnp_sent", "np_ecn_marked_roce_packets",
    "packet_seq_err", "roce_adp_retrans", "fw_ver", "gid", "pkey", "nccl_log",
    "port_xmit_constraint_errors", "port_rcv_constraint_errors",
)  # fmt: skip
CONGESTION = (
    "np_cnp_sent", "np_ecn_marked_roce_packets", "rp_cnp_handled", "rx_prio3_pause",
    "rx_prio3_pause_duration", "port_xmit_wait",
)  # fmt: skip
PAUSE = (
    "tx_prio3_pause", "tx_prio3_pause_duration", "rx_prio3_pause",
    "rx_prio3_pause_duration", "tx_pause_storm_warning_events",
    "tx_pause_storm_error_events", "tx_global_pause", "tx_global_pause_duration",
    "rx_global_pause", "rx_global_pause_duration",
)  # fmt: skip
LOSS = (
    "packet_seq_err", "out_of_sequence", "implied_nak_seq_err", "local_ack_timeout_err",
    "roce_adp_retrans", "rx_icrc_encapsulated", "port_rcv_remote_physical_errors",
)  # fmt: skip
TIMEOUTS = (
    "local_ack_timeout_err", "req_transport_retries_exceeded", "roce_adp_retrans_to",
    "nccl_log", "ib_completion_error", "status", "votes",
)  # fmt: skip
PACE = ("busy_ratio", "duty", "p99", "p99_rate", "idle_gaps", "burst_rate", "ratio")
