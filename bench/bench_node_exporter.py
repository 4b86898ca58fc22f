"""CPU and memory beside Debian's node_exporter, on the same files in one run.

Both read a node of eight mlx5 ports whose traffic moves. A round is what happens from
one poll of the error counters to the next, at default periods, and one scrape. Time is
compressed: every default period is divided by five, so that a round takes a second.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec
from tree import Node

from fabricmon.config import Periods

ROUNDS = int(os.environ.get("ROUNDS", "120"))
WARM_ROUNDS = 15
COMPRESSION = 5
"""Default periods are divided by this; errors are polled every 5 s."""


@dataclass(frozen=True, slots=True)
class Figures:
    """What one of the two costs."""

    name: str
    values: int
    cpu_seconds: float
    resident_mib: float
    scrape_milliseconds: float

    @property
    def microseconds_per_value(self) -> float:
        """CPU of one round, for each value that it exports."""
        return self.cpu_seconds / ROUNDS / self.values * 1e6


def main() -> None:
    """Measure both at the same time and print a table."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        root = Path(folder)
        node = Node(root)
        stop = threading.Event()
        threading.Thread(target=node.keep_moving, args=(1.0, stop)).start()
        try:
            with fabricmon(root, _compressed()) as ours, _node_exporter(root) as theirs:
                figures = _measure(ours, theirs)
        finally:
            stop.set()
    mine, other = figures
    print("| | values | CPU a round | CPU a value | resident | scrape |")
    print("|---|---|---|---|---|---|")
    for item in figures:
        round_ms = item.cpu_seconds / ROUNDS * 1e3
        print(
            f"| {item.name} | {item.values} | {round_ms:.2f} ms | "
            f"{item.microseconds_per_value:.2f} us | {item.resident_mib:.1f} MiB | "
            f"{item.scrape_milliseconds:.1f} ms |"
        )
    ratio = mine.microseconds_per_value / other.microseconds_per_value
    print(f"\nCPU per exported value: ratio {ratio:.2f} (bar: at most 0.5)")


@dataclass(frozen=True, slots=True)
class Exporter:
    """A running program and where it is scraped."""

    name: str
    process: subprocess.Popen[bytes]
    url: str


@contextmanager
def fabricmon(root: Path, periods: Mapping[str, float]) -> Iterator[Exporter]:
    """Run an agent on the node at ``root``; periods not given are the default."""
    port = _free_port()
    config = root / "fabricmon.yaml"
    config.write_text(
        f"root: {root}\nstate_folder: {root}/state\nrun_folder: {root}/run\n"
        f"listen: {{metrics: '127.0.0.1:{port}', page: null}}\n"
        f"periods: {json.dumps(dict(periods))}\n",
        "utf-8",
    )
    (root / "run").mkdir()
    command = [sys.executable, "-m", "fabricmon", "run", "--config", str(config)]
    with _running("fabricmon", command, port) as exporter:
        yield exporter


def _compressed() -> dict[str, float]:
    periods: dict[str, float] = msgspec.to_builtins(Periods())
    # The kernel tells nothing of links that are files; on a node it does, and then
    # neither their state nor their counters of outages are read more often.
    periods["state_without_netdev_seconds"] = periods["state_seconds"]
    periods["outages_seconds"] = periods["errors_seconds"]
    return {key: value / COMPRESSION for key, value in periods.items()}


@contextmanager
def _node_exporter(root: Path) -> Iterator[Exporter]:
    port = _free_port()
    command = [
        "prometheus-node-exporter",
        "--collector.disable-defaults",
        "--collector.infiniband",
        f"--path.sysfs={root}/sys",
        f"--web.listen-address=127.0.0.1:{port}",
    ]
    with _running("node_exporter 1.5 infiniband", command, port) as exporter:
        yield exporter


@contextmanager
def _running(name: str, command: list[str], port: int) -> Iterator[Exporter]:
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        url = f"http://127.0.0.1:{port}/metrics"
        try:
            _wait_for(url)
            yield Exporter(name, process, url)
        finally:
            process.terminate()


def _measure(*exporters: Exporter) -> tuple[Figures, ...]:
    took = {exporter.name: 0.0 for exporter in exporters}
    before: dict[str, float] = {}
    for number in range(WARM_ROUNDS + ROUNDS):
        if number == WARM_ROUNDS:
            before = {item.name: cpu_seconds(item.process.pid) for item in exporters}
            took = dict.fromkeys(took, 0.0)
        started = time.monotonic()
        for exporter in exporters:
            begun = time.monotonic()
            get(exporter.url)
            took[exporter.name] += time.monotonic() - begun
        time.sleep(max(1.0 - (time.monotonic() - started), 0))
    return tuple(
        Figures(
            name=item.name,
            values=_values(get(item.url)),
            cpu_seconds=cpu_seconds(item.process.pid) - before[item.name],
            resident_mib=resident_mib(item.process.pid),
            scrape_milliseconds=took[item.name] / ROUNDS * 1e3,
        )
        for item in exporters
    )


def _values(text: str) -> int:
    return sum(1 for line in text.splitlines() if line and not line.startswith("#"))


def get(url: str) -> str:
    """Return what a page answers."""
    with urllib.request.urlopen(url, timeout=5) as answer:  # noqa: S310 - our own
        return str(answer.read(), "utf-8")


def _wait_for(url: str) -> None:
    deadline = time.monotonic() + 10
    while True:
        try:
            get(url)
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)
        else:
            return


def cpu_seconds(pid: int) -> float:
    """Return the process's CPU time to the nanosecond, ended threads included."""
    return time.clock_gettime(~pid << 3 | 2)  # how Linux names another's CPU clock


def resident_mib(pid: int) -> float:
    """Return the process's resident memory."""
    pages = int(Path(f"/proc/{pid}/statm").read_text("ascii").split()[1])
    return pages * os.sysconf("SC_PAGESIZE") / 2**20


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


if __name__ == "__main__":
    main()
