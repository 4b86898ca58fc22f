"""Reads the options of the fleet's rules: a YAML file, then single keys."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from fabricmon.errors import ConfigError
from fabricmon.fleet.options import FleetOptions
from fabricmon.text_file import read_text
from fabricmon.yaml_text import Tree, parse

MAX_BYTES = 1 << 20
"""Size of a file."""

_REMEDY = "name a file that can be read with --config"

_PLACE = re.compile(r" - at `\$\.?(?P<path>[^`]{0,200})`$")
_UNKNOWN = re.compile(r"unknown field `(?P<name>[^`]{0,200})`")


def load_options(file: Path | None, settings: Iterable[str] = ()) -> FleetOptions:
    """Read ``file`` and then settings as ``where.node_label=node``, which win.

    Raises `ConfigError` that names the key, and the file and line where it is set.
    """
    tree: Tree = {}
    origins: dict[str, tuple[str, int | None]] = {}
    if file is not None:
        document = parse(read_text(file, MAX_BYTES, _REMEDY), str(file))
        tree = document.tree
        origins = {key: (str(file), line) for key, line in document.lines.items()}
    for setting in settings:
        key, value = _setting(setting)
        _put(tree, key, value)
        origins[key] = ("--set", None)
    try:
        return msgspec.convert(tree, FleetOptions)
    except msgspec.ValidationError as error:
        raise _explained(str(error), tree, origins) from None


def _setting(text: str) -> tuple[str, Any]:
    key, equals, value = text.partition("=")
    if not equals or not key:
        remedy = "write a key, = and a value, as in where.cluster_label=cluster"
        raise ConfigError(f"{text!r} sets nothing", file="--set", remedy=remedy)
    if _is_word(key):  # a word or PromQL, in which YAML would see a mapping
        return key, value
    try:
        return key, parse(f"value: {value}\n", "--set").tree["value"]
    except ConfigError as error:
        raise ConfigError(
            error.message, file="--set", key=key, remedy=error.remedy
        ) from None


def _is_word(key: str) -> bool:
    kind: Any = FleetOptions
    for part in key.split("."):
        if not (isinstance(kind, type) and issubclass(kind, msgspec.Struct)):
            return key.startswith("severities.")
        kind = {f.name: f.type for f in msgspec.structs.fields(kind)}.get(part)
    return _base(kind) is str


def _base(kind: Any) -> Any:
    """Return the type that an annotated one is made of."""
    return getattr(kind, "__origin__", kind)


def _put(tree: Tree, key: str, value: Any) -> None:
    *parents, last = key.split(".")
    for parent in parents:
        below = tree.setdefault(parent, {})
        if not isinstance(below, dict):
            raise ConfigError("has no keys below it", file="--set", key=key)
        tree = below
    tree[last] = value


def _explained(
    message: str, tree: Tree, origins: Mapping[str, tuple[str, int | None]]
) -> ConfigError:
    place = _PLACE.search(message)
    key = place["path"] if place else ""
    text = message[: place.start()] if place else message
    remedy = None
    if key.startswith("severities["):  # the decoder does not say which one
        known = ("critical", "warning", "info", "off")
        wrong = (name for name, word in tree["severities"].items() if word not in known)
        key = f"severities.{next(wrong, '')}"
        text, remedy = "is none of its words", f"write {' or '.join(known)}"
    elif unknown := _UNKNOWN.search(text):
        remedy = _suggestion(key, unknown["name"])
        key = f"{key}.{unknown['name']}" if key else unknown["name"]
        text = "no such key"
    else:
        text = text[:1].lower() + text[1:]
    file, line = _origin(key, origins)
    return ConfigError(text, file=file, line=line, key=key or None, remedy=remedy)


def _origin(
    key: str, origins: Mapping[str, tuple[str, int | None]]
) -> tuple[str | None, int | None]:
    while key and key not in origins:
        key = key.rpartition(".")[0]
    return origins.get(key, (None, None))


def _suggestion(section: str, name: str) -> str:
    fields = {f.name: f.type for f in msgspec.structs.fields(FleetOptions)}
    struct = _base(fields.get(section)) if section else FleetOptions
    known = [field.name for field in msgspec.structs.fields(struct or FleetOptions)]
    close = difflib.get_close_matches(name, known, n=1)
    return f"did you mean {close[0]}?" if close else f"known here: {', '.join(known)}"
