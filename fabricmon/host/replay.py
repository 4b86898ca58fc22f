"""A recorded or simulated node as a Host, at a time that `advance` moves.

Monotonic time is the trace's own: 0 at its start. Reads take no time by themselves;
what ``slow``, ``hang`` and commands take is counted, for `inline` to let it pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import inf

from fabricmon.host.bridging_trace import from_trace
from fabricmon.host.node import MAX_DURATION, Node
from fabricmon.host.node_processes import node_processes
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
from fabricmon.host.trace import (
    ETHTOOL,
    LONGEST_CLOCK_ERROR,
    Bridging,
    Header,
    Module,
    Records,
    TraceProblem,
    TraceRecord,
)
from fabricmon.model import HealthReporter, LinkEvent, PriorityUse
from fabricmon.value import Value


class Gap(Value, frozen=True):
    """The agent does not run from ``start`` to ``end`` (monotonic seconds).

    With ``restart`` it starts again from its saved state, else it keeps its memory.
    """

    start: float
    end: float
    restart: bool


class Wake(Value, frozen=True):
    """The agent has to look at ``now``: a poll is due, a link event or a hang is over.

    ``gap`` is the time just past in which it did not run.
    """

    now: float
    gap: Gap | None = None
    rebooted: bool = False

    @property
    def restarted(self) -> bool:
        """Tell whether the agent starts anew, with nothing but its saved state."""
        return self.rebooted or (self.gap is not None and self.gap.restart)


class ReplayHost:
    """The node of a trace; its records are read as time comes to them.

    Starts at t = 0 with what the trace says of that moment. ``silent_since`` is when
    the agent fell silent for good, None while it has not.
    """

    def __init__(self, reader: Records) -> None:
        self._reader = reader
        self._node = Node(reader.header.boot_id)
        self._tree = self._node.tree
        self._now = 0.0
        self._last = 0.0
        self._next = next(reader, None)
        self._gap: Gap | None = None
        self._firmware_reads = 0
        self._reads_before = 0
        self._is_charging = False
        self._spent = 0.0
        self.silent_since: float | None = None
        self._fetched_events: list[LinkEvent] = []
        self._fetched_lines: list[KernelLine] = []
        self.advance(0.0)
        self._node.link_events(0.0)  # nobody has listened so far

    # Time

    @property
    def header(self) -> Header:
        """The trace's first line."""
        return self._reader.header

    @property
    def problems(self) -> tuple[TraceProblem, ...]:
        """What in the trace could not be used so far, or the first of it."""
        return self._reader.problems

    @property
    def problem_count(self) -> int:
        """How much in the trace could not be used so far."""
        return self._reader.problem_count

    @property
    def next_record(self) -> float:
        """When the node changes next, infinite if it does not."""
        return inf if self._next is None else self._next.t

    @property
    def end(self) -> float:
        """When the trace ends, infinite while there are records to come."""
        return self._last if self._next is None else inf

    def advance(self, to: float) -> None:
        """Move time on, and let everything happen that the trace says of it."""
        while self._next is not None and self._next.t <= to:
            self._apply(self._next)
            self._next = next(self._reader, None)
        self._now = max(self._now, to)

    def moments(
        self, next_due: Callable[[], float], next_event: Callable[[], float | None]
    ) -> Iterator[Wake]:
        """Move time on to each moment at which the agent has to look, until the end.

        ``next_due`` says when a poll is due, ``next_event`` when a hang is over; both
        are asked anew each time. The last moment is the end of the trace, unless the
        agent does not live to see it.
        """
        boots = self._node.boots
        saw_end = False
        while True:
            gap = self._pass_gap(boots)
            if gap is None:
                over = next_event()
                due = min(next_due(), inf if over is None else over)
                if saw_end and due > self.end:
                    return
                self._advance_to(due)
                saw_end = self._now >= self.end
                if self._gap is not None:
                    continue
            elif gap.end >= self.end:
                self.silent_since = gap.start
                return
            yield Wake(self._now, gap, rebooted=self._node.boots != boots)
            boots = self._node.boots

    def close(self) -> None:
        """Close the trace."""
        self._reader.close()

    def _advance_to(self, due: float) -> None:
        """Move on to ``due``, to a link event, gap or reboot, or to the end."""
        boots = self._node.boots
        while self.next_record <= due:
            self.advance(self.next_record)
            told = self._node.has_link_events and self.tells_links
            happened = told or self._gap is not None
            if happened or self._node.boots != boots:
                return
        self.advance(min(due, self.end))

    def _pass_gap(self, boots: int) -> Gap | None:
        """Let the time pass in which the agent does not run, if that is now.

        ``boots`` is the number of reboots that the agent knows of.
        """
        if self._gap is None:
            return None
        while self._gap.end > self._now:  # a gap may begin within another
            self.advance(self._gap.end)
        gap, self._gap = self._gap, None
        if gap.restart or self._node.boots != boots:
            self._node.link_events(gap.end)  # nobody heard them
        else:
            self._node.postpone_events(gap.start, gap.end)
        return gap

    def _apply(self, record: TraceRecord) -> None:
        self._now = self._last = record.t
        for complaint in self._node.apply(record):
            self._reader.complain(complaint)
        if record.gap is None:
            if record.restart:
                self._reader.complain("restart: without a gap it says nothing")
        elif 0 < record.gap <= MAX_DURATION:
            self._begin_gap(Gap(record.t, record.t + record.gap, record.restart))
        else:
            self._reader.complain(f"gap: {record.gap:.6g} s is no duration, not used")

    def _begin_gap(self, gap: Gap) -> None:
        before = self._gap or gap
        self._gap = Gap(
            before.start, max(before.end, gap.end), before.restart or gap.restart
        )

    # What sources ask

    @property
    def firmware_reads(self) -> int:
        """Reads so far that reached the firmware of a device."""
        return self._firmware_reads

    @property
    def tells_links(self) -> bool:
        """Whether link events are derived from the files of the network devices."""
        return self.header.tells_links

    def monotonic(self) -> float:
        """Seconds since the start of the trace."""
        return self._now

    def wall(self) -> float:
        """Unix seconds."""
        return self.header.start + self._now + self._node.wall_offset

    def boot_id(self) -> str:
        """Identity of the running boot."""
        return self._node.boot_id

    def read(self, path: str, firmware_reads: int = 0) -> bytes | ReadError:
        """Read one file."""
        self._firmware_reads += firmware_reads
        if self._node.has_delays:
            self._charge(path)
        return self._tree.read(path, self._now)

    def read_many(
        self, paths: Sequence[str], firmware_reads: int = 0
    ) -> list[bytes | ReadError]:
        """Read files in order."""
        self._firmware_reads += firmware_reads
        if self._node.has_delays:
            for path in paths:
                self._charge(path)
        return self._tree.read_many(paths, self._now)

    def names(self, path: str) -> tuple[str, ...] | ReadError:
        """Names in a folder, sorted."""
        if self._node.has_delays:
            self._charge(path)
        return self._tree.names(path)

    def target(self, path: str) -> str | None:
        """Path with every link followed, None if it leads nowhere."""
        return self._tree.target(path)

    def statistics(self, netdev: str) -> tuple[Statistic, ...] | ReadError:
        """Driver statistics of a network device."""
        if self._node.has_delays:
            self._charge(ETHTOOL + netdev)
        return self._node.statistics.read(netdev, self._now)

    def link_events(self) -> tuple[LinkEvent, ...]:
        """Changes of network devices since the last call."""
        events = self._node.link_events(self._now)
        if not self.tells_links:
            return ()
        if self._is_charging:
            self._fetched_events += events
        return events

    def command(self, name: str, seconds: float) -> CommandOutput | ReadError:
        """Return what the trace says the command prints; nothing at its deadline."""
        command = self._node.command(name)
        if command is None:
            return ReadError("ENOENT")
        if self._is_charging:
            self._spent += min(command.seconds, seconds)
        return command.within(seconds)

    def bridging(self, netdev: str, firmware_reads: int = 0) -> PriorityUse | None:
        """Return what the trace says of the device's bridging."""
        self._firmware_reads += firmware_reads
        return from_trace(netdev, self._node.bridging(netdev))

    def known_logs(self) -> tuple[LogFile, ...]:
        """Every file that the trace appends to."""
        return self._node.logs.known(self.header.start)

    def find_logs(self, pattern: str, limit: int) -> LogListing:
        """Regular files that match a pattern, the newest first."""
        return self._node.logs.find(pattern, limit, self.header.start)

    def log_files(self, paths: Sequence[str]) -> list[LogFile | ReadError]:
        """What these log files are now."""
        start = self.header.start
        return [self._node.logs.look(path, start) for path in paths]

    def read_log(
        self, path: str, serial: str, offset: int, size: int
    ) -> bytes | ReadError:
        """Read at most ``size`` bytes of a log file from ``offset`` on."""
        if self._node.has_delays:
            self._charge(path)
        return self._node.logs.read(path, serial, offset, size)

    def processes(self, *, fresh: bool = True) -> ProcessListing | ReadError:
        """Processes whose files below ``/proc`` the trace has."""
        del fresh  # a trace never hangs
        return node_processes(self._tree, self._now)

    def pod_resources(self, socket: str) -> bytes | ReadError:
        """The kubelet's answer, which a trace has as the content of its socket."""
        return self._tree.read(socket, self._now)

    def kernel_log(self) -> tuple[KernelLine, ...] | ReadError:
        """Lines of the kernel's log since the last call, or why it has none."""
        refusal = self._tree.error(KMSG)
        if refusal is not None:
            return refusal
        lines = self._node.kernel_log()
        if self._is_charging:
            self._fetched_lines += lines
        return lines

    def module(self, port: str) -> Module | None:
        """Transceiver of a port such as ``mlx5_0/1``."""
        return self._node.module(port)

    def devlink(self, address: str) -> tuple[HealthReporter, ...]:
        """Health reporters of a PCI device."""
        return self._node.reporters(address)

    def clock(self) -> ClockState | ReadError:
        """How far the wall clock may be off, ENOENT if the trace does not say.

        16 s, the largest error that a kernel knows, is that of a clock left alone.
        """
        error = self._node.clock_error
        if error is None:
            return ReadError("ENOENT")
        return ClockState(error if error < LONGEST_CLOCK_ERROR else None)

    def addresses(self) -> tuple[InterfaceAddress, ...] | ReadError:
        """None: those of a trace stand in its header, which its topology is made of."""
        return ReadError("ENODEV")

    # What no source asks

    def dcb(self, netdev: str) -> Bridging | None:
        """Data centre bridging of a network device."""
        return self._node.bridging(netdev)

    # What reads cost

    def begin_charging(self) -> None:
        """Count from now on how long reads take; a pending hang is used up by one."""
        self._is_charging = True
        self._spent = 0.0
        self._reads_before = self._firmware_reads
        self._fetched_events.clear()
        self._fetched_lines.clear()

    def end_charging(self) -> float:
        """Return how many seconds the reads took.

        Where they took any, they have to be made again when those have passed: events
        and kernel lines that were fetched wait again.
        """
        self._is_charging = False
        if self._spent:
            self._firmware_reads = self._reads_before
            self._node.put_back(self._fetched_events, self._fetched_lines)
        return self._spent

    def _charge(self, path: str) -> None:
        if self._is_charging:
            self._spent += self._node.delay(path)
