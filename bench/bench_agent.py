"""Share of a core and memory of an agent at work, scraped every 15 s.

Eight mlx5 ports as files whose traffic moves every second, 16 logs of NCCL in which
nothing happens, a broker that it is connected to, bursts, no device tells of trouble.
The kernel tells nothing of links that are files, so their counters of outages are read
every second. A second agent lives five times as fast: what grows is seen sooner.

    MINUTES=60 python bench/bench_agent.py
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from broker import broker
from programs import (
    COMPRESSION,
    Program,
    compressed,
    cpu_seconds,
    fabricmon,
    free_port,
    get,
    proportional_mib,
    resident_mib,
    shipped_python,
    voluntary_switches,
)
from tree import Node

MINUTES = float(os.environ.get("MINUTES", "4"))
SCRAPE_SECONDS = 15
WARM_SECONDS = 20
SETTLED_SECONDS = 600
"""Growth is counted from the tenth minute on, or from the middle of a shorter life."""

LOGS = 16
PROLOGUE = """\
node01:{pid}:{pid} [{gpu}] NCCL INFO Bootstrap: Using eth0:10.0.0.1<0>
node01:{pid}:{pid} [{gpu}] NCCL INFO NCCL version 2.27.3+cuda12.9
node01:{pid}:{pid} [{gpu}] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/IB [RO]
node01:{pid}:{pid} [{gpu}] NCCL INFO Connected all rings, use ring PXN 0 GDR 1
"""


@dataclass(slots=True)
class Life:
    """What was seen of one agent."""

    program: Program
    speed: float
    """How much faster than usual its periods pass."""
    at: list[float] = field(default_factory=list)
    """Seconds of its life, from the end of its warming up, by its own periods."""
    resident: list[float] = field(default_factory=list)
    proportional: float = 0.0
    share: float = 0.0
    wakeups: float = 0.0

    @property
    def growth_mib(self) -> float:
        """Resident memory at the end, less that of the tenth minute or the middle."""
        since = min(SETTLED_SECONDS, self.at[-1] / 2)
        settled = next(i for i, at in enumerate(self.at) if at >= since)
        return self.resident[-1] - self.resident[settled]


def main() -> None:
    """Measure and print."""
    for life in live(MINUTES):
        print(
            f"{life.at[-1] / 60:.0f} min at {life.speed:g} times the speed: "
            f"{life.share:.2%} of a core, {life.wakeups:.1f} wake-ups/s, "
            f"{life.resident[-1]:.1f} MiB resident (bar 45), {life.proportional:.1f} "
            f"of its own, grew {life.growth_mib:+.2f} MiB (bar 1)"
        )


def live(minutes: float) -> tuple[Life, ...]:
    """Let an agent live for so long, and one that lives faster beside it."""
    with (
        tempfile.TemporaryDirectory(dir="/dev/shm") as folder,
        ExitStack() as stack,
    ):
        python = shipped_python(Path(folder, "python"))
        port = free_port()
        stack.enter_context(broker(Path(folder), port))
        mqtt = {"mqtt": {"host": "127.0.0.1", "port": port}}
        lives = []
        for name, settings in (("node01", {}), ("node02", compressed())):
            root = Path(folder, name)
            stack.enter_context(_node(root).moving())
            given = {"node": name, **mqtt, **settings}
            program = stack.enter_context(fabricmon(root, given, python))
            lives.append(Life(program, COMPRESSION if settings else 1))
        _watch(lives, minutes * 60)
        return tuple(lives)


def _node(root: Path) -> Node:
    logs = root / "var/log/nccl"
    logs.mkdir(parents=True)
    for number in range(LOGS):
        text = PROLOGUE.format(pid=4000 + number, gpu=number % 8)
        (logs / f"{number}.log").write_text(text, "ascii")
    return Node(root)


def _watch(lives: Sequence[Life], seconds: float) -> None:
    time.sleep(WARM_SECONDS)
    begun = time.monotonic()
    cpu = [cpu_seconds(life.program.pid) for life in lives]
    slept = [voluntary_switches(life.program.pid) for life in lives]
    while time.monotonic() - begun < seconds:
        time.sleep(SCRAPE_SECONDS)
        for life in lives:
            get(life.program.url)
            life.at.append((time.monotonic() - begun) * life.speed)
            life.resident.append(resident_mib(life.program.pid))
    spent = time.monotonic() - begun
    for life, before, woken in zip(lives, cpu, slept, strict=True):
        life.share = (cpu_seconds(life.program.pid) - before) / spent
        life.wakeups = (voluntary_switches(life.program.pid) - woken) / spent
        life.proportional = proportional_mib(life.program.pid)


if __name__ == "__main__":
    main()
