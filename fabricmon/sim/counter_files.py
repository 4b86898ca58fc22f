"""Which file counts what: meters to files of a device, with widths and ceilings."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from fabricmon.sim.counters import Counter, Spot
from fabricmon.sim.effects import SimPort
from fabricmon.sim.meters import Meter
from fabricmon.sim.profiles import Family, Profile, Slot, Use

if TYPE_CHECKING:
    from fabricmon.sim.plan import FleetPlan


class Flowing(StrEnum):
    """What traffic itself counts; octets and packets."""

    SENT_BYTES = "sent_bytes"
    RECEIVED_BYTES = "received_bytes"
    SENT_PACKETS = "sent_packets"
    RECEIVED_PACKETS = "received_packets"


class Area(StrEnum):
    """Whose memory a counter is in, which a reset clears together."""

    PMA = "pma"
    HARDWARE = "hw"
    NETDEV = "netdev"
    PCI = "pci"


WORD = 0.25
"""PMA counts data in words of four octets."""
PACKETS_PER_REQUEST = 1 / 16
"""An RDMA write of 64 KiB at 4 KiB a packet."""

M = Meter
F = Flowing
What = Meter | Flowing

PMA: dict[What, tuple[str, ...]] = {
    M.SYMBOL_ERRORS: ("symbol_error",),
    M.LINK_RECOVERIES: ("link_error_recovery",),
    M.LINK_DOWNS: ("link_downed",),
    M.RECEIVE_ERRORS: ("port_rcv_errors",),
    M.REMOTE_PHYSICAL_ERRORS: ("port_rcv_remote_physical_errors",),
    M.SWITCH_RELAY_ERRORS: ("port_rcv_switch_relay_errors",),
    M.TRANSMIT_DISCARDS: ("port_xmit_discards",),
    M.CONSTRAINT_ERRORS: (
        "port_xmit_constraint_errors",
        "port_rcv_constraint_errors",
    ),
    M.LOCAL_INTEGRITY_ERRORS: ("local_link_integrity_errors",),
    M.BUFFER_OVERRUNS: ("excessive_buffer_overrun_errors",),
    M.VL15_DROPPED: ("VL15_dropped",),
    M.TRANSMIT_WAIT: ("port_xmit_wait",),
    F.SENT_BYTES: ("port_xmit_data",),
    F.RECEIVED_BYTES: ("port_rcv_data",),
    F.SENT_PACKETS: ("port_xmit_packets", "unicast_xmit_packets"),
    F.RECEIVED_PACKETS: ("port_rcv_packets", "unicast_rcv_packets"),
}
"""Files of ``counters``; multicast stays at 0."""

PMA_SILENT = ("multicast_xmit_packets", "multicast_rcv_packets")

PHYSICAL = (M.SYMBOL_ERRORS, M.LINK_RECOVERIES, M.LOCAL_INTEGRITY_ERRORS)
"""On RoCE their PMA files read 0 for ever."""

BITS: dict[Meter, int] = {
    M.LOCAL_INTEGRITY_ERRORS: 4,
    M.BUFFER_OVERRUNS: 4,
    M.LINK_RECOVERIES: 8,
    M.LINK_DOWNS: 8,
    M.CONSTRAINT_ERRORS: 8,
    M.SYMBOL_ERRORS: 16,
    M.RECEIVE_ERRORS: 16,
    M.REMOTE_PHYSICAL_ERRORS: 16,
    M.SWITCH_RELAY_ERRORS: 16,
    M.TRANSMIT_DISCARDS: 16,
    M.VL15_DROPPED: 16,
    M.TRANSMIT_WAIT: 32,
}
"""Widths of the IBTA's PortCounters; they stop at all ones."""

MLX5: dict[What, tuple[str, ...]] = {
    M.ACK_TIMEOUTS: ("local_ack_timeout_err",),
    M.SEQUENCE_ERRORS: ("packet_seq_err",),
    M.IMPLIED_NAKS: ("implied_nak_seq_err",),
    M.OUT_OF_SEQUENCE: ("out_of_sequence",),
    M.OUT_OF_BUFFER: ("out_of_buffer",),
    M.RNR_NAKS: ("rnr_nak_retry_err",),
    M.RETRIES_EXCEEDED: ("req_transport_retries_exceeded",),
    M.ADAPTIVE_RETRANSMITS: ("roce_adp_retrans",),
    M.SLOW_RESTARTS: ("roce_slow_restart",),
    M.FLUSH_ERRORS: (
        "req_cqe_flush_error", "resp_cqe_flush_error", "req_cqe_error",
        "resp_cqe_error",
    ),
    M.DUPLICATE_REQUESTS: ("duplicate_request",),
    M.CNP_SENT: ("np_cnp_sent",),
    M.CNP_HANDLED: ("rp_cnp_handled",),
    M.ECN_MARKED: ("np_ecn_marked_roce_packets",),
    M.ICRC_ERRORS: ("rx_icrc_encapsulated",),
    M.CONNECTS: ("rx_dct_connect",),
    M.WRITE_REQUESTS: ("rx_write_requests",),
}  # fmt: skip
"""Files of mlx5's ``hw_counters``; queue counters, 32 bits wide in firmware."""

