"""What the MQTT sink costs: CPU, memory while the broker is away, findings a second.

1. Two agents on the same node of eight ports, one with a broker and one without, side by
   side for a minute or two.
2. A sink that is told 10,000 findings while there is no broker, twice the bound of 5,000:
   its memory before, halfway and after.
3. How long a broker on this machine takes for 10,000 findings that wait.
"""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from broker import broker
from programs import cpu_seconds, free_port, get, resident_mib
from tree import Node

from fabricmon.config import Log
from fabricmon.config_load import build
from fabricmon.model import (
    Evidence,
    Finding,
    Incident,
    IncidentState,
    Severity,
    Snapshot,
    Subject,
    Verdict,
)
from fabricmon.runtime.logging import make_logger
from fabricmon.sinks.mqtt import MqttSink

FINDINGS = 10_000
SECONDS = float(os.environ.get("SECONDS", "120"))
SCRAPE_SECONDS = 15
WARM_SECONDS = 20
WALL = 1_767_600_000.0


def main() -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        root = Path(folder)
        port = free_port()
        with broker(root, port):
            _side_by_side(root, port)
        _memory(root, free_port())
        _rate(root)


def _side_by_side(root: Path, port: int) -> None:
    node, stop = Node(root), threading.Event()
    threading.Thread(target=node.keep_moving, args=(1.0, stop)).start()
    try:
        mqtt = {"host": "127.0.0.1", "port": port}
        with _agent(root, "without", {}) as one, _agent(root, "with", mqtt) as other:
            time.sleep(WARM_SECONDS)
            agents = (one, other)
            before = [cpu_seconds(pid) for pid, _ in agents]
            begun = time.monotonic()
            while time.monotonic() - begun < SECONDS:
                time.sleep(SCRAPE_SECONDS)
                for _, url in agents:
                    get(url)
            spent = time.monotonic() - begun
            for name, (pid, _), cpu in zip(("off", "on"), agents, before, strict=True):
                share = (cpu_seconds(pid) - cpu) / spent
                memory = resident_mib(pid)
                print(f"MQTT {name}: {share:.2%} of a core, {memory:.1f} MiB resident")
    finally:
        stop.set()


def _memory(root: Path, port: int) -> None:
    sink = _sink(root / "away", port, spool=FINDINGS // 2)
    took = []
    for number in range(1, FINDINGS + 1):
        begun = time.perf_counter()
        sink.publish(*_told(number))
        took.append(time.perf_counter() - begun)
        if number % 100 == 0:
            time.sleep(0.05)
        if number in {100, FINDINGS // 2, FINDINGS}:
            time.sleep(1)
            memory = resident_mib(os.getpid())
            print(f"broker away, {number} findings: {memory:.1f} MiB resident")
    fares = sink.delivery
    assert fares is not None
    print(f"{fares.waiting} wait, {fares.dropped} dropped and counted")
    took.sort()
    middle, worst = took[len(took) // 2] * 1e6, took[-len(took) // 1000] * 1e6
    print(f"publish(): median {middle:.0f} us, 999 of 1000 within {worst:.0f} us")
    begun = time.monotonic()
    sink.close()
    print(f"closed in {time.monotonic() - begun:.2f} s")


def _rate(root: Path) -> None:
    port = free_port()
    sink = _sink(root / "rate", port, spool=FINDINGS)
    for number in range(1, FINDINGS + 1):
        sink.publish(*_told(number))
        if number % 1000 == 0:
            time.sleep(0.2)
    while (fares := sink.delivery) is None or fares.waiting < FINDINGS:
        time.sleep(0.1)
    with broker(root, port):
        while (fares := sink.delivery) is None or not fares.connected:
            time.sleep(0.01)
        begun, cpu = time.monotonic(), time.process_time()
        while (fares := sink.delivery) is None or fares.waiting:
            time.sleep(0.01)
        spent, cpu = time.monotonic() - begun, time.process_time() - cpu
        each = cpu / FINDINGS * 1e6
        print(f"{FINDINGS / spent:.0f} findings a second, {each:.0f} us of CPU each")
        sink.close()


def _sink(folder: Path, port: int, spool: int) -> MqttSink:
    mqtt = {"host": "127.0.0.1", "port": port, "spool_findings": spool}
    mqtt |= {"retry_seconds": 0.1, "retry_cap_seconds": 0.5}
    config = build({"state_folder": str(folder), "mqtt": mqtt}, (), ()).config
    return MqttSink(config, make_logger(Log(format="json"), io.BytesIO()))


def _told(number: int) -> tuple[Snapshot, tuple[Incident, ...]]:
    evidence = tuple(
        Evidence(f"counter_{n}", number, "errors", "infiniband/mlx5_0/ports/1", 5, 60)
        for n in range(4)
    )
    finding = Finding(
        kind="link_errors",
        subject=Subject(device="mlx5_0", port=1, rail=0, netdev="ib0"),
        onset=WALL,
        evidence=evidence,
        summary="mlx5_0/1 bit errors above the bound for this rate since 08:00:00Z",
        severity=Severity.WARNING,
    )
    incident = Incident(
        f"{number:016x}", number, IncidentState.OPEN, WALL, finding, "n1", "docs"
    )
    snapshot = Snapshot(
        node="n1", now=number / 1000, wall=WALL, boot=None, layout=1, ports=(), hcas=(),
        incidents=(), blind=(), health=(), verdict=Verdict.HEALTHY, class_error=None,
        failures=(), maintenance=(), firmware_reads=0, config_hash="", steps=0,
        started=WALL,
    )  # fmt: skip
    return snapshot, (incident,)


@contextmanager
def _agent(root: Path, name: str, mqtt: dict[str, object]) -> Iterator[tuple[int, str]]:
    port, own = free_port(), root / name
    own.mkdir()
    tree = {
        "root": str(root),
        "node": name,
        "state_folder": str(own / "state"),
        "run_folder": str(own),
        "listen": {"metrics": f"127.0.0.1:{port}", "page": None},
        "mqtt": mqtt,
    }
    config = own / "fabricmon.yaml"
    config.write_text(json.dumps(tree), "utf-8")
    with subprocess.Popen(
        [sys.executable, "-m", "fabricmon", "run", "--config", str(config)],
        stderr=subprocess.DEVNULL,
    ) as process:
        try:
            yield process.pid, f"http://127.0.0.1:{port}/metrics"
        finally:
            process.terminate()


if __name__ == "__main__":
    main()
