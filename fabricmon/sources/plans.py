"""What is read of a device, in bursts: the files that exist, with their meaning.

The files are taken from the folders and looked up in the catalogue; what it does not
know is read all the same, up to a limit. A setting (``lifespan``) is not read, but for
who exports it by node_exporter's name; ``clear_counters``, whose write clears, never.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from fabricmon import catalogue
from fabricmon.catalogue import (
    COARSE_BYTES,
    CounterKind,
    CounterSpec,
    Directory,
    Group,
    Signal,
    family,
)
from fabricmon.host.protocol import Host, ReadError
from fabricmon.model import (
    Absence,
    GroupedPlan,
    HcaPort,
    PortId,
    ReadFailure,
    ReadPlan,
)
from fabricmon.sources.function import Function
from fabricmon.sources.paths import device_folder, net_folder, port_folder
from fabricmon.value import Value

AER_PREFIX = "aer_dev_"

_LIFESPAN = "lifespan"

_SINGLE = frozenset({Directory.COUNTERS, Directory.COUNTERS_EXT})
"""Folders in which each file costs a firmware command of its own."""


class _Row(Value, frozen=True):
    """One file: what it means and where it is."""

    spec: CounterSpec
    path: str


@dataclass(slots=True)
class Planner:
    """Makes the read plans of one device. ``generic_limit`` is per port.

    ``failures`` are the folders of counters that exist and cannot be listed. Files of
    a device of software (rxe, siw) cost no firmware commands: it has none.
    ``takes_lifespan`` reads how long the kernel keeps ``hw_counters``, from memory.
    """

    host: Host
    driver: str | None
    generic_limit: int
    absent: list[Absence]
    device: str = ""
    is_software: bool = False
    takes_lifespan: bool = False
    failures: list[ReadFailure] = field(default_factory=list)

    def of_port(self, port: PortId) -> Iterator[GroupedPlan]:
        """Yield the plans of a port's own files."""
        folder = port_folder(port)
        limit = _Limit(self.generic_limit)
        # Where both exist, counters/ is 32 bits wide (Linux before 4.5): the others
        # come first, so that they are what a signal is taken from.
        rows = [
            *self._rows(f"{folder}/counters_ext", Directory.COUNTERS_EXT, limit),
            *self._rows(f"{folder}/counters", Directory.COUNTERS, limit),
        ]
        rows += self._rows(f"{folder}/hw_counters", Directory.HW_COUNTERS, limit)
        # A file is in one plan only: two rhythms would be two pasts of one counter.
        # Samples of bursts have no past.
        for group in (Group.OUTAGES, Group.ERRORS, Group.TRAFFIC, Group.HARDWARE):
            chosen = [row for row in rows if row.spec.group is group]
            yield from _plan(group, port, chosen, self._cost(chosen))
        if family(self.driver) not in COARSE_BYTES:
            burst = _bytes(rows)
            yield from _plan(Group.BURST, port, burst, self._cost(burst))
        if limit.dropped:
            reason = f"{limit.dropped} unknown counters above devices.generic_counters"
            self.absent.append(Absence(f"ports/{port.port}", reason))

    def of_device(self, name: str, function: Function) -> Iterator[GroupedPlan]:
        """Yield the plans of the files that belong to no port."""
        port = PortId(name, 0)
        folder = f"{device_folder(name)}/hw_counters"
        limit = _Limit(self.generic_limit)
        rows = self._rows(folder, Directory.DEVICE_HW_COUNTERS, limit)
        yield from _plan(Group.HARDWARE, port, rows, self._cost(rows))
        if function.pci_path and function.address and not function.is_virtual:
            files = self._names(function.pci_path)
            tables = [file for file in files if file.startswith(AER_PREFIX)]
            known = self._known(function.pci_path, Directory.PCI, tables)
            yield from _plan(Group.PCI, port, known, 0)

    def of_netdev(self, port: HcaPort) -> Iterator[GroupedPlan]:
        """Yield the plan of the port's network device."""
        if port.physical_netdev is None:
            return
        folder = net_folder(port.physical_netdev)
        statistics = f"{folder}/statistics"
        rows = [
            *self._known(folder, Directory.NETDEV, self._names(folder)),
            *self._known(
                statistics, Directory.NETDEV_STATISTICS, self._names(statistics)
            ),
        ]
        yield from _plan(Group.NETDEV, port.id, rows, 0)

    def _cost(self, rows: list[_Row]) -> int:
        """Return the firmware commands of a burst: one for all of ``hw_counters``."""
        if self.is_software:
            return 0
        single = sum(row.spec.directory in _SINGLE for row in rows)
        return single + (single < len(rows))

    def _names(self, folder: str) -> tuple[str, ...]:
        names = self.host.names(folder)
        if isinstance(names, ReadError):
            if names.errno != "ENOENT":
                name = folder.rpartition("/")[2]
                self.absent.append(Absence(name, names.errno))
                message = f"{name} cannot be listed: nothing in it is read"
                failure = ReadFailure(self.device, None, folder, names.errno, message)
                self.failures.append(failure)
            return ()
        return names

    def _known(
        self, folder: str, directory: Directory, files: list[str] | tuple[str, ...]
    ) -> list[_Row]:
        found = (
            (file, catalogue.lookup(directory, file, self.driver)) for file in files
        )
        return [_Row(spec, f"{folder}/{file}") for file, spec in found if spec]

    def _rows(self, folder: str, directory: Directory, limit: _Limit) -> list[_Row]:
        takes_unknown = catalogue.takes_unknown(directory, self.driver)
        rows = []
        for file in self._names(folder):
            spec = catalogue.lookup(directory, file, self.driver)
            if spec is None and takes_unknown and limit.take():
                spec = catalogue.generic(directory, file)
            if spec is not None and self._is_read(spec):
                rows.append(_Row(spec, f"{folder}/{file}"))
        return rows

    def _is_read(self, spec: CounterSpec) -> bool:
        wanted = self.takes_lifespan and spec.file == _LIFESPAN
        return spec.kind is not CounterKind.KNOB or wanted


def _bytes(rows: list[_Row]) -> list[_Row]:
    """Return the counters of bytes, each direction from the first folder with one."""
    found: list[_Row] = []
    for signal in (Signal.BYTES_RECEIVED, Signal.BYTES_TRANSMITTED):
        counting = [row for row in rows if row.spec.signal is signal]
        place = counting[0].spec.directory if counting else None
        found += [row for row in counting if row.spec.directory is place]
    return found


@dataclass(slots=True)
class _Limit:
    """How many unknown counters may still be read."""

    left: int
    dropped: int = 0

    def take(self) -> bool:
        """Take one, or count it as dropped."""
        if self.left == 0:
            self.dropped += 1
            return False
        self.left -= 1
        return True


def _plan(
    group: Group, port: PortId, rows: list[_Row], firmware_reads: int
) -> Iterator[GroupedPlan]:
    if rows:
        specs = tuple(row.spec for row in rows)
        paths = tuple(row.path for row in rows)
        yield GroupedPlan(group, ReadPlan(port, specs, paths, firmware_reads))
