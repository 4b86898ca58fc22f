"""What detectors judge by."""

from __future__ import annotations

from typing import Protocol

from fabricmon.catalogue import CounterSpec, Signal
from fabricmon.model.host_side import NO_HOST_SIDE, HostSide
from fabricmon.model.logs import (
    NO_LOG_COUNTS,
    CollectiveRate,
    FollowedLog,
    GidTable,
    HostPath,
    JobTransport,
    JobUse,
    LogCounts,
    NcclProcess,
)
from fabricmon.model.polls import Health
from fabricmon.model.ports import Hca, PeerAddress, PortId, PortInfo
from fabricmon.model.records import (
    BootInfo,
    LinkEvent,
    LinkStatus,
    MaintenanceWindow,
    NetdevStatus,
    PciStatus,
    ReadFailure,
    ToolReport,
)
from fabricmon.model.words import Mark
from fabricmon.parse.address import plain_peer
from fabricmon.parse.kernel_event import KernelEvent
from fabricmon.parse.log_event import LogEvent
from fabricmon.value import Value


class Delta(Value, frozen=True):
    """Increase of a counter, in the unit of its file, over ``seconds``.

    ``mark`` is the least trustworthy of the steps within. ``value`` is the newest
    value, None where the counter could not be read.
    """

    spec: CounterSpec
    increase: int
    seconds: float
    mark: Mark
    value: int | None = None


class Move(Value, frozen=True):
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


class OutageSummary(Value, frozen=True):
    """Outages of a port as far back as they are remembered.

    ``last_down`` is the Unix time at which the last one began.
    """

    flaps: int = 0
    downtime_seconds: float = 0.0
    last_down: float | None = None


class PortView(Value, frozen=True):
    """One port as the detectors see it; ages are relative to `View.now`."""

    info: PortInfo
    status: LinkStatus | None
    netdev: NetdevStatus | None
    pci: PciStatus | None
    ever_active: bool
    fresh: bool


class MissingDevice(Value, frozen=True):
    """A device that is not listed: known before, or expected by configuration."""

    name: str
    since: float
    polls: int
    ports: tuple[PortInfo, ...] = ()
    expected: bool = False
    never_seen: bool = False


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


class Burst(Value, frozen=True):
    """One direction of a port over a burst window; rates in bytes per second.

    ``busy`` is the share of samples above a few percent of the line rate, ``p99`` and
    ``mean`` are over the window, ``idle_gaps`` counts pauses within it.
    """

    port: PortId
    direction: str  # received, transmitted
    began: float
    ended: float
    samples: int
    busy: float
    p99: float
    mean: float
    idle_gaps: int


class JobView(Value, frozen=True):
    """The collective libraries on the node, and what they need of it."""

    processes: tuple[NcclProcess, ...] = ()
    jobs: tuple[JobUse, ...] = ()
    gids: tuple[GidTable, ...] = ()
    host_path: HostPath | None = None
    rates: tuple[CollectiveRate, ...] = ()
    logs: tuple[FollowedLog, ...] = ()
    counts: LogCounts = NO_LOG_COUNTS
    problems: tuple[str, ...] = ()
    transports: tuple[JobTransport, ...] = ()


NO_JOB = JobView()


class View(Value, frozen=True):
    """All that detectors judge by: the node now, and what is new since last time.

    ``statuses``, ``netdevs``, ``events``, ``moves`` and ``log_events`` hold each new
    sample once. ``bursts`` holds the newest complete window of each port and direction.
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
    log_events: tuple[LogEvent, ...] = ()
    job: JobView = NO_JOB
    bursts: tuple[Burst, ...] = ()
    peers: tuple[PeerAddress, ...] = ()
    kernel_events: tuple[KernelEvent, ...] = ()  # each once
    host_side: HostSide = NO_HOST_SIDE

    def peer_name(self, address: str) -> str:
        """Return the node that has an address, its plain form if none is known."""
        plain = plain_peer(address)
        return next((p.node for p in self.peers if p.address == plain), plain)

    @property
    def onset_offset(self) -> float:
        """What turns monotonic seconds into Unix seconds."""
        return self.wall - self.now
