"""THE table of counters: one row each; everything else derives from it.

Reading, deltas, detection, exposition and documentation follow from a row. To teach
fabricmon a counter, add its row to the table of its driver in `ROWS`: file (older
names after a ``|``), metric stem, what it is evidence for, what it means, and what
detectors know it as. Sources: the drivers' own lists of names, the kernel's
documentation of mlx5's driver statistics, the widths of the IBTA's PortCounters
attribute, and node_exporter for the stems that it exports already.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from itertools import chain

from fabricmon.value import Value


class Directory(StrEnum):
    """Where a counter's file lies, below the device's or port's folder."""

    COUNTERS = "counters"
    COUNTERS_EXT = "counters_ext"
    HW_COUNTERS = "hw_counters"
    DEVICE_HW_COUNTERS = "device_hw_counters"
    NETDEV = "netdev"  # /sys/class/net/IF/NAME
    NETDEV_STATISTICS = "statistics"  # /sys/class/net/IF/statistics/NAME
    ETHTOOL = "ethtool"  # driver statistics, by ioctl
    PCI = "pci"  # aer_dev_* tables of the PCI function

    @property
    def is_rdma(self) -> bool:
        """Tell whether the file belongs to the RDMA class."""
        return self in _RDMA


_RDMA = frozenset(
    {
        Directory.COUNTERS,
        Directory.COUNTERS_EXT,
        Directory.HW_COUNTERS,
        Directory.DEVICE_HW_COUNTERS,
    }
)


class Group(StrEnum):
    """Files that are read together, each group with a period of its own."""

    ERRORS = "errors"
    OUTAGES = "outages"  # apart: read every second where nothing tells of links
    TRAFFIC = "traffic"  # and what is routine or configured: nobody hurries for it
    BURST = "burst"  # bytes once more, several times a second for a few seconds
    HARDWARE = "hardware"
    NETDEV = "netdev"
    DRIVER = "driver"
    PCI = "pci"


class FaultClass(StrEnum):
    """What a counter is evidence for."""

    LINK = "link integrity"
    FEC = "forward error correction"  # repaired: of interest, not an error
    CONGESTION = "congestion"
    RETRY = "transport retry"
    RESOURCE = "resource"
    SECURITY = "security"
    TRAFFIC = "traffic"
    STATE = "state"


class Overflow(StrEnum):
    """What a field does at its ceiling."""

    SATURATES = "saturates"
    WRAPS = "wraps"
    NEVER = "never"


class CounterKind(StrEnum):
    """Counter, momentary value, or a setting that counts nothing."""

    COUNTER = "counter"
    GAUGE = "gauge"
    KNOB = "knob"


class Export(StrEnum):
    """When a counter's series is exported; it is read and judged in any case.

    A mechanism that only the other link layer has stays at zero for ever: its series
    is spared until it counts, and then stays.
    """

    ALWAYS = "always"
    INFINIBAND = "on Ethernet once it counted"
    ETHERNET = "on InfiniBand once it counted"
    COUNTED = "once it counted"
    SPARE = "once it counted, until another needs the room"
    NEVER = "never"


class Signal(StrEnum):
    """What a counter means, whatever its driver calls it; detectors ask for these."""

    SYMBOL_ERROR = "symbol_error"  # damaged symbols after FEC
    CORRECTED_BITS = "corrected_bits"  # repaired by FEC
    LANE_ERROR = "lane_error"  # raw errors of one lane, before FEC
    LINK_RECOVERY = "link_recovery"  # retrained without going down
    LINK_DOWN = "link_down"  # the port went down; remembers what a poll misses
    CARRIER_DOWN = "carrier_down"  # the same, told by the network device
    RECEIVE_ERROR = "receive_error"  # damaged or malformed packets
    REMOTE_PHYSICAL = "remote_physical"  # marked bad by an upstream hop
    INTEGRITY = "integrity"  # local link integrity, buffer overruns
    CORRUPTION = "corruption"  # bad ICRC or CRC past the link's own check
    DISCARD = "discard"  # dropped on the way out
    RECEIVE_DISCARD = "receive_discard"  # dropped on the way in: this host is slow
    CONSTRAINT = "constraint"
    TRANSMIT_WAIT = "transmit_wait"
    BYTES_RECEIVED = "bytes_received"
    BYTES_TRANSMITTED = "bytes_transmitted"
    PACKETS_RECEIVED = "packets_received"
    PACKETS_TRANSMITTED = "packets_transmitted"
    PRIORITY_BYTES_RECEIVED = "priority_bytes_received"  # octets of one priority
    PRIORITY_BYTES_TRANSMITTED = "priority_bytes_transmitted"
    ACK_TIMEOUT = "ack_timeout"
    SEQUENCE_ERROR = "sequence_error"  # a packet of ours was lost
    OUT_OF_SEQUENCE = "out_of_sequence"  # arrived out of order here
    RETRANSMIT = "retransmit"
    DUPLICATE = "duplicate"
    RETRIES_EXCEEDED = "retries_exceeded"  # queue pairs died
    NOT_READY_EXCEEDED = "not_ready_exceeded"  # the same: their peer was never ready
    REQUEST_FAILED = "request_failed"  # operations that ended in an error
    REMOTE_IMPAIRED = "remote_impaired"  # the device itself calls the peer's path bad
    RECEIVER_NOT_READY = "receiver_not_ready"  # heard from a peer
    RECEIVER_NOT_READY_SENT = "receiver_not_ready_sent"  # said by this host
    OUT_OF_BUFFER = "out_of_buffer"
    FLUSH = "flush"  # work thrown away as queue pairs end: marks the end of a job
    ECN_MARKED = "ecn_marked"
    CNP_SENT = "cnp_sent"
    CNP_HANDLED = "cnp_handled"
    CNP_IGNORED = "cnp_ignored"  # congestion control is off where it should be on
    PAUSE_RECEIVED = "pause_received"
    PAUSE_TRANSMITTED = "pause_transmitted"
    PAUSE_RECEIVED_TIME = "pause_received_time"
    PAUSE_TRANSMITTED_TIME = "pause_transmitted_time"
    PAUSE_STORM = "pause_storm"
    BUFFER_PRESSURE = "buffer_pressure"  # the receive buffer was nearly full
    PCI_STALL = "pci_stall"  # seconds in which the host held the NIC up
    PCI_STALL_RATIO = "pci_stall_ratio"  # share of the last second, a gauge
    PCI_OVERFLOW = "pci_overflow"
    PCI_INTEGRITY = "pci_integrity"  # the PCIe link itself had errors
    MODULE_HOT = "module_hot"
    MODULE_FAULT = "module_fault"
    MODULE_UNPLUGGED = "module_unplugged"
    DEVICE_FAULT = "device_fault"  # the device says that it failed
    AER_CORRECTABLE = "aer_correctable"
    AER_UNCORRECTABLE = "aer_uncorrectable"


@dataclass(frozen=True, slots=True, eq=False)
class CounterSpec:
    """One counter: where it lies, what it means, how wide it is, what it is called.

    ``factor`` turns the file's number into the base unit of the metric (4 for words
    of four octets). ``width`` is in bits; 64 is practically endless. ``stem`` is the
    metric name after ``fabricmon_infiniband_`` (RDMA class) or ``fabricmon_``.
    ``label`` and ``label_value`` tell apart counters that share a metric, such as
    the eight priorities. ``drivers`` are families (`family`), none means any.
    """

    file: str
    directory: Directory
    stem: str
    help: str
    fault_class: FaultClass
    group: Group
    drivers: tuple[str, ...] = ()
    factor: float = 1
    width: int = 64
    overflow: Overflow = Overflow.NEVER
    kind: CounterKind = CounterKind.COUNTER
    signal: Signal | None = None
    fatal: bool = False
    generic: bool = False  # made for a file that the table does not know
    label: str = ""
    label_value: str = ""
    export: Export = Export.ALWAYS

    @property
    def ceiling(self) -> int | None:
        """Value at which a field that saturates stops, None if it does not."""
        return (1 << self.width) - 1 if self.overflow is Overflow.SATURATES else None

    @property
    def metric(self) -> str:
        """Full name of the metric, with its unit and ``_total``."""
        prefix = "fabricmon_infiniband_" if self.directory.is_rdma else "fabricmon_"
        return prefix + self.stem + _SUFFIX[self.kind]


_SUFFIX = {CounterKind.COUNTER: "_total", CounterKind.GAUGE: "", CounterKind.KNOB: ""}


class _Table(Value, frozen=True):
    """What the rows of one table have in common; calling it makes a row."""

    directories: tuple[Directory, ...]
    group: Group
    drivers: tuple[str, ...] = ()
    width: int = 64
    narrow: Overflow = Overflow.WRAPS  # what fields of less than 64 bits do
    export: Export = Export.ALWAYS
    twin: str = ""  # each file may also have this at the end of its name

    def __call__(
        self,
        files: str,
        stem: str,
        fault_class: FaultClass,
        text: str,
        signal: Signal | None = None,
        *,
        group: Group | None = None,
        width: int | None = None,
        factor: float = 1,
        kind: CounterKind = CounterKind.COUNTER,
        export: Export | None = None,
        fatal: bool = False,
        label: str = "",
        value: str = "",
        each: tuple[str, ...] = (),
    ) -> tuple[CounterSpec, ...]:
        """Make the specs of a row.

        ``files`` are the names of one counter over the versions of its driver, apart
        by ``|``. With ``each``, ``{}`` in the names stands for these values of the
        ``label``. Below the device, as against its ports, stems begin with
        ``device_``: a sum over ports must not count twice.
        """
        bits = width or self.width
        return tuple(
            CounterSpec(
                file=file.replace("{}", each_value),
                directory=directory,
                stem=_DEVICE + stem if directory is _DEVICE_HW else stem,
                help=text,
                fault_class=fault_class,
                group=group or self.group,
                drivers=self.drivers,
                factor=factor,
                width=bits,
                overflow=self.narrow if bits < _WIDEST else Overflow.NEVER,
                kind=kind,
                signal=signal,
                fatal=fatal,
                label=label,
                label_value=each_value or value,
                export=export or self.export,
            )
            for directory in self.directories
            for file in self._names(files)
            for each_value in each or ("",)
        )

    def _names(self, files: str) -> list[str]:
        names = files.split("|")
        return names + [name + self.twin for name in names] if self.twin else names


_WIDEST = 64
_DEVICE = "device_"
_DEVICE_HW = Directory.DEVICE_HW_COUNTERS
_PORT = (Directory.HW_COUNTERS,)
_BOTH = (Directory.HW_COUNTERS, _DEVICE_HW)

