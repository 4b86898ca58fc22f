"""The live node: files below a root, and what else the running kernel says."""

from __future__ import annotations

import errno
import os
import socket
import time
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from fabricmon.errors import HostError
from fabricmon.host.live_addresses import read_addresses
from fabricmon.host.live_clock import KernelClock
from fabricmon.host.live_command import Commands
from fabricmon.host.live_dcb import Bridges
from fabricmon.host.live_descriptors import NO_TRUST, Descriptors, Trust
from fabricmon.host.live_devlink import Reporters
from fabricmon.host.live_ethtool import DriverStatistics
from fabricmon.host.live_files import Kernel, failure, read_once, real_path
from fabricmon.host.live_journal import JournalLog
from fabricmon.host.live_kmsg import KernelLog
from fabricmon.host.live_kubelet import pod_resources
from fabricmon.host.live_logs import LiveLogs
from fabricmon.host.live_netlink import LinkWatch
from fabricmon.host.protocol import (
    KMSG,
    ClockState,
    CommandOutput,
    InterfaceAddress,
    KernelLine,
    LogFile,
    LogListing,
    ProcessListing,
    ReadError,
    Statistic,
)
from fabricmon.model import HealthReporter, LinkEvent, PriorityUse

if TYPE_CHECKING:
    from fabricmon.host.live_processes import LiveProcesses

KUBELET_SECONDS = 2.0
"""The kubelet answers from memory; longer means that it is in trouble."""

_BOOT_ID = "/proc/sys/kernel/random/boot_id"
_SAME_EVERYWHERE = frozenset(
    {
        _BOOT_ID,
        "/proc/cmdline",
        "/proc/driver/nvidia/version",
        "/proc/sys/kernel/osrelease",
        "/proc/uptime",
    }
)
"""Files of the kernel that are the same in every container of a node."""

_ABSENT = failure(errno.ENOENT)
_UNOPENED = frozenset({"EACCES", "ENOENT", "EPERM"})  # nothing was read, then
_NETDEVS = "/sys/class/net"
_NAMESPACE_TRIES = 3  # devices come and go between the two lists that are compared


