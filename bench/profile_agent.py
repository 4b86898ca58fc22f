"""Says where an agent's processor time and memory go, to see what could be cheaper.

    python bench/profile_agent.py [cpu] [memory] [--ports 8] [--functions 0] [--lines 40]

``cpu``: what each thread of a live agent spends in a round and how often it wakes, and
what the same work costs in a loop without threads, sleep and HTTP, by room, file,
function and line. ``memory``: what imports add, what is mapped, and what lives once it
is warm. A round is one poll of the error counters and what falls between two of them,
with a scrape.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hurried import HurriedAgent
from programs import (
    COMPRESSION,
    MINUTE_ROUNDS,
    ROUND_SECONDS,
    Program,
    compressed,
    fabricmon,
    get,
    proportional_mib,
    resident_mib,
    shipped_python,
)
from sampler import Samples, sampling
from tree import Node

from fabricmon.runtime import memory

WARM_ROUNDS = 24
LOOP_SECONDS = 15.0
HEAP_SECONDS = 45.0
CHILD = Path(__file__).with_name("profile_child.py")
KIB, MIB = 1024, 2**20
ROOMS = (
    ("reading", ("host/", "sources/", "parse/", "assembly.py")),
    ("folder checks", ("host/live_descriptors.py Descriptors._compare_folders",)),
    ("judging", ("detect/", "fusion.py", "incidents.py", "verdicts.py")),
    ("exposition", ("sinks/",)),
    ("records and configuration", ("model/", "config", "catalogue.py", "kinds.py")),
    ("intake and schedule", ("",)),
)
"""Rooms of the package, by how file and function begin; the longest beginning wins."""


def main() -> None:
    """Print what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", nargs="*", metavar="cpu, memory")
    parser.add_argument("--ports", type=int, default=8)
    parser.add_argument("--functions", type=int, default=0)
    parser.add_argument("--lines", type=int, default=40, help="of each table")
    options = parser.parse_args()
    wanted = options.what or ["cpu", "memory"]
    with TemporaryDirectory(dir="/dev/shm") as folder:
        root = Path(folder, "node")
        root.mkdir()
        node = Node(root, options.ports, options.functions)
        python = shipped_python(Path(folder, "python"))
        time.sleep(1)  # files that have just been written are not kept open
        if "cpu" in wanted:
            _live(root, node, python)
            _loop(root, node, options.lines)
        if "memory" in wanted:
            _imports(python, options.lines)
            _mapped(root, node, python, options.lines)
            _heap(root, node, python, options.lines)


# Processor time of a live agent


@dataclass(frozen=True, slots=True)
class Thread:
    """What a thread has used so far; ``cpu`` in seconds."""

    cpu: float
    user_ticks: int
    system_ticks: int
    woken: int
    taken_off: int


def _threads(pid: int) -> dict[str, Thread]:
    found = {}
    for folder in Path(f"/proc/{pid}/task").iterdir():
        try:
            spent = int((folder / "schedstat").read_text("ascii").split()[0])
            ticks = (folder / "stat").read_text("ascii").rpartition(")")[2].split()
            switches = [
                int(line.split()[1])
                for line in (folder / "status").read_text("ascii").splitlines()
                if "voluntary_ctxt_switches" in line
            ]
        except FileNotFoundError:  # it has just ended
            continue
        user, system = int(ticks[11]), int(ticks[12])
        found[folder.name] = Thread(spent / 1e9, user, system, *switches)
    return found


_NOTHING = Thread(0.0, 0, 0, 0, 0)


def _live(root: Path, node: Node, python: Path) -> None:
    print("== a live agent, of each thread in a round (the loop's thread is the first)")
    with node.moving(), fabricmon(root, compressed(), python) as agent:
        _rounds(agent, WARM_ROUNDS, scrape=True)
        for scrape in (True, False):
            before = _threads(agent.pid)
            rounds = 2 * MINUTE_ROUNDS
            _rounds(agent, rounds, scrape=scrape)
            after = _threads(agent.pid)
            print("with a scrape:" if scrape else "without:")
            for name, thread in sorted(after.items(), key=lambda each: int(each[0])):
                then = before.get(name, _NOTHING)
                ticks = thread.user_ticks - then.user_ticks
                system = thread.system_ticks - then.system_ticks
                print(
                    f"  {(thread.cpu - then.cpu) / rounds * 1e3:6.2f} ms CPU, "
                    f"{(thread.woken - then.woken) / rounds:5.1f} wake-ups, taken off "
                    f"{(thread.taken_off - then.taken_off) / rounds:4.1f} times, "
                    f"ticks user {ticks} system {system}"
                )


def _rounds(agent: Program, count: int, *, scrape: bool) -> None:
    for _ in range(count):
        if scrape:
            get(agent.url)
        time.sleep(ROUND_SECONDS / COMPRESSION)


# The same work in a loop


