"""Reads the configuration: files in order, then the environment; keeps who set what."""

from __future__ import annotations

import difflib
import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from fabricmon.config import Config
from fabricmon.config_rules import check_rules
from fabricmon.errors import ConfigError
from fabricmon.yaml_text import Document, Tree, parse

DEFAULT_FILE = Path("/etc/fabricmon/fabricmon.yaml")
"""Read when no file is named; it may be absent."""

ENVIRONMENT_PREFIX = "FABRICMON_"
"""``FABRICMON_LISTEN__METRICS`` sets ``listen.metrics``; the value is YAML."""

MAX_BYTES = 1 << 20
"""Size of one file."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Who set a key: a file and line, or an environment variable."""

    key: str
    place: str
    line: int | None = None

    def __str__(self) -> str:
        """Write it as compilers do."""
        return self.place if self.line is None else f"{self.place}:{self.line}"


@dataclass(frozen=True, slots=True)
class Loaded:
    """A configuration, who set each key, the files that were read, and its hash."""

    config: Config
    origins: tuple[Origin, ...]
    files: tuple[str, ...]
    hash: str

    def origin(self, key: str) -> Origin | None:
        """Return who set this key; None means it has its default."""
        return next((origin for origin in self.origins if origin.key == key), None)


def load(file: Path | None, environment: Mapping[str, str]) -> Loaded:
    """Read ``file`` (or the default one), its ``conf.d`` and the environment.

    Later files win, key by key; lists are replaced whole. Raises `ConfigError`.
    """
    merged: Tree = {}
    origins: dict[str, Origin] = {}
    files = _files(file)
    for path in files:
        document = parse(_text(path), str(path))
        _merge(merged, document.tree)
        _note(origins, document, str(path))
    for name, document in _from_environment(environment):
        _merge(merged, document.tree)
        _note(origins, document, name)
    return build(merged, tuple(origins.values()), tuple(map(str, files)))


def build(tree: Tree, origins: tuple[Origin, ...], files: tuple[str, ...]) -> Loaded:
    """Make a configuration of a mapping; raises `ConfigError`."""
    by_key = {origin.key: origin for origin in origins}
    try:
        config = msgspec.convert(tree, Config)
    except msgspec.ValidationError as error:
        raise _explain(str(error), by_key) from None
    try:
        check_rules(config)
    except ConfigError as error:
        raise _placed(error, by_key) from None
    return Loaded(config, origins, files, fingerprint(config))


def fingerprint(config: Config) -> str:
    """Return twelve hex digits that change when any key's value does."""
    text = msgspec.json.encode(config, order="sorted")
    return hashlib.sha256(text).hexdigest()[:12]


def _files(file: Path | None) -> list[Path]:
    main = file if file is not None else DEFAULT_FILE
    files = [main] if file is not None or main.is_file() else []
    folder = main.parent / "conf.d"
    if folder.is_dir():
        files += sorted(path for path in folder.glob("*.yaml") if path.is_file())
    return files


def _text(path: Path) -> str:
    try:
        with path.open("rb") as stream:
            data = stream.read(MAX_BYTES + 1)
    except OSError as error:
        remedy = "name a file that can be read with --config"
        message = error.strerror or str(error)
        raise ConfigError(message, file=str(path), remedy=remedy) from None
    if len(data) > MAX_BYTES:
        raise ConfigError(f"larger than {MAX_BYTES} bytes", file=str(path))
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise ConfigError("not UTF-8 text", file=str(path), line=line) from None


def _from_environment(environment: Mapping[str, str]) -> list[tuple[str, Document]]:
    documents = []
    for name in sorted(environment):
        if not name.startswith(ENVIRONMENT_PREFIX):
            continue
        path = name.removeprefix(ENVIRONMENT_PREFIX).lower().split("__")
        value = parse(f"value: {environment[name]}\n", f"${name}").tree["value"]
        tree: Any = value
        for key in reversed(path):
            tree = {key: tree}
        documents.append((f"${name}", Document(tree, {".".join(path): 0})))
    return documents


def _merge(into: Tree, tree: Tree) -> None:
    for key, value in tree.items():
        known = into.get(key)
        if isinstance(known, dict) and isinstance(value, dict):
            _merge(known, value)
        else:
            into[key] = value


def _note(origins: dict[str, Origin], document: Document, place: str) -> None:
    for key, line in document.lines.items():
        origins[key] = Origin(key, place, line or None)


_PATH = re.compile(r" - at `\$\.?(?P<path>[^`]{0,200})`$")
_UNKNOWN = re.compile(r"unknown field `(?P<name>[^`]{0,200})`")


def _explain(message: str, origins: Mapping[str, Origin]) -> ConfigError:
    place = _PATH.search(message)
    key = place["path"] if place else ""
    text = message[: place.start()] if place else message
    remedy = None
    if unknown := _UNKNOWN.search(text):
        name = unknown["name"]
        remedy = _suggestion(key, name)
        key = f"{key}.{name}" if key else name
        text = "no such key"
    else:
        text = text[:1].lower() + text[1:]
    return _placed(ConfigError(text, key=key or None, remedy=remedy), origins)


def _suggestion(section: str, name: str) -> str:
    known = known_keys(section)
    close = difflib.get_close_matches(name, known, n=1)
    if close:
        return f"did you mean {close[0]}?"
    return "known here: " + ", ".join(known)


def known_keys(section: str) -> list[str]:
    """Return the keys of a section by its dotted path, empty if there is none."""
    struct: Any = Config
    for part in filter(None, re.split(r"\.|\[[^\]]*\]\.?", section)):
        fields = {f.name: f.type for f in msgspec.structs.fields(struct)}
        struct = _struct_of(fields.get(part))
        if struct is None:
            return []
    return [f.name for f in msgspec.structs.fields(struct)]


def _struct_of(kind: Any) -> Any:
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return kind
    for inner in getattr(kind, "__args__", ()):
        if (found := _struct_of(inner)) is not None:
            return found
    return None


def _placed(error: ConfigError, origins: Mapping[str, Origin]) -> ConfigError:
    key = error.key or ""
    while key and key not in origins:
        key = re.sub(r"(?:\.|^)[^.\[]*$|\[[^\]]*\]$", "", key) if key else ""
    origin = origins.get(key)
    if origin is None:
        return error
    return ConfigError(
        error.message,
        file=origin.place,
        line=origin.line,
        key=error.key,
        remedy=error.remedy,
    )
