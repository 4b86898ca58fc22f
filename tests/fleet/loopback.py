"""A fleet on the loopback interface: agents, a Prometheus, an Alertmanager, a webhook.

Agents are real processes, each on the files of a node of its own. Prometheus scrapes
them as `deploy/scrape` shows it, once a second; its rules are what `fabricmon rules`
prints, and so is the configuration of Alertmanager.
"""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.fleet.webhook import Webhook, webhook
from tests.support.agent import AgentProcess, Json, Node
from tests.support.servers import (
    LOOPBACK,
    Server,
    alertmanager,
    prometheus,
    wait_until,
)

ROOT = Path(__file__).parent.parent.parent
CLUSTER = "loopback"
NODES = ("gpu-01", "gpu-02", "gpu-03", "gpu-04")
RAILS = ("mlx5_0", "mlx5_1", "mlx5_4")
"""One rail a device; all ports of a rail are on one leaf."""

FALLEN_SECONDS = 15
"""How long a fall is one event, when all ports are up again."""

LINKS: Mapping[str, str] = {
    "where.runbook_url": "https://git.example/fabricmon/",
    "where.dashboard_url": "https://grafana.example/d/",
}


@dataclass(frozen=True)
class Pace:
    """How fast all parts are, from the agent to the notification.

    ``agent`` is added to the configuration of agents, which are those of
    `tests.support.agent.FAST`; ``rules`` are options of `fabricmon rules`. What is
    None stays as the examples have it.
    """

    agent: Json
    rules: Mapping[str, object]
    scrape_seconds: float
    group_wait_seconds: float | None = None
    group_interval_seconds: float | None = None


QUICK = Pace(
    # Agents wait before they call a port down, but export at once that it fell: what
    # falls together is known before its members are told.
    agent={"link_state": {"down_seconds": 1.5}, "periods": {"jobs_seconds": 0.5}},
    rules={
        "pace.scrape_seconds": 1,
        "pace.evaluation_seconds": 1,
        "pace.slow_seconds": 1,
        "pace.place_seconds": 1,
        "pace.rare_seconds": 1,
        "pace.hold_seconds": 1,
        "agents.evaluation_seconds": 1,
        "agents.seen_seconds": 600,
        "agents.absent_seconds": 2,
        "comparisons.causes.recent_seconds": FALLEN_SECONDS,
        # Agents that share two busy cores poll late.
        "comparisons.causes.together_seconds": 5,
    },
    scrape_seconds=1,
    group_wait_seconds=5,
    group_interval_seconds=1,
)
"""Everything each second; a group waits for five evaluations."""


