"""The metrics of the agent's own process, by the names that every exporter uses.

The client library's collector lists every open descriptor at each scrape; an agent
has hundreds, and listing them costs as much as all other metrics together. Virtual
memory and the limit of descriptors, which tell nothing of an agent, are left out.
"""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Iterable
from pathlib import Path

from prometheus_client import Metric
from prometheus_client.samples import Sample

_PAGE = resource.getpagesize()
_TICKS = os.sysconf("SC_CLK_TCK")
_START_FIELD = 19  # of /proc/self/stat, counted after the name in parentheses
_METRICS = (
    ("resident_memory_bytes", "Resident memory size in bytes.", "gauge"),
    (
        "start_time_seconds",
        "Start time of the process since unix epoch in seconds.",
        "gauge",
    ),
    ("cpu_seconds", "Total user and system CPU time spent in seconds.", "counter"),
    ("open_fds", "Number of open file descriptors.", "gauge"),
)


class OwnProcess:
    """Collects the usual ``process_*`` metrics; none where /proc cannot be read.

    They are the same objects each time: for one caller at a time.
    """

    def __init__(self, proc: Path = Path("/proc")) -> None:
        """Read what does not change from ``proc``."""
        self._statm = f"{proc}/self/statm"
        self._descriptors = f"{proc}/self/fd"
        self._started = _started(proc)
        self._metrics = [
            Metric(f"process_{name}", text, kind) for name, text, kind in _METRICS
        ]

    def collect(self) -> Iterable[Metric]:
        """Return the metrics as they are now."""
        try:
            values = self._measure()
        except OSError:
            return ()
        for metric, value in zip(self._metrics, values, strict=True):
            suffix = "_total" if metric.type == "counter" else ""
            metric.samples = [Sample(f"{metric.name}{suffix}", {}, value)]
        return self._metrics

    def _measure(self) -> tuple[float, ...]:
        """Return the values in the order of `_METRICS`; OSError without /proc."""
        with open(self._statm, "rb", buffering=0) as file:  # noqa: PTH123 -- hot path
            resident = int(file.read().split()[1])
        return (
            resident * _PAGE,
            self._started,
            time.process_time(),
            self._count_descriptors(),
        )

    def _count_descriptors(self) -> int:
        """Return their number: the size of the folder, since Linux 6.2."""
        folder = self._descriptors
        return os.stat(folder).st_size or len(os.listdir(folder))  # noqa: PTH116, PTH208


def _started(proc: Path) -> float:
    """Return when this process began, in Unix seconds; now if that is not told."""
    try:
        after_name = (proc / "self/stat").read_text("utf-8", "replace").rpartition(")")
        ticks = int(after_name[2].split()[_START_FIELD])
        lines = (proc / "stat").read_text("ascii").splitlines()
        booted = next(line.split()[1] for line in lines if line.startswith("btime "))
    except (OSError, ValueError, IndexError, StopIteration):
        return time.time()
    return int(booted) + ticks / _TICKS