class LiveHost:
    """The node that this process runs on, seen through the file system at ``root``.

    In a container ``root`` is where the node's root is mounted. Link events, driver
    statistics and tools come from the kernel, not from below the root, so they are
    given only where both are of the same node: ``/sys`` below the root is the
    kernel's, and shows our own network namespace. A copied tree has none of them.
    Where ``/proc`` of the node is not below the root, our own one tells what is the same
    in every container: boot, up-time, kernel.

    Reads may block for ever and may come from many threads. Nothing is opened for
    writing. Links are followed by the kernel as they stand.

    Args:
        root: Folder that stands for the node's root.
        watch_links: Whether to listen for link events.
        own_folders: Folders of this process's own, which are not below the root.
        trust: For how long a folder that was seen is not looked at again.
    """

    def __init__(
        self,
        root: str = "/",
        *,
        watch_links: bool = False,
        own_folders: Sequence[str] = (),
        trust: Trust = NO_TRUST,
    ) -> None:
        self._own_folders = tuple(f"{folder.rstrip('/')}/" for folder in own_folders)
        self._prefix = str(Path(root).absolute()).rstrip("/")
        self._real_prefix = str(Path(root).resolve()).rstrip("/")
        self._lock = Lock()
        self._firmware_reads = 0
        self._boot_id = ""
        self._descriptors = Descriptors(self._prefix, trust=trust)
        self._is_node = Kernel().owns_path(f"{self._prefix}/sys")
        self._own_network = self._is_node and self._shares_network()
        self._logs = LiveLogs(self._prefix, self._real_prefix, self.names)
        self._processes: LiveProcesses | None = None
        self._commands = Commands()
        self._statistics = DriverStatistics()
        self._bridges = Bridges()
        self._reporters = Reporters()
        self._clock = KernelClock()
        self._kernel_log = KernelLog(self._prefix + KMSG)
        self._journal = JournalLog(self._prefix)
        self._watch: LinkWatch | None = None
        self._link_error: HostError | None = None
        if watch_links:
            self._watch_links()

    @property
    def firmware_reads(self) -> int:
        """Reads so far that reached the firmware of a device."""
        return self._firmware_reads

    @property
    def tells_links(self) -> bool:
        """Whether link events reach us."""
        return self._watch is not None

    @property
    def link_error(self) -> HostError | None:
        """Why there are no link events, None if there are or nobody asked for them."""
        return self._link_error

    @property
    def link_descriptor(self) -> int | None:
        """Descriptor that becomes readable when there are link events."""
        return None if self._watch is None else self._watch.fileno()

    @property
    def link_overruns(self) -> int:
        """Times that link events were lost."""
        return 0 if self._watch is None else self._watch.overruns

    def monotonic(self) -> float:
        """Seconds that never jump."""
        return time.monotonic()

    def wall(self) -> float:
        """Unix seconds."""
        return time.time()

    def boot_id(self) -> str:
        """Identity of the running boot, empty if the node does not say."""
        if not self._boot_id:
            text = self.read(_BOOT_ID)
            if isinstance(text, bytes):
                self._boot_id = text.decode("ascii", "replace").strip()
        return self._boot_id

    def read(self, path: str, firmware_reads: int = 0) -> bytes | ReadError:
        """Read one file whole: opened, read, closed; EFBIG above 64 KiB."""
        self._count(firmware_reads)
        own = path.startswith(self._own_folders)
        content = read_once(path if own else self._prefix + path, written=own)
        if content == _ABSENT and self._is_node and path in _SAME_EVERYWHERE:
            return read_once(path)
        return content

    def read_many(
        self, paths: Sequence[str], firmware_reads: int = 0
    ) -> list[bytes | ReadError]:
        """Read files in order through descriptors that stay open for the next time.

        They are kept by ``paths`` as a whole: give the same ones each time.
        """
        self._count(firmware_reads)
        return self._descriptors.read(paths)

    def names(self, path: str) -> tuple[str, ...] | ReadError:
        """Names in a folder, sorted."""
        own = f"{path}/".startswith(self._own_folders)
        try:
            place = path if own else self._prefix + path
            return tuple(sorted(os.listdir(place)))  # noqa: PTH208 -- names, no paths
        except OSError as error:
            return failure(error.errno)
        except ValueError:
            return failure(errno.EINVAL)

    def target(self, path: str) -> str | None:
        """Path with every link followed, as seen on the node; None if there is none."""
        try:
            real = real_path(self._prefix + path)
        except (OSError, ValueError):
            return None
        inside = real.startswith(self._real_prefix + "/")
        return real[len(self._real_prefix) :] if inside else real

    def statistics(self, netdev: str) -> tuple[Statistic, ...] | ReadError:
        """Driver statistics; ENODEV where the network device is not of our namespace."""
        if not self._own_network:
            return failure(errno.ENODEV)
        return self._statistics.read(netdev)

    def bridging(self, netdev: str, firmware_reads: int = 0) -> PriorityUse | None:
        """Data centre bridging; None where it is not of our namespace or has none."""
        if not self._own_network:
            return None
        self._count(firmware_reads)
        return self._bridges.read(netdev)

    def drain_links(self) -> None:
        """Take in what makes `link_descriptor` readable; `link_events` gives it out.

        For the event loop, which must not wait for the thread that asks for events.
        """
        with self._lock:
            if self._watch is not None:
                self._watch.drain(self.monotonic())

    def link_events(self) -> tuple[LinkEvent, ...]:
        """Changes since the last call, oldest first.

        An event without a name means that some were lost: look at every link.
        """
        with self._lock:
            return () if self._watch is None else self._watch.events(self.monotonic())

    def command(self, name: str, seconds: float) -> CommandOutput | ReadError:
        """Run a known tool; ENOENT if it is unknown, not installed or not of this node.

        It returns within ``seconds`` and one more.
        """
        if not self._is_node:
            return failure(errno.ENOENT)
        return self._commands.run(name, seconds)

    def kernel_log(self) -> tuple[KernelLine, ...] | ReadError:
        """Lines of the kernel's log; ENOENT where it is not that of the node.

        Where the device may not be opened, journald's copy of it is followed instead.
        """
        if not self._is_node:
            return failure(errno.ENOENT)
        now = self.monotonic()
        if self._journal.is_followed:
            lines = self._journal.lines(now)
            return failure(errno.EPIPE) if lines is None else lines
        found = self._kernel_log.lines(now)
        if isinstance(found, ReadError) and found.errno in _UNOPENED:
            lines = self._journal.lines(now)
            return found if lines is None else lines
        return found

    def module(self, port: str) -> None:
        """Nothing: reading a transceiver's memory takes CAP_NET_ADMIN."""

    def devlink(self, address: str) -> tuple[HealthReporter, ...]:
        """Health reporters of a PCI device; none where it is not of our namespace."""
        return self._reporters.read(address) if self._own_network else ()

    def clock(self) -> ClockState | ReadError:
        """How far the wall clock may be off; ENOENT where it is not that of the node."""
        return self._clock.read() if self._is_node else failure(errno.ENOENT)

    def addresses(self) -> tuple[InterfaceAddress, ...] | ReadError:
        """IP addresses of the network devices; ENODEV if not of our namespace."""
        return read_addresses() if self._own_network else failure(errno.ENODEV)

    def known_logs(self) -> tuple[LogFile, ...]:
        """None: a live node's logs are found by those who know where to look."""
        return ()

    def find_logs(self, pattern: str, limit: int) -> LogListing:
        """Regular files that match a pattern, the newest first; links are none."""
        return self._logs.find(pattern, limit)

    def log_files(self, paths: Sequence[str]) -> list[LogFile | ReadError]:
        """What these log files are now; EINVAL for what is no regular file."""
        return self._logs.files(paths)

    def read_log(
        self, path: str, serial: str, offset: int, size: int
    ) -> bytes | ReadError:
        """Read a log file through a descriptor that stays open."""
        return self._logs.read(path, serial, offset, size)

    def processes(self, *, fresh: bool = True) -> ProcessListing | ReadError:
        """Processes that use a collective library; other users' take rights."""
        if not fresh:
            seen = self._processes
            return ProcessListing(()) if seen is None else seen.newest
        with self._lock:
            if self._processes is None:
                # Imported by who asks: an agent that is not asked does without psutil.
                module = import_module("fabricmon.host.live_processes")
                self._processes = module.LiveProcesses(self._prefix)
        return self._processes.look()

    def pod_resources(self, socket: str) -> bytes | ReadError:
        """Ask the kubelet at its socket, never longer than two seconds."""
        return pod_resources(self._prefix + socket, KUBELET_SECONDS)

    def forget(self, path: str) -> None:
        """Close the files kept open below a path: its device is gone."""
        self._descriptors.forget(path)

    def close(self) -> None:
        """Close what no hung read holds, end running tools, stop listening."""
        self._descriptors.close()
        self._logs.close()
        self._commands.close()
        self._statistics.close()
        self._bridges.close()
        self._reporters.close()
        self._kernel_log.close()
        self._journal.close()
        with self._lock:
            if self._watch is not None:
                self._watch.close()
                self._watch = None

    def _count(self, firmware_reads: int) -> None:
        if firmware_reads:
            with self._lock:
                self._firmware_reads += firmware_reads

    def _watch_links(self) -> None:
        if not self._own_network:
            self._link_error = HostError(
                "shows other network devices than ours: link states are polled",
                path=self._prefix + _NETDEVS,
            )
            return
        try:
            self._watch = LinkWatch()
        except HostError as error:
            self._link_error = error

    def _shares_network(self) -> bool:
        """Tell whether /sys below the root shows the devices of our namespace."""
        return not self._prefix or any(
            self._shown_netdevs() == set(socket.if_nameindex())
            for _ in range(_NAMESPACE_TRIES)
        )

    def _shown_netdevs(self) -> set[tuple[int, str]]:
        shown = set()
        names = self.names(_NETDEVS)
        for name in names if isinstance(names, tuple) else ():
            index = self.read(f"{_NETDEVS}/{name}/ifindex")
            with suppress(ValueError):
                shown.add((int(index if isinstance(index, bytes) else b""), name))
        return shown