MLX5_SILENT = (
    "req_remote_access_errors", "req_remote_invalid_request", "req_rnr_retries_exceeded",
    "resp_local_length_error", "resp_remote_access_errors", "roce_adp_retrans_to",
    "roce_slow_restart_cnps", "roce_slow_restart_trans", "rp_cnp_ignored",
    "rx_atomic_requests", "rx_read_requests",
)  # fmt: skip

WIDE = frozenset({M.CNP_SENT, M.CNP_HANDLED, M.ECN_MARKED, M.ICRC_ERRORS})
"""Congestion counters are 64 bits wide."""

EFA: dict[What, tuple[str, ...]] = {
    F.SENT_BYTES: ("tx_bytes", "rdma_write_bytes"),
    F.RECEIVED_BYTES: ("rx_bytes", "rdma_write_recv_bytes"),
    F.SENT_PACKETS: ("tx_pkts",),
    F.RECEIVED_PACKETS: ("rx_pkts",),
    M.ACK_TIMEOUTS: ("retrans_timeout_events",),
    M.SEQUENCE_ERRORS: ("retrans_pkts",),
    M.ADAPTIVE_RETRANSMITS: ("impaired_remote_conn_events",),
    M.RETRIES_EXCEEDED: ("unresponsive_remote_events",),
    M.FLUSH_ERRORS: ("rdma_write_wr_err",),
    M.RECEIVE_DISCARDS: ("rx_drops",),
}
"""Files of EFA's ``hw_counters``."""

EFA_SILENT = (
    "rdma_read_bytes", "rdma_read_resp_bytes", "rdma_read_wr_err", "rdma_read_wrs",
    "recv_bytes", "recv_wrs", "retrans_bytes", "send_bytes", "send_wrs",
    "rdma_write_wrs",
)  # fmt: skip

ETHTOOL: dict[What, tuple[str, ...]] = {
    F.SENT_BYTES: ("tx_prio3_bytes",),
    F.RECEIVED_BYTES: ("rx_prio3_bytes",),
    M.LINK_DOWNS: ("link_down_events_phy",),
    M.SYMBOL_ERRORS: ("rx_pcs_symbol_err_phy",),
    M.RECEIVE_ERRORS: ("rx_crc_errors_phy",),
    M.LINK_RECOVERIES: ("total_success_recovery_phy",),
    M.CORRECTED_BITS: ("rx_corrected_bits_phy",),
    M.LANE_ERRORS: ("rx_err_lane_0_phy",),
    M.PAUSE_RECEIVED: ("rx_prio3_pause",),
    M.PAUSE_SENT: ("tx_prio3_pause",),
    M.PAUSE_RECEIVED_MICROSECONDS: ("rx_prio3_pause_duration",),
    M.PAUSE_SENT_MICROSECONDS: ("tx_prio3_pause_duration",),
    M.PAUSE_STORM_WARNINGS: ("tx_pause_storm_warning_events",),
    M.PAUSE_STORM_ERRORS: ("tx_pause_storm_error_events",),
    M.RECEIVE_DISCARDS: ("rx_discards_phy",),
    M.TRANSMIT_DISCARDS: ("tx_discards_phy",),
    M.PRIORITY_DISCARDS: ("rx_prio3_buf_discard",),
    M.BUFFER_THRESHOLD: ("rx_buffer_passed_thres_phy",),
    M.PCI_STALL_READ: ("outbound_pci_stalled_rd",),
    M.PCI_STALL_WRITE: ("outbound_pci_stalled_wr",),
    M.PCI_STALL_READ_EVENTS: ("outbound_pci_stalled_rd_events",),
    M.PCI_STALL_WRITE_EVENTS: ("outbound_pci_stalled_wr_events",),
    M.PCI_SIGNAL_INTEGRITY: ("rx_pci_signal_integrity",),
}
"""Driver statistics of mlx5's network devices."""

ETHTOOL_SILENT = (
    "rx_prio0_bytes", "tx_prio0_bytes", "rx_prio0_pause", "tx_prio0_pause",
    "module_unplug", "module_bus_stuck", "module_high_temp", "rx_err_lane_1_phy",
    "rx_err_lane_2_phy", "rx_err_lane_3_phy", "outbound_pci_buffer_overflow",
)  # fmt: skip

ETHERNET_ONLY = (
    F.SENT_BYTES, F.RECEIVED_BYTES, M.PAUSE_RECEIVED, M.PAUSE_SENT,
    M.PAUSE_RECEIVED_MICROSECONDS, M.PAUSE_SENT_MICROSECONDS, M.PAUSE_STORM_WARNINGS,
    M.PAUSE_STORM_ERRORS, M.PRIORITY_DISCARDS,
)  # fmt: skip
"""Statistics that mean nothing on InfiniBand: there they stand at 0."""

