"""The examples of how agents are scraped: Prometheus takes them, rules get their labels.

`tests.fleet.test_end_to_end` runs one of them.
"""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from fabricmon.fleet.names import EXPORTED
from tests.support.chart import chart
from tests.support.programs import require

FOLDER = Path(__file__).parent.parent.parent / "deploy" / "scrape"
FILES = sorted(FOLDER.iterdir())
KUBERNETES = "kubernetes_sd_configs"

Json = dict[str, Any]


def job_of(file: Path) -> Json:
    """Return the only scrape job of an example."""
    (job,) = yaml.safe_load(file.read_text(encoding="utf-8"))["scrape_configs"]
    found: Json = job
    return found


def promtool(config: Path) -> subprocess.CompletedProcess[str]:
    """Check a configuration of Prometheus."""
    command = [require("promtool"), "check", "config", str(config)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_prometheus_takes_it(file: Path, tmp_path: Path) -> None:
    """As it is; without discovery where Prometheus was built without Kubernetes."""
    done = promtool(file)
    if f"field {KUBERNETES} not found" in done.stdout + done.stderr:
        job = job_of(file)
        del job[KUBERNETES]
        rest = tmp_path / file.name
        rest.write_text(json.dumps({"scrape_configs": [job]}))
        done = promtool(rest)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_it_gives_the_labels_that_rules_need(file: Path) -> None:
    """The training job stays in ``job``, and the scraper names the node."""
    job = job_of(file)
    assert job["honor_labels"] is True
    assert job["job_name"] == "fabricmon"
    named = {row.get("target_label") for row in job["relabel_configs"]}
    assert "node" in named


def test_all_have_the_same_limits() -> None:
    """Whoever changes one changes all."""
    kept = re.compile(r"scrape_|honor_|.*_limit$")
    jobs = [{k: v for k, v in job_of(f).items() if kept.match(k)} for f in FILES]
    assert jobs[1:] == jobs[:-1]


def test_an_agent_takes_no_label_of_the_scraper() -> None:
    """Honoured labels would win: nodes and clusters would go by two names."""
    reserved = {"node", "cluster", "instance"}
    assert {m for m, labels in EXPORTED.items() if labels & reserved} == set()


def test_an_agent_is_far_below_the_limits() -> None:
    """Beyond one of them nothing of the node would be seen at all."""
    job = job_of(FILES[0])
    most = max(len(labels) for labels in EXPORTED.values())
    assert 2 * most < job["label_limit"]
    longest = max(map(len, (label for row in EXPORTED.values() for label in row)))
    assert 2 * longest < job["label_name_length_limit"]
    assert job["sample_limit"] > 16 * 80 + 60  # a node of 16 ports


def test_pods_of_the_chart_are_found() -> None:
    """By the label of its pods and the name of the port for metrics."""
    job = job_of(FOLDER / "kubernetes.yaml")
    pod = chart().one("DaemonSet")["spec"]["template"]
    (discovery,) = job[KUBERNETES]
    (selector,) = discovery["selectors"]
    label, _, value = selector["label"].partition("=")
    assert pod["metadata"]["labels"][label] == value

    kept = [row for row in job["relabel_configs"] if row.get("action") == "keep"]
    (by_port,) = kept
    assert by_port["source_labels"] == ["__meta_kubernetes_pod_container_port_name"]
    ports = {p["name"] for c in pod["spec"]["containers"] for p in c["ports"]}
    assert [name for name in ports if re.fullmatch(by_port["regex"], name)] == [
        "metrics"
    ]