_ibta = _Table((Directory.COUNTERS,), Group.ERRORS, narrow=Overflow.SATURATES)
_ext = _Table((Directory.COUNTERS_EXT,), Group.TRAFFIC)
_any = _Table(_BOTH, Group.HARDWARE)
_mlx5 = _Table(_PORT, Group.HARDWARE, ("mlx5",), width=32)
_mlx4 = _Table(_BOTH, Group.HARDWARE, ("mlx4",), width=32)
_hfi1 = _Table(_PORT, Group.HARDWARE, ("hfi1",), twin=",32")
_hfi1_device = _Table((_DEVICE_HW,), Group.HARDWARE, ("hfi1",), twin=",32")
_irdma = _Table(_PORT, Group.HARDWARE, ("irdma",))
_cxgb4 = _Table(_PORT, Group.HARDWARE, ("cxgb4",))
_bnxt = _Table(_PORT, Group.HARDWARE, ("bnxt_re",))
_efa = _Table(_PORT, Group.HARDWARE, ("efa",))
_efa_device = _Table((_DEVICE_HW,), Group.HARDWARE, ("efa",))
_ionic = _Table(_PORT, Group.HARDWARE, ("ionic",))
_hns = _Table(_BOTH, Group.HARDWARE, ("hns",))
_mana = _Table(_PORT, Group.HARDWARE, ("mana",))
_mana_device = _Table((_DEVICE_HW,), Group.HARDWARE, ("mana",))
_erdma = _Table(_BOTH, Group.HARDWARE, ("erdma",))
_rxe = _Table(_PORT, Group.HARDWARE, ("rxe",))
_netdev = _Table((Directory.NETDEV,), Group.NETDEV, width=32)
_stats = _Table((Directory.NETDEV_STATISTICS,), Group.NETDEV, export=Export.COUNTED)
_mlx5_driver = _Table(
    (Directory.ETHTOOL,), Group.DRIVER, ("mlx5",), export=Export.COUNTED
)
_bnxt_driver = _Table(
    (Directory.ETHTOOL,), Group.DRIVER, ("bnxt_re",), export=Export.COUNTED
)
_ice_driver = _Table(
    (Directory.ETHTOOL,), Group.DRIVER, ("irdma",), export=Export.COUNTED
)
_pci = _Table((Directory.PCI,), Group.PCI)

_S = Signal
_LINK = FaultClass.LINK
_FEC = FaultClass.FEC
_CONG = FaultClass.CONGESTION
_RETRY = FaultClass.RETRY
_RES = FaultClass.RESOURCE
_SEC = FaultClass.SECURITY
_TRAF = FaultClass.TRAFFIC
_STATE = FaultClass.STATE
_OUTAGES, _TRAFFIC = Group.OUTAGES, Group.TRAFFIC
_GAUGE = CounterKind.GAUGE
_KNOB = CounterKind.KNOB
_IB, _ETH, _NEVER = Export.INFINIBAND, Export.ETHERNET, Export.NEVER
_EIGHT = tuple("01234567")
_MICROSECONDS = 1e-6
_PERCENT = 0.01
_WORDS = 4  # octets; by the IBTA's definition of the data counters

