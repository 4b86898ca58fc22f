"""Reads the configuration: files in order, then the environment; keeps who set what."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import msgspec

from fabricmon.config import Config, Mode
from fabricmon.config_rules import check_rules
from fabricmon.config_rules_mqtt import FILES
from fabricmon.errors import ConfigError
from fabricmon.text_file import read_text
from fabricmon.value import Value
from fabricmon.yaml_text import Document, Tree, around, parse

DEFAULT_FILE = Path("/etc/fabricmon/fabricmon.yaml")
"""Read when no file is named; it may be absent."""

ENVIRONMENT_PREFIX = "FABRICMON_"
"""``FABRICMON_LISTEN__METRICS`` sets ``listen.metrics``; the value is YAML."""

_SERVICE = re.compile(r"FABRICMON_(?:SERVICE_(?:HOST|PORT)|PORT)(?:_|$)")
"""What Kubernetes puts into every container beside a Service named fabricmon."""

MAX_BYTES = 1 << 20
"""Size of one file."""

_REMEDY = "name a file that can be read with --config"

_SUFFIXES = {".yaml", ".yml"}  # of files in conf.d; editors leave others there


class Origin(Value, frozen=True):
    """Who set a key: a file and line, or an environment variable."""

    key: str
    place: str
    line: int | None = None

    def __str__(self) -> str:
        """Write it as compilers do."""
        return self.place if self.line is None else f"{self.place}:{self.line}"


class Loaded(Value, frozen=True):
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
        document = parse(read_text(path, MAX_BYTES, _REMEDY), str(path))
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
        raise _explain(str(error), by_key, tree) from None
    try:
        check_rules(config)
    except ConfigError as error:
        raise _placed(error, by_key) from None
    return Loaded(config, origins, files, fingerprint(config))


def fingerprint(config: Config) -> str:
    """Return twelve hex digits that change when any key's value does."""
    text = msgspec.json.encode(config, order="sorted")
    return hashlib.sha256(text).hexdigest()[:12]


def check_files(loaded: Loaded) -> None:
    """Raise `ConfigError` for a file that the agent needs and cannot use.

    For who starts the agent: others need not be able to read its keys.
    """
    listen = loaded.config.listen
    for name in ("tls_certificate", "tls_key", "client_authority"):
        path = getattr(listen, name)
        if path is not None:
            _check_readable(path, f"listen.{name}", loaded, "name a PEM file")
    mqtt, metrics = loaded.config.mqtt, loaded.config.metrics
    named = {f"mqtt.{name}": getattr(mqtt, name) for name in FILES}
    named["mqtt.redact.key_file"] = mqtt.redact.key_file
    if mqtt.host is None:
        named.clear()
    named["metrics.redact.key_file"] = metrics.redact.key_file
    named["log.redact.key_file"] = loaded.config.log.redact.key_file
    for key, path in named.items():
        if path is not None:
            _check_readable(path, key, loaded, "name a file")


def _check_readable(path: str, key: str, loaded: Loaded, wanted: str) -> None:
    try:
        with Path(path).open("rb") as stream:
            stream.read(1)
    except OSError as error:
        message = f"{path}: {error.strerror or error}"
        remedy = f"{wanted} that the agent can read"
        wrong = ConfigError(message, key=key, remedy=remedy)
        by_key = {origin.key: origin for origin in loaded.origins}
        raise _placed(wrong, by_key) from None


def _files(file: Path | None) -> list[Path]:
    main = file if file is not None else DEFAULT_FILE
    folder = main.parent / "conf.d"
    try:
        files = [main] if file is not None or main.is_file() else []
        if folder.is_dir():
            more = (path for path in folder.iterdir() if path.suffix in _SUFFIXES)
            files += sorted(path for path in more if path.is_file())
    except OSError as error:
        place = error.filename or str(folder)
        remedy = "the agent must be able to enter and list this folder"
        message = error.strerror or str(error)
        raise ConfigError(message, file=place, remedy=remedy) from None
    return files