def _loop(root: Path, node: Node, lines: int) -> None:
    periods = {"state_without_netdev_seconds": 5, "outages_seconds": 5}
    agent = HurriedAgent(root, {"periods": periods})
    step, spent, rounds = 0, 0.0, 0

    def play() -> float:
        nonlocal step
        step += round(ROUND_SECONDS)
        node.move(step)
        begun = time.thread_time()
        agent.play(ROUND_SECONDS)
        agent.scrape()
        return time.thread_time() - begun

    for _ in range(WARM_ROUNDS):
        play()
    memory.settle()
    before = agent.steps
    with sampling() as samples:
        while spent < LOOP_SECONDS:
            spent += play()
            rounds += 1
    each = spent / rounds * 1e6
    print(
        f"== the same work in a loop: {each / 1e3:.2f} ms a round, "
        f"{(agent.steps - before) / rounds:.1f} steps, {samples.total} samples"
    )
    _table("by room", _rooms(samples), samples.total, each, lines)
    _table("by file", samples.files, samples.total, each, lines)
    for name, counted in (
        ("by function, what it calls outside of the package included", "functions"),
        ("by function, all that it calls included", "inclusive"),
        ("by line", "lines"),
    ):
        places = {
            f"{place.file}:{place.line or ''} {place.function}": count
            for place, count in getattr(samples, counted).items()
        }
        _table(name, places, samples.total, each, lines)


def _rooms(samples: Samples) -> Counter[str]:
    rooms: Counter[str] = Counter()
    for place, count in samples.functions.items():
        name = f"{place.file} {place.function}"
        fitting = [
            (len(begin), room)
            for room, begins in ROOMS
            for begin in begins
            if name.startswith(begin)
        ]
        rooms[max(fitting)[1]] += count
    return rooms


def _table(
    title: str, counts: Mapping[str, int], total: int, each: float, lines: int
) -> None:
    print(f"-- {title}, us a round")
    for name, count in Counter(counts).most_common(lines):
        print(f"  {count / total:6.1%} {count / total * each:7.0f} {name}")


# Memory


def _imports(python: Path, lines: int) -> None:
    told = _child(python, "imports")
    print(
        f"== imports: {told['before'] / MIB:.1f} MiB before (interpreter, json), "
        f"{told['after'] / MIB:.1f} after, {told['modules']} modules, "
        f"{sum(told['seconds'].values()) * 1e3:.0f} ms CPU"
    )
    rooms: Counter[str] = Counter()
    for name, grown in told["grown"].items():
        parts = name.split(".")
        own = parts[0] == "fabricmon" and len(parts) > 1
        rooms[".".join(parts[:2]) if own else parts[0]] += grown
    print("-- KiB resident that each adds, by what is loaded first")
    _sizes(rooms, lines)
    print("-- by module, KiB and ms of CPU")
    for name, grown in Counter(told["grown"]).most_common(lines):
        print(f"  {grown / KIB:7.0f} {told['seconds'][name] * 1e3:6.1f} {name}")


def _mapped(root: Path, node: Node, python: Path, lines: int) -> None:
    with node.moving(), fabricmon(root, compressed(), python) as agent:
        _rounds(agent, 2 * WARM_ROUNDS, scrape=True)
        print(
            f"== an agent after {2 * WARM_ROUNDS} rounds: "
            f"{resident_mib(agent.pid):.1f} MiB resident, "
            f"{proportional_mib(agent.pid):.1f} in proportion"
        )
        text = Path(f"/proc/{agent.pid}/smaps").read_text("ascii")
    sizes: dict[str, Counter[str]] = {}
    name = ""
    for line in text.splitlines():
        words = line.split()
        if not words[0].endswith(":"):
            name = words[5] if len(words) > 5 else "[anonymous]"  # noqa: PLR2004
        elif words[0] in {"Rss:", "Pss:", "Private_Dirty:"}:
            sizes.setdefault(name, Counter())[words[0]] += int(words[1])
    print("-- mapped, KiB: resident, in proportion, private and changed")
    ordered = sorted(sizes.items(), key=lambda each: -each[1]["Rss:"])
    for file, each in ordered[:lines]:
        columns = (each["Rss:"], each["Pss:"], each["Private_Dirty:"])
        print("  " + " ".join(f"{value:7}" for value in columns), Path(file).name)


def _heap(root: Path, node: Node, python: Path, lines: int) -> None:
    config = root / "agent/fabricmon.yaml"
    with node.moving():
        told = _child(python, "heap", str(HEAP_SECONDS), str(config))
    print(f"== Python's heap after {HEAP_SECONDS:g} s: {told['traced'] / MIB:.1f} MiB")
    files = {_short(name): size for name, (size, _) in told["files"].items()}
    rooms: Counter[str] = Counter()
    for name, size in files.items():
        rooms["/".join(name.split("/")[:2])] += size
    print("-- KiB by folder of the line that asked for it (importlib: code of modules)")
    _sizes(rooms, lines)
    print("-- by file")
    _sizes(files, lines)
    print("-- by line")
    _sizes({_short(name): size for name, (size, _) in told["lines"].items()}, lines)
    print("-- by type, KiB and how many")
    for name, (size, count) in list(told["types"].items())[:lines]:
        print(f"  {size / KIB:7.0f} {count:7} {name}")


def _short(name: str) -> str:
    major, minor = sys.version_info[:2]
    for mark in ("site-packages/", f"python{major}.{minor}/"):
        _, found, rest = name.rpartition(mark)
        if found:
            return rest
    return name


def _sizes(sizes: Mapping[str, int], lines: int) -> None:
    for name, size in Counter(sizes).most_common(lines):
        print(f"  {size / KIB:7.0f} {name}")


def _child(python: Path, *arguments: str) -> dict[str, Any]:
    command = [str(python), str(CHILD), *arguments]
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True
    )
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


if __name__ == "__main__":
    main()
