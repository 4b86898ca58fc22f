"""Every query of every dashboard on a real Prometheus with fleets that broke."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from build import BOARDS
from fabricmon.fleet import engine
from fabricmon.fleet.concluding import Site, conclude
from fabricmon.fleet.playing import (
    NodeTrace,
    Player,
    join_nodes,
    node_traces,
    play_all,
)
from fabricmon.fleet.programs import Programs, prometheus
from fabricmon.fleet.queries import Client, Span
from fabricmon.fleet.site import DEFAULT, site_of
from fabricmon.sim.folder import write_fleet
from fabricmon.sim.load import load_file
from fabricmon.sim.score_files import read_fleet
from fabricmon.sim.staging import Stage
from tests import traces
from tests.parse.test_inspector import RECORD
from tests.support import programs

FLEETS = Path(__file__).parents[1] / "data/fleets"
SEED = 3
STEP = 15
BY_HAND = "hand"
INSPECTOR = "/var/log/nccl/nccl-inspector-4711/node01-pid7.log"
LIVE = (
    "process_cpu_seconds_total",
    "process_resident_memory_bytes",
    "scrape_duration_seconds",
    "scrape_samples_scraped",
)
"""What only a process and the scrape of it have: a replayed node has neither."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """A Prometheus that holds the fleets, and the time they lived."""

    client: Client
    span: Span

    def found(self, expr: str) -> list[Any]:
        """Return what a query gives at any time, as a reader who chose All sees it."""
        expr = expr.replace("$__rate_interval", "1m").replace("$__range", "10m")
        whole = re.sub(r'"\$\w+"', '".*"', expr)
        return list(self.client.query_range(whole, self.span, STEP))


@pytest.fixture
def loaded(tmp_path: Path) -> Iterator[Loaded]:
    """Play all fleets, evaluate the rules, and serve what came of it."""
    tools = Programs(programs.require("prometheus"), programs.require("promtool"))
    site = site_of(DEFAULT)
    fleets = [_play(name, tmp_path, site) for name in ("roce", "infiniband", BY_HAND)]
    data = tmp_path / "data"
    conclude(site, fleets, tools, data)
    begin = round(min(fleet.begin for fleet in fleets))
    span = Span(begin, round(max(fleet.end for fleet in fleets)))
    config, consoles = tmp_path / "prometheus.yml", tmp_path / "consoles"
    config.write_text("global: {}\n", "utf-8")
    consoles.mkdir()
    with (
        prometheus(tools, data, config, STEP - 0.001, consoles) as port,
        Client(port) as client,
    ):
        yield Loaded(client, span)


def _play(name: str, folder: Path, site: Site) -> engine.Fleet:
    home = folder / name
    home.mkdir()
    nodes = (
        (NodeTrace("node01", _by_hand(home)),)
        if name == BY_HAND
        else _simulated(name, home)
    )
    player = Player(home, site.scraping(name))
    return join_nodes(play_all(player, nodes, jobs=2), name, home / "fleet.om")


def _simulated(name: str, home: Path) -> tuple[NodeTrace, ...]:
    write_fleet(Stage(load_file(FLEETS / f"{name}.yaml"), SEED), home, show=False)
    return node_traces(home, read_fleet(home))


def _by_hand(home: Path) -> Path:
    """Write a node with what is not simulated: a clock, failed reads, Inspector."""
    record = json.loads(json.dumps(RECORD))
    record["metadata"]["hostname"] = "node01"
    port = "/sys/class/infiniband/mlx5_0/ports/1"
    files = {
        "state": "4: ACTIVE",
        "phys_state": "5: LinkUp",
        "link_layer": "InfiniBand",
    }
    lines: list[dict[str, Any]] = [
        {
            "t": 0,
            "clock_error": 0.02,
            "set": {f"{port}/{name}": text for name, text in files.items()},
            "err": {f"{port}/rate": "EIO"},
        }
    ]
    for at in range(20, 200, 10):
        stamp = int((traces.START + at) * 1e6)
        record["metadata"]["dump_timestamp_us"] = stamp
        lines.append({"t": at, "append": {INSPECTOR: json.dumps(record) + "\n"}})
    return traces.write(home, [*lines, {"t": 240}])


@pytest.mark.server
@pytest.mark.slow
def test_no_panel_is_empty(loaded: Loaded) -> None:
    """Every query has data where what it shows happened."""
    empty = [
        f"{board.uid}: {panel.title}: {query.legend}"
        for board in BOARDS
        for row in board.rows
        for panel in row.panels
        for query in panel.queries
        if not any(name in query.expr for name in LIVE) and not loaded.found(query.expr)
    ]

    assert empty == []
