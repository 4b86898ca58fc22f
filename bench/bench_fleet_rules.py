"""What a fleet costs its Prometheus: series, memory, and time of rules.

One process answers for all nodes (`fleet_pages`). A real Prometheus scrapes them every
15 s and evaluates all rules. Half and a quarter of the nodes show how it grows.

Processor time is that of Prometheus less that of one without rules, and samples that
rules touch are counted: both hold on a busy machine too. Durations are what Prometheus
says, the shortest of some evaluations, and still need a machine that is not too busy:
rounds that were missed are told, and what they would have cost is in no figure.
"""

from __future__ import annotations

import argparse
import http.client
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import msgspec
from fleet_pages import PROFILE, SCRAPE_SECONDS, Line, page_of, serve
from markers import now_and_here, replace_between

from fabricmon.fleet.options import FleetOptions
from fabricmon.fleet.programs import LOOPBACK, find_programs
from fabricmon.fleet.render import rule_file
from fabricmon.fleet.rules import groups

READINGS = 4
"""Rounds that are measured: a minute, so that each group is evaluated as often as it
is in an hour, by share."""
ALONE_WARM_SECONDS = 60
DEAREST = 12
_TIMEOUT_SECONDS = 180
_MIB = 2**20
_MISSED = "prometheus_rule_group_iterations_missed_total"
_FAILED = "prometheus_rule_evaluation_failures_total"


def main() -> None:
    """Measure each size, tell what fails, and print tables of what did not."""
    options = _options()
    failed = 0
    rows: list[Size] = []
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        page = page_of(Path(folder), options.profile)
        print(f"{len(page)} series a node; Prometheus {_version()}", flush=True)
        for nodes in options.nodes:
            run = Run(page, nodes, Path(folder))
            try:
                alone = run.measure(ALONE_WARM_SECONDS, rules=False)
                full = run.measure(options.warm, rules=True)
            except (OSError, http.client.HTTPException, RuntimeError) as error:
                failed += 1
                print(f"{nodes} nodes failed: {type(error).__name__}: {error}")
                continue
            rows.append(replace(full, scraping=alone.processor))
            print(_summary(rows[-1:]), flush=True)
    if rows:
        print(_table(rows))
    if rows and options.out is not None:
        head = f"Of {now_and_here()}, load {os.getloadavg()[0]:.1f} after it.\n\n"
        replace_between(options.out, "bench-fleet-rules", head + _summary(rows))
    sys.exit(1 if failed else 0)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, nargs="*", default=[128, 256, 512])
    parser.add_argument(
        "--warm", type=float, default=330, help="seconds; windows are 300 s long"
    )
    parser.add_argument("--profile", default=PROFILE, help="what nodes are simulated")
    parser.add_argument("--out", type=Path, help="document to write to")
    return parser.parse_args()


@dataclass(frozen=True)
class Rule:
    """What a rule costs: seconds of an evaluation, samples that it touches."""

    group: str
    interval: float
    name: str
    seconds: float
    samples: int


@dataclass(frozen=True)
class Size:
    """What one size of a fleet cost; memory in bytes, processor as share of a core."""

    nodes: int
    series: int
    recorded: int
    memory: float
    processor: float
    scraping: float
    rules: tuple[Rule, ...]
    missed: int

    @property
    def busy(self) -> float:
        """Share of their intervals in which groups are evaluated, all together."""
        return sum(rule.seconds / rule.interval for rule in self.rules)

    @property
    def longest(self) -> float:
        """Share of its interval that the longest group takes; they go side by side."""
        groups = {rule.group: rule.interval for rule in self.rules}
        return max((self.of(name) / each for name, each in groups.items()), default=0)

    @property
    def samples(self) -> float:
        """Samples that are touched a second."""
        return sum(rule.samples / rule.interval for rule in self.rules)

    def of(self, group: str) -> float:
        """Return the seconds of an evaluation of a group."""
        return sum(rule.seconds for rule in self.rules if rule.group == group)


@dataclass(frozen=True)
class Run:
    """So many nodes, and a folder for what Prometheus keeps."""

    page: list[Line]
    nodes: int
    folder: Path

    def measure(self, warm: float, *, rules: bool) -> Size:
        """Run a Prometheus against them, and read what it says of itself."""
        port, own = _free_port(), _free_port()
        arguments = (self.page, self.nodes, port)
        server = get_context("spawn").Process(target=serve, args=arguments)
        server.start()
        try:
            with self._prometheus(port, own, rules=rules) as process:
                time.sleep(warm)
                return self._read(process, own)
        finally:
            server.terminate()
            server.join()

    def _read(self, process: subprocess.Popen[bytes], own: int) -> Size:
        if process.poll() is not None:
            raise RuntimeError(f"Prometheus ended with {process.returncode}")
        missed = _sum(_metrics(own), _MISSED)
        before, begun = _cpu_seconds(process), time.monotonic()
        readings = []
        for _ in range(READINGS):
            time.sleep(SCRAPE_SECONDS)
            readings.append(_rules(own))
        spent = _cpu_seconds(process) - before
        share = spent / (time.monotonic() - begun)
        said = _metrics(own)
        if _sum(said, _FAILED):
            raise RuntimeError(f"{_sum(said, _FAILED):.0f} evaluations failed")
        return Size(
            self.nodes,
            round(said["prometheus_tsdb_head_series"]),
            _recorded(own),
            said["process_resident_memory_bytes"],
            share,
            share,
            tuple(_costs(own, readings)),
            round(_sum(said, _MISSED) - missed),
        )

    @contextmanager
    def _prometheus(
        self, port: int, own: int, *, rules: bool
    ) -> Iterator[subprocess.Popen[bytes]]:
        folder = self.folder / f"{self.nodes}-{rules}"
        folder.mkdir()
        site = FleetOptions()
        made = groups(site) if rules else ()
        (folder / "rules.yaml").write_text(rule_file(made, site))
        (folder / "prometheus.yml").write_text(_configuration(self.nodes, port))
        command = [find_programs().prometheus, f"--config.file={folder}/prometheus.yml"]
        command += [f"--storage.tsdb.path={folder}/data", "--log.level=warn"]
        command += [f"--web.listen-address={LOOPBACK}:{own}"]
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            yield process
        finally:
            _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    """End it; one that still evaluates rules on a busy machine takes long."""
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(_TIMEOUT_SECONDS)
    except subprocess.TimeoutExpired:
        print("Prometheus did not end by itself", flush=True)
        process.kill()
        process.wait()


