"""Reads the gate's configuration: one YAML file; and the files that it names."""

from __future__ import annotations

import difflib
import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from fabricmon.errors import ConfigError
from fabricmon.gate.settings import GateConfig
from fabricmon.gate.settings_rules import check_settings, is_loopback
from fabricmon.sinks.mqtt_settings import read_access
from fabricmon.text_file import read_text
from fabricmon.yaml_text import parse, placed

DEFAULT_FILE = Path("/etc/fabricmon/gate.yaml")
"""Read when no file is named."""

MAX_BYTES = 1 << 20
"""Size of the file."""

_REMEDY = "name a file that can be read with --config"

SHORTEST_TOKEN = 16
"""Characters of a token: fewer can be guessed over the network."""

MOST_TOKEN_BYTES = 4096

_PLACE = re.compile(r" - at `\$\.?(?P<path>[^`]{0,200})`$")
_UNKNOWN = re.compile(r"unknown field `(?P<name>[^`]{0,200})`")
_WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH


@dataclass(frozen=True, slots=True)
class LoadedGate:
    """A configuration, and what should be looked at although it is right."""

    config: GateConfig
    file: str
    warnings: tuple[str, ...] = ()


def load_gate(file: Path | None) -> LoadedGate:
    """Read and check a file; raises `ConfigError` that names it, line and key."""
    path = DEFAULT_FILE if file is None else file
    document = parse(read_text(path, MAX_BYTES, _REMEDY), str(path))
    try:
        config = msgspec.convert(document.tree, GateConfig)
        check_settings(config)
    except msgspec.ValidationError as error:
        raise placed(_explained(str(error)), document, str(path)) from None
    except ConfigError as error:
        raise placed(error, document, str(path)) from None
    return LoadedGate(config, str(path), tuple(_doubts(config)))


def check_gate_files(loaded: LoadedGate) -> None:
    """Raise `ConfigError` for a file that the gate needs and cannot use."""
    config = loaded.config
    listen = config.listen
    for name in ("tls_certificate", "tls_key", "client_authority"):
        path = getattr(listen, name)
        if path is not None:
            _peek(path, f"listen.{name}")
    read_token(config)
    if config.mqtt.host is not None:
        read_access(config.mqtt.as_mqtt())
    if config.script.path is not None:
        _check_program(config.script.path)


def read_token(config: GateConfig) -> bytes | None:
    """Return the token that clients must show; raises `ConfigError`."""
    path, key = config.listen.token_file, "listen.token_file"
    if path is None:
        return None
    _peek(path, key)
    with Path(path).open("rb") as stream:
        token = stream.read(MOST_TOKEN_BYTES).strip()
    is_word = re.fullmatch(rb"[!-~]+", token) is not None
    if not is_word or len(token) < SHORTEST_TOKEN:
        raise ConfigError(
            f"{path}: holds no token",
            key=key,
            remedy=f"one line of {SHORTEST_TOKEN} printable characters or more, as of"
            " openssl rand -hex 32",
        )
    return token


def _doubts(config: GateConfig) -> list[str]:
    listen = config.listen
    found = []
    if listen.address is not None and listen.tls_certificate is None:
        host = listen.address.rpartition(":")[0].strip("[]")
        if not is_loopback(host):
            found.append("listen: without TLS the token can be read on its way")
    if config.caution.settle_seconds < config.caution.common_window_seconds / 3:
        found.append("caution.settle_seconds: a common cause may be seen too late")
    secrets = {"listen.token_file": listen.token_file, "listen.tls_key": listen.tls_key}
    secrets |= {"mqtt.password_file": config.mqtt.password_file}
    secrets |= {"mqtt.tls_key": config.mqtt.tls_key}
    return found + [
        f"{key}: every user of this node can read {path}; chmod o-r {path}"
        for key, path in secrets.items()
        if path is not None and _is_open(path)
    ]


def _is_open(path: str) -> bool:
    try:
        return bool(os.stat(path).st_mode & stat.S_IROTH)  # noqa: PTH116 - as below
    except OSError:
        return False


def _check_program(path: str) -> None:
    key = "script.path"
    try:
        found = os.stat(path)  # noqa: PTH116 - the link's target is what runs
    except OSError as error:
        raise ConfigError(
            f"{path}: {error.strerror}", key=key, remedy="name the script"
        ) from None
    if not stat.S_ISREG(found.st_mode) or not os.access(path, os.X_OK):
        raise ConfigError(f"{path}: is no program", key=key, remedy=f"chmod 755 {path}")
    if found.st_mode & _WRITABLE_BY_OTHERS or found.st_uid not in {0, os.geteuid()}:
        raise ConfigError(
            f"{path}: others than root and the gate's user may change it",
            key=key,
            remedy=f"chown root {path}; chmod 755 {path}",
        )


def _peek(path: str, key: str) -> None:
    try:
        with Path(path).open("rb") as stream:
            stream.read(1)
    except OSError as error:
        raise ConfigError(
            f"{path}: {error.strerror or error}",
            key=key,
            remedy="name a file that the gate can read",
        ) from None


def _explained(message: str) -> ConfigError:
    place = _PLACE.search(message)
    key = place["path"] if place else ""
    text = message[: place.start()] if place else message
    unknown = _UNKNOWN.search(text)
    if unknown is None:
        return ConfigError(text[:1].lower() + text[1:], key=key or None)
    name = unknown["name"]
    full = f"{key}.{name}" if key else name
    return ConfigError("no such key", key=full, remedy=_suggestion(key, name))


def _suggestion(section: str, name: str) -> str:
    struct: Any = GateConfig
    if section:
        fields = {f.name: f.type for f in msgspec.structs.fields(GateConfig)}
        struct = fields.get(section)
    known = [field.name for field in msgspec.structs.fields(struct)]
    close = difflib.get_close_matches(name, known, n=1)
    return f"did you mean {close[0]}?" if close else f"known here: {', '.join(known)}"
