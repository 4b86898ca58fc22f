"""What every configuration key means: schema, tables and comments from one source."""

from __future__ import annotations

import ast
import inspect
import json
import sys
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import msgspec

from fabricmon.config import Config, Expectation, Profile, Section
from fabricmon.value import Value

SCHEMA_ID = "fabricmon.config/1"


class Key(Value, frozen=True):
    """One key: dotted path, default as YAML would write it, and its documentation."""

    path: str
    default: Any
    text: str


def keys(struct: type[msgspec.Struct] = Config) -> tuple[Key, ...]:
    """Return every key with a default, in the order of the configuration.

    ``struct`` may be any other root of closed and documented sections.
    """
    return tuple(_keys(struct, ""))


def schema() -> dict[str, Any]:
    """Return the JSON schema (2020-12) of the configuration, with descriptions."""
    (reference,), parts = msgspec.json.schema_components(
        [Config], ref_template="#/$defs/{name}"
    )
    for name, part in parts.items():
        for field, text in _texts(name).items():
            if field in part.get("properties", {}):
                part["properties"][field]["description"] = text
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": SCHEMA_ID,
        **reference,
        "$defs": parts,
    }


def _keys(struct: type[msgspec.Struct], prefix: str) -> list[Key]:
    found: list[Key] = []
    texts = _texts_of(struct)
    for field in msgspec.structs.fields(struct):
        path = f"{prefix}{field.name}"
        if isinstance(field.type, type) and issubclass(field.type, msgspec.Struct):
            found += _keys(field.type, f"{path}.")
            continue
        default = field.default
        if field.default_factory is not msgspec.NODEFAULT:
            default = field.default_factory()
        found.append(Key(path, msgspec.to_builtins(default), texts[field.name]))
    return found


@lru_cache(maxsize=1)
def _documented() -> dict[str, dict[str, str]]:
    package = Section.__module__.rpartition(".")[0]
    sections: tuple[type[msgspec.Struct], ...] = (Config, *_below(Section))
    return {
        each.__name__: _texts_of(each)
        for each in sections
        if each.__module__.startswith(package)  # others have roots of their own
    }


def _below(section: type[Section]) -> Iterator[type[Section]]:
    for each in section.__subclasses__():
        yield each
        yield from _below(each)


def _texts_of(struct: type[msgspec.Struct]) -> dict[str, str]:
    """Return what is said of each field, by the section or by one that it is made of."""
    found: dict[str, str] = {}
    for each in reversed(struct.__mro__):
        if issubclass(each, msgspec.Struct) and each is not msgspec.Struct:
            found |= _module_texts(each.__module__)[each.__name__]
    return found


@lru_cache
def _module_texts(module: str) -> dict[str, dict[str, str]]:
    nodes = ast.parse(inspect.getsource(sys.modules[module])).body
    classes = (node for node in nodes if isinstance(node, ast.ClassDef))
    return {node.name: _field_texts(node) for node in classes}


def _field_texts(node: ast.ClassDef) -> dict[str, str]:
    texts: dict[str, str] = {}
    for field, after in zip(node.body, node.body[1:], strict=False):
        if not isinstance(field, ast.AnnAssign) or not isinstance(after, ast.Expr):
            continue
        if isinstance(field.target, ast.Name):
            text = str(ast.literal_eval(after.value))
            texts[field.target.id] = " ".join(text.split())
    return texts


def _texts(struct: str) -> dict[str, str]:
    return _documented().get(struct, {})


def manual() -> str:
    """Return the reference of all keys as Markdown."""
    lines = ["# Configuration", "", *_INTRODUCTION, ""]
    sections: dict[str, list[Key]] = {}
    for key in keys():
        sections.setdefault(key.path.rpartition(".")[0], []).append(key)
    for section, rows in sections.items():
        title = f"`{section}`" if section else "Top level"
        lines += ["", f"## {title}", "", "| key | default | meaning |", "|---|---|---|"]
        for key in rows:
            name = key.path.rpartition(".")[2]
            text = key.text.replace("``", "`").replace("|", "\\|")
            lines.append(f"| `{name}` | `{_shown(key.default)}` | {text} |")
    for struct in (Expectation, Profile):
        lines += ["", f"## One entry of `{_LISTS[struct]}`", ""]
        lines += ["| key | meaning |", "|---|---|"]
        for name, text in _texts(struct.__name__).items():
            lines.append(f"| `{name}` | {text.replace('``', '`')} |")
    return "\n".join(lines) + "\n"


def _shown(default: Any) -> str:
    return json.dumps(default, ensure_ascii=False)


_INTRODUCTION = (
    "Generated from `fabricmon/config/`. Files are YAML, read in this order, key by",
    "key: `/etc/fabricmon/fabricmon.yaml`, then `conf.d/*.yaml` and `*.yml` beside it by name, then",
    "the environment (`FABRICMON_LISTEN__METRICS` sets `listen.metrics`).",
    "`fabricmon config show` says who set what.",
)

_LISTS = {Expectation: "expect`, and of a profile's `ports", Profile: "profiles"}
