"""What a fleet costs its Prometheus: series, memory, and time of rules.

One process answers for all nodes with what a simulated agent exports under a job, its
names changed from node to node and its counters moving. A real Prometheus scrapes them
every 15 s and evaluates all rules. Half and a quarter of the nodes show how it grows.
Processor time is that of Prometheus less that of one without rules, so that it holds on
a busy machine too; durations are what Prometheus says, and need a quiet one.
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing import get_context
from pathlib import Path
from typing import ClassVar

import msgspec

from fabricmon.fleet.options import FleetOptions
from fabricmon.fleet.programs import LOOPBACK, find_programs
from fabricmon.fleet.render import rule_file
from fabricmon.fleet.rules import groups
from fabricmon.fleet.scraping import Scraper, Scraping
from fabricmon.host.trace_read import TraceReader
from fabricmon.replaying_fleet import leaf_places, replay_node
from fabricmon.sim.truth import FleetFile

ROOT = Path(__file__).parent.parent
SCENARIO = """\
name: bench-fleet-rules
summary: A job on healthy nodes
profile: H100-IB-NDR-8x400
nodes: 3
duration: 330
jobs: [{id: train, start: 20, init: 5}]
"""
SCRAPE_SECONDS = 15
NODES_PER_LEAF = 32
NODES_PER_JOB = 64
READINGS = 3
SLOWEST = 8
_SITE_LABELS = re.compile(
    r',?(?:job="fabricmon"|instance="[^"]*"|node="node\d+"|cluster="[^"]*")'
)
_SECONDS = "prometheus_rule_group_last_duration_seconds"
_MIB = 2**20


def main() -> None:
    """Measure each size and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, nargs="*", default=[128, 256, 512])
    parser.add_argument("--warm", type=float, default=120, help="seconds")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        page = _page(Path(folder))
        print(f"{len(page)} series a node; Prometheus {_version()}")
        rows = []
        for nodes in options.nodes:
            alone = _measure(page, nodes, options.warm / 2, Path(folder), rules=False)
            full = _measure(page, nodes, options.warm, Path(folder), rules=True)
            rows.append(replace(full, scraping=alone.processor))
    print(_table(rows))


@dataclass(frozen=True)
class Line:
    """A series: its name and labels, where it stands, how much it grows a second."""

    key: str
    value: float
    slope: float


@dataclass(frozen=True)
class Size:
    """What one size of a fleet cost; durations are medians of a group's last ones."""

    nodes: int
    series: int
    recorded: int
    memory: float
    processor: float
    scraping: float
    durations: dict[str, float]
    slowest: list[tuple[float, str]]


def _version() -> str:
    command = [find_programs().prometheus, "--version"]
    text = subprocess.run(command, capture_output=True, text=True, check=True)
    return (text.stdout + text.stderr).split()[2]


def _page(folder: Path) -> list[Line]:
    """Play a node of a small fleet; return what it exports."""
    fleet, scenario = folder / "fleet", folder / "scenario.yaml"
    scenario.write_text(SCENARIO)
    command = [sys.executable, "-m", "fabricmon", "simulate", os.fspath(scenario)]
    command += ["--out", os.fspath(fleet)]
    subprocess.run(command, check=True, cwd=ROOT, stdout=subprocess.DEVNULL)
    known = msgspec.json.decode((fleet / "fleet.json").read_bytes(), type=FleetFile)
    name = known.nodes[0]
    trace = fleet / f"{name}.trace.jsonl.gz"
    reader = TraceReader(trace)
    scraper = Scraper(name, reader.header.start, Scraping(SCRAPE_SECONDS))
    reader.close()
    replay_node(trace, None, leaf_places(known).get(name, ()), scraper)
    played = scraper.write(folder / name)
    samples: dict[str, list[tuple[float, float]]] = {}
    for line in played.path.read_text().splitlines():
        key, value, at = line.rsplit(" ", 2)
        samples.setdefault(key, []).append((float(at), float(value)))
    last = max(at for seen in samples.values() for at, _ in seen)
    return [
        _line(key, seen)
        for key, seen in samples.items()
        if seen[-1][0] == last and not key.startswith("up{")
    ]


