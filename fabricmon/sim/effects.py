"""What a fault does to the fleet: the words in which faults speak to the model.

A fault turns an `Injection` into effects and truth and knows nothing of how the model
runs; the model knows effects and nothing of faults. Times are seconds from the start.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from fabricmon.sim.truth import FaultTruth, Forbidden, Place


@dataclass(frozen=True, slots=True, order=True)
class SimPort:
    """A port of the fleet; ``node`` counts from 0."""

    node: int
    device: str
    port: int = 1


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


@dataclass(frozen=True, slots=True)
class Counting:
    """A counter moves at a mean ``rate``, as a Poisson process or ``even``."""

    port: SimPort
    meter: Meter
    begin: float
    end: float
    rate: float
    per: Per = Per.SECOND
    even: bool = False


@dataclass(frozen=True, slots=True)
class Step:
    """A counter jumps once."""

    port: SimPort
    meter: Meter
    at: float
    amount: int


@dataclass(frozen=True, slots=True)
class Level:
    """A gauge stands at a value, also one of driver statistics; None: as before."""

    port: SimPort
    meter: Meter
    begin: float
    end: float
    value: int
    only_busy: bool = False


@dataclass(frozen=True, slots=True)
class Preset:
    """A counter already stands at a value when the trace begins; at most its ceiling.

    ``value`` None means the ceiling of its width.
    """

    port: SimPort
    meter: Meter
    value: int | None


@dataclass(frozen=True, slots=True)
class Reset:
    """Counters fall: to 0, or to ``to``. No meters: all of the ``area``."""

    port: SimPort
    at: float
    area: str = "all"  # pma, hw, netdev, all
    meters: tuple[Meter, ...] = ()
    to: int = 0


@dataclass(frozen=True, slots=True)
class Capacity:
    """The port, or what feeds it, can do only ``factor`` of its line rate."""

    port: SimPort
    begin: float
    end: float
    factor: float
    receive: bool = True
    transmit: bool = True


@dataclass(frozen=True, slots=True)
class Outage:
    """The link is down from ``begin`` to ``end``; then INIT for ``init`` seconds.

    Jobs over it stall, time out and die by the model's own rules. ``counts`` False is
    an outage that no counter and no log remembers. ``phys`` is the physical state
    meanwhile.
    """

    port: SimPort
    begin: float
    end: float
    init: float = 2.0
    phys: str = "Polling"
    counts: bool = True
    kernel_lines: bool = True


@dataclass(frozen=True, slots=True)
class PortText:
    """What state files say for a time, beyond outages; None leaves a file as it is.

    ``rate`` is the whole text, such as ``200 Gb/sec (2X NDR)``.
    """

    port: SimPort
    begin: float
    end: float
    state: str | None = None
    phys: str | None = None
    rate: str | None = None


@dataclass(frozen=True, slots=True)
class NodeFile:
    """A file of a node gets a text (None: it goes), or fails with an errno."""

    node: int
    at: float
    path: str
    text: str | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Gone:
    """A device is not there; it may come back as a new driver instance."""

    node: int
    device: str
    begin: float
    end: float
    new_name: str | None = None
    keeps_pma: bool = True


@dataclass(frozen=True, slots=True)
class Frozen:
    """All counters of a device stand still; reads take ``read_seconds``."""

    node: int
    device: str
    begin: float
    end: float
    read_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Stall:
    """A job makes no progress (None: every job of the node), or its steps stretch.

    ``stretch`` multiplies the compute part of its steps; infinite: it stands still.
    """

    begin: float
    end: float
    job: str | None = None
    node: int | None = None
    stretch: float = float("inf")


@dataclass(frozen=True, slots=True)
class JobEnds:
    """A job ends: killed, crashed or done; ``crash_node`` is the node that died."""

    at: float
    job: str
    crash_node: int | None = None
    restart: bool = False


@dataclass(frozen=True, slots=True)
class Reboot:
    """A node boots: silent for ``seconds``, everything counts from 0 or its presets."""

    node: int
    at: float
    seconds: float


@dataclass(frozen=True, slots=True)
class Silence:
    """The agent of a node does not run for a time; then it goes on, or starts anew."""

    node: int
    begin: float
    end: float
    restart: bool = False


@dataclass(frozen=True, slots=True)
class WallStep:
    """The wall clock of a node jumps."""

    node: int
    at: float
    seconds: float


@dataclass(frozen=True, slots=True)
class KernelLines:
    """Lines of the kernel log."""

    node: int
    at: float
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LogLines:
    """Lines of a job's log on a node, as a process prints them, newlines included.

    ``job`` None is the node's first one.
    """

    node: int
    at: float
    text: str
    job: str | None = None


@dataclass(frozen=True, slots=True)
class ModuleReading:
    """What the transceiver says from ``at`` on; None leaves a value as it is."""

    port: SimPort
    at: float
    temperature_c: float | None = None
    receive_power_dbm: tuple[float, ...] | None = None


@dataclass(frozen=True, slots=True)
class Bridged:
    """Data centre bridging of a port's network device from ``at`` on."""

    port: SimPort
    at: float
    pfc_enabled: tuple[int, ...]
    ecn_enabled: bool = True


@dataclass(frozen=True, slots=True)
class DeviceHealth:
    """What the driver's health reporter says of a device from ``at`` on."""

    node: int
    device: str
    at: float
    reporter: str
    state: str


@dataclass(frozen=True, slots=True)
class Maintenance:
    """A maintenance window of a node is announced."""

    node: int
    at: float
    until: float
    ports: tuple[SimPort, ...] = ()


@dataclass(frozen=True, slots=True)
class PcieLink:
    """The PCIe link of a device trains anew at ``at``: lanes and GT/s of each lane.

    ``slot_width`` and ``slot_speed`` are what the slot can (the maximum of the bridge
    above); None leaves it at what the card can. It limits nothing by itself: a
    `Capacity` does.
    """

    port: SimPort
    at: float
    width: int
    speed: float
    slot_width: int | None = None
    slot_speed: float | None = None


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Reading a file of a node fails for a time; then it goes on as if nothing was."""

    node: int
    begin: float
    end: float
    path: str
    error: str


@dataclass(frozen=True, slots=True)
class NetdevGone:
    """The network device of a port leaves the host's view, its driver statistics too.

    The RDMA device and its traffic stay; the link to the network device goes.
    """

    port: SimPort
    begin: float
    end: float


@dataclass(frozen=True, slots=True)
class OnPriority:
    """The port's data goes by ``priority``, not by the profile's lossless one."""

    port: SimPort
    begin: float
    end: float
    priority: int = 0


@dataclass(frozen=True, slots=True)
class Mute:
    """A counter stands still although what it counts happens.

    Also what the model itself would count; other effects on it are dropped.
    """

    port: SimPort
    meter: Meter
    begin: float
    end: float


Effect: TypeAlias = (
    Counting | Step | Level | Preset | Reset | Capacity | Outage | PortText | NodeFile
    | Gone | Frozen | Stall | JobEnds | Reboot | Silence | WallStep | KernelLines
    | LogLines | ModuleReading | Bridged | DeviceHealth | Maintenance
    | PcieLink | Unreadable | NetdevGone | OnPriority | Mute
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Made:
    """What became of an injection."""

    effects: tuple[Effect, ...] = ()
    faults: tuple[FaultTruth, ...] = ()
    victims: tuple[Place, ...] = ()
    forbid: tuple[Forbidden, ...] = ()
