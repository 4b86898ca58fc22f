"""Runs programs on the same files at the same time and says what each costs.

A round is one poll of the error counters, all polls that fall between two of them,
what is made of them, and, in a minute that is scraped, one scrape. A minute is 12
rounds: after that every period has passed a whole number of times, so that minutes can
be compared. Minutes with and without scrapes take turns, and so do the programs in who
is scraped first. A value is a line of the answer that is no comment.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from peers import Peer
from programs import (
    COMPRESSION,
    MINUTE_ROUNDS,
    ROUND_SECONDS,
    SIGN,
    Program,
    compressed,
    cpu_seconds,
    fabricmon,
    get,
    proportional_mib,
    resident_mib,
    shipped_python,
    voluntary_switches,
)
from tree import Node

WARM_ROUNDS = 30
"""An agent that has just started looks more closely for some time."""
FAMILY = SIGN.partition("_")[0]  # begins the name of every device


@dataclass(frozen=True, slots=True)
class Size:
    """What the node has, and by how much its periods are divided."""

    ports: int
    functions: int = 0
    compression: float = COMPRESSION

    @property
    def round_seconds(self) -> float:
        """Seconds that a round takes."""
        return ROUND_SECONDS / self.compression


@dataclass(slots=True)
class Cost:
    """What one program cost; CPU in milliseconds a round, user and system."""

    name: str
    start_seconds: float
    values: int = 0
    port_values: int = 0
    scraped: list[float] = field(default_factory=list)
    """CPU of a round, of each minute with scrapes."""
    quiet: list[float] = field(default_factory=list)
    """The same of each minute without."""
    latencies: list[float] = field(default_factory=list)
    """Milliseconds that each scrape took, as the client sees it."""
    wakeups: float = 0.0
    """Times a round that a thread went to sleep, scrapes included."""
    resident_mib: float = 0.0
    proportional_mib: float = 0.0

    @property
    def round_ms(self) -> float:
        """CPU of a round with a scrape: the median of all minutes."""
        return statistics.median(self.scraped)

    @property
    def scrape_ms(self) -> float:
        """CPU that a scrape adds."""
        return self.round_ms - statistics.median(self.quiet)

    @property
    def value_us(self) -> float:
        """CPU of a round with a scrape, for each value that it exports."""
        return self.round_ms / self.values * 1e3


@dataclass(frozen=True, slots=True)
class Comparison:
    """One size of node; ours is the first."""

    size: Size
    costs: tuple[Cost, ...]
    load: tuple[float, float]
    """Processes that ran or wanted to, a minute's mean, before and after."""

    def ratios(self, other: Cost) -> list[float]:
        """Return our CPU a value in parts of another's, of each minute."""
        ours = self.costs[0]
        pairs = zip(ours.scraped, other.scraped, strict=True)
        return [one / ours.values / (two / other.values) for one, two in pairs]


def compare(size: Size, peers: Sequence[Peer], minutes: int) -> Comparison:
    """Measure for so many minutes with scrapes, and one less without."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        root = Path(folder, "node")
        root.mkdir()
        python = shipped_python(Path(folder, "python"))
        node = Node(root, size.ports, size.functions)
        time.sleep(1)  # files that have just been written are not kept open
        with node.moving(), ExitStack() as stack:
            before = os.getloadavg()[0]
            ours = fabricmon(root, compressed(size.compression), python)
            programs = [stack.enter_context(ours)]
            for peer in peers:
                try:
                    run = peer.run(root, size.round_seconds)
                    programs.append(stack.enter_context(run))
                except OSError as error:  # the others are measured all the same
                    where = f"{size.ports}x{size.functions}"
                    print(f"FAILED {peer.name} at {where}: {error}", file=sys.stderr)
            costs = _measure(programs, size, minutes)
    return Comparison(size, costs, (before, os.getloadavg()[0]))


def _measure(programs: Sequence[Program], size: Size, minutes: int) -> tuple[Cost, ...]:
    costs = {each.pid: Cost(each.name, each.start_seconds) for each in programs}
    for _ in _rounds(WARM_ROUNDS, size.round_seconds):
        _scrape(programs, costs)
    for cost in costs.values():
        cost.latencies.clear()
    for minute in range(2 * minutes - 1):
        _one_minute(programs, costs, size, scraped=minute % 2 == 0)
    for program in programs:
        cost = costs[program.pid]
        lines = get(program.url).splitlines()
        lines = [line for line in lines if line and not line.startswith("#")]
        cost.values = len(lines)
        cost.port_values = sum(FAMILY in line for line in lines)
        cost.resident_mib = resident_mib(program.pid)
        cost.proportional_mib = proportional_mib(program.pid)
    return tuple(costs.values())


def _one_minute(
    programs: Sequence[Program], costs: dict[int, Cost], size: Size, *, scraped: bool
) -> None:
    cpu = {each.pid: cpu_seconds(each.pid) for each in programs}
    slept = {each.pid: voluntary_switches(each.pid) for each in programs}
    for number in _rounds(MINUTE_ROUNDS, size.round_seconds):
        if scraped:
            turn = number % len(programs)
            _scrape([*programs[turn:], *programs[:turn]], costs)
    for each in programs:
        cost = costs[each.pid]
        spent = (cpu_seconds(each.pid) - cpu[each.pid]) / MINUTE_ROUNDS * 1e3
        (cost.scraped if scraped else cost.quiet).append(spent)
        if scraped:
            woken = voluntary_switches(each.pid) - slept[each.pid]
            cost.wakeups = woken / MINUTE_ROUNDS


def _rounds(count: int, seconds: float) -> Iterator[int]:
    """Yield the number of each round, at its time."""
    began = time.monotonic()
    for number in range(count):
        yield number
        time.sleep(max(began + (number + 1) * seconds - time.monotonic(), 0))


def _scrape(programs: Sequence[Program], costs: dict[int, Cost]) -> None:
    for program in programs:
        begun = time.monotonic()
        get(program.url)
        costs[program.pid].latencies.append((time.monotonic() - begun) * 1e3)
