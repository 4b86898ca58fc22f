"""A node that a test changes, and a recording of what it was asked."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from fabricmon.host.bridging_trace import from_trace
from fabricmon.host.node import Node
from fabricmon.host.node_processes import node_processes
from fabricmon.host.protocol import (
    ClockState,
    CommandOutput,
    Host,
    InterfaceAddress,
    KernelLine,
    LogFile,
    LogListing,
    ProcessListing,
    ReadError,
    Statistic,
)
from fabricmon.host.record import RecordingHost
from fabricmon.host.replay import ReplayHost
from fabricmon.host.trace import Module, TraceRecord
from fabricmon.host.trace_read import TraceReader
from fabricmon.model import HealthReporter, LinkEvent, PriorityUse
from tests.traces import START


class FakeNode:
    """A node made of records, at a time that the test sets; starts at 1,000 s."""

    firmware_reads = 0
    tells_links = True

    def __init__(self, *records: TraceRecord) -> None:
        self.now = 0.0
        self.step = 0.0
        self.events: tuple[LinkEvent, ...] = ()
        self.outputs: dict[str, CommandOutput | ReadError] = {}
        self.kernel_error: ReadError | None = None
        self.node = Node("b1")
        for each in records:
            self.change(each)

    def change(self, record: TraceRecord) -> None:
        """Let a record happen; nobody hears its link events."""
        self.now = max(self.now, record.t)
        self.node.apply(record)
        self.node.link_events(record.t)

    def monotonic(self) -> float:
        """Seconds that never jump."""
        return 1000 + self.now

    def wall(self) -> float:
        """Unix seconds."""
        return START + self.now + self.step

    def boot_id(self) -> str:
        """Identity of the boot."""
        return self.node.boot_id

    def read(self, path: str, firmware_reads: int = 0) -> bytes | ReadError:
        """Read one file."""
        self.firmware_reads += firmware_reads
        return self.node.tree.read(path, self.now)

    def read_many(
        self, paths: Sequence[str], firmware_reads: int = 0
    ) -> list[bytes | ReadError]:
        """Read files in order."""
        self.firmware_reads += firmware_reads
        return self.node.tree.read_many(paths, self.now)

    def names(self, path: str) -> tuple[str, ...] | ReadError:
        """Names in a folder."""
        return self.node.tree.names(path)

    def target(self, path: str) -> str | None:
        """Path with links followed."""
        return self.node.tree.target(path)

    def statistics(self, netdev: str) -> tuple[Statistic, ...] | ReadError:
        """Driver statistics."""
        return self.node.statistics.read(netdev, self.now)

    def link_events(self) -> tuple[LinkEvent, ...]:
        """Events that the test put there, once."""
        events, self.events = self.events, ()
        return events

    def bridging(self, netdev: str, firmware_reads: int = 0) -> PriorityUse | None:
        """Data centre bridging of a network device."""
        self.firmware_reads += firmware_reads
        return from_trace(netdev, self.node.bridging(netdev))

    def kernel_log(self) -> tuple[KernelLine, ...] | ReadError:
        """Lines of the kernel's log, unless the test lets it fail."""
        return self.kernel_error or self.node.kernel_log()

    def module(self, port: str) -> Module | None:
        """Transceiver of a port."""
        return self.node.module(port)

    def devlink(self, address: str) -> tuple[HealthReporter, ...]:
        """Health reporters of a PCI device."""
        return self.node.reporters(address)

    def clock(self) -> ClockState | ReadError:
        """How far the clock may be off."""
        error = self.node.clock_error
        if error is None:
            return ReadError("ENOENT")
        return ClockState(error if error < 16 else None)

    def addresses(self) -> tuple[InterfaceAddress, ...] | ReadError:
        """Addresses are not known."""
        return ReadError("ENODEV")

    def known_logs(self) -> tuple[LogFile, ...]:
        """Files that were appended to."""
        return self.node.logs.known(START)

    def find_logs(self, pattern: str, limit: int) -> LogListing:
        """Files that match a pattern."""
        return self.node.logs.find(pattern, limit, START)

    def log_files(self, paths: Sequence[str]) -> list[LogFile | ReadError]:
        """What log files are."""
        return [self.node.logs.look(path, START) for path in paths]

    def read_log(
        self, path: str, serial: str, offset: int, size: int
    ) -> bytes | ReadError:
        """Read on in a log file."""
        return self.node.logs.read(path, serial, offset, size)

    def processes(self, *, fresh: bool = True) -> ProcessListing | ReadError:
        """Processes whose files there are."""
        return node_processes(self.node.tree, self.now)

    def pod_resources(self, socket: str) -> bytes | ReadError:
        """The kubelet's answer, as the content of its socket."""
        return self.node.tree.read(socket, self.now)

    def command(self, name: str, seconds: float) -> CommandOutput | ReadError:
        """Output that the test put there; takes two seconds."""
        self.now += min(seconds, 2)
        return self.outputs.get(name, ReadError("ENOENT"))


Call = Callable[[Host], Any]


class Session:
    """A recording: calls at their times, with the answers that were given."""

    def __init__(self, inner: FakeNode, folder: Path) -> None:
        self.inner = inner
        self.path = folder / "node01.trace.jsonl"
        self.host = RecordingHost(inner, self.path, "node01")
        self.answers: list[tuple[float, Call, Any]] = []

    def ask(self, *calls: Call) -> None:
        """Ask, and keep the answers."""
        at = self.inner.now
        self.answers += [(at, call, call(self.host)) for call in calls]

    def change(self, **changes: Any) -> None:
        """Let something happen on the node."""
        self.inner.change(TraceRecord(**changes))

    def check(self) -> list[TraceRecord]:
        """Replay: every call has the same answer at the same time; return the records."""
        self.host.close()
        assert self.host.error is None
        assert self.host.unfaithful == 0
        with TraceReader(self.path) as reader:
            host = ReplayHost(reader)
            for at, call, answer in self.answers:
                host.advance(at + 5e-7)  # within a trace's resolution: sums are inexact
                assert call(host) == answer
            host.advance(1e6)
        assert host.problems == ()
        with TraceReader(self.path) as reader:
            return list(reader)


def read(*paths: str) -> Call:
    """Ask for files."""
    return lambda host: host.read_many(paths)


def names(path: str) -> Call:
    """Ask for a folder."""
    return lambda host: host.names(path)


def target(path: str) -> Call:
    """Ask where a path leads."""
    return lambda host: host.target(path)


def statistics(netdev: str) -> Call:
    """Ask for driver statistics."""
    return lambda host: host.statistics(netdev)
