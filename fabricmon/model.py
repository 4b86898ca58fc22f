"""The records that cross rooms: frozen, slotted, without behaviour beyond a lookup.

Times called ``at`` or ``now`` are monotonic seconds of the host; ``wall`` and
``onset`` are Unix seconds. A value that could not be read is None and has an
`Absence` that says why: absent, unreadable and zero stay three things.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from typing import Protocol

from fabricmon.catalogue import CounterSpec, Group, Signal
from fabricmon.parse.words import LinkLayer, PhysState, PortState, Rate

NO_RATE = Rate()
"""A rate of which nothing is known."""


_RESTRICTED = frozenset({"EINVAL", "EPERM", "EACCES", "EOPNOTSUPP"})


class Role(StrEnum):
    """What a port is for; only compute ports form rails."""

    COMPUTE = "compute"
    STORAGE = "storage"
    MANAGEMENT = "management"
    UNKNOWN = "unknown"


class Severity(IntEnum):
    """How bad; ordered, so that the worst is the maximum."""

    INFO = 0
    WARNING = 1
    CRITICAL = 2

    @property
    def word(self) -> str:
        """The word used in findings and labels."""
        return self.name.lower()


class Part(StrEnum):
    """The part that a place plays in a fault."""

    CULPRIT = "culprit"
    VICTIM = "victim"
    OBSERVER = "observer"


class Action(StrEnum):
    """Advice to whoever sees the fleet; anything but NONE needs local evidence."""

    NONE = "none"
    INSPECT = "inspect"
    DRAIN_AFTER_JOB = "drain_after_job"
    DRAIN_NOW = "drain_now"


class Verdict(IntEnum):
    """The state of a port or node in one word; the numbers are exported."""

    HEALTHY = 0
    UNKNOWN = 1
    DEGRADED = 2
    DOWN = 3

    @property
    def word(self) -> str:
        """The word used in documents."""
        return self.name.lower()


class Mark(IntEnum):
    """How far the increase of a counter may be trusted."""

    OK = 0
    FIRST = 1
    RESET = 2
    SATURATED = 3
    GAP = 4


@dataclass(frozen=True, slots=True, order=True)
class PortId:
    """One port of one RDMA device; port 0 stands for the device itself."""

    device: str
    port: int

    def __str__(self) -> str:
        """Write it as the field does: ``mlx5_0/1``."""
        return f"{self.device}/{self.port}"


@dataclass(frozen=True, slots=True)
class Absence:
    """Why a file gave no value.

    ``reason`` is an errno name (ENOENT = absent, any other = unreadable) or the
    text that stood in place of the number, such as ``N/A (no PMA)``.
    """

    file: str
    reason: str

    @property
    def is_absent(self) -> bool:
        """Tell whether the file does not exist, as against one that fails."""
        return self.reason == "ENOENT"

    @property
    def is_errno(self) -> bool:
        """Tell whether a read failed, as against a text in place of a number."""
        reason = self.reason
        return reason != "ENOENT" and reason[:1] == "E" and reason.isupper()

    @property
    def is_restricted(self) -> bool:
        """Tell whether the function is not meant to give this value, or not to us."""
        return self.reason in _RESTRICTED


@dataclass(frozen=True, slots=True)
class ReadPlan:
    """The files of one port that are read in one burst, and what each one means.

    ``specs`` and ``paths`` have the same order. ``firmware_reads`` is what one
    burst costs the device in firmware commands.
    """

    port: PortId
    specs: tuple[CounterSpec, ...]
    paths: tuple[str, ...]
    firmware_reads: int


@dataclass(frozen=True, slots=True)
class Reading:
    """One burst over a `ReadPlan`: values in the order of ``specs``, unscaled."""

    port: PortId
    at: float
    specs: tuple[CounterSpec, ...]
    values: tuple[int | None, ...]
    absent: tuple[Absence, ...] = ()


@dataclass(frozen=True, slots=True)
class LinkStatus:
    """State of a port as its files say it at ``at``.

    ``rate``, ``lid`` and the others are None where the file holds no such value;
    ``absent`` says why. ``complete`` is False where only ``state`` was read (the
    dear files are read on change); then the rest repeats the last known values.
    """

    port: PortId
    at: float
    state: PortState | None
    phys_state: PhysState | None = None
    rate: Rate = NO_RATE
    lid: int | None = None
    sm_lid: int | None = None
    absent: tuple[Absence, ...] = ()
    complete: bool = True


@dataclass(frozen=True, slots=True)
class NetdevStatus:
    """State of the network device that belongs to a port.

    ``operstate`` is the kernel's word (``up``, ``down``, ``unknown``...); ``carrier``
    is None while the interface is administratively down (the file gives EINVAL).
    """

    port: PortId
    netdev: str
    at: float
    operstate: str | None
    carrier: bool | None
    absent: tuple[Absence, ...] = ()


@dataclass(frozen=True, slots=True)
class PciLink:
    """One end of a PCIe link: speed in GT/s and lanes, None where unknown."""

    speed_gts: float | None = None
    width: int | None = None
    max_speed_gts: float | None = None
    max_width: int | None = None


@dataclass(frozen=True, slots=True)
class PciStatus:
    """PCIe link of a device and of the slot above it, at ``at``."""

    device: str
    at: float
    address: str
    link: PciLink
    slot: PciLink
    absent: tuple[Absence, ...] = ()


@dataclass(frozen=True, slots=True)
class Hca:
    """Identity of one RDMA device and what can be read from it."""

    name: str
    node_guid: str | None
    sys_image_guid: str | None
    hca_type: str | None
    board_id: str | None
    firmware: str | None
    node_type: str | None
    pci_address: str | None
    driver: str | None
    numa_node: int | None
    is_vf: bool
    pf_address: str | None
    ports: tuple[HcaPort, ...]
    plans: tuple[GroupedPlan, ...]
    absent: tuple[Absence, ...] = ()
    pci_path: str | None = None  # resolved sysfs path of the PCI function
    driver_instance: str | None = None  # changes when the driver was loaded again
    at: float = field(default=0.0, compare=False)


@dataclass(frozen=True, slots=True)
class HcaPort:
    """Identity of one port as its files say it."""

    id: PortId
    link_layer: LinkLayer | None
    guid: str | None
    netdevs: tuple[str, ...]
    physical_netdev: str | None = None  # of the PCI function itself; not a bond


@dataclass(frozen=True, slots=True)
class GroupedPlan:
    """A read plan and the group in whose rhythm it is read."""

    group: Group
    plan: ReadPlan


@dataclass(frozen=True, slots=True)
class PortInfo:
    """Everything about a port that does not change from poll to poll."""

    id: PortId
    link_layer: LinkLayer | None = None
    netdev: str | None = None
    netdevs: tuple[str, ...] = ()
    pci_address: str | None = None
    driver: str | None = None
    is_vf: bool = False
    pf: str | None = None
    guid: str | None = None
    node_guid: str | None = None
    hca_type: str | None = None
    board_id: str | None = None
    firmware: str | None = None
    numa_node: int | None = None
    rail: int | str | None = None
    leaf: str | None = None
    role: Role = Role.UNKNOWN
    expected_rate_gbps: float | None = None
    expected_width: int | None = None
    is_rate_configured: bool = False  # else the expectation is that of its peers
    expected_up: bool | None = None  # configured; None: judged by history and peers


@dataclass(frozen=True, slots=True)
class PortPlace:
    """Where one port (``mlx5_0/1``) is in the fabric, as a topology says it."""

    port: str
    leaf: str | None = None
    leaf_port: str | None = None
    rail: int | str | None = None
    role: Role | None = None
    fabric: str | None = None
    plane: int | str | None = None


@dataclass(frozen=True, slots=True)
class Topology:
    """The places of one node's ports; configuration wins over it, inference loses."""

    rack: str | None = None
    ports: tuple[PortPlace, ...] = ()


