"""Wrong values are named before anything reaches a cluster; what is made is fresh."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
import yaml

from tests.support.chart import CHART, Chart, RefusedError, chart
from tools import chart as tool

Json = dict[str, Any]


def _gate(**values: Json) -> Json:
    """Return values of a gate that clients have a token for."""
    return {"gate": {"enabled": True, "token": {"secretName": "t"}, **values}}


@pytest.fixture(scope="module")
def helm() -> Chart:
    """Return the chart."""
    return chart()


class TestWrongValues:
    @pytest.mark.parametrize(
        ("values", "where"),
        [
            ({"netz": {}}, "netz"),
            ({"network": {"hots": True}}, "/network.*hots"),
            ({"network": {"host": "yes"}}, "/network/host"),
            ({"network": {"port": 0}}, "/network/port"),
            ({"image": {"pullPolicy": "Sometimes"}}, "/image/pullPolicy"),
            ({"image": {"digest": "sha256:12"}}, "/image/digest"),
            ({"state": {"type": "disk"}}, "/state/type"),
            ({"logs": {"folders": ["scratch"]}}, "/logs/folders/0"),
            ({"tolerations": [{"operator": "Is"}]}, "/tolerations/0/operator"),
            ({"maxUnavailable": "ten"}, "/maxUnavailable"),
            ({"config": {"klaster": "a"}}, "/config.*klaster"),
            ({"config": {"log": {"level": "loud"}}}, "/config/log/level"),
            ({"config": {"bursts": {"enabled": 1}}}, "/config/bursts/enabled"),
            ({"config": {"root": "/"}}, "/config.*root"),
            ({"config": {"listen": {"metrics": "x"}}}, "/config/listen.*metrics"),
            ({"gate": {"enabled": 1}}, "/gate/enabled"),
            ({"gate": {"journal": {"type": "disk"}}}, "/gate/journal/type"),
            ({"gate": {"journal": {"size": "big"}}}, "/gate/journal/size"),
            ({"gate": {"config": {"acts": True}}}, "/gate/config.*acts"),
            ({"gate": {"config": {"caution": {"budget_ratio": 2}}}}, "budget_ratio"),
            ({"gate": {"config": {"listen": {"address": "x"}}}}, "listen.*address"),
            ({"gate": {"config": {"journal": {"folder": "/x"}}}}, "journal.*folder"),
        ],
    )
    def test_is_refused_by_its_path(
        self, helm: Chart, values: Json, where: str
    ) -> None:
        """Before anything reaches the cluster."""
        with pytest.raises(RefusedError, match=f"(?s){where}"):
            helm.objects(values)

    @pytest.mark.parametrize(
        ("values", "remedy"),
        [
            ({"network": {"host": True}}, "tls.secretName"),
            ({"tls": {"clientAuthority": True}}, "tls.secretName"),
            ({"maintenance": {"source": "configMap"}}, "maintenance.configMap"),
            ({"maintenance": {"source": "host"}}, "run.type"),
            (
                {"podMonitor": {"enabled": True, "tlsConfig": {"serverName": "a"}}},
                "tls.secretName",
            ),
            ({"gate": {"enabled": True}}, "gate.token.secretName"),
            (_gate(tls={"clientAuthority": True}), "gate.tls.secretName"),
            (_gate(tls={"scraper": {"serverName": "a"}}), "gate.tls.secretName"),
            (_gate(config={"act": True}), "gate.script.configMap"),
            (
                _gate(
                    config={"act": True, "script": {"path": "/x"}},
                    journal={"type": "pod"},
                ),
                "gate.journal.type=claim",
            ),
            (
                _gate(config={"script": {"path": "/x"}}, script={"configMap": "a"}),
                "set one",
            ),
        ],
    )
    def test_contradiction_says_what_to_set(
        self, helm: Chart, values: Json, remedy: str
    ) -> None:
        """What the schema cannot say the templates do."""
        with pytest.raises(RefusedError, match=re.escape(remedy)):
            helm.objects(values)

    def test_schema_is_closed(self) -> None:
        """Wherever values are listed, no other is taken."""
        document = json.loads((CHART / "values.schema.json").read_text())
        assert document["$schema"] == "http://json-schema.org/draft-07/schema#"
        assert _open_objects(document, "") == []

    def test_schema_knows_every_value(self) -> None:
        """And no other."""
        document = json.loads((CHART / "values.schema.json").read_text())
        values = yaml.safe_load((CHART / "values.yaml").read_text())
        known = set(document["properties"]) - {"global"}
        assert known == set(values)
        for key in known - {"config"}:
            listed = document["properties"][key].get("properties")
            if listed is not None and isinstance(values[key], dict) and values[key]:
                assert set(listed) == set(values[key]), key


class TestMade:
    @pytest.mark.parametrize("name", ["Chart.yaml", "README.md", "values.schema.json"])
    def test_is_fresh(self, name: str) -> None:
        """Whoever changes a value or a key of the configuration runs the tool."""
        committed = (CHART / name).read_text("utf-8")
        assert committed == tool.made()[name], "run: python tools/chart.py"

    def test_every_value_is_documented(self) -> None:
        """One row each; an object without rows of its own is a value itself."""
        text = (CHART / "values.yaml").read_text()
        told = {value.path for value in tool.values(text)}
        assert set(_leaves(yaml.safe_load(text), told)) == told

    def test_stale_table_is_noticed(self) -> None:
        """A new value changes the README."""
        text = (CHART / "values.yaml").read_text()
        old = (CHART / "README.md").read_text()
        more = f"{text}\n# -- Something | new.\nnewValue: 7\n"
        assert "| `newValue` | `7` | Something \\| new. |" in tool.readme(old, more)


def _open_objects(node: Any, path: str) -> list[str]:
    """Return the paths of objects that list properties and take others too."""
    found: list[str] = []
    if isinstance(node, dict):
        is_open = node.get("additionalProperties") is not False
        if "properties" in node and is_open and not path.endswith("properties"):
            found.append(path)
        for key, each in node.items():
            found += _open_objects(each, f"{path}/{key}")
    elif isinstance(node, list):
        for number, each in enumerate(node):
            found += _open_objects(each, f"{path}/{number}")
    return found


def _leaves(tree: Json, told: set[str], path: str = "") -> list[str]:
    found = []
    for key, value in tree.items():
        here = f"{path}.{key}" if path else key
        if isinstance(value, dict) and value and here not in told:
            found += _leaves(value, told, here)
        else:
            found.append(here)
    return found