def printed(options: Mapping[str, object], *words: str) -> str:
    """Return what `fabricmon rules` prints with these options and words."""
    settings = [f"--set={key}={value}" for key, value in options.items()]
    ended = subprocess.run(
        [sys.executable, "-m", "fabricmon", "rules", *settings, *words],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


class Fleet:
    """Agents by the names of their nodes, what reads them, and where alerts arrive."""

    def __init__(self, folder: Path, hook: Webhook, pace: Pace) -> None:
        """Prepare everything; `start` starts it."""
        self.hook = hook
        options = {**LINKS, **pace.rules}
        self.nodes: dict[str, Node] = {}
        self.agents: dict[str, AgentProcess] = {}
        topology = folder / "topology.yaml"
        topology.write_text(json.dumps(_topology()))
        for name in NODES:
            place = folder / name
            place.mkdir()
            self.nodes[name] = Node(place)
            config: Json = {"node": name, "topology": str(topology)}
            self.agents[name] = AgentProcess(place, config | pace.agent)
        routes = _alertmanager(printed(options, "--format=alertmanager"), hook, pace)
        self.alertmanager = alertmanager(folder, routes)
        rules = folder / "rules.yaml"
        rules.write_text(printed(options))
        targets = [f"{name}:{agent.port}" for name, agent in self.agents.items()]
        config = _prometheus(targets, rules, self.alertmanager, pace)
        self.prometheus = prometheus(folder, yaml.safe_dump(config))

    def start(self) -> None:
        """Start all; return when every agent is scraped and alerts have a receiver."""
        for agent in self.agents.values():
            agent.start(ready=False)
        self.alertmanager.start()
        self.prometheus.start()
        ports = 'fabricmon_infiniband_state_id{device=~"mlx5_[014]"} == 4'
        many = len(NODES) * len(RAILS)
        wait_until(lambda: self.count(ports) == many, 60, "all ports are scraped")
        # Prometheus finds it some seconds late, and sends what it missed a minute later.
        wait_until(self._can_tell, 60, "Prometheus knows its Alertmanager")

    def _can_tell(self) -> bool:
        known = _get(self.prometheus, "/api/v1/alertmanagers")["data"]
        return bool(known["activeAlertmanagers"])

    def close(self) -> None:
        """End all."""
        self.prometheus.stop()
        self.alertmanager.stop()
        for agent in self.agents.values():
            agent.close()

    def run_job(self, node: str, job: str) -> None:
        """Let a job run on a node, and return when Prometheus knows of it."""
        folder = self.agents[node].run_folder / "jobs"
        folder.mkdir(exist_ok=True)
        (folder / f"{job}.json").write_text(json.dumps([{"job": job}]))
        seen = f'fabricmon_job_info{{node="{node}",job="{job}"}}'
        wait_until(lambda: self.count(seen) == 1, 60, "the job is scraped")

    def down(self, node: str, device: str) -> None:
        """Let a port go down."""
        self.nodes[node].state(device, "1: DOWN", "2: Polling")

    def up(self, node: str, device: str) -> None:
        """Let it be up again."""
        self.nodes[node].state(device, "4: ACTIVE")

    def count(self, query: str) -> int:
        """Return how many series Prometheus has for a query now."""
        words = urllib.parse.urlencode({"query": query})
        return len(_get(self.prometheus, f"/api/v1/query?{words}")["data"]["result"])

    def alerts(self, **labels: str) -> list[Json]:
        """Return what Alertmanager holds of alerts with these labels."""
        found: list[Json] = _get(self.alertmanager, "/api/v2/alerts")
        return [each for each in found if labels.items() <= each["labels"].items()]


@contextmanager
def fleet(folder: Path, pace: Pace = QUICK) -> Iterator[Fleet]:
    """Start a fleet; end it with the ``with``."""
    with ExitStack() as stack:
        made = Fleet(folder, stack.enter_context(webhook()), pace)
        stack.callback(made.close)
        made.start()
        yield made


def _get(server: Server, path: str) -> Any:
    with urllib.request.urlopen(server.url + path, timeout=10) as reply:
        return json.load(reply)


def _topology() -> Json:
    """Return where nodes and ports stand: one leaf a rail, two nodes a rack."""
    return {
        "nodes": {
            node: {
                "rack": f"r{number // 2}",
                "ports": {
                    f"{device}/1": {"leaf": f"leaf-{rail}", "rail": rail}
                    for rail, device in enumerate(RAILS)
                },
            }
            for number, node in enumerate(NODES)
        }
    }


def _prometheus(
    targets: Sequence[str], rules: Path, alerts: Server, pace: Pace
) -> Json:
    """Return the example for nodes by name, with the addresses of this test."""
    text = (ROOT / "deploy/scrape/static.yaml").read_text()
    config: Json = yaml.safe_load(text)
    (job,) = config["scrape_configs"]
    scrape = f"{pace.scrape_seconds:g}s"
    job |= {"scrape_interval": scrape, "scrape_timeout": scrape}
    job["static_configs"] = [{"targets": targets, "labels": {"cluster": CLUSTER}}]
    # No name server knows these nodes.
    here = {"regex": ".+:(.+)", "replacement": f"{LOOPBACK}:$1"}
    address = {"source_labels": ["__address__"], "target_label": "__address__"}
    job["relabel_configs"].append(address | here)
    return {
        "rule_files": [str(rules)],
        "alerting": {
            "alertmanagers": [
                {"static_configs": [{"targets": [f"{LOOPBACK}:{alerts.port}"]}]}
            ]
        },
        **config,
    }


def _alertmanager(example: str, hook: Webhook, pace: Pace) -> str:
    """Return the example with the test's receivers, and with its waits."""
    document: Any = yaml.safe_load(example)
    waits = {
        "group_wait": pace.group_wait_seconds,
        "group_interval": pace.group_interval_seconds,
    }
    document["route"] |= {key: f"{value:g}s" for key, value in waits.items() if value}
    for receiver in document["receivers"]:
        for config in receiver.get("webhook_configs", ()):
            config["url"] = hook.url(urllib.parse.urlsplit(config["url"]).path)
    return yaml.safe_dump(document)
