"""What changes at one moment: becomes one record of the trace."""

from __future__ import annotations

from fabricmon.host.trace import (
    Bridging,
    Module,
    Ramp,
    TraceRecord,
)
from fabricmon.sim.counter_files import Table
from fabricmon.sim.counters import Counter
from fabricmon.sim.sysfs import Layout


class Page:
    """Collects changes; the last one to a file holds. `take` gives them away."""

    def __init__(self) -> None:
        self._masked: set[str] = set()
        self._kept: dict[str, str] = {}
        self._clear()

    def _clear(self) -> None:
        self.is_empty = True
        self._set: dict[str, str] = {}
        self._ramp: dict[str, Ramp] = {}
        self._err: dict[str, str] = {}
        self._del: list[str] = []
        self._link: dict[str, str] = {}
        self._ethtool: dict[str, dict[str, int | Ramp] | None] = {}
        self._slow: dict[str, float] = {}
        self._kmsg: list[str] = []
        self._append: dict[str, str] = {}
        self._module: dict[str, Module | None] = {}
        self._dcb: dict[str, Bridging | None] = {}
        self._devlink: dict[str, dict[str, str] | None] = {}
        self._boot_id: str | None = None
        self._wall_step = 0.0
        self._gap: float | None = None
        self._restart = False

    def text(self, path: str, text: str) -> None:
        """Let a file hold this text; one that is masked only comes to hold it."""
        if path in self._kept:
            self._kept[path] = text
        if path in self._masked:
            return
        self.is_empty = False
        self._ramp.pop(path, None)
        self._err.pop(path, None)
        self._set[path] = text

    def number(self, counter: Counter) -> None:
        """Write a counter as it goes on from here."""
        ramp, spot = counter.shown(), counter.spot
        if spot.path in self._masked:
            return
        self.is_empty = False
        if isinstance(counter, Table):
            self.text(spot.path, counter.text(ramp.value))
        elif spot.name is not None:
            figures = self._ethtool.get(spot.path) or {}
            figures[spot.name] = ramp if ramp.per_second else ramp.value
            self._ethtool[spot.path] = figures
        elif ramp.per_second:
            self._set.pop(spot.path, None)
            self._ramp[spot.path] = ramp
        else:
            self.text(spot.path, f"{ramp.value}\n")

    def no_statistics(self, netdev: str) -> None:
        """Let a network device have no driver statistics any more."""
        self.is_empty = False
        self._ethtool[netdev] = None

    def error(self, path: str, errno: str) -> None:
        """Let reading fail."""
        self.is_empty = False
        self._set.pop(path, None)
        self._ramp.pop(path, None)
        self._err[path] = errno

    def keep(self, path: str) -> None:
        """Remember from now on what a file holds."""
        self._kept.setdefault(path, "")

    def mask(self, path: str, errno: str) -> None:
        """Let reading fail until `unmask`, whatever the file comes to hold."""
        self.error(path, errno)
        self._masked.add(path)

    def unmask(self, path: str) -> None:
        """Let a file be read again: it holds what it would have."""
        self._masked.discard(path)
        if path in self._kept:
            self.text(path, self._kept[path])

    def delete(self, path: str) -> None:
        """Take a file or folder away."""
        self.is_empty = False
        for changes in (self._set, self._ramp, self._err):
            for known in [each for each in changes if _within(each, path)]:
                del changes[known]
        self._del.append(path)

    def layout(self, layout: Layout) -> None:
        """Put files, links and errors in place."""
        self.is_empty = False
        for path, text in layout.files.items():
            self.text(path, text)
        self._link.update(layout.links)
        self._err.update(layout.errors)

    def slow(self, path: str, seconds: float) -> None:
        """Let reading a file take so long; 0 ends it."""
        self.is_empty = False
        self._slow[path] = seconds

    def kernel(self, *lines: str) -> None:
        """Add lines of the kernel log."""
        self.is_empty = False
        self._kmsg += lines

    def log(self, path: str, text: str) -> None:
        """Append to a log."""
        self.is_empty = False
        self._append[path] = self._append.get(path, "") + text

    def module(self, port: str, module: Module) -> None:
        """Say what a transceiver reads."""
        self.is_empty = False
        self._module[port] = module

    def bridging(self, netdev: str, bridging: Bridging) -> None:
        """Say how a network device is bridged."""
        self.is_empty = False
        self._dcb[netdev] = bridging

    def health(self, address: str, reporter: str, state: str) -> None:
        """Say what a health reporter of a device says."""
        self.is_empty = False
        states = self._devlink.get(address) or {}
        states[reporter] = state
        self._devlink[address] = states

    def boot(self, boot_id: str) -> None:
        """Start another boot."""
        self.is_empty = False
        self._boot_id = boot_id

    def wall_step(self, seconds: float) -> None:
        """Let the wall clock jump."""
        self.is_empty = False
        self._wall_step += seconds

    def gap(self, seconds: float, *, restart: bool) -> None:
        """Let the agent not run for so long."""
        self.is_empty = False
        self._gap = max(seconds, self._gap or 0.0)
        self._restart = self._restart or restart

    def take(self, t: float) -> TraceRecord:
        """Return what was collected as of ``t`` and begin anew."""
        record = TraceRecord(
            t=t,
            deleted=self._del,
            link=self._link,
            set=self._set,
            ramp=self._ramp,
            err=self._err,
            ethtool=self._ethtool,
            slow=self._slow,
            kmsg=self._kmsg,
            append=self._append,
            module=self._module,
            dcb=self._dcb,
            devlink=self._devlink,
            boot_id=self._boot_id,
            wall_step=self._wall_step,
            gap=self._gap,
            restart=self._restart,
        )
        self._clear()
        return record


def _within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(f"{folder}/")
