"""What types cannot say about ``mqtt``: rules between its keys. Pure."""

from __future__ import annotations

from fabricmon.config import Config, Mqtt
from fabricmon.errors import ConfigError

FILES = ("user_file", "password_file", "tls_authority", "tls_certificate", "tls_key")
"""Keys of ``mqtt`` that name files."""

_TLS_FILES = ("tls_authority", "tls_certificate", "tls_key")


def check_mqtt(config: Config) -> None:
    """Raise `ConfigError` for the first rule of ``mqtt`` that is broken."""
    mqtt = config.mqtt
    _check_place(mqtt)
    _check_tls(mqtt)
    _check_files(config)
    if mqtt.password_file is not None and mqtt.user_file is None:
        raise ConfigError(
            "a password needs a user: MQTT 3.1.1 has none without",
            key="mqtt.password_file",
            remedy="set mqtt.user_file, too",
        )
    if mqtt.retry_cap_seconds < mqtt.retry_seconds:
        raise ConfigError(
            "must not be below retry_seconds", key="mqtt.retry_cap_seconds"
        )


def _check_place(mqtt: Mqtt) -> None:
    host = mqtt.host
    if host is not None and (not host or set(host) & set("/@ \0") or "://" in host):
        raise ConfigError(
            f"{host!r} is no name of a host",
            key="mqtt.host",
            remedy="write the name alone, as in broker.example; port, user and TLS have"
            " keys of their own",
        )
    prefix = mqtt.topic_prefix
    levels = prefix.split("/") if prefix else []
    if set(prefix) & set("+#\0$") or not all(levels):
        raise ConfigError(
            f"{prefix!r} is no beginning of a topic",
            key="mqtt.topic_prefix",
            remedy="write levels with a slash between them, as in site/a, without + # $",
        )
    if mqtt.client_id is not None and (not mqtt.client_id or "\0" in mqtt.client_id):
        raise ConfigError("no client goes by this name", key="mqtt.client_id")


def _check_tls(mqtt: Mqtt) -> None:
    given = [name for name in _TLS_FILES if getattr(mqtt, name) is not None]
    if given and not mqtt.tls:
        raise ConfigError(
            "is of no use without TLS",
            key=f"mqtt.{given[0]}",
            remedy="set mqtt.tls: true",
        )
    if (mqtt.tls_certificate is None) != (mqtt.tls_key is None):
        missing = "tls_key" if mqtt.tls_key is None else "tls_certificate"
        raise ConfigError(
            "certificate and key go together",
            key=f"mqtt.{missing}",
            remedy="set both or none",
        )


def _check_files(config: Config) -> None:
    paths = {f"mqtt.{name}": getattr(config.mqtt, name) for name in FILES}
    paths["mqtt.redact.key_file"] = config.mqtt.redact.key_file
    paths["metrics.redact.key_file"] = config.metrics.redact.key_file
    paths["log.redact.key_file"] = config.log.redact.key_file
    for key, path in paths.items():
        if path is not None and (not path or "\0" in path):
            raise ConfigError("is no path", key=key)
