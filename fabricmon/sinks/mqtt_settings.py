"""What a connection to the broker needs: names, secrets and certificates, read anew."""

from __future__ import annotations

import os
import ssl
import stat
from dataclasses import dataclass, field
from pathlib import Path

from fabricmon.config import Config, Mqtt
from fabricmon.errors import ConfigError
from fabricmon.sinks import mqtt_topics as topics

PLAIN_PORT, TLS_PORT = 1883, 8883
"""Ports that IANA gave to MQTT."""

MOST_SECRET_BYTES = 4096
"""Longest user name or password: one in a file is a line."""


@dataclass(frozen=True, slots=True)
class Access:
    """What was read for one connection; its secrets show in no log or traceback.

    ``open_files`` are those with secrets that every user of the node can read.
    """

    user: str | None
    password: str | None = field(repr=False)
    tls: ssl.SSLContext | None = field(repr=False)
    open_files: tuple[str, ...] = ()


def port_of(mqtt: Mqtt) -> int:
    """Return the port of the broker."""
    if mqtt.port is not None:
        return mqtt.port
    return TLS_PORT if mqtt.tls else PLAIN_PORT


def broker_of(mqtt: Mqtt) -> str:
    """Return the name under which a broker is remembered."""
    return f"{mqtt.host}:{port_of(mqtt)}"


def client_id_of(config: Config, node: str) -> str:
    """Return the name towards the broker."""
    parts = ("fabricmon", config.cluster, node)
    return config.mqtt.client_id or "-".join(topics.level(p) for p in parts if p)


def root_of(config: Config, node: str) -> str:
    """Return what every topic of this node begins with."""
    return topics.root(config.mqtt.topic_prefix, config.cluster, node)


def read_access(mqtt: Mqtt) -> Access:
    """Read secrets and certificates; raises `ConfigError` naming key and file.

    Touches files, so it is for a thread that may wait.
    """
    secret = ("password_file", "tls_key")
    named = ((key, getattr(mqtt, key)) for key in secret)
    return Access(
        user=_secret(mqtt.user_file, "user_file"),
        password=_secret(mqtt.password_file, "password_file"),
        tls=make_tls(mqtt) if mqtt.tls else None,
        open_files=tuple(path for _, path in named if path and _is_open(path)),
    )


def make_tls(mqtt: Mqtt) -> ssl.SSLContext:
    """Return the client's side of TLS; raises `ConfigError`."""
    if mqtt.tls_authority is not None:
        _peek(mqtt.tls_authority, "tls_authority")
    try:
        context = ssl.create_default_context(cafile=mqtt.tls_authority)
    except (OSError, ssl.SSLError) as error:
        raise _wrong("tls_authority", mqtt.tls_authority, error) from None
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if mqtt.tls_certificate is None or mqtt.tls_key is None:
        return context
    for key in ("tls_certificate", "tls_key"):
        _peek(getattr(mqtt, key), key)
    try:
        # A key with a passphrase would make OpenSSL ask on the terminal.
        context.load_cert_chain(mqtt.tls_certificate, mqtt.tls_key, password="")
    except (OSError, ssl.SSLError, ValueError) as error:
        raise _wrong("tls_certificate", mqtt.tls_certificate, error) from None
    return context


def _secret(path: str | None, key: str) -> str | None:
    """Return the first line of a file, which may not be empty."""
    if path is None:
        return None
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as file:
            raw = file.read(MOST_SECRET_BYTES + 1)
        text = raw.decode("utf-8")
    except OSError as error:
        raise _wrong(key, path, error) from None
    except UnicodeDecodeError:
        raise _wrong(key, path, "not UTF-8 text") from None
    line = text.removesuffix("\n").removesuffix("\r")
    if not line or "\n" in line or len(raw) > MOST_SECRET_BYTES:
        raise _wrong(key, path, "holds not one line") from None
    return line


def _peek(path: str, key: str) -> None:
    """Name the file that cannot be read, which the ssl module does not."""
    try:
        with Path(path).open("rb") as stream:
            stream.read(1)
    except OSError as error:
        raise _wrong(key, path, error) from None


def _is_open(path: str) -> bool:
    try:
        return bool(Path(path).stat().st_mode & stat.S_IROTH)
    except OSError:
        return False


def _wrong(key: str, path: str | None, why: object) -> ConfigError:
    text = why.strerror or str(why) if isinstance(why, OSError) else str(why)
    remedy = "name a file that the agent can read, as docs/mqtt.md says"
    return ConfigError(f"{path}: {text}", key=f"mqtt.{key}", remedy=remedy)
