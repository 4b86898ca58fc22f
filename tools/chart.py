"""Write what in the chart is made from something else.

The table of values in the chart's README is made from the comments in ``values.yaml``;
``config`` and ``gate.config`` in ``values.schema.json`` from the types of the
configurations, so that helm refuses a misspelt key before any node sees it; its version
is that of the package. Run
``python tools/chart.py``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import yaml

from fabricmon import __version__
from fabricmon.config_manual import schema
from fabricmon.gate.settings import GateConfig

CHART = Path(__file__).parent.parent / "deploy" / "helm" / "fabricmon"
BEGIN, END = "<!-- values: made by tools/chart.py -->", "<!-- end of values -->"

OWN_KEYS = {
    "Config": ("maintenance_file", "node", "root", "run_folder", "state_folder"),
    "Jobs": ("kubelet_socket", "processes"),
    "Kubernetes": ("enabled", "kubeconfig", "service_account"),
    "Listen": (
        "client_authority",
        "health",
        "metrics",
        "page",
        "tls_certificate",
        "tls_key",
    ),
}
"""Keys of the configuration that other values of the chart decide."""

GATE = "Gate"
"""How names of the gate's sections begin, some of which the agent has too."""

GATE_KEYS = {
    "GateConfig": ("maintenance_file",),
    "GateListen": (
        "address",
        "client_authority",
        "health",
        "tls_certificate",
        "tls_key",
        "token_file",
    ),
    "GateRecords": ("folder",),
}
"""The same of the gate's."""

_PROSE = frozenset({"default", "description", "title"})
_COMMENT = re.compile(r"^(?P<indent> *)# ?(?P<text>.*)$")
_KEY = re.compile(r"^(?P<indent> *)(?P<key>[A-Za-z_]+):")
_STEP = 2  # spaces of indentation in values.yaml


@dataclass(frozen=True, slots=True)
class Value:
    """One value of the chart: its path, default and meaning."""

    path: str
    default: Any
    text: str


def values(text: str) -> Iterator[Value]:
    """Yield each value that has a comment, which begins with ``--``."""
    defaults = yaml.safe_load(text)
    path: list[str] = []
    comment: list[str] = []
    for line in text.splitlines():
        if found := _COMMENT.match(line):
            word = found["text"]
            if word.startswith("-- "):
                comment = [word.removeprefix("-- ")]
            elif comment:
                comment.append(word)
            continue
        if found := _KEY.match(line):
            path = [*path[: len(found["indent"]) // _STEP], found["key"]]
            if comment:
                yield Value(".".join(path), _at(defaults, path), " ".join(comment))
        comment = []


def readme(old: str, text: str) -> str:
    """Return the README with a fresh table of values."""
    head, _, rest = old.partition(BEGIN)
    _, _, tail = rest.partition(END)
    rows = ["| Value | Default | Meaning |", "|---|---|---|"]
    for value in values(text):
        default = json.dumps(value.default)
        cells = (f"`{value.path}`", f"`{default}`", value.text)
        rows.append("| " + " | ".join(c.replace("|", "\\|") for c in cells) + " |")
    return "\n".join((f"{head}{BEGIN}", "", *rows, "", f"{END}{tail}"))


def values_schema(old: str) -> str:
    """Return the schema of values with the types of the configuration."""
    document = json.loads(old)
    definitions = json.loads(_without_prose(schema()))["$defs"] | _gate_definitions()
    for name, keys in (OWN_KEYS | GATE_KEYS).items():
        for key in keys:
            del definitions[name]["properties"][key]
    document["definitions"] = definitions
    values = document["properties"]
    values["config"] = {"$ref": "#/definitions/Config"}
    values["gate"]["properties"]["config"] = {"$ref": "#/definitions/GateConfig"}
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def metadata(old: str) -> str:
    """Return ``Chart.yaml`` with the version of the package."""
    return re.sub(r"(?m)^(version|appVersion): .*$", rf"\1: {__version__}", old)


def made(folder: Path = CHART) -> dict[str, str]:
    """Return every file that is made, whole, by its name in the chart."""
    text = {path.name: path.read_text("utf-8") for path in folder.glob("*.*")}
    return {
        "Chart.yaml": metadata(text["Chart.yaml"]),
        "README.md": readme(text["README.md"], text["values.yaml"]),
        "values.schema.json": values_schema(text["values.schema.json"]),
    }


def _gate_definitions() -> dict[str, Any]:
    """Return the gate's sections under names that the agent's do not have."""
    template = "#/definitions/{name}"
    _, parts = msgspec.json.schema_components([GateConfig], ref_template=template)
    names = {name: f"{GATE}{name.removeprefix(GATE)}" for name in parts}
    text = json.dumps(_bare(parts, names=True))
    for name, own in names.items():
        old, new = (template.format(name=each) for each in (name, own))
        text = text.replace(f'"{old}"', f'"{new}"')
    return {names[name]: part for name, part in json.loads(text).items()}


def _without_prose(document: Any) -> str:
    """Return the schema as draft 7 has it, without what only people read."""
    return json.dumps(_bare(document)).replace("#/$defs/", "#/definitions/")


def _bare(node: Any, *, names: bool = False) -> Any:
    """Leave out prose; in ``properties`` and ``$defs`` keys are names, not words."""
    if isinstance(node, list):
        return [_bare(each) for each in node]
    if not isinstance(node, dict):
        return node
    return {
        key: _bare(each, names=not names and key in {"properties", "$defs"})
        for key, each in node.items()
        if names or key not in _PROSE
    }


def _at(tree: Any, path: list[str]) -> Any:
    for key in path:
        tree = tree[key]
    return tree


def main() -> None:
    """Write all files."""
    for name, text in made().items():
        (CHART / name).write_text(text, "utf-8")


if __name__ == "__main__":
    main()
