"""What sinks see."""

from __future__ import annotations

from fabricmon.model.findings import Blindness, Incident
from fabricmon.model.host_side import NO_HOST_SIDE, HostSide
from fabricmon.model.polls import Health
from fabricmon.model.ports import Hca, PortInfo, Topology
from fabricmon.model.records import (
    BootInfo,
    LinkStatus,
    MaintenanceWindow,
    NetdevStatus,
    PciStatus,
    ReadFailure,
    Reading,
)
from fabricmon.model.view import NO_JOB, Burst, JobView
from fabricmon.model.words import Verdict
from fabricmon.parse.log_event import LogSeverity
from fabricmon.value import Value


class LogTally(Value, frozen=True):
    """How many events of one kind and severity the logs had, and the last one's time.

    ``last`` is Unix seconds of the arrival.
    """

    kind: str
    severity: LogSeverity
    events: int
    last: float


class OutageBudget(Value, frozen=True):
    """How long an outage of the fabric a job survives by its own settings."""

    job: str
    seconds: float


class PeerVotes(Value, frozen=True):
    """How many observers here name a peer, and since when (Unix seconds)."""

    peer: str
    votes: int
    since: float


class JobFacts(Value, frozen=True):
    """What the logs tell of jobs and peers."""

    budgets: tuple[OutageBudget, ...] = ()
    votes: tuple[PeerVotes, ...] = ()


NO_FACTS = JobFacts()
NO_TOPOLOGY = Topology()


class Delivery(Value, frozen=True):
    """How a sink that sends to a server fares; counts are since the agent's start.

    ``waiting`` is what is kept until the server takes it. ``last_success`` is when the
    server last took something, monotonic seconds, None if it never did.
    """

    sink: str
    connected: bool = False
    connects: int = 0
    delivered: int = 0
    waiting: int = 0
    dropped: int = 0
    failures: int = 0
    last_success: float | None = None


class PortSnapshot(Value, frozen=True):
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
    pause_onset: float | None = None  # Unix seconds; it holds the network up since


class Snapshot(Value, frozen=True):
    """All that the sinks see; made new at each step, never changed.

    ``layout`` changes when and only when the set of series or an identity does.
    ``unsaved`` says why what must survive a restart could not be saved, and
    ``unrecorded`` why the last minutes are not kept, where they are to be.
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
    awaits_save: bool = False  # it was not saved yet, and is about to be
    keeps_history: bool = False
    unrecorded: ReadFailure | None = None
    maintenance_error: str | None = None  # what of the maintenance file is ignored
    job: JobView = NO_JOB
    log_tallies: tuple[LogTally, ...] = ()
    job_facts: JobFacts = NO_FACTS
    bursts: tuple[Burst, ...] = ()
    host_side: HostSide = NO_HOST_SIDE
    deliveries: tuple[Delivery, ...] = ()  # one for each sink that sends
    topology: Topology = NO_TOPOLOGY
