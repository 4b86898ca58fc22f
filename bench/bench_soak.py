"""An hour of a real agent, and hours of simulated storm: does anything grow?

The agent is the real process at default periods with burst sampling, on eight mlx5
ports as files whose traffic moves every second, with a real mosquitto that goes and
comes back, jobs with logs that grow, flaps, errors, devices that come and go, storms
of log lines, a scrape every 15 s and a reload of its configuration every four minutes.
The kernel's log cannot be had on a copied tree: storms of it are in the simulated part.

With a file of samples it prints what that tells. ``SECONDS`` is how long it soaks (0: not at all), ``HOURS`` how many hours of storm are
simulated (0: none), ``SOAK_OUT`` a file for each sample as a line of JSON.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median

from programs import cpu_seconds, free_port, get
from soak_node import HOST, SoakNode
from soak_report import Series, table

from fabricmon.runtime.socket import NAME, ask

SECONDS = float(os.environ.get("SECONDS", "3600"))
HOURS = float(os.environ.get("HOURS", "24"))
SAMPLE_SECONDS = 10.0
SCRAPE_SECONDS = 15.0
WARM_SECONDS = 20.0
MEMORY_BAR_MIB = 45.0
GROWTH_BAR_MIB = 1.0
CPU_BAR = 0.01
KIB, MIB = 1024, 1024**2


@dataclass(frozen=True, slots=True)
class Agent:
    """A running agent, and where it is asked."""

    process: subprocess.Popen[bytes]
    url: str
    socket: str
    told: Path
    config: Path


@dataclass(slots=True)
class Sampler:
    """Asks the kernel, the agent and its metrics every ten seconds."""

    agent: Agent
    out: Path
    samples: list[dict[str, float]]
    scrape: str = ""
    scrape_seconds: float = 0.0
    failed: int = 0
    cpu: float = 0.0
    at: float = 0.0

    def sample(self, now: float) -> None:
        """Take one sample, ``now`` seconds after the agent was ready."""
        pid = self.agent.process.pid
        cpu, spent = cpu_seconds(pid), max(now - self.at, 1e-3)
        status = _fields(Path(f"/proc/{pid}/status"))
        found = {
            "at": now,
            "resident": status["VmRSS"] * KIB / MIB,
            "proportional": _fields(Path(f"/proc/{pid}/smaps_rollup"))["Pss"]
            * KIB
            / MIB,
            "descriptors": float(sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir())),
            "threads": status["Threads"],
            "cpu": (cpu - self.cpu) / spent * 100 if self.at else 0.0,
            "lag": self._lag() * 1e3,
            "scrape": self.scrape_seconds * 1e3,
            "failed scrapes": float(self.failed),
            **self._told(pid),
            **metrics(self.scrape),
        }
        self.cpu, self.at = cpu, now
        self.samples.append(found)
        with self.out.open("a", encoding="ascii") as file:
            file.write(f"{json.dumps(found)}\n")

    def take(self) -> None:
        """Scrape, as a Prometheus does."""
        begun = time.monotonic()
        try:
            self.scrape = get(self.agent.url)
        except OSError as error:
            self.failed += 1
            print(f"scrape failed: {error}", flush=True)
        self.scrape_seconds = time.monotonic() - begun

    def _lag(self) -> float:
        """Return how long the loop takes to a client that asks nothing of it."""
        begun = time.monotonic()
        if ask(self.agent.socket, {"ask": "nothing"}, 10.0) is None:
            print("the loop does not answer", flush=True)
        return time.monotonic() - begun

    def _told(self, pid: int) -> dict[str, float]:
        """Return the counts of the sample before: the signal is not waited for."""
        with suppress(FileNotFoundError):
            counts: dict[str, float] = json.loads(self.agent.told.read_text("ascii"))
            os.kill(pid, signal.SIGUSR1)
            return counts
        os.kill(pid, signal.SIGUSR1)
        return {}


def metrics(text: str) -> dict[str, float]:
    """Return what the agent says of itself."""
    found = {"series": 0.0, "findings": 0.0}
    wanted = {
        "fabricmon_snapshot_age_seconds": "age",
        'fabricmon_sink_waiting_findings{sink="mqtt"}': "waiting",
        'fabricmon_sink_dropped_findings_total{sink="mqtt"}': "dropped",
        'fabricmon_sink_connected{sink="mqtt"}': "connected",
        "fabricmon_log_dropped_events_total": "events dropped",
        "fabricmon_log_skipped_bytes_total": "log skipped",
        "fabricmon_log_unread_bytes": "log unread",
    }
    for line in text.splitlines():
        if not line or line.startswith("#"):
            continue
        name, _, value = line.rpartition(" ")
        found["series"] += 1
        if name.startswith("fabricmon_finding_open{"):
            found["findings"] += float(value)
        if name in wanted:
            found[wanted[name]] = float(value)
    return found


def main() -> int:
    """Soak and print; the status tells whether the bars hold."""
    if sys.argv[1:]:
        return 0 if report(_read(Path(sys.argv[1])), {}) else 1
    holds = True
    if SECONDS:
        with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
            holds &= soak(Path(folder))
    if HOURS:
        from soak_storm import storm  # noqa: PLC0415 - imports what the agent must not

        holds &= storm(HOURS)
    return 0 if holds else 1


def _read(samples: Path) -> list[dict[str, float]]:
    return [json.loads(line) for line in samples.read_text("ascii").splitlines()]


def soak(root: Path) -> bool:
    """Let an agent live for so long; return whether the bars hold."""
    out = Path(os.environ.get("SOAK_OUT", str(root / "samples.jsonl")))
    out.write_text("", "ascii")
    node = SoakNode(root)
    broker = Broker(root, free_port())
    broker.start()
    try:
        with agent(root, broker.port) as running:
            sampler = Sampler(running, out, [])
            _live(node, broker, sampler)
            _scale(sampler)
        return report(sampler.samples, node.counts)
    finally:
        broker.stop()
        node.close()


def _live(node: SoakNode, broker: Broker, sampler: Sampler) -> None:
    stop = threading.Event()
    world = threading.Thread(target=_turn, args=(node, broker, sampler.agent, stop))
    world.start()
    try:
        time.sleep(WARM_SECONDS)
        sampler.take()
        begun = time.monotonic()
        sample, scrape = 0.0, SCRAPE_SECONDS
        while (now := time.monotonic() - begun) < SECONDS:
            if now >= scrape:
                scrape += SCRAPE_SECONDS
                sampler.take()
            if now >= sample:
                sample += SAMPLE_SECONDS
                sampler.sample(now)
            time.sleep(max(min(scrape, sample) - (time.monotonic() - begun), 0.01))
    finally:
        stop.set()
        world.join()


def _turn(
    node: SoakNode, broker: Broker, running: Agent, stop: threading.Event
) -> None:
    """Let the node live, second by second, until told to stop."""
    begun, now, times = time.monotonic(), 0, 0
    while not stop.wait(max(begun + now - time.monotonic(), 0)):
        for order in node.second(now):
            if order == "reload":
                times += 1
                configure(running.config, every_seconds=30 + times % 2)
                running.process.send_signal(signal.SIGHUP)
            elif order == "broker goes":
                broker.stop()
            else:
                broker.start()
        now += 1


def _scale(sampler: Sampler) -> None:
    """The agent must still be alive, and end as it should."""
    process = sampler.agent.process
    assert process.poll() is None, "the agent ended"
    begun = time.monotonic()
    process.terminate()
    assert process.wait(10) == 0
    print(f"SIGTERM to exit: {time.monotonic() - begun:.2f} s")


NAMES = (
    ("resident", "MiB"),
    ("proportional", "MiB"),
    ("descriptors", ""),
    ("threads", ""),
    ("tasks", ""),
    ("objects", ""),
    ("cpu", "% of a core"),
    ("lag", "ms"),
    ("scrape", "ms"),
    ("failed scrapes", ""),
    ("age", "s"),
    ("series", ""),
    ("findings", "open"),
    ("waiting", "findings"),
    ("dropped", "findings"),
    ("events dropped", ""),
    ("log skipped", "bytes"),
    ("log unread", "bytes"),
)


def report(samples: list[dict[str, float]], counts: dict[str, int]) -> bool:
    """Print the table and the bars; return whether these hold."""
    print(", ".join(f"{number} {what}" for what, number in counts.items()))
    found = {}
    for name, unit in NAMES:
        points = [(s["at"], s[name]) for s in samples if name in s]
        if points:
            at, values = zip(*points, strict=True)
            found[name] = Series(name, unit, at, values)
    print(table(tuple(found.values())))
    memory, cpu = found["resident"], found["cpu"]
    edge = memory.edge
    growth = memory.last - memory.mean(edge, 2 * edge)
    usual = median(cpu.values[1:])
    bars = (
        (f"resident at the end {memory.last:.1f} MiB", memory.last, MEMORY_BAR_MIB),
        (
            f"growth from minute {edge / 60:.0f} {growth:+.2f} MiB",
            growth,
            GROWTH_BAR_MIB,
        ),
        (f"CPU {usual:.2f} % of a core, the median", usual / 100, CPU_BAR),
    )
    late = sorted(found["lag"].values)
    print(
        f"CPU of all, storms of log lines included: {fmean(cpu.values[1:]):.2f} %; lag "
        f"of the loop: half within {late[len(late) // 2]:.1f} ms, 99 of 100 within "
        f"{late[len(late) * 99 // 100]:.0f} ms"
    )
    for text, value, bar in bars:
        print(f"{'holds' if value <= bar else 'MISSED'}: {text}, bar {bar:g}")
    return all(value <= bar for _, value, bar in bars)


class Broker:
    """A real mosquitto that comes and goes."""

    def __init__(self, root: Path, port: int) -> None:
        self.port = port
        self._config = root / "mosquitto.conf"
        self._config.write_text(
            f"listener {port} 127.0.0.1\nallow_anonymous true\n", "ascii"
        )
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, unless it runs."""
        if self._process is None:
            path = os.pathsep.join((os.environ.get("PATH", ""), "/usr/sbin"))
            self._process = subprocess.Popen(
                ["mosquitto", "-c", str(self._config)],
                env=os.environ | {"PATH": path},
                stderr=subprocess.DEVNULL,
            )

    def stop(self) -> None:
        """Kill it: what it held is lost."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


def configure(file: Path, every_seconds: int = 30) -> None:
    """Write the configuration again; one value differs from reload to reload."""
    tree = json.loads(file.read_text("ascii"))
    tree["bursts"] = {"every_seconds": every_seconds}
    file.write_text(json.dumps(tree), "ascii")


@contextmanager
def agent(root: Path, broker: int) -> Iterator[Agent]:
    """Run an agent on the node, ready."""
    port, own = free_port(), root / "own"
    (own / "run").mkdir(parents=True)
    config = own / "fabricmon.yaml"
    tree = {
        "root": str(root),
        "node": HOST,
        "state_folder": str(own / "state"),
        "run_folder": str(own / "run"),
        "listen": {"metrics": f"127.0.0.1:{port}", "page": None},
        "mqtt": {"host": "127.0.0.1", "port": broker},
    }
    config.write_text(json.dumps(tree), "ascii")
    command = [sys.executable, str(Path(__file__).with_name("soak_agent.py"))]
    log = Path(os.environ.get("SOAK_LOG", str(own / "log")))
    with log.open("wb") as stderr:
        process = subprocess.Popen(
            [*command, "run", "--config", str(config)],
            env=os.environ | {"SOAK_TOLD": str(own / "told.json")},
            stdout=stderr,
            stderr=stderr,
        )
    url = f"http://127.0.0.1:{port}/metrics"
    try:
        _wait_for(process, url)
        yield Agent(process, url, f"{own}/run/{NAME}", own / "told.json", config)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


def _wait_for(process: subprocess.Popen[bytes], url: str) -> None:
    deadline = time.monotonic() + 20
    while True:
        assert process.poll() is None, "the agent ended"
        try:
            get(url)
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)
        else:
            return


def _fields(path: Path) -> dict[str, float]:
    """Return the numbers of a file of ``/proc`` with a name and a colon before each."""
    found = {}
    for line in path.read_text("ascii", "replace").splitlines():
        name, _, rest = line.partition(":")
        words = rest.split()
        if words and words[0].isdigit():
            found[name] = float(words[0])
    return found


if __name__ == "__main__":
    sys.exit(main())
