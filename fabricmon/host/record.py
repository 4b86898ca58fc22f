"""Wraps a Host and writes what it answers as a trace; many threads may ask.

Recording never stands in the way of reading: what goes wrong ends the recording, with
one reason in `RecordingHost.error`, and every answer is passed on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from threading import Lock
from typing import Any, Protocol

from fabricmon.errors import TraceError
from fabricmon.host.log_transcript import LogTranscript
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
from fabricmon.host.trace import Header, Module, TraceRecord
from fabricmon.host.trace_write import PART, TraceWriter
from fabricmon.host.transcript import Transcript
from fabricmon.model import HealthReporter, LinkEvent, PriorityUse

MAX_LOCK_SECONDS = 5.0
"""A disk that holds the writer longer ends the recording."""

FLUSH_SECONDS = 60.0
"""At most so much is lost when the recorder is killed."""

_DIGITS = 6  # of seconds: what a trace holds


class Tape(Protocol):
    """Takes the records of one trace; `OSError` from any call ends the recording."""

    def write(self, record: TraceRecord) -> None:
        """Take one record."""

    def flush(self) -> None:
        """Hand over what was taken so far."""

    def close(self) -> None:
        """Complete the trace."""

    def abandon(self) -> None:
        """Leave the trace as it is."""


def _private_trace(path: str, header: Header) -> Tape:
    return TraceWriter(path, header, private=True)


class RecordingHost:
    """Answers as ``inner`` does, and notes what is new in each answer.

    Time in the trace is ``inner``'s monotonic time since the start. A read counts from
    when it began: what a poll saw holds for the whole of that poll.

    Args:
        inner: The node.
        path: Where the trace goes; ``.gz`` compresses it.
        node: Name of the node, for the header.
        config: Configuration for the header, as in its file.
        open_tape: Begins a trace of a path and a header.

    Raises:
        TraceError: The trace cannot be written.
    """

    def __init__(
        self,
        inner: Host,
        path: str | Path,
        node: str,
        config: Mapping[str, Any] | None = None,
        *,
        open_tape: Callable[[str, Header], Tape] = _private_trace,
    ) -> None:
        self._inner = inner
        self._lock = Lock()
        self._start = inner.monotonic()
        self._wall = inner.wall()
        self._at = 0.0
        self._flushed = 0.0
        self._path = str(path)
        self._is_over = False
        self._error: str | None = None
        self._name = node
        self._config = None if config is None else dict(config)
        header = self._header()
        try:
            self._writer = open_tape(self._path, header)
        except OSError as error:
            reason = f"cannot be written: {error.strerror or error}"
            raise TraceError(reason, path=self._path) from None
        self._transcript = Transcript(header.boot_id, inner.target, self._writer.write)
        self._logs = LogTranscript(self._transcript)

    @property
    def error(self) -> str | None:
        """Why recording has ended before its time, None while all is well."""
        return self._error

    @property
    def unfaithful(self) -> int:
        """Answers so far that the trace cannot give again."""
        return self._transcript.unfaithful

    def close(self) -> None:
        """End the trace now and give it its name."""
        self._note(self._inner.monotonic(), self._finish)

    # What sources ask

    @property
    def firmware_reads(self) -> int:
        """Reads so far that reached the firmware of a device."""
        return self._inner.firmware_reads

    @property
    def tells_links(self) -> bool:
        """Whether link events reach the node's agent."""
        return self._inner.tells_links

    def monotonic(self) -> float:
        """Seconds that never jump."""
        return self._inner.monotonic()

    def wall(self) -> float:
        """Unix seconds."""
        now = self._inner.monotonic()
        wall = self._inner.wall()
        self._note(now, lambda at: self._transcript.wall(wall - self._wall, at))
        return wall

    def boot_id(self) -> str:
        """Identity of the running boot, empty if the node does not say."""
        now = self._inner.monotonic()
        boot_id = self._inner.boot_id()
        self._note(now, lambda at: self._transcript.boot_id(boot_id, at))
        return boot_id

    def read(self, path: str, firmware_reads: int = 0) -> bytes | ReadError:
        """Read one file whole; ``firmware_reads`` is its cost to the device."""
        now = self._inner.monotonic()
        content = self._inner.read(path, firmware_reads)
        self._note(now, lambda at: self._transcript.files([path], [content], at))
        return content

    def read_many(
        self, paths: Sequence[str], firmware_reads: int = 0
    ) -> list[bytes | ReadError]:
        """Read files one after the other, in order."""
        now = self._inner.monotonic()
        contents = self._inner.read_many(paths, firmware_reads)
        self._note(now, lambda at: self._transcript.files(paths, contents, at))
        return contents

    def names(self, path: str) -> tuple[str, ...] | ReadError:
        """Names in a folder, sorted."""
        now = self._inner.monotonic()
        names = self._inner.names(path)
        self._note(now, lambda at: self._transcript.folder(path, names, at))
        return names

    def target(self, path: str) -> str | None:
        """Path with every symbolic link followed, None if it does not exist."""
        now = self._inner.monotonic()
        target = self._inner.target(path)
        self._note(now, lambda at: self._transcript.target(path, target, at))
        return target

    def statistics(self, netdev: str) -> tuple[Statistic, ...] | ReadError:
        """Driver statistics of a network device."""
        now = self._inner.monotonic()
        answer = self._inner.statistics(netdev)
        self._note(now, lambda at: self._transcript.statistics(netdev, answer, at))
        return answer

    def link_events(self) -> tuple[LinkEvent, ...]:
        """Changes of network devices since the last call."""
        events = self._inner.link_events()
        for event in events:
            if event.netdev:  # else: events were lost
                self._note(event.at, self._noting(event))
        return events

    def command(self, name: str, seconds: float) -> CommandOutput | ReadError:
        """Run one of the known tools, never longer than ``seconds``."""
        now = self._inner.monotonic()
        answer = self._inner.command(name, seconds)
        took = self._inner.monotonic() - now
        note = self._transcript.command
        self._note(now, lambda at: note(name, answer, seconds, took, at))
        return answer

    def bridging(self, netdev: str, firmware_reads: int = 0) -> PriorityUse | None:
        """Data centre bridging of a network device."""
        now = self._inner.monotonic()
        answer = self._inner.bridging(netdev, firmware_reads)
        self._note(now, lambda at: self._transcript.bridging(netdev, answer, at))
        return answer

    def kernel_log(self) -> tuple[KernelLine, ...] | ReadError:
        """Lines of the kernel's log since the last call."""
        now = self._inner.monotonic()
        answer = self._inner.kernel_log()
        self._note(now, lambda at: self._transcript.kernel_log(answer, at))
        return answer

    def module(self, port: str) -> Module | None:
        """Diagnostics of a port's transceiver beyond files."""
        now = self._inner.monotonic()
        answer = self._inner.module(port)
        self._note(now, lambda at: self._transcript.module(port, answer, at))
        return answer

    def devlink(self, address: str) -> tuple[HealthReporter, ...]:
        """Health reporters of a PCI device."""
        now = self._inner.monotonic()
        answer = self._inner.devlink(address)
        self._note(now, lambda at: self._transcript.devlink(address, answer, at))
        return answer

    def clock(self) -> ClockState | ReadError:
        """How far the wall clock may be off."""
        now = self._inner.monotonic()
        answer = self._inner.clock()
        self._note(now, lambda at: self._transcript.clock(answer, at))
        return answer

    def addresses(self) -> tuple[InterfaceAddress, ...] | ReadError:
        """IP addresses of the network devices; a trace has no place for them."""
        return self._inner.addresses()

    def known_logs(self) -> tuple[LogFile, ...]:
        """Log files that the host knows by itself."""
        return self._inner.known_logs()

    def find_logs(self, pattern: str, limit: int) -> LogListing:
        """Regular files that match a pattern, the newest first."""
        return self._inner.find_logs(pattern, limit)

    def log_files(self, paths: Sequence[str]) -> list[LogFile | ReadError]:
        """What these log files are now."""
        now = self._inner.monotonic()
        answers = self._inner.log_files(paths)
        self._note(now, lambda at: self._logs.files(paths, answers, at))
        return answers

    def read_log(
        self, path: str, serial: str, offset: int, size: int
    ) -> bytes | ReadError:
        """Read at most ``size`` bytes of a log file from ``offset`` on."""
        now = self._inner.monotonic()
        answer = self._inner.read_log(path, serial, offset, size)
        if isinstance(answer, bytes):
            note = self._logs.content
            self._note(now, lambda at: note(path, serial, offset, answer, at))
        return answer

    def processes(self, *, fresh: bool = True) -> ProcessListing | ReadError:
        """Processes that use a collective library, as far as the host lets out."""
        now = self._inner.monotonic()
        answer = self._inner.processes(fresh=fresh)
        if isinstance(answer, ProcessListing):
            self._note(now, lambda at: self._logs.processes(answer, at))
        return answer

    def pod_resources(self, socket: str) -> bytes | ReadError:
        """Ask the kubelet which devices its pods have."""
        now = self._inner.monotonic()
        answer = self._inner.pod_resources(socket)
        self._note(now, lambda at: self._transcript.files([socket], [answer], at))
        return answer

    def _noting(self, event: LinkEvent) -> Callable[[float], None]:
        return lambda at: self._transcript.link_event(event, at)

    def _note(self, began: float, note: Callable[[float], None]) -> None:
        """Run ``note`` alone and in order of time; end the recording if it fails."""
        if self._is_over:
            return
        if not self._lock.acquire(timeout=MAX_LOCK_SECONDS):
            self._stop("the disk does not answer")
            return
        try:
            if not self._is_over:
                self._at = max(self._at, _floor(began - self._start))
                note(self._at)
                self._flush()
        except OSError as error:
            self._stop(error.strerror or str(error))
            self._writer.abandon()
        except Exception as error:  # noqa: BLE001 -- a flaw here must not stop the reads
            self._stop(f"{type(error).__name__}: {error}")
            self._writer.abandon()
        finally:
            self._lock.release()

    def _header(self) -> Header:
        """Return the first line of a trace that begins at `_start`."""
        return Header(
            node=self._name,
            boot_id=self._inner.boot_id(),
            start=self._wall,
            config=self._config,
            tells_links=self._inner.tells_links,
        )

    def _finish(self, at: float) -> None:
        self._writer.write(TraceRecord(t=at))
        self._writer.close()
        self._is_over = True

    def _flush(self) -> None:
        if self._at - self._flushed >= FLUSH_SECONDS and not self._is_over:
            self._flushed = self._at
            self._writer.flush()

    def _stop(self, reason: str) -> None:
        self._is_over = True
        self._error = f"{self._path}{PART}: recording has ended: {reason}"


def _floor(seconds: float) -> float:
    """Round down to what a trace holds: a record may not be late for its read."""
    rounded = round(seconds, _DIGITS)
    return rounded if rounded <= seconds else round(rounded - 10**-_DIGITS, _DIGITS)