# fmt: off
ROWS: tuple[CounterSpec, ...] = tuple(chain.from_iterable((

    # -- counters/: IBTA PortCounters, any driver that answers for its ports ----------
    _ibta("symbol_error", "symbol_error", _LINK,
          "Damaged symbols on the lanes, after FEC", _S.SYMBOL_ERROR, width=16),
    _ibta("link_error_recovery", "link_error_recovery", _LINK,
          "Times that the link retrained and came back", _S.LINK_RECOVERY, width=8),
    _ibta("link_downed", "link_downed", _LINK,
          "Times that retraining failed and the link went down", _S.LINK_DOWN, width=8,
          group=_OUTAGES),
    _ibta("port_rcv_errors", "port_errors_received", _LINK,
          "Packets received damaged or malformed", _S.RECEIVE_ERROR, width=16),
    _ibta("port_rcv_remote_physical_errors", "port_receive_remote_physical_errors",
          _LINK, "Packets that an upstream hop had marked bad: the fault is elsewhere",
          _S.REMOTE_PHYSICAL, width=16, export=_IB),
    _ibta("port_rcv_switch_relay_errors", "port_receive_switch_relay_errors", _SEC,
          "Packets that could not be forwarded; routine on a change of topology",
          width=16, export=_IB, group=_TRAFFIC),
    _ibta("port_xmit_discards", "port_discards_transmitted", _CONG,
          "Outbound packets dropped: port down, or waiting for too long",
          _S.DISCARD, width=16),
    _ibta("port_rcv_discards", "port_discards_received", _CONG,
          "Inbound packets dropped", _S.RECEIVE_DISCARD, width=16),
    _ibta("port_xmit_constraint_errors", "port_constraint_errors_transmitted", _SEC,
          "Packets not sent: partition or raw filter",
          _S.CONSTRAINT, width=8, export=_IB, group=_TRAFFIC),
    _ibta("port_rcv_constraint_errors", "port_constraint_errors_received", _SEC,
          "Packets dropped on receipt: partition, version or raw filter",
          _S.CONSTRAINT, width=8, export=_IB, group=_TRAFFIC),
    _ibta("local_link_integrity_errors", "local_link_integrity_errors", _LINK,
          "Times that local physical errors went over their limit",
          _S.INTEGRITY, width=4, export=_IB),
    _ibta("excessive_buffer_overrun_errors", "excessive_buffer_overrun_errors", _LINK,
          "Runs of flow control periods that each had a buffer overrun",
          _S.INTEGRITY, width=4, export=_IB),
    _ibta("VL15_dropped", "vl15_dropped", _RES,
          "Management packets dropped for want of buffers", width=16, export=_IB,
          group=_TRAFFIC),
    _ibta("port_xmit_wait", "port_transmit_wait", _CONG,
          "Ticks with data queued and nothing sent; length of a tick by device",
          _S.TRANSMIT_WAIT, width=32, group=_TRAFFIC),
    _ibta("port_rcv_data", "port_data_received_bytes", _TRAF,
          "Octets received", _S.BYTES_RECEIVED, factor=_WORDS, group=_TRAFFIC),
    _ibta("port_xmit_data", "port_data_transmitted_bytes", _TRAF,
          "Octets transmitted", _S.BYTES_TRANSMITTED, factor=_WORDS, group=_TRAFFIC),
    _ibta("port_rcv_packets", "port_packets_received", _TRAF,
          "Packets received, damaged ones too", _S.PACKETS_RECEIVED, group=_TRAFFIC),
    _ibta("port_xmit_packets", "port_packets_transmitted", _TRAF,
          "Packets transmitted", _S.PACKETS_TRANSMITTED, group=_TRAFFIC),
    _ibta("unicast_rcv_packets", "unicast_packets_received", _TRAF,
          "Unicast packets received", group=_TRAFFIC),
    _ibta("unicast_xmit_packets", "unicast_packets_transmitted", _TRAF,
          "Unicast packets transmitted", group=_TRAFFIC),
    _ibta("multicast_rcv_packets", "multicast_packets_received", _TRAF,
          "Multicast packets received", group=_TRAFFIC),
    _ibta("multicast_xmit_packets", "multicast_packets_transmitted", _TRAF,
          "Multicast packets transmitted", group=_TRAFFIC),

    # -- counters_ext/: the same events again, from kernels before 4.5 ----------------
    _ext("port_rcv_data_64", "legacy_data_received_bytes", _TRAF,
         "Octets received (old kernels)",
         _S.BYTES_RECEIVED, factor=_WORDS),
    _ext("port_xmit_data_64", "legacy_data_transmitted_bytes", _TRAF,
         "Octets transmitted (old kernels)",
         _S.BYTES_TRANSMITTED, factor=_WORDS),
    _ext("port_rcv_packets_64", "legacy_packets_received", _TRAF,
         "Packets received (old kernels)", _S.PACKETS_RECEIVED),
    _ext("port_xmit_packets_64", "legacy_packets_transmitted", _TRAF,
         "Packets transmitted (old kernels)", _S.PACKETS_TRANSMITTED),
    _ext("port_unicast_rcv_packets", "legacy_unicast_packets_received", _TRAF,
         "Unicast packets received (old kernels)"),
    _ext("port_unicast_xmit_packets", "legacy_unicast_packets_transmitted", _TRAF,
         "Unicast packets transmitted (old kernels)"),
    _ext("port_multicast_rcv_packets", "legacy_multicast_packets_received", _TRAF,
         "Multicast packets received (old kernels)"),
    _ext("port_multicast_xmit_packets", "legacy_multicast_packets_transmitted", _TRAF,
         "Multicast packets transmitted (old kernels)"),

    # -- hw_counters/ of any driver: settings, never counters -------------------------
    _any("lifespan", "lifespan_seconds", _STATE,
         "Setting: age up to which the kernel repeats the last values",
         kind=_KNOB, factor=1e-3),
    _any("clear_counters", "clear_counters", _STATE,
         "Control file of vendor drivers: writing to it would clear the counters",
         kind=_KNOB),

    # -- mlx5: 32-bit queue counters, 64-bit congestion counters ----------------------
    _mlx5("req_transport_retries_exceeded", "req_transport_retries_exceeded", _RETRY,
          "Queue pairs that died: retries used up, completion status 12",
          _S.RETRIES_EXCEEDED, fatal=True),
    _mlx5("req_rnr_retries_exceeded", "req_rnr_retries_exceeded", _RES,
          "Queue pairs that died: peer never ready, completion status 13",
          _S.NOT_READY_EXCEEDED, fatal=True),
    _mlx5("local_ack_timeout_err", "local_ack_timeout_errors", _RETRY,
          "Acknowledge timers that ran out while retries remained", _S.ACK_TIMEOUT),
    _mlx5("packet_seq_err", "packet_sequence_errors", _RETRY,
          "Sequence NAKs received: a packet of ours was lost", _S.SEQUENCE_ERROR),
    _mlx5("implied_nak_seq_err", "implied_nak_seq_errors", _RETRY,
          "Losses inferred from a response that skipped a packet", _S.SEQUENCE_ERROR),
    _mlx5("out_of_sequence", "out_of_sequence_packets_received", _RETRY,
          "Packets that arrived out of order; expected with adaptive routing",
          _S.OUT_OF_SEQUENCE),
    _mlx5("duplicate_request", "duplicate_requests_packets", _RETRY,
          "Requests that arrived again: the sender missed the answer", _S.DUPLICATE),
    _mlx5("roce_adp_retrans", "roce_adp_retransmits", _RETRY,
          "Adaptive retransmissions", _S.RETRANSMIT, export=_ETH),
    _mlx5("roce_adp_retrans_to", "roce_adp_retransmits_timeout", _RETRY,
          "Adaptive retransmissions that timed out", _S.RETRANSMIT, export=_ETH),
    _mlx5("rnr_nak_retry_err", "rnr_nak_retry_packets_received", _RES,
          "Receiver-not-ready NAKs received while retries remained",
          _S.RECEIVER_NOT_READY),
    _mlx5("out_of_buffer", "out_of_buffer_drops", _RES,
          "Packets dropped because no receive was posted", _S.OUT_OF_BUFFER),
    _mlx5("rx_icrc_encapsulated", "rx_icrc_encapsulated_errors", _LINK,
          "Packets with a bad ICRC: corrupted past the link's own check",
          _S.CORRUPTION, width=64, export=_ETH),
    _mlx5("np_ecn_marked_roce_packets", "np_ecn_marked_roce_packets_received", _CONG,
          "Packets received that the network had marked as congested",
          _S.ECN_MARKED, width=64, export=_ETH),
    _mlx5("np_cnp_sent", "np_cnp_packets_sent", _CONG,
          "Congestion notifications sent back to senders",
          _S.CNP_SENT, width=64, export=_ETH),
    _mlx5("rp_cnp_handled", "rp_cnp_packets_handled", _CONG,
          "Congestion notifications received and obeyed by sending slower",
          _S.CNP_HANDLED, width=64, export=_ETH),
    _mlx5("rp_cnp_ignored", "rp_cnp_ignored_packets_received", _CONG,
          "Congestion notifications ignored: congestion control is off",
          _S.CNP_IGNORED, width=64, export=_ETH),
    _mlx5("roce_slow_restart", "roce_slow_restart_used", _CONG,
          "Times that slow restart was used", export=Export.SPARE),
    _mlx5("roce_slow_restart_cnps", "roce_slow_restart_cnps", _CONG,
          "Congestion notifications made by slow restart", export=Export.SPARE),
    _mlx5("roce_slow_restart_trans", "roce_slow_restart", _CONG,
          "Changes into slow restart", export=Export.SPARE),
    _mlx5("req_cqe_error", "req_cqes_errors", _RES,
          "Completions in error at the requester"),
    _mlx5("resp_cqe_error", "resp_cqes_errors", _RES,
          "Completions in error at the responder"),
    _mlx5("req_cqe_flush_error", "req_cqes_flush_errors", _STATE,
          "Requests flushed as a queue pair ended; normal when a job ends", _S.FLUSH),
    _mlx5("resp_cqe_flush_error", "resp_cqes_flush_errors", _STATE,
          "Receives flushed as a queue pair ended; normal when a job ends", _S.FLUSH),
    _mlx5("resp_local_length_error", "resp_local_length_errors", _RES,
          "Wrong lengths seen by the responder"),
    _mlx5("req_remote_invalid_request", "req_remote_invalid_request_errors", _SEC,
          "Requests that the peer refused as invalid"),
    _mlx5("req_remote_access_errors", "req_remote_access_errors", _SEC,
          "Requests that the peer refused for their key or permission"),
    _mlx5("resp_remote_access_errors", "resp_remote_access_errors", _SEC,
          "Requests refused here for their key or permission"),
    _mlx5("rx_write_requests", "rx_write_requests", _TRAF, "RDMA writes received"),
    _mlx5("rx_read_requests", "rx_read_requests", _TRAF, "RDMA reads received"),
    _mlx5("rx_atomic_requests", "rx_atomic_requests", _TRAF, "RDMA atomics received",
          export=Export.COUNTED),
    _mlx5("rx_dct_connect", "rx_dct_connect_requests", _TRAF,
          "Connection requests received for dynamic transports"),

    # -- mlx4: all 32 bits; rq is the responder, sq the requester ---------------------
    _mlx4("sq_num_tree", "req_transport_retries_exceeded", _RETRY,
          "Queue pairs that died: retries used up", _S.RETRIES_EXCEEDED, fatal=True),
    _mlx4("sq_num_rree", "req_rnr_retries_exceeded", _RES,
          "Queue pairs that died: peer never ready", _S.NOT_READY_EXCEEDED,
          fatal=True),
    _mlx4("sq_num_to", "local_ack_timeout_errors", _RETRY,
          "Acknowledge timers that ran out", _S.ACK_TIMEOUT),
    _mlx4("sq_num_oos", "packet_sequence_errors", _RETRY,
          "Sequence NAKs received", _S.SEQUENCE_ERROR),
    _mlx4("rq_num_oos", "out_of_sequence_packets_received", _RETRY,
          "Packets that arrived out of order", _S.OUT_OF_SEQUENCE),
    _mlx4("rq_num_dup", "duplicate_requests_packets", _RETRY,
          "Requests that arrived again", _S.DUPLICATE),
    _mlx4("sq_num_rnr", "rnr_nak_retry_packets_received", _RES,
          "Receiver-not-ready NAKs received", _S.RECEIVER_NOT_READY),
    _mlx4("rq_num_rnr", "rnr_nak_packets_sent", _RES,
          "Receiver-not-ready NAKs sent", _S.RECEIVER_NOT_READY_SENT),
    _mlx4("sq_num_bre", "req_bad_response_errors", _RETRY, "Bad responses"),
    _mlx4("rq_num_lle", "resp_local_length_errors", _RES,
          "Local length errors of responders"),
    _mlx4("sq_num_lle", "req_local_length_errors", _RES,
          "Local length errors of requesters"),
    _mlx4("rq_num_lqpoe", "resp_local_qp_operation_errors", _RES,
          "Local queue pair operation errors of responders"),
    _mlx4("sq_num_lqpoe", "req_local_qp_operation_errors", _RES,
          "Local queue pair operation errors of requesters"),
    _mlx4("rq_num_lpe", "resp_local_protection_errors", _SEC,
          "Local protection errors of responders"),
    _mlx4("sq_num_lpe", "req_local_protection_errors", _SEC,
          "Local protection errors of requesters"),
    _mlx4("rq_num_wrfe", "resp_cqes_flush_errors", _STATE,
          "Receives flushed as a queue pair ended", _S.FLUSH),
    _mlx4("sq_num_wrfe", "req_cqes_flush_errors", _STATE,
          "Requests flushed as a queue pair ended", _S.FLUSH),
    _mlx4("sq_num_mwbe", "req_memory_window_bind_errors", _SEC,
          "Memory window bind errors"),
    _mlx4("rq_num_rire", "resp_remote_invalid_request_errors", _SEC,
          "Requests refused here as invalid"),
    _mlx4("sq_num_rire", "req_remote_invalid_request_errors", _SEC,
          "Requests that the peer refused as invalid"),
    _mlx4("rq_num_rae", "resp_remote_access_errors", _SEC,
          "Requests refused here for their key or permission"),
    _mlx4("sq_num_rae", "req_remote_access_errors", _SEC,
          "Requests that the peer refused for their key or permission"),
    _mlx4("sq_num_roe", "req_remote_operation_errors", _RES,
          "Requests that failed at the peer"),
    _mlx4("rq_num_udsdprd", "ud_packets_dropped", _RES,
          "Datagrams dropped in silence"),
    _mlx4("num_cqovf", "completion_queue_overflows", _RES,
          "Completion queues that overflowed", fatal=True),

    # -- hfi1: an allow-list out of hundreds of files ---------------------------------
    _hfi1("RcTimeOut", "local_ack_timeout_errors", _RETRY,
          "Acknowledge timers that ran out", _S.ACK_TIMEOUT),
    _hfi1("RcSeqNak", "packet_sequence_errors", _RETRY,
          "Sequence NAKs received on reliable connections", _S.SEQUENCE_ERROR),
    _hfi1("SeqNak", "sequence_nak_packets", _RETRY, "Sequence NAKs"),
    _hfi1("RdmaSeq", "rdma_sequence_errors", _RETRY, "RDMA packets out of sequence"),
    _hfi1("RcResend", "rc_retransmits", _RETRY,
          "Requests sent again on reliable connections", _S.RETRANSMIT),
    _hfi1("RcDupRew", "duplicate_requests_packets", _RETRY,
          "Requests that arrived again", _S.DUPLICATE),
    _hfi1("RcCrWait", "rc_credit_waits", _RETRY, "Waits for credits of the responder"),
    _hfi1("RnrNak", "rnr_nak_retry_packets_received", _RES,
          "Receiver-not-ready NAKs received", _S.RECEIVER_NOT_READY),
    _hfi1("OtherNak", "other_nak_packets", _RETRY, "Other NAKs"),
    _hfi1("PktDrop", "packets_dropped", _RETRY, "Packets dropped by the software"),
    _hfi1("LoopPkts", "loopback_packets", _TRAF, "Packets looped back"),
    _hfi1("Unaligned", "unaligned_packets", _RETRY, "Packets with unaligned data"),
    _hfi1("SwLinkDown", "software_link_downs", _LINK,
          "Times that the driver saw the link go down", _S.LINK_DOWN,
          group=_OUTAGES),
    _hfi1("SwLinkUp", "software_link_ups", _STATE,
          "Times that the driver saw the link come up"),
    _hfi1("TxDropped", "transmit_drops", _CONG, "Packets dropped on transmission"),
    _hfi1("XmitDscd", "transmit_discards", _CONG,
          "Packets discarded on transmission", _S.DISCARD),
    _hfi1("TxFlowStall", "transmit_flow_stalls", _CONG, "Stalls for want of credits"),
    _hfi1("TxWait", "transmit_waits", _CONG, "Flits that waited for transmission"),
    _hfi1("TxUnderrun", "transmit_underruns", _RES, "Transmissions that ran dry"),
    _hfi1_device("DcUnctblErr", "uncorrectable_errors", _LINK,
                 "Errors that the link layer could not repair", _S.CORRUPTION),
    _hfi1_device("DcTotCrc", "link_crc_errors", _LINK,
                 "Bad CRCs on all lanes; they are repaired by replay"),
    _hfi1_device("DcTxReplay", "link_transmit_replays", _LINK,
                 "Replays asked for by the far end"),
    _hfi1_device("DcRxReplay", "link_receive_replays", _LINK,
                 "Replays asked for by this end"),
    _hfi1_device("DcRcvFcn", "forward_congestion_packets_received", _CONG,
                 "Packets received with a forward congestion mark", _S.ECN_MARKED),
    _hfi1_device("DcRcvBcn", "backward_congestion_packets_received", _CONG,
                 "Packets received with a backward congestion mark", _S.CNP_HANDLED),
    _hfi1_device("DcMarkFcn", "forward_congestion_packets_marked", _CONG,
                 "Packets marked as congested here"),

    # -- irdma and i40iw --------------------------------------------------------------
    _irdma("RTO", "local_ack_timeout_errors", _RETRY,
           "Retransmission timers that ran out", _S.ACK_TIMEOUT),
    _irdma("Nak Sequence Error", "packet_sequence_errors", _RETRY,
           "Sequence NAKs received", _S.SEQUENCE_ERROR),
    _irdma("Nak Sequence Error Implied", "implied_nak_seq_errors", _RETRY,
           "Losses inferred from a response", _S.SEQUENCE_ERROR),
    _irdma("Rcvd Out of order packets", "out_of_sequence_packets_received", _RETRY,
           "Packets that arrived out of order", _S.OUT_OF_SEQUENCE),
    _irdma("RetransSegs|tcpRetransSegs", "retransmitted_segments", _RETRY,
           "Segments sent again", _S.RETRANSMIT, width=32),
    _irdma("RNR received", "rnr_nak_retry_packets_received", _RES,
           "Receiver-not-ready NAKs received", _S.RECEIVER_NOT_READY),
    _irdma("RNR sent", "rnr_nak_packets_sent", _RES,
           "Receiver-not-ready NAKs sent", _S.RECEIVER_NOT_READY_SENT),
    _irdma("CRC errors", "rx_icrc_encapsulated_errors", _LINK,
           "Packets with a bad CRC of their payload", _S.CORRUPTION),
    _irdma("InOptErrors|tcpInOptErrors", "option_errors_received", _RETRY,
           "Segments with bad options", width=32),
    _irdma("InProtoErrors|tcpInProtoErrors", "protocol_errors_received", _RETRY,
           "Segments that broke the protocol", _S.RECEIVE_ERROR, width=32),
    _irdma("ip{}InDiscards", "ip_discards_received", _CONG,
           "IP packets dropped inbound", _S.RECEIVE_DISCARD, width=32,
           label="ip_version", each=("4", "6")),
    _irdma("ip{}InTruncatedPkts", "ip_truncated_packets_received", _LINK,
           "IP packets truncated for want of buffer", width=32,
           label="ip_version", each=("4", "6")),
    _irdma("ip{}OutNoRoutes", "ip_no_route_errors", _SEC, "IP packets without a route",
           width=32, label="ip_version", each=("4", "6")),
    _irdma("rxVlanErrors", "vlan_errors_received", _SEC,
           "Packets of a VLAN that is not ours", width=32),
    _irdma("RxECNMrkd", "np_ecn_marked_roce_packets_received", _CONG,
           "Packets received that the network had marked as congested", _S.ECN_MARKED),
    _irdma("cnpSent", "np_cnp_packets_sent", _CONG,
           "Congestion notifications sent", _S.CNP_SENT, width=32),
    _irdma("cnpHandled", "rp_cnp_packets_handled", _CONG,
           "Congestion notifications obeyed", _S.CNP_HANDLED),
    _irdma("cnpIgnored", "rp_cnp_ignored_packets_received", _CONG,
           "Congestion notifications ignored", _S.CNP_IGNORED),
    _irdma("ord limit count", "outbound_read_limit_hits", _RES,
           "Waits for the limit of outstanding reads, outbound"),
    _irdma("ird limit count", "inbound_read_limit_hits", _RES,
           "Waits for the limit of outstanding reads, inbound"),
    _irdma("ip{}InOctets", "ip_received_bytes", _TRAF, "Octets received by IP",
           _S.BYTES_RECEIVED, label="ip_version", each=("4", "6")),
    _irdma("ip{}OutOctets", "ip_transmitted_bytes", _TRAF, "Octets transmitted by IP",
           _S.BYTES_TRANSMITTED, label="ip_version", each=("4", "6")),
    _irdma("ip{}InPkts", "ip_packets_received", _TRAF, "IP packets received",
           _S.PACKETS_RECEIVED, label="ip_version", each=("4", "6")),
    _irdma("ip{}OutPkts", "ip_packets_transmitted", _TRAF, "IP packets transmitted",
           _S.PACKETS_TRANSMITTED, label="ip_version", each=("4", "6")),
    _irdma("ip{}InMcastOctets", "ip_multicast_received_bytes", _TRAF,
           "Multicast octets received", label="ip_version", each=("4", "6")),
    _irdma("ip{}OutMcastOctets", "ip_multicast_transmitted_bytes", _TRAF,
           "Multicast octets transmitted", label="ip_version", each=("4", "6")),
    _irdma("ip{}InMcastPkts", "ip_multicast_packets_received", _TRAF,
           "Multicast packets received", label="ip_version", each=("4", "6")),
    _irdma("ip{}OutMcastPkts", "ip_multicast_packets_transmitted", _TRAF,
           "Multicast packets transmitted", label="ip_version", each=("4", "6")),
    _irdma("ip{}InReasmRqd", "ip_fragments_received", _TRAF,
           "IP fragments received", label="ip_version", each=("4", "6")),
    _irdma("ip{}OutSegRqd", "ip_fragments_transmitted", _TRAF,
           "IP fragments transmitted", label="ip_version", each=("4", "6")),
    _irdma("InSegs|tcpInSegs", "segments_received", _TRAF, "Segments received"),
    _irdma("OutSegs|tcpOutSegs", "segments_transmitted", _TRAF, "Segments transmitted"),
    _irdma("InRdmaReads|iwInRdmaReads", "rx_read_requests", _TRAF,
           "RDMA reads received"),
    _irdma("InRdmaSends|iwInRdmaSends", "rx_send_requests", _TRAF,
           "RDMA sends received"),
    _irdma("InRdmaWrites|iwInRdmaWrites", "rx_write_requests", _TRAF,
           "RDMA writes received"),
    _irdma("OutRdmaReads|iwOutRdmaReads", "tx_read_requests", _TRAF,
           "RDMA reads sent"),
    _irdma("OutRdmaSends|iwOutRdmaSends", "tx_send_requests", _TRAF,
           "RDMA sends sent"),
    _irdma("OutRdmaWrites|iwOutRdmaWrites", "tx_write_requests", _TRAF,
           "RDMA writes sent"),
    _irdma("RdmaBnd|iwRdmaBnd", "memory_window_binds", _TRAF, "Memory window binds"),
    _irdma("RdmaInv|iwRdmaInv", "key_invalidations", _TRAF, "Keys invalidated"),
    _irdma("RxUDP", "udp_packets_received", _TRAF, "RoCE packets received"),
    _irdma("TxUDP", "udp_packets_transmitted", _TRAF, "RoCE packets transmitted"),
    _irdma("Rx atomics|Rx ATS", "rx_atomic_requests", _TRAF, "RDMA atomics received"),
    _irdma("Tx atomics|Tx ATS", "tx_atomic_requests", _TRAF, "RDMA atomics sent"),

    # -- cxgb4 ------------------------------------------------------------------------
    _cxgb4("ip{}RetransSegs", "ip_retransmitted_segments", _RETRY,
           "Segments sent again", _S.RETRANSMIT, label="ip_version", each=("4", "6")),
    _cxgb4("ip{}OutRsts", "ip_resets_transmitted", _RETRY, "Connections reset",
           label="ip_version", each=("4", "6")),
    _cxgb4("ip{}InSegs", "ip_segments_received", _TRAF, "Segments received",
           label="ip_version", each=("4", "6")),
    _cxgb4("ip{}OutSegs", "ip_segments_transmitted", _TRAF, "Segments transmitted",
           label="ip_version", each=("4", "6")),

    # -- bnxt_re: keeps its last values when the firmware does not answer -------------
    _bnxt("max_retry_exceeded", "req_transport_retries_exceeded", _RETRY,
          "Queue pairs that died: retries used up", _S.RETRIES_EXCEEDED, fatal=True),
    _bnxt("to_retransmits", "local_ack_timeout_errors", _RETRY,
          "Retransmissions after a timer ran out", _S.ACK_TIMEOUT),
    _bnxt("seq_err_naks_rcvd", "packet_sequence_errors", _RETRY,
          "Sequence NAKs received", _S.SEQUENCE_ERROR),
    _bnxt("missing_resp|missin_resp", "implied_nak_seq_errors", _RETRY,
          "Responses that went missing", _S.SEQUENCE_ERROR),
    _bnxt("res_oos_drop_count|oos_drop_count", "out_of_sequence_packets_received",
          _RETRY, "Packets dropped because they arrived out of order",
          _S.OUT_OF_SEQUENCE),
    _bnxt("dup_req", "duplicate_requests_packets", _RETRY,
          "Requests that arrived again", _S.DUPLICATE),
    _bnxt("rnr_naks_rcvd", "rnr_nak_retry_packets_received", _RES,
          "Receiver-not-ready NAKs received", _S.RECEIVER_NOT_READY),
    _bnxt("rx_out_of_buffer", "out_of_buffer_drops", _RES,
          "Packets dropped because no receive was posted", _S.OUT_OF_BUFFER),
    _bnxt("rx_roce_errors", "rx_roce_errors", _LINK,
          "RoCE packets received with an error", _S.RECEIVE_ERROR),
    _bnxt("rx_roce_discards|rx_roce_drops", "rx_roce_discards", _CONG,
          "RoCE packets discarded on receipt", _S.RECEIVE_DISCARD),
    _bnxt("tx_roce_errors", "tx_roce_errors", _RES,
          "RoCE packets that failed to leave"),
    _bnxt("tx_roce_discards", "tx_roce_discards", _CONG,
          "RoCE packets discarded on transmission", _S.DISCARD),
    _bnxt("rx_ecn_marked_pkts|np_ecn_marked_roce_packets",
          "np_ecn_marked_roce_packets_received", _CONG,
          "Packets received that the network had marked as congested", _S.ECN_MARKED),
    _bnxt("tx_cnp_pkts|np_cnp_pkts", "np_cnp_packets_sent", _CONG,
          "Congestion notifications sent", _S.CNP_SENT),
    _bnxt("rx_cnp_pkts|rp_cnp_handled", "rp_cnp_packets_handled", _CONG,
          "Congestion notifications received", _S.CNP_HANDLED),
    _bnxt("pacing_reschedule", "pacing_reschedules", _CONG, "Doorbells put off"),
    _bnxt("pacing_complete", "pacing_completions", _CONG, "Pacing episodes ended"),
    _bnxt("pacing_alerts", "pacing_alerts", _CONG, "Pacing episodes begun"),
    _bnxt("db_fifo_register", "doorbell_fifo_level", _STATE,
          "Register of the doorbell queue", kind=_GAUGE),
    _bnxt("req_cqe_error", "req_cqes_errors", _RES,
          "Completions in error at the requester"),
    _bnxt("resp_cqe_error", "resp_cqes_errors", _RES,
          "Completions in error at the responder"),
    _bnxt("resp_remote_access_errors", "resp_remote_access_errors", _SEC,
          "Requests refused here for their key or permission"),
    _bnxt("unrecoverable_err", "unrecoverable_errors", _RES,
          "Errors from which a queue pair could not recover"),
    _bnxt("bad_resp_err", "req_bad_response_errors", _RES, "Bad responses"),
    _bnxt("local_qp_op_err", "req_local_qp_operation_errors", _RES,
          "Local queue pair operation errors"),
    _bnxt("local_protection_err", "req_local_protection_errors", _RES,
          "Local protection errors"),
    _bnxt("mem_mgmt_op_err", "req_memory_management_errors", _RES,
          "Memory management errors"),
    _bnxt("remote_op_err", "req_remote_operation_errors", _RES,
          "Requests that failed at the peer"),
    _bnxt("remote_invalid_req_err", "req_remote_invalid_request_errors", _SEC,
          "Requests that the peer refused as invalid"),
    _bnxt("remote_access_err", "req_remote_access_errors", _SEC,
          "Requests that the peer refused for their key or permission"),
    _bnxt("res_tx_pci_err", "pci_transmit_errors", _RES,
          "PCIe errors while sending", _S.PCI_INTEGRITY),
    _bnxt("res_rx_pci_err", "pci_receive_errors", _RES,
          "PCIe errors while receiving", _S.PCI_INTEGRITY),
    *(_bnxt(f"res_{reason}", "resource_errors", _RES,
            "Queue pair errors by reason, as the device names it",
            label="reason", value=reason)
      for reason in (
          "exceed_max", "length_mismatch", "exceeds_wqe", "opcode_err", "unsup_opcode",
          "unaligned_atomic", "rem_inv_err", "mem_err", "srq_err", "cmp_err",
          "wqe_format_err", "cq_load_err", "srq_load_err", "irrq_oflow",
          "invalid_dup_rkey")),
    *(_bnxt(f"res_{reason}", "access_errors", _SEC,
            "Access errors by reason, as the device names it",
            label="reason", value=reason)
      for reason in (
          "rx_invalid_rkey", "rx_domain_err", "rx_no_perm", "rx_range_err",
          "tx_invalid_rkey", "tx_domain_err", "tx_no_perm", "tx_range_err")),
    _bnxt("recoverable_errors", "broadcast_packets_transmitted", _TRAF,
          "Broadcast packets transmitted, whatever the file is called"),
    _bnxt("rx_bytes", "received_bytes", _TRAF, "Octets received", _S.BYTES_RECEIVED),
    _bnxt("tx_bytes", "transmitted_bytes", _TRAF, "Octets transmitted",
          _S.BYTES_TRANSMITTED),
    _bnxt("rx_pkts", "received_packets", _TRAF, "Packets received",
          _S.PACKETS_RECEIVED),
    _bnxt("tx_pkts", "transmitted_packets", _TRAF, "Packets transmitted",
          _S.PACKETS_TRANSMITTED),
    _bnxt("rx_roce_only_bytes", "roce_received_bytes", _TRAF, "RoCE octets received"),
    _bnxt("tx_roce_only_bytes", "roce_transmitted_bytes", _TRAF,
          "RoCE octets transmitted"),
    _bnxt("rx_roce_only_pkts", "roce_received_packets", _TRAF, "RoCE packets received"),
    _bnxt("tx_roce_only_pkts", "roce_transmitted_packets", _TRAF,
          "RoCE packets transmitted"),
    _bnxt("rx_roce_good_bytes", "roce_good_received_bytes", _TRAF,
          "RoCE octets received without error"),
    _bnxt("rx_roce_good_pkts", "roce_good_received_packets", _TRAF,
          "RoCE packets received without error"),
    *(_bnxt(f"{way}_{what}_req", f"{way}_{what}_requests", _TRAF,
            f"RDMA {what}s {'received' if way == 'rx' else 'sent'}")
      for way in ("rx", "tx") for what in ("atomic", "read", "write", "send")),
    _bnxt("rx_read_resp", "rx_read_responses", _TRAF, "Read responses received"),
    _bnxt("tx_read_resp", "tx_read_responses", _TRAF, "Read responses sent"),
    *(_bnxt(f"{state}_{thing}s", f"{state}_objects", _STATE, text, kind=_GAUGE,
            label="object", value=thing)
      for state, text in (("active", "Objects alive now"),
                          ("watermark", "Most objects alive at once"))
      for thing in ("pd", "ah", "qp", "rc_qp", "ud_qp", "srq", "cq", "mr", "mw")),
    _bnxt("resize_cq_cnt", "completion_queue_resizes", _STATE,
          "Completion queues resized"),

    # -- EFA: octets, not words; the port's state is constant -------------------------
    _efa("retrans_timeout_events", "local_ack_timeout_errors", _RETRY,
         "Retransmission timers that ran out", _S.ACK_TIMEOUT),
    _efa("retrans_pkts", "retransmitted_packets", _RETRY,
         "Packets sent again", _S.RETRANSMIT),
    _efa("retrans_bytes", "retransmitted_bytes", _RETRY, "Octets sent again"),
    _efa("unresponsive_remote_events", "unresponsive_remote_events", _RETRY,
         "Times that a peer did not answer", _S.REMOTE_IMPAIRED),
    _efa("impaired_remote_conn_events", "impaired_remote_connection_events", _RETRY,
         "Times that the path to a peer was slowed down", _S.REMOTE_IMPAIRED),
    _efa("rx_drops", "receive_drops", _RES, "Packets dropped on receipt",
         _S.RECEIVE_DISCARD),
    _efa("rdma_read_wr_err", "rdma_read_request_errors", _RETRY, "Reads that failed",
         _S.REQUEST_FAILED),
    _efa("rdma_write_wr_err", "rdma_write_request_errors", _RETRY,
         "Writes that failed", _S.REQUEST_FAILED),
    _efa("rx_bytes", "received_bytes", _TRAF, "Octets received", _S.BYTES_RECEIVED),
    _efa("tx_bytes", "transmitted_bytes", _TRAF, "Octets transmitted",
         _S.BYTES_TRANSMITTED),
    _efa("rx_pkts", "received_packets", _TRAF, "Packets received", _S.PACKETS_RECEIVED),
    _efa("tx_pkts", "transmitted_packets", _TRAF, "Packets transmitted",
         _S.PACKETS_TRANSMITTED),
    _efa("send_bytes", "send_bytes", _TRAF, "Octets of sends"),
    _efa("send_wrs", "send_requests", _TRAF, "Sends"),
    _efa("recv_bytes", "receive_bytes", _TRAF, "Octets of receives"),
    _efa("recv_wrs", "receive_requests", _TRAF, "Receives"),
    _efa("rdma_read_bytes", "rdma_read_bytes", _TRAF, "Octets read from peers"),
    _efa("rdma_read_wrs", "rdma_read_requests", _TRAF, "Reads"),
    _efa("rdma_read_resp_bytes", "rdma_read_response_bytes", _TRAF,
         "Octets read by peers"),
    _efa("rdma_write_bytes", "rdma_write_bytes", _TRAF, "Octets written to peers"),
    _efa("rdma_write_wrs", "rdma_write_requests", _TRAF, "Writes"),
    _efa("rdma_write_recv_bytes", "rdma_write_received_bytes", _TRAF,
         "Octets written by peers"),
    _efa_device("no_completion_cmds", "admin_commands_timed_out", _RES,
                "Admin commands that never completed", _S.DEVICE_FAULT, fatal=True),
    _efa_device("cmds_err", "admin_command_errors", _RES, "Admin commands that failed"),
    _efa_device("submitted_cmds", "admin_commands_submitted", _TRAF,
                "Admin commands submitted"),
    _efa_device("completed_cmds", "admin_commands_completed", _TRAF,
                "Admin commands completed"),
    _efa_device("keep_alive_rcvd", "keep_alives_received", _TRAF,
                "Signs of life of the device; none means that it is dead"),
    *(_efa_device(f"{what}_err", "resource_creation_errors", _RES,
                  "Resources that could not be made", label="resource", value=what)
      for what in ("alloc_pd", "create_qp", "create_cq", "create_ah", "reg_mr",
                   "alloc_mr", "get_dma_mr", "alloc_ucontext", "mmap")),

    # -- ionic: the firmware names its counters; ~0 is no value -----------------------
    _ionic("req_tx_retry_excd_err", "req_transport_retries_exceeded", _RETRY,
           "Queue pairs that died: retries used up", _S.RETRIES_EXCEEDED, fatal=True),
    _ionic("tx_rdma_ack_timeout", "local_ack_timeout_errors", _RETRY,
           "Acknowledge timers that ran out", _S.ACK_TIMEOUT),
    _ionic("req_rx_pkt_seq_err", "packet_sequence_errors", _RETRY,
           "Sequence NAKs received", _S.SEQUENCE_ERROR),
    _ionic("req_rx_impl_nak_seq_err", "implied_nak_seq_errors", _RETRY,
           "Losses inferred from a response", _S.SEQUENCE_ERROR),
    _ionic("tx_rdma_retx_pkts", "retransmitted_packets", _RETRY,
           "Packets sent again", _S.RETRANSMIT),
    _ionic("tx_rdma_retx_bytes", "retransmitted_bytes", _RETRY, "Octets sent again"),
    _ionic("resp_rx_outouf_seq|resp_rx_outof_seq", "out_of_sequence_packets_received",
           _RETRY, "Packets that arrived out of order", _S.OUT_OF_SEQUENCE),
    _ionic("resp_tx_pkt_seq_err", "sequence_nak_packets_sent", _RETRY,
           "Sequence NAKs sent: a packet of the peer was lost"),
    _ionic("resp_rx_dup_request", "duplicate_requests_packets", _RETRY,
           "Requests that arrived again", _S.DUPLICATE),
    _ionic("req_rx_dup_response", "duplicate_responses_packets", _RETRY,
           "Responses that arrived again"),
    _ionic("req_rx_rnr_retry_err", "rnr_nak_retry_packets_received", _RES,
           "Receiver-not-ready NAKs received", _S.RECEIVER_NOT_READY),
    _ionic("resp_tx_rnr_retry_err", "rnr_nak_packets_sent", _RES,
           "Receiver-not-ready NAKs sent", _S.RECEIVER_NOT_READY_SENT),
    _ionic("resp_rx_outof_buf", "out_of_buffer_drops", _RES,
           "Packets dropped because no receive was posted", _S.OUT_OF_BUFFER),
    _ionic("resp_rx_outof_atomic", "out_of_atomic_resources", _RES,
           "Atomics refused for want of resources"),
    _ionic("rx_rdma_ecn_pkts", "np_ecn_marked_roce_packets_received", _CONG,
           "Packets received that the network had marked as congested", _S.ECN_MARKED),
    _ionic("tx_rdma_cnp_pkts", "np_cnp_packets_sent", _CONG,
           "Congestion notifications sent", _S.CNP_SENT),
    _ionic("rx_rdma_cnp_pkts", "rp_cnp_packets_handled", _CONG,
           "Congestion notifications received", _S.CNP_HANDLED),
    _ionic("req_rx_cqe_err", "req_cqes_errors", _RES,
           "Completions in error at the requester"),
    _ionic("resp_rx_cqe_err", "resp_cqes_errors", _RES,
           "Completions in error at the responder"),
    _ionic("req_rx_cqe_flush", "req_cqes_flush_errors", _STATE,
           "Requests flushed as a queue pair ended", _S.FLUSH),
    _ionic("resp_rx_cqe_flush", "resp_cqes_flush_errors", _STATE,
           "Receives flushed as a queue pair ended", _S.FLUSH),
    _ionic("req_rx_inval_pkts", "req_invalid_packets_received", _RES,
           "Invalid packets seen by the requester"),
    _ionic("resp_rx_inval_request", "resp_remote_invalid_request_errors", _SEC,
           "Requests refused here as invalid"),
    _ionic("req_rx_rmt_req_err", "req_remote_invalid_request_errors", _SEC,
           "Requests that the peer refused as invalid"),
    _ionic("req_rx_rmt_acc_err", "req_remote_access_errors", _SEC,
           "Requests that the peer refused for their key or permission"),
    _ionic("req_rx_oper_err", "req_remote_operation_errors", _RES,
           "Requests that failed at the peer"),
    _ionic("req_tx_loc_acc_err", "req_local_protection_errors", _RES,
           "Local access errors of requesters"),
    _ionic("req_tx_loc_oper_err", "req_local_qp_operation_errors", _RES,
           "Local operation errors of requesters"),
    _ionic("req_tx_mem_mgmt_err", "req_memory_management_errors", _RES,
           "Memory management errors"),
    _ionic("req_tx_loc_sgl_inv_err", "req_local_buffer_errors", _RES,
           "Bad buffer lists of requesters"),
    _ionic("resp_tx_loc_sgl_inv_err", "resp_local_buffer_errors", _RES,
           "Bad buffer lists of responders"),
    _ionic("resp_rx_loc_len_err", "resp_local_length_errors", _RES,
           "Wrong lengths seen by the responder"),
    _ionic("resp_rx_loc_oper_err", "resp_local_qp_operation_errors", _RES,
           "Local operation errors of responders"),
    _ionic("resp_tx_rmt_inval_req_err", "resp_invalid_request_naks_sent", _SEC,
           "Refusals sent for invalid requests"),
    _ionic("resp_tx_rmt_acc_err", "resp_access_naks_sent", _SEC,
           "Refusals sent for a key or permission"),
    _ionic("resp_tx_rmt_oper_err", "resp_operation_naks_sent", _RES,
           "Refusals sent because an operation failed here"),
    _ionic("rx_rdma_ucast_bytes", "received_bytes", _TRAF,
           "Octets received", _S.BYTES_RECEIVED),
    _ionic("tx_rdma_ucast_bytes", "transmitted_bytes", _TRAF,
           "Octets transmitted", _S.BYTES_TRANSMITTED),
    _ionic("rx_rdma_ucast_pkts", "received_packets", _TRAF,
           "Packets received", _S.PACKETS_RECEIVED),
    _ionic("tx_rdma_ucast_pkts", "transmitted_packets", _TRAF,
           "Packets transmitted", _S.PACKETS_TRANSMITTED),
    _ionic("rx_rdma_mcast_bytes", "multicast_received_bytes", _TRAF,
           "Multicast octets received"),
    _ionic("tx_rdma_mcast_bytes", "multicast_transmitted_bytes", _TRAF,
           "Multicast octets transmitted"),
    _ionic("rx_rdma_mcast_pkts", "multicast_packets_received", _TRAF,
           "Multicast packets received"),
    _ionic("tx_rdma_mcast_pkts", "multicast_packets_transmitted", _TRAF,
           "Multicast packets transmitted"),

    # -- hns: files of the device in new kernels, of the port in old ones -------------
    _hns("rx_err_pkt", "error_packets_received", _LINK,
         "Packets received with an error", _S.RECEIVE_ERROR),
    _hns("tx_err_pkt", "error_packets_transmitted", _LINK,
         "Packets sent with an error"),
    _hns("tx_cnp_pkt", "np_cnp_packets_sent", _CONG,
         "Congestion notifications sent", _S.CNP_SENT),
    _hns("rx_cnp_pkt", "rp_cnp_packets_handled", _CONG,
         "Congestion notifications received", _S.CNP_HANDLED),
    _hns("ecn_db", "ecn_doorbells", _CONG, "Doorbells of congestion control"),
    _hns("trp_get_mpt_err_pkt", "memory_table_errors", _RES,
         "Packets whose memory table entry could not be read"),
    _hns("trp_get_irrl_err_pkt", "read_queue_errors", _RES,
         "Packets whose read queue entry could not be read"),
    _hns("cmds_err", "admin_command_errors", _RES, "Commands that failed"),
    *(_hns(f"{what}_err", "resource_errors", _RES,
           "Resources that could not be made or changed", label="reason", value=what)
      for what in ("qp_create", "qp_modify", "cq_create", "cq_modify", "srq_create",
                   "srq_modify", "xrcd_alloc", "mr_reg", "mr_rereg", "ah_create",
                   "mmap", "uctx_alloc")),
    _hns("rx_pkt", "received_packets", _TRAF, "Packets received", _S.PACKETS_RECEIVED),
    _hns("tx_pkt", "transmitted_packets", _TRAF, "Packets transmitted",
         _S.PACKETS_TRANSMITTED),
    *(_hns(f"{way}_{service}_pkt", f"service_packets_{text}", _TRAF,
           f"Packets {text} by service", label="service", value=service)
      for way, text in (("rx", "received"), ("tx", "transmitted"))
      for service in ("rc", "uc", "ud", "xrc")),
    *(_hns(what, "pipeline_events", _TRAF, "Events inside the device, by its own names",
           label="event", value=what)
      for what in ("aeqe", "ceqe", "cmds", "posted_mbx", "polled_mbx", "mbx_event",
                   "rx_buf", "trp_rx_sof", "cq_cqe", "cq_poe", "cq_notify")),

    # -- mana -------------------------------------------------------------------------
    _mana("requester_retries_exceeded", "req_transport_retries_exceeded", _RETRY,
          "Queue pairs that died: retries used up", _S.RETRIES_EXCEEDED, fatal=True),
    _mana("requester_rnr_nak_retries_exceeded", "req_rnr_retries_exceeded", _RES,
          "Queue pairs that died: peer never ready", _S.NOT_READY_EXCEEDED,
          fatal=True),
    _mana("total_fatal_error", "fatal_errors", _RES,
          "Errors that ended a queue pair", fatal=True),
    _mana("requester_timeout", "local_ack_timeout_errors", _RETRY,
          "Acknowledge timers that ran out", _S.ACK_TIMEOUT),
    _mana("requester_oos_nak", "packet_sequence_errors", _RETRY,
          "Sequence NAKs received", _S.SEQUENCE_ERROR),
    _mana("requester_implicit_nak", "implied_nak_seq_errors", _RETRY,
          "Losses inferred from a response", _S.SEQUENCE_ERROR),
    _mana("requester_readresp_psn_mismatch", "read_response_sequence_errors", _RETRY,
          "Read responses out of sequence", _S.SEQUENCE_ERROR),
    _mana("responder_oos", "out_of_sequence_packets_received", _RETRY,
          "Packets that arrived out of order", _S.OUT_OF_SEQUENCE),
    _mana("responder_dup_request", "duplicate_requests_packets", _RETRY,
          "Requests that arrived again", _S.DUPLICATE),
    _mana("dup_rx_requests", "duplicate_requests_received", _TRAF,
          "Duplicate requests received"),
    _mana("requester_rnr_nak", "rnr_nak_retry_packets_received", _RES,
          "Receiver-not-ready NAKs received", _S.RECEIVER_NOT_READY),
    _mana("responder_rnr_nak", "rnr_nak_packets_sent", _RES,
          "Receiver-not-ready NAKs sent", _S.RECEIVER_NOT_READY_SENT),
    _mana("nak_inv_req", "req_remote_invalid_request_errors", _SEC,
          "Requests that the peer refused as invalid"),
    _mana("nak_access_error", "req_remote_access_errors", _SEC,
          "Requests that the peer refused for their key or permission"),
    _mana("nak_opp_error", "req_remote_operation_errors", _SEC,
          "Requests that failed at the peer"),
    _mana("nak_inv_read", "req_remote_invalid_read_errors", _SEC,
          "Reads that the peer refused as invalid"),
    _mana("responder_rem_access_error", "resp_remote_access_errors", _SEC,
          "Requests refused here for their key or permission"),
    _mana("responder_local_len_error", "resp_local_length_errors", _RES,
          "Wrong lengths seen by the responder"),
    _mana("requestor_local_prot_error", "req_local_protection_errors", _RES,
          "Local protection errors of requesters"),
    _mana("responder_local_qp_error", "resp_local_qp_operation_errors", _RES,
          "Local queue pair errors of responders"),
    _mana("responder_malformed_wqe", "resp_malformed_request_errors", _RES,
          "Malformed receives"),
    _mana("general_hw_error", "hardware_errors", _RES, "Errors of the hardware"),
    _mana("received_cnps", "rp_cnp_packets_handled", _CONG,
          "Congestion notifications received", _S.CNP_HANDLED),
    _mana("rate_inc_events", "rate_increases", _CONG, "Times that a rate was raised"),
    _mana("num_qps_recovered", "queue_pairs_recovered", _CONG,
          "Queue pairs that recovered from congestion"),
    _mana("num_qps_congested", "queue_pairs_congested", _STATE,
          "Queue pairs held back by congestion control now", kind=_GAUGE),
    _mana("current_rate", "current_rate", _STATE,
          "Rate that congestion control allows now, in the device's unit", kind=_GAUGE),
    _mana("rx_bytes", "received_bytes", _TRAF, "Octets received", _S.BYTES_RECEIVED),
    _mana("tx_bytes", "transmitted_bytes", _TRAF, "Octets transmitted",
          _S.BYTES_TRANSMITTED),
    _mana("rx_packets", "received_packets", _TRAF, "Packets received",
          _S.PACKETS_RECEIVED),
    _mana("tx_packets", "transmitted_packets", _TRAF, "Packets transmitted",
          _S.PACKETS_TRANSMITTED),
    _mana("rx_send_requests", "rx_send_requests", _TRAF, "RDMA sends received"),
    _mana("rx_write_requests", "rx_write_requests", _TRAF, "RDMA writes received"),
    _mana("rx_read_requests", "rx_read_requests", _TRAF, "RDMA reads received"),
    _mana_device("sent_cnps", "np_cnp_packets_sent", _CONG,
                 "Congestion notifications sent", _S.CNP_SENT),
    _mana_device("received_ecns", "np_ecn_marked_roce_packets_received", _CONG,
                 "Packets received that were marked as congested", _S.ECN_MARKED),
    _mana_device("received_cnp_count", "rp_cnp_packets_handled", _CONG,
                 "Congestion notifications received", _S.CNP_HANDLED),
    _mana_device("qp_congested_events", "queue_pair_congestion_events", _CONG,
                 "Times that a queue pair was held back"),
    _mana_device("qp_recovered_events", "queue_pair_recovery_events", _CONG,
                 "Times that a queue pair recovered"),
    _mana_device("rate_inc_events", "rate_increases", _CONG,
                 "Times that a rate was raised"),

    # -- erdma ------------------------------------------------------------------------
    _erdma("connect_timeout_cnt", "connect_timeouts", _RETRY,
           "Connections that timed out while being made"),
    _erdma("connect_failed_cnt", "connect_failures", _RETRY,
           "Connections that could not be made"),
    _erdma("connect_reset_cnt", "connect_resets", _RETRY,
           "Connections that were reset while being made"),
    _erdma("accept_failed_cnt", "accept_failures", _RES,
           "Connections that could not be accepted"),
    _erdma("listen_failed_cnt", "listen_failures", _RES, "Listeners that failed"),
    _erdma("reject_failed_cnt", "reject_failures", _RES,
           "Connections that could not be refused"),
    _erdma("hw_disable_drop_cnt|hw_tx_disable_drop_cnt", "transmit_disabled_drops",
           _CONG, "Packets not sent because sending is off", _S.DISCARD),
    _erdma("hw_bps_limit_drop_cnt|hw_tx_bps_limit_drop_cnt",
           "transmit_byte_limit_drops", _CONG,
           "Packets not sent because of the instance's byte rate limit", _S.DISCARD),
    _erdma("hw_pps_limit_drop_cnt|hw_tx_pps_limit_drop_cnt",
           "transmit_packet_limit_drops", _CONG,
           "Packets not sent because of the instance's packet rate limit", _S.DISCARD),
    _erdma("hw_rx_disable_drop_cnt", "receive_disabled_drops", _CONG,
           "Packets dropped because receiving is off", _S.RECEIVE_DISCARD),
    _erdma("hw_rx_bps_limit_drop_cnt", "receive_byte_limit_drops", _CONG,
           "Packets dropped because of the instance's byte rate limit",
           _S.RECEIVE_DISCARD),
    _erdma("hw_rx_pps_limit_drop_cnt", "receive_packet_limit_drops", _CONG,
           "Packets dropped because of the instance's packet rate limit",
           _S.RECEIVE_DISCARD),
    _erdma("hw_rx_bytes_cnt", "received_bytes", _TRAF, "Octets received",
           _S.BYTES_RECEIVED),
    _erdma("hw_tx_bytes_cnt", "transmitted_bytes", _TRAF, "Octets transmitted",
           _S.BYTES_TRANSMITTED),
    _erdma("hw_rx_packets_cnt", "received_packets", _TRAF, "Packets received",
           _S.PACKETS_RECEIVED),
    _erdma("hw_tx_packets_cnt", "transmitted_packets", _TRAF, "Packets transmitted",
           _S.PACKETS_TRANSMITTED),
    _erdma("hw_tx_reqs_cnt", "transmit_requests", _TRAF, "Requests to send"),
    _erdma("cmdq_submitted_cnt", "admin_commands_submitted", _TRAF,
           "Commands submitted; a growing lead over those completed is a stuck device"),
    _erdma("cmdq_comp_cnt", "admin_commands_completed", _TRAF, "Commands completed"),
    *(_erdma(f"{what}_cnt", "control_events", _TRAF,
             "Events of connections and queues, by their own names",
             label="event", value=what)
      for what in ("listen_create", "listen_ipv6", "listen_success", "listen_destroy",
                   "accept_total", "accept_success", "reject", "connect_total",
                   "connect_success", "cmdq_eq_notify", "cmdq_eq_event",
                   "cmdq_cq_armed", "erdma_aeq_event", "erdma_aeq_notify")),
    *(_erdma(f"verbs_{what}_cnt", "verbs_calls", _TRAF, "Calls of the verbs interface",
             label="call", value=what)
      for what in ("alloc_mr", "alloc_pd", "alloc_uctx", "create_cq", "create_qp",
                   "dealloc_pd", "dealloc_uctx", "dereg_mr", "destroy_cq", "destroy_qp",
                   "get_dma_mr", "reg_usr_mr")),
    *(_erdma(f"verbs_{what}_failed_cnt", "verbs_call_failures", _RES,
             "Calls of the verbs interface that failed", label="call", value=what)
      for what in ("alloc_mr", "alloc_pd", "alloc_uctx", "create_cq", "create_qp",
                   "dereg_mr", "destroy_cq", "destroy_qp", "get_dma_mr", "reg_usr_mr")),

    # -- rxe (Soft-RoCE): counts by software, all 64 bits -----------------------------
    _rxe("retry_exceeded_err", "req_transport_retries_exceeded", _RETRY,
         "Queue pairs that died: retries used up", _S.RETRIES_EXCEEDED, fatal=True),
    _rxe("retry_rnr_exceeded_err", "req_rnr_retries_exceeded", _RES,
         "Queue pairs that died: peer never ready", _S.NOT_READY_EXCEEDED,
         fatal=True),
    _rxe("completer_retry_err", "completer_retries", _RETRY,
         "Times that the requester had to try again", _S.RETRANSMIT),
    _rxe("rcvd_seq_err", "packet_sequence_errors", _RETRY,
         "Sequence NAKs received", _S.SEQUENCE_ERROR),
    _rxe("out_of_seq_request", "out_of_sequence_packets_received", _RETRY,
         "Requests that arrived out of order", _S.OUT_OF_SEQUENCE),
    _rxe("duplicate_request", "duplicate_requests_packets", _RETRY,
         "Requests that arrived again", _S.DUPLICATE),
    _rxe("rcvd_rnr_err", "rnr_nak_retry_packets_received", _RES,
         "Receiver-not-ready NAKs received", _S.RECEIVER_NOT_READY),
    _rxe("send_rnr_err", "rnr_nak_packets_sent", _RES,
         "Receiver-not-ready NAKs sent", _S.RECEIVER_NOT_READY_SENT),
    _rxe("send_err", "send_errors", _RES, "Packets that could not be sent"),
    _rxe("link_downed", "link_downed", _LINK,
         "Times that the link went down", _S.LINK_DOWN, group=_OUTAGES),
    _rxe("ack_deferred", "acknowledges_deferred", _TRAF, "Acknowledges put off"),
    _rxe("rcvd_pkts", "received_packets", _TRAF, "Packets received",
         _S.PACKETS_RECEIVED),
    _rxe("sent_pkts", "transmitted_packets", _TRAF, "Packets transmitted",
         _S.PACKETS_TRANSMITTED),
    _rxe("rdma_sends", "send_requests", _TRAF, "Sends"),
    _rxe("rdma_recvs", "receive_requests", _TRAF, "Receives"),

    # -- network devices: free to read ------------------------------------------------
    _netdev("carrier_down_count", "netdev_carrier_downs", _LINK,
            "Times that the network device lost its carrier", _S.CARRIER_DOWN),
    _netdev("carrier_changes", "netdev_carrier_changes", _STATE,
            "Changes of the carrier, up and down"),
    _netdev("carrier_up_count", "netdev_carrier_ups", _STATE,
            "Times that the network device got its carrier", export=_NEVER),
    _stats("rx_crc_errors", "netdev_receive_crc_errors", _LINK,
           "Packets received with a bad CRC"),
    _stats("rx_errors", "netdev_receive_errors", _LINK,
           "Packets received with an error"),
    _stats("tx_errors", "netdev_transmit_errors", _LINK,
           "Packets that failed to leave"),
    _stats("rx_dropped", "netdev_receive_drops", _CONG,
           "Packets dropped on receipt, often only unwanted ones"),
    _stats("tx_dropped", "netdev_transmit_drops", _CONG,
           "Packets dropped on transmission"),
    _stats("rx_missed_errors", "netdev_receive_missed", _RES,
           "Packets missed for want of buffers"),

    # -- driver statistics of mlx5, dearest first -------------------------------------
    _mlx5_driver("link_down_events_phy", "phy_link_downs", _LINK,
                 "Times that the physical link went down", _S.LINK_DOWN,
                 export=Export.ALWAYS),
    _mlx5_driver("rx_pcs_symbol_err_phy", "phy_symbol_errors", _LINK,
                 "Damaged symbols that FEC could not repair", _S.SYMBOL_ERROR,
                 export=Export.ALWAYS),
    _mlx5_driver("rx_corrected_bits_phy", "phy_fec_corrections", _FEC,
                 "Bits that FEC repaired", _S.CORRECTED_BITS, export=Export.ALWAYS),
    _mlx5_driver("tx_prio{}_pause", "pause_frames_transmitted", _CONG,
                 "Pause frames sent: this host cannot absorb", _S.PAUSE_TRANSMITTED,
                 export=Export.SPARE, label="priority", each=_EIGHT),
    _mlx5_driver("tx_prio{}_pause_duration", "pause_transmitted_seconds", _CONG,
                 "Time for which this host held the network up",
                 _S.PAUSE_TRANSMITTED_TIME, factor=_MICROSECONDS,
                 label="priority", each=_EIGHT),
    _mlx5_driver("rx_prio{}_pause", "pause_frames_received", _CONG,
                 "Pause frames received: the network cannot absorb", _S.PAUSE_RECEIVED,
                 export=Export.SPARE, label="priority", each=_EIGHT),
    _mlx5_driver("rx_prio{}_pause_duration", "pause_received_seconds", _CONG,
                 "Time for which the network held this host up",
                 _S.PAUSE_RECEIVED_TIME, factor=_MICROSECONDS,
                 label="priority", each=_EIGHT),
    _mlx5_driver("tx_global_pause", "pause_frames_transmitted", _CONG,
                 "Pause frames sent, for all priorities at once", _S.PAUSE_TRANSMITTED,
                 export=Export.SPARE, label="priority", value="all"),
    _mlx5_driver("tx_global_pause_duration", "pause_transmitted_seconds", _CONG,
                 "Time for which this host held the whole network up",
                 _S.PAUSE_TRANSMITTED_TIME, factor=_MICROSECONDS,
                 label="priority", value="all"),
    _mlx5_driver("rx_global_pause", "pause_frames_received", _CONG,
                 "Pause frames received, for all priorities at once", _S.PAUSE_RECEIVED,
                 export=Export.SPARE, label="priority", value="all"),
    _mlx5_driver("rx_global_pause_duration", "pause_received_seconds", _CONG,
                 "Time for which the network held this whole host up",
                 _S.PAUSE_RECEIVED_TIME, factor=_MICROSECONDS,
                 label="priority", value="all"),
    _mlx5_driver("tx_pause_storm_{}_events", "pause_storms", _CONG,
                 "Times that pause was sent for too long; at error it was cut off",
                 _S.PAUSE_STORM, label="level", each=("warning", "error")),
    _mlx5_driver("outbound_pci_stalled_wr_events", "pci_outbound_stalled_seconds", _RES,
                 "Seconds in which writes to the host stalled for over 30 %",
                 _S.PCI_STALL, label="operation", value="write"),
    _mlx5_driver("outbound_pci_stalled_rd_events", "pci_outbound_stalled_seconds", _RES,
                 "Seconds in which reads from the host stalled for over 30 %",
                 _S.PCI_STALL, label="operation", value="read"),
    _mlx5_driver("outbound_pci_stalled_wr", "pci_outbound_stalled_ratio", _RES,
                 "Share of the last second in which writes to the host stalled",
                 _S.PCI_STALL_RATIO, kind=_GAUGE, factor=_PERCENT,
                 label="operation", value="write"),
    _mlx5_driver("outbound_pci_stalled_rd", "pci_outbound_stalled_ratio", _RES,
                 "Share of the last second in which reads from the host stalled",
                 _S.PCI_STALL_RATIO, kind=_GAUGE, factor=_PERCENT,
                 label="operation", value="read"),
    _mlx5_driver("outbound_pci_buffer_overflow", "pci_outbound_overflow_drops", _RES,
                 "Packets dropped because the host did not take them",
                 _S.PCI_OVERFLOW),
    _mlx5_driver("rx_discards_phy", "phy_discards_received", _RES,
                 "Packets dropped for want of receive buffers", _S.RECEIVE_DISCARD),
    _mlx5_driver("rx_buffer_passed_thres_phy", "phy_receive_buffer_alarms", _RES,
                 "Times that the receive buffer was over 85 % full",
                 _S.BUFFER_PRESSURE),
    _mlx5_driver("rx_crc_errors_phy", "phy_crc_errors", _LINK,
                 "Packets received with a bad frame check", _S.CORRUPTION),
    _mlx5_driver("rx_symbol_err_phy", "phy_symbol_error_packets", _LINK,
                 "Packets dropped because of damaged symbols", _S.RECEIVE_ERROR),
    _mlx5_driver("total_success_recovery_phy", "phy_recoveries", _LINK,
                 "Times that the physical link recovered", _S.LINK_RECOVERY),
    _mlx5_driver("module_high_temp", "module_events", _LINK,
                 "Alarms of the transceiver", _S.MODULE_HOT,
                 label="event", value="high_temperature"),
    _mlx5_driver("module_bus_stuck", "module_events", _LINK,
                 "Alarms of the transceiver", _S.MODULE_FAULT,
                 label="event", value="bus_stuck"),
    _mlx5_driver("module_bad_shorted", "module_events", _LINK,
                 "Alarms of the transceiver", _S.MODULE_FAULT,
                 label="event", value="shorted"),
    _mlx5_driver("module_unplug", "module_events", _STATE,
                 "Times that the transceiver was pulled out", _S.MODULE_UNPLUGGED,
                 label="event", value="unplugged"),
    _mlx5_driver("tx_discards_phy", "phy_discards_transmitted", _CONG,
                 "Packets dropped on transmission", _S.DISCARD),
    _mlx5_driver("rx_pci_signal_integrity", "pci_signal_errors", _RES,
                 "Errors of the PCIe link's signal", _S.PCI_INTEGRITY,
                 label="direction", value="received"),
    _mlx5_driver("tx_pci_signal_integrity", "pci_signal_errors", _RES,
                 "Errors of the PCIe link's signal, told by the far end",
                 _S.PCI_INTEGRITY, label="direction", value="transmitted"),
    _mlx5_driver("rx_prio{}_discards", "priority_discards_received", _RES,
                 "Packets of a priority dropped for want of buffers",
                 label="priority", each=_EIGHT),
    _mlx5_driver("rx_prio{}_buf_discard", "priority_buffer_discards_received", _RES,
                 "Packets of a priority dropped for want of the host's buffer",
                 label="priority", each=_EIGHT),
    _mlx5_driver("rx_prio{}_cong_discard", "priority_congestion_discards_received",
                 _CONG, "Packets of a priority dropped for the host's congestion",
                 label="priority", each=_EIGHT),
    _mlx5_driver("rx_prio{}_marked", "priority_packets_marked", _CONG,
                 "Packets of a priority marked for the host's congestion",
                 label="priority", each=_EIGHT),
    _mlx5_driver("rx_prio{}_pause_transition", "pause_transitions_received", _CONG,
                 "Times that the network let a priority go again",
                 label="priority", each=_EIGHT),
    _mlx5_driver("rx_err_lane_{}_phy", "phy_lane_errors", _FEC,
                 "Errors of one lane before FEC: the lane that is bad stands out",
                 _S.LANE_ERROR, export=Export.SPARE, label="lane", each=_EIGHT),
    _mlx5_driver("rx_pause_ctrl_phy", "pause_control_frames_received", _CONG,
                 "Pause frames received, of both kinds", export=_NEVER),
    _mlx5_driver("tx_pause_ctrl_phy", "pause_control_frames_transmitted", _CONG,
                 "Pause frames sent, of both kinds", export=_NEVER),
    _mlx5_driver("rx_prio{}_bytes", "priority_received_bytes", _TRAF,
                 "Octets received of a priority", _S.PRIORITY_BYTES_RECEIVED,
                 export=_NEVER, label="priority", each=_EIGHT),
    _mlx5_driver("tx_prio{}_bytes", "priority_transmitted_bytes", _TRAF,
                 "Octets sent of a priority", _S.PRIORITY_BYTES_TRANSMITTED,
                 export=_NEVER, label="priority", each=_EIGHT),

    # -- driver statistics of bnxt_en and ice -----------------------------------------
    _bnxt_driver("link_down_events", "phy_link_downs", _LINK,
                 "Times that the physical link went down", _S.LINK_DOWN,
                 export=Export.ALWAYS),
    _bnxt_driver("rx_pcs_symbol_err", "phy_symbol_errors", _LINK,
                 "Damaged symbols that FEC could not repair", _S.SYMBOL_ERROR,
                 export=Export.ALWAYS),
    _bnxt_driver("rx_corrected_bits", "phy_fec_corrections", _FEC,
                 "Bits that FEC repaired", _S.CORRECTED_BITS, export=Export.ALWAYS),
    _bnxt_driver("tx_pfc_ena_frames_pri{}", "pause_frames_transmitted", _CONG,
                 "Pause frames sent: this host cannot absorb", _S.PAUSE_TRANSMITTED,
                 export=Export.SPARE, label="priority", each=_EIGHT),
    _bnxt_driver("pfc_pri{}_tx_duration_us", "pause_transmitted_seconds", _CONG,
                 "Time for which this host held the network up",
                 _S.PAUSE_TRANSMITTED_TIME, factor=_MICROSECONDS,
                 label="priority", each=_EIGHT),
    _bnxt_driver("rx_pfc_ena_frames_pri{}", "pause_frames_received", _CONG,
                 "Pause frames received: the network cannot absorb", _S.PAUSE_RECEIVED,
                 export=Export.SPARE, label="priority", each=_EIGHT),
    _bnxt_driver("pfc_pri{}_rx_duration_us", "pause_received_seconds", _CONG,
                 "Time for which the network held this host up",
                 _S.PAUSE_RECEIVED_TIME, factor=_MICROSECONDS,
                 label="priority", each=_EIGHT),
    _bnxt_driver("pfc_pri{}_rx_transitions", "pause_transitions_received", _CONG,
                 "Times that the network let a priority go again",
                 label="priority", each=_EIGHT),
    _bnxt_driver("rx_fcs_err_frames", "phy_crc_errors", _LINK,
                 "Packets received with a bad frame check", _S.CORRUPTION),
    _bnxt_driver("rx_fec_uncorrectable_blocks", "phy_uncorrectable_blocks", _LINK,
                 "Blocks that FEC could not repair"),
    _bnxt_driver("rx_buffer_passed_threshold", "phy_receive_buffer_alarms", _RES,
                 "Times that the receive buffer was nearly full", _S.BUFFER_PRESSURE),
    _ice_driver("tx_priority_{}_xoff.nic", "pause_frames_transmitted", _CONG,
                "Pause frames sent: this host cannot absorb", _S.PAUSE_TRANSMITTED,
                label="priority", each=_EIGHT),
    _ice_driver("rx_priority_{}_xoff.nic", "pause_frames_received", _CONG,
                "Pause frames received: the network cannot absorb", _S.PAUSE_RECEIVED,
                label="priority", each=_EIGHT),
    _ice_driver("rx_crc_errors.nic", "phy_crc_errors", _LINK,
                "Packets received with a bad frame check", _S.CORRUPTION),

    # -- AER of the PCI function: the totals of its three tables ----------------------
    _pci("aer_dev_correctable", "pci_aer_correctable_errors", _RES,
         "PCIe errors that were repaired", _S.AER_CORRECTABLE),
    _pci("aer_dev_nonfatal", "pci_aer_uncorrectable_errors", _RES,
         "PCIe errors that were not repaired", _S.AER_UNCORRECTABLE,
         label="severity", value="nonfatal"),
    _pci("aer_dev_fatal", "pci_aer_uncorrectable_errors", _RES,
         "PCIe errors that took the link down", _S.AER_UNCORRECTABLE, fatal=True,
         label="severity", value="fatal"),
)))
# fmt: on

