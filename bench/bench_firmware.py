"""Reads a second that reach the firmware of a node, at default periods.

Eight mlx5 InfiniBand ports play without an event; the host counts. At rest nothing
moves: a burst window then costs a sample. At work traffic moves, and the busiest second
is one within a burst window. With IPoIB network devices the kernel tells of link
changes; without, state is polled for them, or the counter of outages where it can be
trusted.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from statistics import fmean

from tree import TRAFFIC, WORDS_PER_SECOND, Node

from fabricmon.pipeline import Pipeline
from fabricmon.replaying import Replay

REST_SECONDS, WORK_SECONDS = 3600, 600
WINDOW_SECONDS = 3.0
"""Length of a burst window."""

CLOSE_SECONDS = 0.25
"""Samples of a burst are 0.2 s apart."""

SETTLED_SECONDS = 60.0
"""The first minute looks at everything once."""

PORTS = 8
HEADER = {
    "fabricmon_trace": 1,
    "node": "node01",
    "boot_id": "b0071d",
    "start": "2026-01-05T08:00:00Z",
}
UPTIME = "8640000.00 8640000.00\n"


@dataclass(slots=True)
class Counts:
    """Firmware reads of a played node."""

    seconds: float
    total: int = 0
    findings: list[str] = field(default_factory=list)
    steps: list[tuple[float, int]] = field(default_factory=list)
    """Time of each step of the agent, and the reads until then."""

    @property
    def rate(self) -> float:
        """Reads a second over all."""
        return self.total / self.seconds

    def windows(self) -> list[float]:
        """Return the reads a second of each burst window, all other reads included.

        Nothing else follows so closely as its samples; the last one counts for as long
        as those before it.
        """
        found: list[float] = []
        window: list[tuple[float, int]] = []
        for before, now in pairwise(self.steps):
            if now[0] - before[0] <= CLOSE_SECONDS:
                window = window or [before]
                window.append(now)
            elif window:
                if window[0][0] >= SETTLED_SECONDS:
                    found.append((window[-1][1] - window[0][1]) / WINDOW_SECONDS)
                window = []
        return found


class _Watch:
    """Notes the count at each step."""

    def __init__(self, counts: Counts) -> None:
        self._counts = counts
        self.replay: Replay | None = None

    def runs(self, pipeline: Pipeline, until: float) -> None:
        """Note what was read until now."""
        del pipeline
        if self.replay is not None:
            reads = self.replay.host.firmware_reads
            self._counts.steps.append((until, reads))

    def silent(self, until: float) -> None:
        """Do nothing: the agent always runs."""


def main() -> None:
    """Print all figures."""
    for netdevs in (True, False):
        rest, work = count(netdevs=netdevs), count(netdevs=netdevs, works=True)
        which = "with network devices" if netdevs else "without"
        windows = work.windows()
        print(
            f"{which}: {rest.rate:.1f} firmware reads/s at rest (bar 40), "
            f"{work.rate:.1f} at work, {fmean(windows):.1f} in a burst window (bar 120), "
            f"{max(windows):.1f} in the worst; "
            f"findings: {rest.findings + work.findings or 'none'}"
        )


def count(*, netdevs: bool, works: bool = False) -> Counts:
    """Play a node and count."""
    counts = Counts(WORK_SECONDS if works else REST_SECONDS)
    with tempfile.TemporaryDirectory() as folder:
        trace = _write_trace(Path(folder), netdevs=netdevs, works=works)
        watch = _Watch(counts)
        replay = watch.replay = Replay(trace, watcher=watch)
        for change in replay.changes():
            counts.findings.append(change.incident.finding.kind)
    assert len(replay.pipeline.snapshot.ports) == PORTS
    counts.total = replay.host.firmware_reads
    return counts


def _write_trace(folder: Path, *, netdevs: bool, works: bool) -> Path:
    root = folder / "node"
    Node(root, PORTS)
    links: dict[str, str] = {}
    texts = {"/proc/uptime": UPTIME}
    for path in sorted(root.rglob("*")):
        name = f"/{path.relative_to(root)}"
        if not netdevs and ("/net/" in name or name.endswith("/ndevs/0")):
            continue
        if path.is_symlink():
            links[name] = str(path.readlink())
        elif path.is_file():
            texts[name] = path.read_text("ascii")
    trace = folder / "node01.trace.jsonl"
    moving = [name for name in texts if name.rpartition("/")[2] in TRAFFIC]
    lines = [HEADER, {"t": 0, "link": links, "set": texts}]
    lines += _traffic(moving) if works else [{"t": REST_SECONDS}]
    trace.write_text("".join(f"{json.dumps(line)}\n" for line in lines), "utf-8")
    return trace


def _traffic(files: list[str]) -> Iterator[dict[str, object]]:
    """Let every counter of traffic grow five times a second."""
    for step in range(1, 5 * WORK_SECONDS + 1):
        value = step * WORDS_PER_SECOND // 5
        yield {"t": step / 5, "set": dict.fromkeys(files, f"{value}\n")}


if __name__ == "__main__":
    main()