@dataclass(frozen=True, slots=True)
class DeviceList:
    """Names under the RDMA class; ``error`` is an errno name where it has none."""

    at: float
    names: tuple[str, ...]
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Accelerators:
    """Resolved sysfs paths of the GPUs of the node; rails are the ports near them."""

    at: float
    paths: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LinkEvent:
    """A change of a network device told by the kernel, at ``at``."""

    at: float
    netdev: str
    up: bool | None
    gone: bool = False


@dataclass(frozen=True, slots=True)
class BootInfo:
    """Which boot this is and for how long the node has been up, in seconds.

    ``tells_links`` is False where the kernel's link events do not reach the agent.
    """

    at: float
    boot_id: str
    uptime_seconds: float | None
    product: str | None = None
    tells_links: bool = True


@dataclass(frozen=True, slots=True)
class MaintenanceWindow:
    """Ports that are being worked on until ``until``; no ports means the node."""

    until: float
    ports: tuple[str, ...] = ()
    reason: str = ""


@dataclass(frozen=True, slots=True)
class MaintenancePlan:
    """The maintenance windows in force, with what could not be understood."""

    at: float
    windows: tuple[MaintenanceWindow, ...] = ()
    error: str | None = None


@dataclass(frozen=True, slots=True)
class ToolReport:
    """Port states that a tool printed, to be compared with sysfs."""

    tool: str
    at: float
    statuses: tuple[LinkStatus, ...]
    errors: tuple[ReadFailure, ...] = ()


