"""A node in memory: files, links, statistics, commands, and a clock that tests move."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from fabricmon.host.log_patterns import find_logs
from fabricmon.host.protocol import (
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
from fabricmon.host.trace import Module
from fabricmon.model import HealthReporter, LinkEvent, PriorityUse
from tests.manifest import entries

_ABSENT = ReadError("ENOENT")


class FakeHost:
    """Implements `fabricmon.host.protocol.Host`; paths are absolute.

    ``opened`` counts reads of files, listings of folders are in ``listed``.
    """

    def __init__(self, manifest: Path | None = None) -> None:
        self.now = 1000.0
        self.boot = "boot-1"
        self.opened: Counter[str] = Counter()
        self.listed: Counter[str] = Counter()
        self.netdev_statistics: dict[str, dict[str, int] | ReadError] = {}
        self.events: list[LinkEvent] = []
        self.bridges: dict[str, PriorityUse] = {}
        self.kernel_lines: list[KernelLine] | ReadError = []
        self.modules: dict[str, Module] = {}
        self.reporters: dict[str, tuple[HealthReporter, ...]] = {}
        self.clock_state: ClockState | ReadError = _ABSENT
        self.interfaces: tuple[InterfaceAddress, ...] | ReadError = _ABSENT
        self.commands: dict[str, CommandOutput | ReadError] = {}
        self.sights: ProcessListing | ReadError = ProcessListing(())
        self.kubelet: bytes | ReadError = _ABSENT
        self.log_reads: Counter[str] = Counter()
        self._logs: dict[str, list[bytes]] = {}  # open ones, by serial
        self._serials: dict[str, str] = {}
        self._written: dict[str, float] = {}
        self._files: dict[str, bytes | ReadError] = {}
        self._links: dict[str, str] = {}
        self._folders: set[str] = set()
        self._folder_errors: dict[str, ReadError] = {}
        self._reads = 0
        for entry in entries(manifest) if manifest else ():
            path = f"/{entry.path}"
            if entry.is_folder:
                self.folder(path)
            elif entry.link is not None:
                self.link(path, entry.link)
            elif entry.errno is not None:
                self.fail(path, entry.errno)
            else:
                self.put(path, entry.text)

    # What tests change

    tells_links = True

    def put(self, path: str, content: bytes | str | int) -> None:
        """Let a file hold this; a number gets a newline."""
        if isinstance(content, int):
            content = f"{content}\n"
        raw = content.encode() if isinstance(content, str) else content
        self._files[self._real(path)] = raw

    def fail(self, path: str, errno: str) -> None:
        """Let reads of a file fail."""
        self._files[self._real(path)] = ReadError(errno)

    def fail_folder(self, path: str, errno: str) -> None:
        """Let listings of a folder fail."""
        self._folder_errors[self._real(path)] = ReadError(errno)

    def folder(self, path: str) -> None:
        """Let an empty folder exist."""
        self._folders.add(self._real(path))

    def link(self, path: str, target: str) -> None:
        """Make a symbolic link, its target relative to its folder."""
        parent, _, name = path.rpartition("/")
        self._links[f"{self._real(parent)}/{name}"] = target

    def remove(self, path: str) -> None:
        """Remove a link, or else a file or folder with all that is in it."""
        parent, _, name = path.rpartition("/")
        if self._links.pop(f"{self._real(parent)}/{name}", None) is not None:
            return
        real = self._real(path)
        below = f"{real}/"
        for kept in (self._files, self._links):
            for each in [each for each in kept if f"{each}/".startswith(below)]:
                del kept[each]
        self._folders = {f for f in self._folders if not f"{f}/".startswith(below)}

    def record(self) -> dict[str, object]:
        """Return files, links and folders as a record of a trace."""
        good = {p: raw.decode() for p, raw in self._files.items() if type(raw) is bytes}
        bad = {p: r.errno for p, r in self._files.items() if isinstance(r, ReadError)}
        folders = sorted(self._folders)
        return {"t": 0, "set": good, "err": bad, "link": self._links, "dir": folders}

    # The protocol

    @property
    def firmware_reads(self) -> int:
        """Return the firmware commands so far."""
        return self._reads

    def monotonic(self) -> float:
        """Return the time that the test set."""
        return self.now

    def wall(self) -> float:
        """Return Unix seconds."""
        return 1_700_000_000.0 + self.now

    def boot_id(self) -> str:
        """Return the boot that the test set."""
        return self.boot

    def read(self, path: str, firmware_reads: int = 0) -> bytes | ReadError:
        """Return what a file holds."""
        self._reads += firmware_reads
        self.opened[path] += 1
        return self._files.get(self._real(path), _ABSENT)

    def read_many(
        self, paths: Sequence[str], firmware_reads: int = 0
    ) -> list[bytes | ReadError]:
        """Return what several files hold."""
        self._reads += firmware_reads
        return [self.read(path) for path in paths]

    def names(self, path: str) -> tuple[str, ...] | ReadError:
        """Return the names in a folder."""
        self.listed[path] += 1
        real = self._real(path)
        if real in self._folder_errors:
            return self._folder_errors[real]
        found = self._children(real)
        return tuple(sorted(found)) if self._is_folder(real) else _ABSENT

    def target(self, path: str) -> str | None:
        """Return the path without links."""
        real = self._real(path)
        return real if real in self._files or self._is_folder(real) else None

    def statistics(self, netdev: str) -> tuple[Statistic, ...] | ReadError:
        """Return the driver statistics that the test set."""
        found = self.netdev_statistics.get(netdev, ReadError("EOPNOTSUPP"))
        if isinstance(found, ReadError):
            return found
        return tuple(Statistic(name, value) for name, value in found.items())

    def link_events(self) -> tuple[LinkEvent, ...]:
        """Return the events that the test added, once."""
        events, self.events = tuple(self.events), []
        return events

    def command(self, name: str, seconds: float) -> CommandOutput | ReadError:
        """Return what the test lets a tool print."""
        return self.commands.get(name, _ABSENT)

    def bridging(self, netdev: str, firmware_reads: int = 0) -> PriorityUse | None:
        """Return the bridging that the test set."""
        self._reads += firmware_reads
        return self.bridges.get(netdev)

    def kernel_log(self) -> tuple[KernelLine, ...] | ReadError:
        """Return the lines that the test added, once, or why there are none."""
        if isinstance(self.kernel_lines, ReadError):
            return self.kernel_lines
        lines, self.kernel_lines = tuple(self.kernel_lines), []
        return lines

    def module(self, port: str) -> Module | None:
        """Return the transceiver that the test set."""
        return self.modules.get(port)

    def devlink(self, address: str) -> tuple[HealthReporter, ...]:
        """Return the health reporters that the test set."""
        return self.reporters.get(address, ())

    def clock(self) -> ClockState | ReadError:
        """Return the state of the clock that the test set."""
        return self.clock_state

    def addresses(self) -> tuple[InterfaceAddress, ...] | ReadError:
        """Return the addresses that the test set."""
        return self.interfaces

    # Logs and processes

    def append(self, path: str, content: bytes | str) -> None:
        """Let a log file grow; it is made where it is not."""
        raw = content.encode() if isinstance(content, str) else content
        serial = self._serials.setdefault(path, str(len(self._serials) + 1))
        self._content(serial, path)[0] += raw
        self.put(path, self._content(serial, path)[0])
        self._written[path] = self.wall()

    def truncate(self, path: str) -> None:
        """Cut a log file to nothing."""
        self._content(self._serials[path], path)[0] = b""
        self.put(path, b"")

    def rotate(self, path: str, new: str) -> None:
        """Rename a log file."""
        self.put(new, self._content(self._serials[path], path)[0])
        self._serials[new] = self._serials.pop(path)
        self._serials[f"gone {new}"] = ""  # so that no number comes twice
        self._written[new] = self._written.pop(path)
        self.remove(path)

    def _content(self, serial: str, path: str) -> list[bytes]:
        held = self._files.get(path, b"")
        fresh = held if isinstance(held, bytes) else b""
        return self._logs.setdefault(serial, [fresh])

    def known_logs(self) -> tuple[LogFile, ...]:
        """Return none: this node is asked like a live one."""
        return ()

    def find_logs(self, pattern: str, limit: int) -> LogListing:
        """Return files that match a pattern."""
        return find_logs(pattern, limit, self.names, self._look)

    def log_files(self, paths: Sequence[str]) -> list[LogFile | ReadError]:
        """Return what these files are."""
        return [self._look(path) for path in paths]

    def read_log(
        self, path: str, serial: str, offset: int, size: int
    ) -> bytes | ReadError:
        """Read on in a log, by its serial wherever it is."""
        self.log_reads[path] += 1
        found = self._files.get(path)
        if isinstance(found, ReadError):
            return found
        if serial in self._logs:
            return self._logs[serial][0][offset : offset + size]
        return _ABSENT if found is None else found[offset : offset + size]

    def processes(self, *, fresh: bool = True) -> ProcessListing | ReadError:
        """Return the processes that the test set."""
        return self.sights

    def pod_resources(self, socket: str) -> bytes | ReadError:
        """Return the kubelet's answer that the test set."""
        return self.kubelet

    def _look(self, path: str) -> LogFile | ReadError:
        found = self._files.get(path)
        if found is None:
            return ReadError("EINVAL") if self._is_folder(path) else _ABSENT
        serial = self._serials.get(path, path)
        held = self._logs.get(serial, [b""])[0]
        size = len(held if isinstance(found, ReadError) else found)
        return LogFile(path, serial, size, self._written.get(path, self.wall()))

    # Paths

    def _children(self, real: str) -> set[str]:
        below = f"{real}/"
        known = [*self._files, *self._links, *self._folders]
        return {
            path[len(below) :].partition("/")[0]
            for path in known
            if path.startswith(below)
        }

    def _is_folder(self, real: str) -> bool:
        return real in self._folders or bool(self._children(real))

    def _real(self, path: str) -> str:
        """Follow every link on the way."""
        done = ""
        todo = [part for part in path.split("/") if part]
        for _ in range(1000):
            if not todo:
                return done
            part = todo.pop(0)
            if part == ".":
                continue
            if part == "..":
                done = done.rpartition("/")[0]
                continue
            step = f"{done}/{part}"
            target = self._links.get(step)
            if target is None:
                done = step
                continue
            if target.startswith("/"):
                done = ""
            todo = [piece for piece in target.split("/") if piece] + todo
        raise AssertionError(f"links go round in circles: {path}")
