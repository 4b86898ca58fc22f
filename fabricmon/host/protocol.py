"""The only door to the node: the live node, a recorded trace and the simulator.

Paths are absolute as seen on the node; the host puts its root before them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from fabricmon.host.trace import Module
from fabricmon.model import HealthReporter, LinkEvent, PriorityUse
from fabricmon.value import Value


class ReadError(Value, frozen=True):
    """A read that failed; ``errno`` is a name such as ``EINVAL``."""

    errno: str


class Statistic(Value, frozen=True):
    """One driver statistic of a network device, as ``ethtool -S`` names it."""

    name: str
    value: int


class LogFile(Value, frozen=True):
    """A log file; another ``serial`` behind the same path means another file.

    ``modified`` is Unix seconds.
    """

    path: str
    serial: str
    size: int
    modified: float


class LogListing(Value, frozen=True):
    """Log files that match a pattern, those that were written last first.

    ``more`` counts those beyond the limit; ``denied`` is a folder that may not be
    listed, or a file that may not be looked at, where there was one.
    """

    files: tuple[LogFile, ...]
    more: int = 0
    denied: str | None = None


class LibraryVariable(Value, frozen=True):
    """A variable of a process's environment whose name begins with `LIBRARY_KEYS`."""

    name: str
    value: str


class ProcessSight(Value, frozen=True):
    """A process that uses a collective library; ``inner_pid`` is as it sees itself.

    ``libraries`` are the paths it maps, ``logs`` the files it has open
    whose names say that they are logs of a library, or that are its output, as seen on
    the node. ``cgroup`` is the text of its file; ``root`` goes before paths as the
    process sees them.
    """

    pid: int
    inner_pid: int
    cgroup: str
    variables: tuple[LibraryVariable, ...] = ()
    libraries: tuple[str, ...] = ()
    logs: tuple[str, ...] = ()
    root: str = ""


class ProcessListing(Value, frozen=True):
    """The processes that could be seen, and how many refused to be looked at."""

    processes: tuple[ProcessSight, ...]
    denied: int = 0


KMSG = "/dev/kmsg"
"""The kernel's log; a trace whose ``err`` names it is of a node that could not read it."""

LIBRARY_KEYS = ("NCCL_", "RCCL_", "OFI_")
"""How variables begin that are kept of an environment; all else is a tenant's secret."""


class CommandOutput(Value, frozen=True):
    """What a tool printed; ``exit_status`` is None when it was ended at its deadline."""

    stdout: bytes
    stderr: bytes
    exit_status: int | None


class ClockState(Value, frozen=True):
    """How far the wall clock may be off; None where nothing keeps it."""

    error_seconds: float | None


class InterfaceAddress(Value, frozen=True):
    """An IP address of a network device, as text."""

    netdev: str
    address: str


class KernelLine(Value, frozen=True):
    """A line of the kernel's log, written at ``at`` (monotonic seconds).

    One without text tells that ``lost`` lines were overwritten before they were read.
    """

    at: float
    text: str
    lost: int = 0


class Host(Protocol):
    """What sources may ask of a node. Every call may block, none writes."""

    @property
    def firmware_reads(self) -> int:
        """Reads so far that reached the firmware of a device."""

    @property
    def tells_links(self) -> bool:
        """Whether `link_events` tells of changes; else states must be polled."""

    def monotonic(self) -> float:
        """Seconds that never jump; the clock of all windows."""

    def wall(self) -> float:
        """Unix seconds; may jump."""

    def boot_id(self) -> str:
        """Identity of the running boot, empty if the node does not say."""

    def read(self, path: str, firmware_reads: int = 0) -> bytes | ReadError:
        """Read one file whole; ``firmware_reads`` is its cost to the device."""

    def read_many(
        self, paths: Sequence[str], firmware_reads: int = 0
    ) -> list[bytes | ReadError]:
        """Read files one after the other, in order, as fast as the kernel allows."""

    def names(self, path: str) -> tuple[str, ...] | ReadError:
        """Names in a folder, sorted."""

    def target(self, path: str) -> str | None:
        """Path with every symbolic link followed, None if it does not exist."""

    def statistics(self, netdev: str) -> tuple[Statistic, ...] | ReadError:
        """Driver statistics of a network device."""

    def link_events(self) -> tuple[LinkEvent, ...]:
        """Changes of network devices since the last call."""

    def command(self, name: str, seconds: float) -> CommandOutput | ReadError:
        """Run one of the known tools (``ibstat``), never longer than ``seconds``."""

    def bridging(self, netdev: str, firmware_reads: int = 0) -> PriorityUse | None:
        """Data centre bridging of a network device, None where it cannot be read."""

    def kernel_log(self) -> tuple[KernelLine, ...] | ReadError:
        """Lines of the kernel's log since the last call that may be about RDMA devices.

        They come from ``/dev/kmsg``, or from journald where that may not be opened.

        The first call begins with what the log still has of this boot. Never waits.
        """

    def module(self, port: str) -> Module | None:
        """Diagnostics of a port's (``mlx5_0/1``) transceiver beyond files, if any."""

    def devlink(self, address: str) -> tuple[HealthReporter, ...]:
        """Health reporters of a PCI device; none where there are or may be read none."""

    def clock(self) -> ClockState | ReadError:
        """How far the wall clock may be off, by what the kernel was told."""

    def addresses(self) -> tuple[InterfaceAddress, ...] | ReadError:
        """IP addresses of the node's network devices; ENODEV where they are not ours."""

    def known_logs(self) -> tuple[LogFile, ...]:
        """Log files that the host knows by itself: those of a trace; live there is none."""

    def find_logs(self, pattern: str, limit: int) -> LogListing:
        """Regular files that match a pattern of the shell; ``*`` crosses no slash."""

    def log_files(self, paths: Sequence[str]) -> list[LogFile | ReadError]:
        """What these log files are now; EINVAL for what is no regular file."""

    def read_log(
        self, path: str, serial: str, offset: int, size: int
    ) -> bytes | ReadError:
        """Read at most ``size`` bytes of a log file from ``offset`` on.

        The file stays open, so that its rest is read also after it was renamed or
        deleted; ESTALE when it is closed and the path is another file by now.
        """

    def processes(self, *, fresh: bool = True) -> ProcessListing | ReadError:
        """Processes that use a collective library; nothing else is kept of them.

        A look at a process that hangs may hang; what is not ``fresh`` is what the last
        look found, and never waits.
        """

    def pod_resources(self, socket: str) -> bytes | ReadError:
        """Ask the kubelet which devices its pods have: a ``ListPodResourcesResponse``."""
