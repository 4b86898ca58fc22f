"""Programs that serve metrics, run beside each other, and what they cost."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import msgspec
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import fabricmon as package
from fabricmon.config import Bursts, Periods

COMPRESSION = 5
"""Default periods are divided by this, so that a round takes a second."""

ROUND_SECONDS = Periods().errors_seconds
"""From one poll of the error counters to the next, in time that is not compressed."""

MINUTE_ROUNDS = 12
"""Rounds after which every period has passed a whole number of times."""

START_SECONDS = 60
SIGN = "mlx5_0"
"""Stands in every answer that tells something of a port."""

_LEAST_BURST_SECONDS = 0.05
_LOOK_SECONDS = 0.002


@dataclass(frozen=True, slots=True)
class Program:
    """A running program, where it is scraped, and how long that took to answer."""

    name: str
    pid: int
    url: str
    start_seconds: float


@contextmanager
def fabricmon(
    root: Path,
    settings: Mapping[str, object],
    python: str | Path = sys.executable,
) -> Iterator[Program]:
    """Run an agent on the node at ``root``; settings not given are the default."""
    port = free_port()
    own = root / "agent"
    (own / "run").mkdir(parents=True, exist_ok=True)
    tree = {
        "root": str(root),
        "state_folder": str(own / "state"),
        "run_folder": str(own / "run"),
        "listen": {"metrics": f"127.0.0.1:{port}", "page": None},
    }
    config = own / "fabricmon.yaml"
    config.write_text(json.dumps(tree | dict(settings)), "utf-8")
    # -P: the package of that environment, not the one of the working folder.
    command = [str(python), "-P", "-m", "fabricmon", "run", "--config", str(config)]
    with running("fabricmon", command, port) as program:
        yield program


def compressed(by: float = COMPRESSION) -> dict[str, object]:
    """Return settings with the default periods divided by ``by``.

    The kernel tells nothing of links that are files; on a node it does, and then
    neither their state nor their counters of outages are read more often. Samples of
    a burst may not lie as close as that: windows are longer instead, so that as many
    fall into one.
    """
    periods: dict[str, float] = msgspec.to_builtins(Periods())
    periods["state_without_netdev_seconds"] = periods["state_seconds"]
    periods["outages_seconds"] = periods["errors_seconds"]
    periods = {key: value / by for key, value in periods.items()}
    usual, wanted = Bursts(), periods["burst_seconds"]
    periods["burst_seconds"] = max(wanted, _LEAST_BURST_SECONDS)
    window = usual.window_seconds / by * periods["burst_seconds"] / wanted
    bursts = {"every_seconds": usual.every_seconds / by, "window_seconds": window}
    return {"periods": periods, "bursts": bursts}


@contextmanager
def running(
    name: str, command: Sequence[str], port: int, page: str = "/metrics"
) -> Iterator[Program]:
    """Run a program until the caller is done; it has begun once it tells of a port."""
    begun = time.monotonic()
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        url = f"http://127.0.0.1:{port}{page}"
        try:
            _wait_for(url, process)
            yield Program(name, process.pid, url, time.monotonic() - begun)
        finally:
            process.terminate()


def _wait_for(url: str, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            if SIGN in get(url):
                return
        except OSError:
            if process.poll() is not None:
                raise
        if time.monotonic() > deadline:
            raise TimeoutError(f"{url} tells of no port after {START_SECONDS} s")
        time.sleep(_LOOK_SECONDS)


def get(url: str) -> str:
    """Return what a page answers."""
    with urllib.request.urlopen(url, timeout=10) as answer:  # noqa: S310 - our own
        return str(answer.read(), "utf-8")


def free_port() -> int:
    """Return a port of the loopback interface that nobody has just now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def cpu_seconds(pid: int) -> float:
    """Return the process's user and system time to the nanosecond, all threads."""
    return time.clock_gettime(~pid << 3 | 2)  # how Linux names another's CPU clock


def resident_mib(pid: int) -> float:
    """Return the process's resident memory."""
    pages = int(Path(f"/proc/{pid}/statm").read_text("ascii").split()[1])
    return pages * os.sysconf("SC_PAGESIZE") / 2**20


def proportional_mib(pid: int) -> float:
    """Return the same with every shared page divided among those who share it."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text("ascii").splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) / 2**10
    raise ValueError(f"no Pss of process {pid}")


def voluntary_switches(pid: int) -> int:
    """Return how often threads of the process have gone to sleep: their wake-ups."""
    total = 0
    for status in Path(f"/proc/{pid}/task").glob("*/status"):
        for line in status.read_text("ascii").splitlines():
            if line.startswith("voluntary_ctxt_switches"):
                total += int(line.split()[1])
    return total


def shipped_python(folder: Path) -> Path:
    """Make an environment of the package and what it needs, and nothing else.

    Tools of development would be loaded where libraries find them, and be measured.
    Modules are compiled, as an installer does. Returns the interpreter: Debian's, which
    packages carry, or this one where that is missing or of another version.
    """
    carried = Path(f"/usr/bin/python3.{sys.version_info.minor}")
    python = str(carried) if carried.is_file() else sys.executable
    subprocess.run([python, "-m", "venv", "--without-pip", folder], check=True)
    (site,) = folder.glob("lib/python*/site-packages")
    own = site / "fabricmon"
    shutil.copytree(
        Path(package.__file__).parent, own, ignore=shutil.ignore_patterns("__pycache__")
    )
    made = folder / "bin" / "python"
    subprocess.run([made, "-m", "compileall", "-qq", own], check=True)
    for name in _needed("fabricmon") - {"fabricmon"}:
        for place in _top_level(name):
            link = site / place.name
            if not link.exists():
                link.symlink_to(place)
    return made


def _needed(name: str) -> set[str]:
    """Return a distribution and all that it needs here, optional parts left aside."""
    found: set[str] = set()
    waiting = [name]
    while waiting:
        each = canonicalize_name(waiting.pop())
        if each in found:
            continue
        found.add(each)
        for text in metadata.requires(each) or ():
            requirement = Requirement(text)
            marker = requirement.marker
            if marker is None or marker.evaluate({"extra": ""}):
                waiting.append(requirement.name)
    return found


def _top_level(name: str) -> set[Path]:
    """Return what a distribution has put into site-packages, without its own record."""
    found = metadata.distribution(name)
    site = Path(str(found.locate_file("")))
    parts = {file.parts[0] for file in found.files or ()}
    return {site / part for part in parts if part not in {"..", "__pycache__"}}
