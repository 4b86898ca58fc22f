"""The pages of a fleet: what one simulated agent exports, for as many nodes as wanted.

Names, leafs and jobs change from node to node, and counters move. Every port was down
once, long ago, as in a fleet that has lived: a simulated one begins new.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import msgspec

from fabricmon.fleet.programs import LOOPBACK
from fabricmon.fleet.scraping import Scraper, Scraping
from fabricmon.host.trace_read import TraceReader
from fabricmon.replaying_fleet import leaf_places, replay_node
from fabricmon.sim.truth import FleetFile

ROOT = Path(__file__).parent.parent
PROFILE = "H100-IB-NDR-8x400"
SCRAPE_SECONDS = 15
SCENARIO = """\
name: bench-fleet-rules
summary: A job on healthy nodes
profile: {profile}
nodes: 3
duration: 330
jobs: [{{id: train, start: 20, init: 5}}]
"""
NODES_PER_LEAF = 32
NODES_PER_JOB = 64
_FELL = "fabricmon_port_last_down_timestamp_seconds"
_PORTS = "fabricmon_port_flaps_total{"
_AGO_SECONDS = 30 * 86400
_SITE_LABELS = re.compile(
    r',?(?:job="fabricmon"|instance="[^"]*"|node="node\d+"|cluster="[^"]*")'
)


@dataclass(frozen=True)
class Line:
    """A series: its name and labels, where it stands, how much it grows a second."""

    key: str
    value: float
    slope: float


def page_of(folder: Path, profile: str = PROFILE) -> list[Line]:
    """Play a node of a small fleet; return what it exports."""
    fleet, scenario = folder / "fleet", folder / "scenario.yaml"
    scenario.write_text(SCENARIO.format(profile=profile))
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
    lines = [
        _line(key, seen)
        for key, seen in samples.items()
        if seen[-1][0] == last and not key.startswith("up{")
    ]
    return [*lines, *_fell(lines)]


def _fell(lines: list[Line]) -> list[Line]:
    """Return when each port was last down, where the page does not say."""
    ports = [
        line.key.partition("{")[2] for line in lines if line.key.startswith(_PORTS)
    ]
    known = {line.key for line in lines}
    fell = (f"{_FELL}{{{labels}" for labels in ports)
    at = round(time.time()) - _AGO_SECONDS
    return [Line(key, at, 0.0) for key in fell if key not in known]


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


def serve(lines: list[Line], nodes: int, port: int) -> None:
    """Answer for all nodes, for ever, each at a path that is its number."""
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