AER: dict[Meter, tuple[str, str, tuple[str, ...]]] = {
    M.AER_CORRECTABLE: (
        "aer_dev_correctable", "TOTAL_ERR_COR",
        ("BadTLP", "RxErr", "BadDLLP", "Rollover", "Timeout", "NonFatalErr"),
    ),
    M.AER_NONFATAL: (
        "aer_dev_nonfatal", "TOTAL_ERR_NONFATAL", ("CmpltTO", "Undefined", "DLP"),
    ),
    M.AER_FATAL: (
        "aer_dev_fatal", "TOTAL_ERR_FATAL", ("DLP", "Undefined", "TLP"),
    ),
}  # fmt: skip
"""AER tables of the PCI function: file, name of the total, names of the causes."""


def aer_table(meter: Meter, value: int) -> str:
    """Return an AER table whose first cause has happened so often."""
    _, total, causes = AER[meter]
    counts = [value] + [0] * (len(causes) - 1)
    rows = [f"{name} {count}" for name, count in zip(causes, counts, strict=True)]
    return "\n".join([*rows, f"{total} {value}", ""])


class Table(Counter):
    """A number that stands as the total of an AER table."""

    def __init__(self, spot: Spot, meter: Meter) -> None:
        super().__init__(spot)
        self.meter = meter

    def text(self, value: int) -> str:
        """Return the whole table."""
        return aer_table(self.meter, value)


class PortCounters:
    """Every number of one port, by what it counts."""

    def __init__(
        self, plan: FleetPlan, port: SimPort, folder: str, netdev: str
    ) -> None:
        self.by_meter: dict[What, list[Counter]] = {}
        self.areas: dict[Area, list[Counter]] = {area: [] for area in Area}
        self._profile: Profile = plan.profile
        self._slot: Slot = plan.slot(port)
        if self._slot.card.family is Family.EFA:
            self._add_hardware(folder, EFA, EFA_SILENT)
        else:
            self._add_pma(folder)
            self._add_hardware(folder, MLX5, MLX5_SILENT)
        if netdev and "ethtool" in plan.sights:
            self._add_ethtool(netdev)
        if "pcie" in plan.sights and port == plan.keeper(port):
            self._add_aer(plan.place(port.device).folder)

    def of(self, what: What) -> list[Counter]:
        """Return the numbers that count this, none if the device does not."""
        return self.by_meter.get(what, [])

    def area_of(self, counter: Counter) -> Area:
        """Return whose memory a counter is in."""
        return next(area for area, each in self.areas.items() if counter in each)

    def _add(self, area: Area, what: What | None, counter: Counter) -> None:
        self.areas[area].append(counter)
        if what is not None:
            self.by_meter.setdefault(what, []).append(counter)

    def _add_pma(self, folder: str) -> None:
        for what, names in PMA.items():
            silent = self._slot.card.ethernet and what in PHYSICAL
            for name in names:
                spot = Spot(f"{folder}/counters/{name}")
                counter = Counter(spot, ceiling=self._ceiling(what))
                if what in {F.SENT_BYTES, F.RECEIVED_BYTES}:
                    counter.share = WORD
                self._add(Area.PMA, None if silent else what, counter)
        for name in PMA_SILENT:
            self._add(Area.PMA, None, Counter(Spot(f"{folder}/counters/{name}")))

    def _ceiling(self, what: What) -> int | None:
        if not isinstance(what, Meter):
            return None
        bits = self._profile.widths.get(what, BITS.get(what))
        return None if bits is None else (1 << bits) - 1

    def _add_hardware(
        self, folder: str, table: dict[What, tuple[str, ...]], silent: tuple[str, ...]
    ) -> None:
        wraps = self._profile.wraps and self._slot.use is Use.COMPUTE
        for what, names in table.items():
            modulus = 1 << 32 if wraps and what not in WIDE else None
            for name in names:
                spot = Spot(f"{folder}/hw_counters/{name}")
                self._add(Area.HARDWARE, what, Counter(spot, modulus=modulus))
        for name in silent:
            spot = Spot(f"{folder}/hw_counters/{name}")
            self._add(Area.HARDWARE, None, Counter(spot))

    def _add_ethtool(self, netdev: str) -> None:
        ethernet = self._slot.card.ethernet
        for what, names in ETHTOOL.items():
            silent = not ethernet and what in ETHERNET_ONLY
            for name in names:
                counter = Counter(Spot(netdev, name))
                self._add(Area.NETDEV, None if silent else what, counter)
        for name in ETHTOOL_SILENT:
            self._add(Area.NETDEV, None, Counter(Spot(netdev, name)))

    def _add_aer(self, folder: str) -> None:
        for meter, (file, _, _) in AER.items():
            self._add(Area.PCI, meter, Table(Spot(f"{folder}/{file}"), meter))


def counted(plan: FleetPlan, port: SimPort) -> frozenset[Meter]:
    """Return what is counted of a port in a place that the plan's sights show."""
    counters = PortCounters(plan, port, "", plan.netdev(port))
    hidden = () if "sysfs" in plan.sights else (Area.PMA, Area.HARDWARE)
    return frozenset(
        what
        for what, many in counters.by_meter.items()
        if isinstance(what, Meter)
        and any(counters.area_of(each) not in hidden for each in many)
    )