@dataclass(frozen=True, slots=True)
class ReadFailure:
    """A device, folder or tool that could not be read at all."""

    device: str | None
    port: int | None
    file: str
    errno: str | None
    message: str


Record = (
    Reading
    | LinkStatus
    | NetdevStatus
    | PciStatus
    | Hca
    | DeviceList
    | Accelerators
    | LinkEvent
    | BootInfo
    | MaintenancePlan
    | ToolReport
    | ReadFailure
)


@dataclass(frozen=True, slots=True)
class Target:
    """What to poll: the node (empty name) or one device, perhaps not known yet."""

    name: str = ""
    hca: Hca | None = None


@dataclass(frozen=True, slots=True)
class Job:
    """One poll that is due: a source, the unit it reads and the lane it runs in.

    Jobs of one lane run one after another; a hung read holds only its own lane. Two
    jobs are the same if these three are.
    """

    source: str
    unit: str
    lane: str
    target: Target = field(default=Target(), compare=False)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a job: its records, or the error that ended it."""

    job: Job
    started: float
    ended: float
    records: tuple[Record, ...] = ()
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Delta:
    """Increase of a counter, in the unit of its file, over ``seconds``.

    ``mark`` is the least trustworthy of the steps within. ``value`` is the newest
    value, None where the counter could not be read.
    """

    spec: CounterSpec
    increase: int
    seconds: float
    mark: Mark
    value: int | None = None


@dataclass(frozen=True, slots=True)
class Move:
    """One step of one counter that moved, or whose mark is not OK.

    ``previous`` is None for a first sight; ``seconds`` is the time since then.
    """

    port: PortId
    spec: CounterSpec
    at: float
    previous: int | None
    value: int
    increase: int
    seconds: float
    mark: Mark


@dataclass(frozen=True, slots=True)
class Evidence:
    """One measured reason; for a counter ``signal`` is its file's name."""

    signal: str
    value: float | int | str | None
    unit: str
    source: str
    threshold: float | int | str | None = None
    window_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Subject:
    """What a finding is about; None where it does not apply."""

    device: str | None = None
    port: int | None = None
    rail: int | str | None = None
    netdev: str | None = None
    peer: str | None = None
    leaf: str | None = None
    job: str | None = None
    comm: str | None = None


@dataclass(frozen=True, slots=True)
class Finding:
    """What a detector holds to be true now; incidents make one story of them."""

    kind: str
    subject: Subject
    onset: float
    evidence: tuple[Evidence, ...]
    summary: str
    severity: Severity
    part: Part = Part.CULPRIT
    action: Action = Action.NONE
    confidence: float = 1.0


@dataclass(frozen=True, slots=True)
class OutageSummary:
    """Outages of a port as far back as they are remembered.

    ``last_down`` is the Unix time at which the last one began.
    """

    flaps: int = 0
    downtime_seconds: float = 0.0
    last_down: float | None = None


@dataclass(frozen=True, slots=True)
class PortView:
    """One port as the detectors see it; ages are relative to `View.now`."""

    info: PortInfo
    status: LinkStatus | None
    netdev: NetdevStatus | None
    pci: PciStatus | None
    ever_active: bool
    fresh: bool


@dataclass(frozen=True, slots=True)
class MissingDevice:
    """A device that is not listed: known before, or expected by configuration."""

    name: str
    since: float
    polls: int
    ports: tuple[PortInfo, ...] = ()
    expected: bool = False