_FAMILIES = {
    "mlx5_core": "mlx5",
    "mlx5_ib": "mlx5",
    "mlx4_core": "mlx4",
    "mlx4_ib": "mlx4",
    "ice": "irdma",
    "idpf": "irdma",
    "i40e": "irdma",
    "i40iw": "irdma",
    "bnxt_en": "bnxt_re",
    "hns_roce_hw_v2": "hns",
    "hns3": "hns",
    "mana_ib": "mana",
    "iw_cxgb4": "cxgb4",
    "ionic_rdma": "ionic",
    "rdma_rxe": "rxe",
} | {family: family for spec in ROWS for family in spec.drivers}
"""Names of kernel modules, of the RDMA or the network side, by whose rows hold."""

_ALLOW_LISTED = frozenset({"hfi1"})
"""Drivers with hundreds of files: those without a row are not worth a series."""

_GAUGE_NAMES = ("active_", "watermark_", "current_", "num_qps_")
"""How the names of files begin that hold a momentary value, not a count."""


def _index() -> dict[tuple[Directory, str], tuple[CounterSpec, ...]]:
    found: dict[tuple[Directory, str], tuple[CounterSpec, ...]] = {}
    for spec in ROWS:
        key = (spec.directory, spec.file)
        found[key] = (*found.get(key, ()), spec)
    return found


