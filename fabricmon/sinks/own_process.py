"""The metrics of the agent's own process, by the names that every exporter uses.

The client library's collector lists every open descriptor at each scrape; an agent
has hundreds, and listing them costs as much as all other metrics together.
"""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Iterator
from pathlib import Path

from prometheus_client import Metric

_PAGE = resource.getpagesize()
_TICKS = os.sysconf("SC_CLK_TCK")
_START_FIELD = 19  # of /proc/self/stat, counted after the name in parentheses


class OwnProcess:
    """Collects the usual ``process_*`` metrics; none where /proc cannot be read."""

    def __init__(self, proc: Path = Path("/proc")) -> None:
        """Read what does not change from ``proc``."""
        self._statm = f"{proc}/self/statm"
        self._descriptors = f"{proc}/self/fd"
        self._started = _started(proc)

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics as they are now."""
        try:
            with open(self._statm, "rb", buffering=0) as file:  # noqa: PTH123 -- hot path
                size, resident = map(int, file.read().split()[:2])
            descriptors = self._count_descriptors()
        except OSError:
            return
        most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        yield _gauge("virtual_memory_bytes", "Virtual memory size", size * _PAGE)
        yield _gauge("resident_memory_bytes", "Resident memory size", resident * _PAGE)
        yield _gauge("open_fds", "Open file descriptors", descriptors)
        yield _gauge("max_fds", "Most open file descriptors", most)
        if self._started is not None:
            yield _gauge("start_time_seconds", "Start, Unix seconds", self._started)
        cpu = Metric("process_cpu_seconds", "User and system CPU time", "counter")
        cpu.add_sample("process_cpu_seconds_total", {}, time.process_time())
        yield cpu

    def _count_descriptors(self) -> int:
        """Return their number: the size of the folder, since Linux 6.2."""
        folder = self._descriptors
        return os.stat(folder).st_size or len(os.listdir(folder))  # noqa: PTH116, PTH208


def _gauge(name: str, text: str, value: float) -> Metric:
    metric = Metric(f"process_{name}", text, "gauge")
    metric.add_sample(metric.name, {}, value)
    return metric


def _started(proc: Path) -> float | None:
    """Return when this process began, in Unix seconds; None if that is not told."""
    try:
        after_name = (proc / "self/stat").read_text("utf-8", "replace").rpartition(")")
        ticks = int(after_name[2].split()[_START_FIELD])
        lines = (proc / "stat").read_text("ascii").splitlines()
        booted = next(line.split()[1] for line in lines if line.startswith("btime "))
    except (OSError, ValueError, IndexError, StopIteration):
        return None
    return int(booted) + ticks / _TICKS
