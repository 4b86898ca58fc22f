"""What is known of the collective libraries on the node: logs, processes, jobs."""

from __future__ import annotations

from fabricmon.model.ports import PortId, PortInfo
from fabricmon.parse.log_event import LogEvent
from fabricmon.value import Value


class FollowedLog(Value, frozen=True):
    """A log file and how far it was read; another ``serial`` is another file.

    ``origin`` says how it was found: ``configured``, ``job`` (a drop file),
    ``settings``, ``pods``, ``docker``, ``slurm``, ``process``. ``read_at`` is when it
    was last read to its end, monotonic seconds.
    """

    path: str
    serial: str
    offset: int
    size: int
    origin: str
    read_at: float
    job: str | None = None


class LogCounts(Value, frozen=True):
    """What was read of all logs since the agent started."""

    bytes: int = 0
    lines: int = 0
    skipped_bytes: int = 0
    skipped_lines: int = 0
    rotations: int = 0
    lost_files: int = 0
    dropped_events: int = 0
    left_out: int = 0  # files beyond `logs.max_files`, now
    foreign_events: int = 0  # told by processes of other hosts, which believe them


NO_LOG_COUNTS = LogCounts()


class LogNews(Value, frozen=True):
    """What one poll of the logs found.

    ``cursors`` is what the next poll goes on from, opaque to all but its source;
    ``saved`` is the part of it that survives a restart. ``problems`` are said once.
    """

    at: float
    wall: float
    events: tuple[LogEvent, ...]
    logs: tuple[FollowedLog, ...]
    counts: LogCounts
    cursors: object = None
    saved: bytes = b""
    problems: tuple[str, ...] = ()

    @property
    def tells(self) -> bool:
        """Whether there is any log, or something in the way of one."""
        return bool(self.logs or self.events or self.problems)


class LibrarySetting(Value, frozen=True):
    """A setting of NCCL, RCCL or aws-ofi-nccl and where it was found.

    ``origin`` is ``environment``, ``job`` (a drop file), ``log`` or a file's path.
    """

    name: str
    value: str
    origin: str


class NcclProcess(Value, frozen=True):
    """A local process that uses a collective library, as far as it can be seen.

    ``contained`` ones have a file system or process numbers of their own: a container,
    perhaps with a network of its own.
    """

    pid: int
    job: str | None = None
    step: str | None = None
    pod: str | None = None
    namespace: str | None = None
    rank: int | None = None
    library: str | None = None
    library_version: str | None = None
    settings: tuple[LibrarySetting, ...] = ()
    logs: tuple[str, ...] = ()
    contained: bool = False


class JobUse(Value, frozen=True):
    """A job on this node; no ``rails`` means that they are not known.

    ``source`` is ``slurm``, ``kubernetes``, ``job`` (a drop file) or ``log``.
    ``devices`` are what it was given or uses: RDMA devices, with or without port, or
    PCI addresses.
    """

    job: str
    source: str
    processes: int = 0
    rails: tuple[int | str, ...] = ()
    nodes: int | None = None
    devices: tuple[str, ...] = ()


class JobTransport(Value, frozen=True):
    """What carries the data of a job between nodes, as its log says.

    ``transport`` is ``ib``, ``socket``, ``ofi`` or ``other``.
    """

    job: str
    transport: str


class JobList(Value, frozen=True):
    """The jobs and the processes of collective libraries on this node."""

    at: float
    processes: tuple[NcclProcess, ...] = ()
    jobs: tuple[JobUse, ...] = ()
    problems: tuple[str, ...] = ()

    @property
    def tells(self) -> bool:
        """Whether there is any job or process, or something in the way of one."""
        return bool(self.processes or self.jobs or self.problems)


class Gid(Value, frozen=True):
    """One entry of a port's GID table; ``type`` is the kernel's word."""

    index: int
    gid: str
    type: str
    netdev: str | None = None


class GidTable(Value, frozen=True):
    """The GIDs of a port that are set."""

    port: PortId
    at: float
    gids: tuple[Gid, ...]


NO_CLASS = -1
"""The driver could enforce a traffic class, and does not: its own mark for that."""


class PriorityUse(Value, frozen=True):
    """Data centre bridging of a network device; None where it cannot be read.

    A port that goes by the tag of a frame has an empty ``dscp_to_priority``.
    ``traffic_class`` is what the driver puts in place of the application's, `NO_CLASS`
    where it leaves that alone; ``default_tos`` is what RDMA-CM gives to a connection
    that asks for nothing.
    """

    netdev: str
    pfc_enabled: tuple[int, ...] | None = None
    ecn_enabled: tuple[int, ...] | None = None
    dscp_to_priority: tuple[int, ...] | None = None  # 64 entries, by DSCP
    traffic_class: int | None = None
    default_tos: int | None = None

    @property
    def enforced_class(self) -> int | None:
        """The class that every packet gets, None where none is known to."""
        return None if self.traffic_class == NO_CLASS else self.traffic_class


class HostPath(Value, frozen=True):
    """What GPUDirect needs of the node; None where it cannot be read.

    ``devices`` names the RDMA devices that were looked at (one that came or got its
    name later is not among them), ``near_gpus`` those of them that share a PCIe switch
    with a GPU; ``interfaces_up`` those of ``interfaces`` that can carry packets.
    """

    at: float
    peer_memory: bool | None = None
    dma_buf: bool | None = None
    iommu_translates: bool | None = None
    acs_redirects: bool | None = None
    near_gpus: tuple[str, ...] = ()
    interfaces: tuple[str, ...] = ()
    priorities: tuple[PriorityUse, ...] = ()
    interfaces_up: tuple[str, ...] = ()
    devices: tuple[str, ...] | None = None

    def use_of(self, info: PortInfo) -> PriorityUse | None:
        """Return the bridging of a port, None where it is not known.

        That of a bond is its members': the bond itself has none.
        """
        names = {info.netdev, *info.netdevs}
        return next((use for use in self.priorities if use.netdev in names), None)


class CollectiveRate(Value, frozen=True):
    """How one local rank fares in one collective of one size class.

    ``comm`` is the communicator's hash; ``collective`` its name (or ``Send``,
    ``Recv``); ``size_class`` a power of two such as ``64MiB``. Rates are medians of the
    newest window, bytes per second and seconds.
    """

    comm: str
    rank: int
    collective: str
    size_class: str
    operations: int
    bus_bandwidth: float | None
    seconds: float | None
    peer: int | None = None
    ranks: int | None = None
    nodes: int | None = None
    job: str | None = None


class CollectiveRates(Value, frozen=True):
    """What the Inspector of NCCL has written, folded; ``cursors`` as in `LogNews`."""

    at: float
    rates: tuple[CollectiveRate, ...]
    cursors: object = None
    problems: tuple[str, ...] = ()

    @property
    def tells(self) -> bool:
        """Whether there is any rate, or something in the way of one."""
        return bool(self.rates or self.problems)