def _configuration(nodes: int, port: int) -> str:
    targets = "".join(
        f"""
      - targets: ["{LOOPBACK}:{port}"]
        labels: {{__metrics_path__: /{n}, node: node{n:04}, instance: node{n:04}}}"""
        for n in range(nodes)
    )
    return f"""
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
"""


def _version() -> str:
    command = [find_programs().prometheus, "--version"]
    text = subprocess.run(command, capture_output=True, text=True, check=True)
    return (text.stdout + text.stderr).split()[2]


def _rules(own: int) -> list[tuple[str, float, str, str, float]]:
    """Return group, interval, name, expression and last seconds of all rules."""
    reply = msgspec.json.decode(_get(own, "/api/v1/rules"))
    return [
        (
            group["name"],
            float(group["interval"]),
            rule["name"],
            rule["query"],
            float(rule["evaluationTime"]),
        )
        for group in reply["data"]["groups"]
        for rule in group["rules"]
    ]


def _costs(
    own: int, readings: list[list[tuple[str, float, str, str, float]]]
) -> Iterator[Rule]:
    for same in zip(*readings, strict=True):
        group, interval, name, expr, _ = same[0]
        seconds = min(each[-1] for each in same)
        yield Rule(group, interval, name, seconds, _samples(own, expr))


def _samples(own: int, expr: str) -> int:
    """Return how many samples an evaluation touches."""
    said = _query(own, expr, stats="all")["stats"]["samples"]
    return int(said["totalQueryableSamples"])


def _recorded(own: int) -> int:
    found = _query(own, 'count({__name__=~".+:.+"})')["result"]
    return int(found[0]["value"][1]) if found else 0


def _query(own: int, expr: str, **more: str) -> Any:
    path = "/api/v1/query?" + urlencode({"query": expr, **more})
    reply = msgspec.json.decode(_get(own, path))
    if reply["status"] != "success":
        raise RuntimeError(f"{expr}: {reply.get('error')}")
    return reply["data"]


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


def _sum(said: dict[str, float], name: str) -> float:
    return sum(value for key, value in said.items() if key.startswith(name))


def _get(port: int, path: str) -> bytes:
    connection = http.client.HTTPConnection(LOOPBACK, port, timeout=_TIMEOUT_SECONDS)
    connection.request("GET", path)
    return connection.getresponse().read()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        port: int = probe.getsockname()[1]
        return port


def _summary(rows: list[Size]) -> str:
    head = (
        "| nodes | series | of them recorded | memory MiB | a core, scraping "
        "| a core, rules | ms a node and round | of their interval | samples a second "
        "| longest group, of its interval | rounds missed |"
    )
    lines = [head, "|---|---|---|---|---|---|---|---|---|---|---|"]
    for row in rows:
        rules = row.processor - row.scraping
        each = rules * SCRAPE_SECONDS / row.nodes * 1000
        lines.append(
            f"| {row.nodes} | {row.series:,} | {row.recorded:,} | "
            f"{row.memory / _MIB:,.0f} | {row.scraping:.1%} | {rules:.1%} | "
            f"{each:.2f} | {row.busy:.1%} | {row.samples:,.0f} | "
            f"{row.longest:.1%} | {row.missed} |"
        )
    return "\n".join(lines)


def _table(rows: list[Size]) -> str:
    last = rows[-1]
    numbers = " | ".join(str(row.nodes) for row in rows)
    lines = [_summary(rows), "", f"| group, s | every s | {numbers} |"]
    lines.append("|---|---|" + "---|" * len(rows))
    for name, interval in dict.fromkeys((r.group, r.interval) for r in last.rules):
        taken = " | ".join(f"{row.of(name):.3f}" for row in rows)
        lines.append(f"| `{name}` | {interval:g} | {taken} |")
    lines += ["", f"| dearest rules, ms a second | samples | {numbers} |"]
    lines.append("|---|---|" + "---|" * len(rows))
    each = list(zip(*(row.rules for row in rows), strict=True))
    each.sort(key=lambda same: -same[-1].seconds / same[-1].interval)
    for same in each[:DEAREST]:
        taken = " | ".join(f"{rule.seconds / rule.interval * 1e3:.2f}" for rule in same)
        lines.append(f"| `{same[-1].name}` | {same[-1].samples:,} | {taken} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