class Counters(Protocol):
    """What detectors may ask of the window."""

    def delta(self, port: PortId, spec: CounterSpec, seconds: float) -> Delta | None:
        """Increase over the newest ``seconds``; None if never read."""

    def by_signal(self, port: PortId, signal: Signal) -> tuple[CounterSpec, ...]:
        """Counters of the port that mean this, whatever their driver calls them."""

    def specs(self, port: PortId) -> tuple[CounterSpec, ...]:
        """Every counter of the port that was read at least once."""

    def value(self, port: PortId, spec: CounterSpec) -> int | None:
        """Newest value; None where the counter cannot be read."""

    def saturated(self, port: PortId) -> tuple[CounterSpec, ...]:
        """Counters that stand at their ceiling and show nothing more."""


@dataclass(frozen=True, slots=True)
class View:
    """All that detectors judge by: the node now, and what is new since last time.

    ``statuses``, ``netdevs``, ``events`` and ``moves`` hold each new sample once.
    """

    now: float
    wall: float
    node: str
    boot: BootInfo | None
    ports: tuple[PortView, ...]
    hcas: tuple[Hca, ...]
    missing: tuple[MissingDevice, ...]
    statuses: tuple[LinkStatus, ...]
    netdevs: tuple[NetdevStatus, ...]
    events: tuple[LinkEvent, ...]
    moves: tuple[Move, ...]
    health: tuple[Health, ...]
    failures: tuple[ReadFailure, ...]
    reports: tuple[ToolReport, ...]
    counters: Counters
    class_error: str | None = None
    gap_seconds: float | None = None  # the agent itself did not run for so long
    compute_shortfall: int = 0  # compute devices that the hardware profile has more
    maintenance: tuple[MaintenanceWindow, ...] = ()  # the windows in force

    @property
    def onset_offset(self) -> float:
        """What turns monotonic seconds into Unix seconds."""
        return self.wall - self.now


class IncidentState(StrEnum):
    """Life of an incident."""

    OPEN = "open"
    UPDATE = "update"
    RESOLVED = "resolved"


@dataclass(frozen=True, slots=True)
class Incident:
    """A finding with an identity; what sinks send and the page shows."""

    id: str
    seq: int
    state: IncidentState
    time: float
    finding: Finding
    node: str
    runbook: str
    dry_run: bool = False
    last_seen: float = 0.0


@dataclass(frozen=True, slots=True)
class Blindness:
    """A kind that cannot be judged on this node, and why."""

    kind: str
    reason: str


@dataclass(frozen=True, slots=True)
class ErrnoCount:
    """Failed reads of one source by errno name."""

    errno: str
    count: int


@dataclass(frozen=True, slots=True)
class Health:
    """How one source fares on one unit; seconds, monotonic."""

    source: str
    unit: str
    ok: bool
    last_success: float | None
    duration_seconds: float
    due_seconds: float
    in_flight_since: float | None
    errors: tuple[ErrnoCount, ...] = ()
    quarantined: str | None = None


@dataclass(frozen=True, slots=True)
class PortSnapshot:
    """One port as it stands: what is exported, shown and asked for."""

    info: PortInfo
    status: LinkStatus | None
    netdev: NetdevStatus | None
    pci: PciStatus | None
    readings: tuple[Reading, ...]
    verdict: Verdict
    reasons: tuple[str, ...]
    saturated: tuple[str, ...]
    resets: int
    flaps: int
    downtime_seconds: float
    last_down: float | None
    errors_per_hour: float | None
    traffic_received: tuple[float, ...] = ()  # bytes per second, oldest first
    traffic_transmitted: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All that the sinks see; made new at each step, never changed.

    ``layout`` changes when and only when the set of series or an identity does.
    ``unsaved`` says why what must survive a restart could not be saved.
    """

    node: str
    now: float
    wall: float
    boot: BootInfo | None
    layout: int
    ports: tuple[PortSnapshot, ...]
    hcas: tuple[Hca, ...]
    incidents: tuple[Incident, ...]
    blind: tuple[Blindness, ...]
    health: tuple[Health, ...]
    verdict: Verdict
    class_error: str | None
    failures: tuple[ReadFailure, ...]
    maintenance: tuple[MaintenanceWindow, ...]
    firmware_reads: int
    config_hash: str
    steps: int
    started: float
    note: str | None = None  # why ports have no role
    unsaved: ReadFailure | None = None
    maintenance_error: str | None = None  # what of the maintenance file is ignored
