"""How long a scrape takes beside slow clients, and what these cost the agent.

Eight mlx5 ports as files and an agent with its defaults. Half of the slow clients send
half a request and no more, half ask for the metrics and never read them; each comes
again when it is cut off, and each second in any case. A good scraper comes beside them, and somebody asks the
agent's loop at its socket how long it takes to answer.
"""

from __future__ import annotations

import json
import select
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil
from markers import now_and_here
from programs import shipped_python
from tree import Node

from fabricmon.runtime.socket import NAME, ask

CLIENTS = (0, 50, 200)
SCRAPES = 100
SCRAPE_SECONDS = 10.0
"""What Prometheus waits for an answer by default; a scrape that takes longer failed."""

LIFE_SECONDS = 1.0
"""A slow client that nobody cuts off comes anew after so long."""

TURNS = 20
"""Times in that life that its connections are looked at."""

PAUSE_SECONDS = 0.1
START_SECONDS = 60.0
SETTLE_SECONDS = 5.0
HALF, WHOLE = b"GET /metrics HT", b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"


@dataclass(frozen=True, slots=True)
class Figures:
    """Of one number of slow clients: seconds, MiB, and a share of one core."""

    clients: int
    scrapes: list[float]
    failed: int
    lags: list[float]
    grown: float
    threads: int
    cpu: float

    def __str__(self) -> str:
        """Write one row."""
        return (
            f"{self.clients:>7} {1e3 * _part(self.scrapes, 0.5):>9.1f}"
            f" {1e3 * _part(self.scrapes, 0.99):>9.1f} {self.failed:>6}"
            f" {1e3 * _part(self.lags, 0.99):>12.1f} {self.grown:>10.1f}"
            f" {self.threads:>7} {100 * self.cpu:>6.1f}"
        )


def main() -> None:
    """Print a row for each number of slow clients."""
    if len(sys.argv) == 4:  # noqa: PLR2004 - itself, as the slow clients
        be_slow(int(sys.argv[2]), int(sys.argv[3]))
    print(now_and_here())
    print("slow clients, scrape p50 and p99 in ms, failed scrapes, loop lag p99 in ms,")
    print("resident MiB more, threads, CPU of the agent in percent of a core")
    with agent() as (process, port, run_folder):
        for clients in CLIENTS:
            print(measure(process, port, run_folder, clients), flush=True)


@contextmanager
def agent() -> Iterator[tuple[psutil.Process, int, Path]]:
    """Run an agent on eight ports."""
    with tempfile.TemporaryDirectory() as folder, socket.socket() as probe:
        root = Path(folder, "node")
        root.mkdir()
        Node(root)
        python = shipped_python(Path(folder, "python"))
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
        probe.close()
        config = root / "fabricmon.yaml"
        tree = {
            "root": str(root),
            "state_folder": f"{root}/state",
            "run_folder": str(root),
            "listen": {"metrics": f"127.0.0.1:{port}", "page": None},
        }
        config.write_text(json.dumps(tree), "utf-8")
        command = [str(python), "-m", "fabricmon", "run", "--config", str(config)]
        with subprocess.Popen(command, stderr=subprocess.DEVNULL) as running:
            try:
                _await(port)
                time.sleep(SETTLE_SECONDS)
                yield psutil.Process(running.pid), port, root
            finally:
                running.terminate()


def _await(port: int) -> None:
    """Wait until the agent serves."""
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end:
        with suppress(OSError):
            scrape(port)
            return
        time.sleep(PAUSE_SECONDS)


def measure(
    process: psutil.Process, port: int, run_folder: Path, clients: int
) -> Figures:
    """Scrape beside so many slow clients."""
    scrape(port)
    before = process.memory_info().rss
    stop, lags = threading.Event(), list[float]()

    def watch() -> None:
        while not stop.wait(PAUSE_SECONDS / 2):
            begun = time.monotonic()
            if ask(f"{run_folder}/{NAME}", {"ask": "nothing"}, SCRAPE_SECONDS):
                lags.append(time.monotonic() - begun)

    with slow_clients(port, clients):
        watching = threading.Thread(target=watch)
        watching.start()
        begun, spent = time.monotonic(), sum(process.cpu_times()[:2])
        taken: list[float] = []
        for _ in range(SCRAPES):
            with suppress(OSError):
                taken.append(scrape(port))
            time.sleep(PAUSE_SECONDS)
        threads = process.num_threads()
        spent = sum(process.cpu_times()[:2]) - spent
        cpu = spent / (time.monotonic() - begun)
        grown = (process.memory_info().rss - before) / (1 << 20)
        stop.set()
        watching.join()
    failed = SCRAPES - len(taken)
    return Figures(clients, taken, failed, lags, grown, threads, cpu)


def scrape(port: int) -> float:
    """Scrape once; return the seconds, or raise OSError as a scraper would fail."""
    begun = time.monotonic()
    with socket.create_connection(("127.0.0.1", port), SCRAPE_SECONDS) as connection:
        connection.sendall(WHOLE)
        answer = bytearray()
        while chunk := connection.recv(1 << 16):
            answer += chunk
    took = time.monotonic() - begun
    if not answer.startswith(b"HTTP/1.1 200") or took > SCRAPE_SECONDS:
        raise ConnectionError("no answer to use")
    return took


@contextmanager
def slow_clients(port: int, many: int) -> Iterator[None]:
    """Run slow clients in a process of their own."""
    command = [sys.executable, __file__, "slow", str(port), str(many)]
    with subprocess.Popen(command) as running:
        time.sleep(SETTLE_SECONDS if many else 0.5)
        try:
            yield
        finally:
            running.kill()


def be_slow(port: int, many: int) -> None:
    """Hold so many connections open for ever, each a new one from time to time."""
    open_: dict[int, tuple[socket.socket, bytes]] = {}
    with select.epoll() as watch:
        for number in range(many):
            _come(watch, open_, port, HALF if number % 2 else WHOLE)
        while True:
            begun = time.monotonic()
            gone = {number for number, _ in watch.poll(LIFE_SECONDS / TURNS)}
            old = list(open_)[: len(open_) // TURNS]
            for number in (*gone, *old):
                if number in open_:
                    connection, says = open_.pop(number)
                    connection.close()
                    _come(watch, open_, port, says)
            time.sleep(max(0.0, LIFE_SECONDS / TURNS - time.monotonic() + begun))


def _come(
    watch: select.epoll,
    open_: dict[int, tuple[socket.socket, bytes]],
    port: int,
    says: bytes,
) -> None:
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
    with suppress(OSError):
        connection.settimeout(SCRAPE_SECONDS)
        connection.connect(("127.0.0.1", port))
        connection.sendall(says)
    open_[connection.fileno()] = connection, says
    with suppress(OSError):
        watch.register(connection, select.EPOLLRDHUP)


def _part(values: list[float], part: float) -> float:
    return sorted(values)[int(part * (len(values) - 1))] if values else float("nan")


if __name__ == "__main__":
    main()