_BY_FILE = _index()


COARSE_BYTES = {"bnxt_re": 1.0}
"""Families whose byte counters move so rarely, in seconds: bursts cannot be judged.

bnxt_re has its statistics written to memory once a second (`update_period_ms`).
"""


def family(driver: str | None) -> str | None:
    """Return whose rows hold for a kernel driver, None if the table knows it not."""
    return _FAMILIES.get(driver) if driver is not None else None


def lookup(directory: Directory, file: str, driver: str | None) -> CounterSpec | None:
    """Return the row of a file, None if the table has none for this driver.

    A driver that is not known, or not told, gets the first row of that file name.
    """
    rows = _BY_FILE.get((directory, file), ())
    known = family(driver)
    for spec in rows:
        if known is None or not spec.drivers or known in spec.drivers:
            return spec
    return None


@lru_cache(maxsize=4096)
def generic(directory: Directory, file: str) -> CounterSpec:
    """Return a spec for a file that has no row; the same one for the same file.

    Its series carries the file's name as label ``counter``. A name that speaks of a
    momentary value makes a gauge.
    """
    momentary = file.startswith(_GAUGE_NAMES)
    return CounterSpec(
        file=file,
        directory=directory,
        stem="hw_unknown_value" if momentary else "hw_unknown",
        help="Files of the driver that no table knows, as they are",
        fault_class=FaultClass.STATE,
        group=Group.HARDWARE if "hw" in directory else Group.ERRORS,
        kind=CounterKind.GAUGE if momentary else CounterKind.COUNTER,
        generic=True,
        label="counter",
        label_value=file,
    )


def takes_unknown(directory: Directory, driver: str | None) -> bool:
    """Tell whether files without a row are exported all the same (`generic`).

    Not those of a driver whose rows are an allow-list, and nothing outside the RDMA
    class: network drivers have hundreds of statistics.
    """
    return directory.is_rdma and family(driver) not in _ALLOW_LISTED
