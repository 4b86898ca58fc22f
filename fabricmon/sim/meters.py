"""What is counted in a simulated fleet, and what rates are per."""

from __future__ import annotations

from enum import StrEnum


class Meter(StrEnum):
    """What is counted, whatever a profile calls it and wherever it keeps it.

    A profile that has no such counter drops the effect; where several files count the
    same (sysfs and driver statistics) all move.
    """

    SYMBOL_ERRORS = "symbol_errors"
    LINK_RECOVERIES = "link_recoveries"
    LINK_DOWNS = "link_downs"  # with carrier counters: the model adds it for outages
    RECEIVE_ERRORS = "receive_errors"
    REMOTE_PHYSICAL_ERRORS = "remote_physical_errors"
    SWITCH_RELAY_ERRORS = "switch_relay_errors"
    TRANSMIT_DISCARDS = "transmit_discards"
    CONSTRAINT_ERRORS = "constraint_errors"
    LOCAL_INTEGRITY_ERRORS = "local_integrity_errors"
    BUFFER_OVERRUNS = "buffer_overruns"
    VL15_DROPPED = "vl15_dropped"
    TRANSMIT_WAIT = "transmit_wait"  # ticks
    CORRECTED_BITS = "corrected_bits"
    LANE_ERRORS = "lane_errors"
    ICRC_ERRORS = "icrc_errors"
    ACK_TIMEOUTS = "ack_timeouts"
    SEQUENCE_ERRORS = "sequence_errors"
    IMPLIED_NAKS = "implied_naks"
    OUT_OF_SEQUENCE = "out_of_sequence"
    OUT_OF_BUFFER = "out_of_buffer"
    RNR_NAKS = "rnr_naks"
    RETRIES_EXCEEDED = "retries_exceeded"
    ADAPTIVE_RETRANSMITS = "adaptive_retransmits"
    SLOW_RESTARTS = "slow_restarts"
    FLUSH_ERRORS = "flush_errors"
    DUPLICATE_REQUESTS = "duplicate_requests"
    CNP_SENT = "cnp_sent"
    CNP_HANDLED = "cnp_handled"
    ECN_MARKED = "ecn_marked"
    PAUSE_RECEIVED = "pause_received"  # frames, lossless priority
    PAUSE_SENT = "pause_sent"
    PAUSE_RECEIVED_MICROSECONDS = "pause_received_microseconds"
    PAUSE_SENT_MICROSECONDS = "pause_sent_microseconds"
    PAUSE_STORM_WARNINGS = "pause_storm_warnings"
    PAUSE_STORM_ERRORS = "pause_storm_errors"
    RECEIVE_DISCARDS = "receive_discards"
    PRIORITY_DISCARDS = "priority_discards"
    BUFFER_THRESHOLD = "buffer_threshold"
    PCI_STALL_READ = "pci_stall_read"  # gauge, percent
    PCI_STALL_WRITE = "pci_stall_write"
    PCI_STALL_READ_EVENTS = "pci_stall_read_events"
    PCI_STALL_WRITE_EVENTS = "pci_stall_write_events"
    PCI_SIGNAL_INTEGRITY = "pci_signal_integrity"
    AER_CORRECTABLE = "aer_correctable"
    AER_NONFATAL = "aer_nonfatal"
    AER_FATAL = "aer_fatal"
    CONNECTS = "connects"
    WRITE_REQUESTS = "write_requests"


class Per(StrEnum):
    """What a rate is per."""

    SECOND = "second"
    BUSY_SECOND = "busy_second"  # only while the port carries the job's data
    PACKET_RECEIVED = "packet_received"
    PACKET_SENT = "packet_sent"