def _from_environment(environment: Mapping[str, str]) -> list[tuple[str, Document]]:
    documents = []
    for name in sorted(environment):
        if not name.startswith(ENVIRONMENT_PREFIX) or _SERVICE.match(name):
            continue
        path = name.removeprefix(ENVIRONMENT_PREFIX).lower().split("__")
        tree: Any = _value_of(f"${name}", environment[name], ".".join(path))
        for key in reversed(path):
            tree = {key: tree}
        documents.append((f"${name}", Document(tree, {".".join(path): 0})))
    return documents


def _value_of(name: str, text: str, key: str) -> Any:
    try:
        return parse(f"value: {text}\n", name).tree["value"]
    except ConfigError as error:
        raise ConfigError(
            error.message, file=name, key=key, remedy=error.remedy
        ) from None


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


def _explain(message: str, origins: Mapping[str, Origin], tree: Tree) -> ConfigError:
    place = _PATH.search(message)
    key = place["path"] if place else ""
    text = message[: place.start()] if place else message
    remedy = None
    if key.startswith("kinds["):  # the decoder does not say which one
        words = get_args(Mode)
        wrong = (slug for slug, mode in tree["kinds"].items() if mode not in words)
        key = f"kinds.{next(wrong, '')}"
    if unknown := _UNKNOWN.search(text):
        name = unknown["name"]
        remedy = _suggestion(key, name)
        key = f"{key}.{name}" if key else name
        text = "no such key"
    elif text.startswith("Invalid enum value"):
        words = _words_at(key)
        text = f"{text.removeprefix('Invalid enum value ')} is none of its words"
        remedy = "write " + " or ".join(map(str, words))
    else:
        text = text[:1].lower() + text[1:]
        remedy = _as_list(key, text, tree)
    return _placed(ConfigError(text, key=key or None, remedy=remedy), origins)


def _words_at(key: str) -> tuple[str, ...]:
    """Return the words that may stand at a key."""
    section, _, name = key.rpartition(".")
    struct = _struct_at(section)
    if struct is None:
        return get_args(Mode)
    fields = {f.name: f.type for f in msgspec.structs.fields(struct)}
    return _literals(fields.get(name))


def _literals(kind: Any) -> tuple[str, ...]:
    """Return the words of a `Literal`, also of one that may be null."""
    inner = get_args(kind)
    if get_origin(kind) is Literal:
        return inner
    return tuple(word for each in inner for word in _literals(each))


def _as_list(key: str, text: str, tree: Tree) -> str | None:
    """Say how one word is written where a list is wanted."""
    value: Any = tree
    for part in re.findall(r"[^.\[\]]+", key):
        if isinstance(value, list) and part.isdecimal():
            value = value[int(part)]
        else:
            value = value.get(part) if isinstance(value, dict) else None
    is_word = isinstance(value, str) and text.startswith("expected `array`")
    return f"write [{value}]" if is_word else None


def _suggestion(section: str, name: str) -> str:
    import difflib  # noqa: PLC0415 - only where a key is wrong

    known = known_keys(section)
    close = difflib.get_close_matches(name, known, n=1)
    if close:
        return f"did you mean {close[0]}?"
    return "known here: " + ", ".join(known)


def known_keys(section: str) -> list[str]:
    """Return the keys of a section by its dotted path, empty if there is none."""
    struct = _struct_at(section)
    return [f.name for f in msgspec.structs.fields(struct)] if struct else []


def _struct_at(section: str) -> Any:
    struct: Any = Config
    for part in filter(None, re.split(r"\.|\[[^\]]*\]\.?", section)):
        fields = {f.name: f.type for f in msgspec.structs.fields(struct)}
        struct = _struct_of(fields.get(part))
        if struct is None:
            return None
    return struct


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
        key = around(key)
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
