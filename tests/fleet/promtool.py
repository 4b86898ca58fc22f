"""Rules tested by promtool: series in, the exact alerts out."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml

from fabricmon.fleet.options import FleetOptions
from fabricmon.fleet.render import rule_file
from fabricmon.fleet.rule import Alert, Group
from fabricmon.fleet.rules import groups
from tests.support.programs import require

STEP = 15
"""Seconds between samples and evaluations."""

Labels = Mapping[str, str]

_RECORDED = re.compile(r"\b[a-zA-Z_]\w*(?::\w+)+")


@dataclass(frozen=True)
class Told:
    """An alert as people get it; the link to the runbook is known by its kind."""

    labels: Labels
    summary: str
    description: str
    dashboard: str = "/d/fabricmon-fleet?var-cluster=c1"


@dataclass(frozen=True)
class Case:
    """When one alert is silent, and what it then says.

    ``series`` are those of promtool's notation, a value every ``step`` seconds.
    """

    alert: str
    series: Mapping[str, str]
    silent_at: str
    fires_at: str
    told: Sequence[Told]
    what: str = ""
    step: int = STEP
    options: FleetOptions = field(default_factory=FleetOptions)

    def __str__(self) -> str:
        """Name it as tests do."""
        return f"{self.alert} {self.what}".strip()


def series(metric: str, **labels: object) -> str:
    """Write a series; labels of a site's scraper are there already."""
    site = {"cluster": "c1", "node": "n1"} | labels
    inner = ",".join(f'{name}="{value}"' for name, value in site.items() if value != "")
    return f"{metric}{{{inner}}}"


def check(case: Case, folder: Path) -> str:
    """Run promtool on a case; return what it finds wrong, empty if nothing."""
    every = groups(case.options)
    alert = next(a for group in every for a in group.alerts if a.name == case.alert)
    made = needed(every, alert)
    (folder / "rules.yaml").write_text(rule_file(made, case.options))
    test = {
        "interval": f"{case.step}s",
        "input_series": [
            {"series": name, "values": values} for name, values in case.series.items()
        ],
        "alert_rule_test": [
            _at(case.silent_at, case.alert, []),
            _at(
                case.fires_at,
                case.alert,
                [_expected(told, alert.runbook) for told in case.told],
            ),
        ],
    }
    return _run([test], [group.name for group in made], case.step, folder)


def needed(made: Sequence[Group], alert: Alert) -> tuple[Group, ...]:
    """Return an alert and the recordings that it reads, also through others."""
    recordings = {each.record: each for group in made for each in group.recordings}
    wanted: set[str] = set()
    todo = [alert.expr, alert.summary, alert.description]
    while todo:
        read = set(_RECORDED.findall(todo.pop())) & recordings.keys() - wanted
        wanted |= read
        todo += [recordings[name].expr for name in read]
    kept = (
        replace(
            group,
            rules=tuple(
                rule
                for rule in group.rules
                if rule is alert or getattr(rule, "record", None) in wanted
            ),
        )
        for group in made
    )
    return tuple(group for group in kept if group.rules)


def _run(tests: list[Any], order: list[str], step: int, folder: Path) -> str:
    document = {
        "rule_files": ["rules.yaml"],
        "evaluation_interval": f"{step}s",
        "group_eval_order": order,
        "tests": tests,
    }
    file = folder / "tests.yaml"
    file.write_text(yaml.safe_dump(document, width=10**6))
    command = [require("promtool"), "test", "rules", str(file)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    return "" if ended.returncode == 0 else ended.stdout + ended.stderr


def _at(time: str, alert: str, expected: list[Any]) -> dict[str, Any]:
    return {"eval_time": time, "alertname": alert, "exp_alerts": expected}


def _expected(told: Told, runbook: str) -> dict[str, Any]:
    return {
        "exp_labels": dict(told.labels),
        "exp_annotations": {
            "summary": told.summary,
            "description": told.description,
            "runbook_url": runbook,
            "dashboard_url": told.dashboard,
        },
    }


@dataclass(frozen=True)
class Query:
    """What an expression gives at a time: samples by their labels."""

    expr: str
    at: str
    samples: Mapping[str, float]


def ask(
    queries: Sequence[Query],
    shown: Mapping[str, str],
    folder: Path,
    options: FleetOptions | None = None,
) -> str:
    """Evaluate queries beside the rules; return what promtool finds wrong."""
    site = options or FleetOptions()
    made = groups(site)
    (folder / "rules.yaml").write_text(rule_file(made, site))
    test = {
        "interval": f"{STEP}s",
        "input_series": [
            {"series": name, "values": values} for name, values in shown.items()
        ],
        "promql_expr_test": [
            {
                "expr": query.expr,
                "eval_time": query.at,
                "exp_samples": [
                    {"labels": labels, "value": value}
                    for labels, value in query.samples.items()
                ],
            }
            for query in queries
        ],
    }
    return _run([test], [group.name for group in made], STEP, folder)