def _line(key: str, seen: list[tuple[float, float]]) -> Line:
    name, _, labels = key.partition("{")
    kept = _SITE_LABELS.sub("", labels.removesuffix("}")).strip(",")
    old, new = seen[len(seen) // 2], seen[-1]
    grows = name.endswith("_total") and new[0] > old[0]
    slope = (new[1] - old[1]) / (new[0] - old[0]) if grows else 0.0
    return Line(f"{name}{{{kept}}}" if kept else name, new[1], slope)


class _Pages:
    """The pages of all nodes; numbers are put in when they are asked for."""

    def __init__(self, lines: list[Line], nodes: int) -> None:
        self._begun = time.monotonic()
        self._moving = [line for line in lines if line.slope]
        fixed = [line for line in lines if not line.slope]
        text = "".join(f"{line.key} {line.value!r}\n" for line in fixed)
        text = text.replace("%", "%%")
        text += "".join(line.key.replace("%", "%%") + " %d\n" for line in self._moving)
        self._texts = [_renamed(text, node) for node in range(nodes)]

    def of(self, node: int) -> bytes:
        """Return what a node says now."""
        age = time.monotonic() - self._begun
        values = (line.value + line.slope * age for line in self._moving)
        return (self._texts[node] % tuple(values)).encode()


def _renamed(text: str, node: int) -> str:
    """Give a page to another node: its leafs, its job, its identity."""
    text = text.replace('"leaf00-', f'"leaf{node // NODES_PER_LEAF:02}-')
    text = text.replace('job="train"', f'job="train{node // NODES_PER_JOB}"')
    text = text.replace('guid="0xa088c2', f'guid="0x{node:06x}')
    return re.sub(r'address="10\.', f'address="{node % 200 + 20}.{node // 200}.', text)


class _Server(ThreadingHTTPServer):
    """Answers many at a time; who hangs up is not told."""

    request_queue_size = 1024
    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        """Say nothing: Prometheus ends with connections open."""


def _serve(lines: list[Line], nodes: int, port: int) -> None:
    pages = _Pages(lines, nodes)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        known: ClassVar[_Pages] = pages

        def do_GET(self) -> None:
            body = self.known.of(int(self.path.rsplit("/", 1)[1]))
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    _Server((LOOPBACK, port), Handler).serve_forever()


def _measure(
    lines: list[Line], nodes: int, warm: float, folder: Path, *, rules: bool
) -> Size:
    """Run a Prometheus against so many nodes, and read what it says of itself."""
    port, own = _free_port(), _free_port()
    server = get_context("spawn").Process(target=_serve, args=(lines, nodes, port))
    server.start()
    try:
        with _prometheus(
            folder / f"{nodes}-{rules}", nodes, port, own, rules=rules
        ) as process:
            time.sleep(warm)
            before, begun = _cpu_seconds(process), time.monotonic()
            pages = []
            for _ in range(READINGS):
                time.sleep(SCRAPE_SECONDS)
                pages.append(_metrics(own))
            spent = _cpu_seconds(process) - before
            share = spent / (time.monotonic() - begun)
            return _size(nodes, pages, share, own)
    finally:
        server.terminate()
        server.join()


def _size(nodes: int, pages: list[dict[str, float]], share: float, own: int) -> Size:
    names = [key for key in pages[-1] if key.startswith(_SECONDS)]
    durations = {
        key.rpartition(";")[2].removesuffix('"}'): statistics.median(
            page[key] for page in pages
        )
        for key in names
    }
    missed = {
        k: v for k, v in pages[-1].items() if "iterations_missed_total" in k and v
    }
    failed = {
        k: v for k, v in pages[-1].items() if "evaluation_failures_total" in k and v
    }
    if missed or failed:
        print("missed", missed, "failed", failed)
    return Size(
        nodes,
        round(pages[-1]["prometheus_tsdb_head_series"]),
        _recorded(own),
        pages[-1]["process_resident_memory_bytes"],
        share,
        share,
        durations,
        _slowest(own),
    )


def _recorded(own: int) -> int:
    path = "/api/v1/query?query=count(%7B__name__%3D~%22.%2B%3A.%2B%22%7D)"
    reply = msgspec.json.decode(_get(own, path))
    found = reply["data"]["result"]
    return int(found[0]["value"][1]) if found else 0


def _slowest(own: int) -> list[tuple[float, str]]:
    """Return the rules that take longest, and how long they took last."""
    reply = msgspec.json.decode(_get(own, "/api/v1/rules"))
    found = [
        (rule["evaluationTime"], rule["name"])
        for group in reply["data"]["groups"]
        for rule in group["rules"]
    ]
    return sorted(found, reverse=True)[:SLOWEST]


@contextmanager
def _prometheus(
    folder: Path, nodes: int, port: int, own: int, *, rules: bool
) -> Iterator[subprocess.Popen[bytes]]:
    folder.mkdir()
    site = FleetOptions()
    made = groups(site) if rules else ()
    (folder / "rules.yaml").write_text(rule_file(made, site))
    targets = "".join(
        f"""
      - targets: ["{LOOPBACK}:{port}"]
        labels: {{__metrics_path__: /{n}, node: node{n:04}, instance: node{n:04}}}"""
        for n in range(nodes)
    )
    (folder / "prometheus.yml").write_text(f"""
global:
  scrape_interval: {SCRAPE_SECONDS}s
  evaluation_interval: {SCRAPE_SECONDS}s
  external_labels: {{cluster: bench}}
rule_files: [rules.yaml]
scrape_configs:
  - job_name: fabricmon
    honor_labels: true
    metric_relabel_configs: [{{target_label: cluster, replacement: bench}}]
    static_configs:{targets}
""")
    command = [find_programs().prometheus, f"--config.file={folder}/prometheus.yml"]
    command += [f"--storage.tsdb.path={folder}/data", "--log.level=warn"]
    command += [f"--web.listen-address={LOOPBACK}:{own}"]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


def _cpu_seconds(process: subprocess.Popen[bytes]) -> float:
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _metrics(port: int) -> dict[str, float]:
    found = {}
    for line in _get(port, "/metrics").decode().splitlines():
        if not line.startswith("#"):
            key, _, value = line.rpartition(" ")
            found[key] = float(value)
    return found


def _get(port: int, path: str) -> bytes:
    connection = HTTPConnection(LOOPBACK, port, timeout=30)
    connection.request("GET", path)
    return connection.getresponse().read()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        port: int = probe.getsockname()[1]
        return port


def _table(rows: list[Size]) -> str:
    head = (
        "| nodes | series | of them recorded | memory MiB | a core, scraping "
        "| a core, rules | ms a node and round | rules of a round, s |"
    )
    lines = [head, "|---|---|---|---|---|---|---|---|"]
    for row in rows:
        rules = row.processor - row.scraping
        each = rules * SCRAPE_SECONDS / row.nodes * 1000
        lines.append(
            f"| {row.nodes} | {row.series:,} | {row.recorded:,} | "
            f"{row.memory / _MIB:,.0f} | {row.scraping:.1%} | {rules:.1%} | "
            f"{each:.2f} | {sum(row.durations.values()):.2f} |"
        )
    names = sorted(rows[-1].durations)
    lines += ["", "| group, s | " + " | ".join(str(row.nodes) for row in rows) + " |"]
    lines.append("|---|" + "---|" * len(rows))
    lines += [
        f"| `{name}` | "
        + " | ".join(f"{row.durations[name]:.3f}" for row in rows)
        + " |"
        for name in names
    ]
    lines += ["", f"| slowest rules of {rows[-1].nodes} nodes | s |", "|---|---|"]
    lines += [f"| `{name}` | {taken:.3f} |" for taken, name in rows[-1].slowest]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
