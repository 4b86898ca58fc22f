"""What types cannot say about the gate's configuration. Pure."""

from __future__ import annotations

import re
from ipaddress import ip_address

from fabricmon.config import Config
from fabricmon.config_rules import split_address
from fabricmon.config_rules_mqtt import check_mqtt
from fabricmon.errors import ConfigError
from fabricmon.gate.settings import SURE_KINDS, GateConfig

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")
_GIVEN = frozenset({"LC_ALL", "LD_PRELOAD", "LD_LIBRARY_PATH", "BASH_ENV"})
"""Variables that would have something else run than the script, or change its words."""


def check_settings(config: GateConfig) -> None:
    """Raise `ConfigError` for the first rule that is broken."""
    if config.listen.address is None and config.mqtt.host is None:
        raise ConfigError(
            "nothing can come in",
            key="listen.address",
            remedy="set listen.address for alerts, or mqtt.host, or both",
        )
    _check_listen(config)
    _check_choice(config)
    _check_script(config)
    _check_paths(config)
    check_mqtt(Config(mqtt=config.mqtt.as_mqtt()))


def is_loopback(host: str) -> bool:
    """Tell whether an address can be reached from this machine only."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _check_listen(config: GateConfig) -> None:
    listen = config.listen
    if (listen.tls_certificate is None) != (listen.tls_key is None):
        missing = "tls_key" if listen.tls_key is None else "tls_certificate"
        raise ConfigError(
            "certificate and key go together",
            key=f"listen.{missing}",
            remedy="set both or none",
        )
    if listen.client_authority is not None and listen.tls_certificate is None:
        raise ConfigError(
            "is of no use without TLS",
            key="listen.client_authority",
            remedy="set listen.tls_certificate and listen.tls_key",
        )
    if listen.health is not None:
        split_address(listen.health, "listen.health")
    if listen.address is None:
        return
    host, _ = split_address(listen.address, "listen.address")
    proven = listen.token_file is not None or listen.client_authority is not None
    if not is_loopback(host) and not proven:
        raise ConfigError(
            "whoever reaches this address could have nodes taken out",
            key="listen.address",
            remedy="set listen.token_file or listen.client_authority, or listen on"
            " 127.0.0.1",
        )


def _check_choice(config: GateConfig) -> None:
    for kind in config.choice.kinds:
        if kind not in SURE_KINDS:
            raise ConfigError(
                f"{kind!r} is no kind that a node's own end proves",
                key="choice.kinds",
                remedy="known here: " + ", ".join(SURE_KINDS),
            )


def _check_script(config: GateConfig) -> None:
    script = config.script
    if script.path is None and config.act:
        raise ConfigError(
            "there is nothing to act with",
            key="script.path",
            remedy="name the script, or set act: false",
        )
    for name, value in script.environment.items():
        if not _VARIABLE.fullmatch(name) or name in _GIVEN or "\0" in value:
            raise ConfigError("cannot be set", key=f"script.environment.{name}")


def _check_paths(config: GateConfig) -> None:
    paths = {
        "script.path": config.script.path,
        "journal.folder": config.journal.folder,
        "maintenance_file": config.maintenance_file,
        "listen.token_file": config.listen.token_file,
        "listen.tls_certificate": config.listen.tls_certificate,
        "listen.tls_key": config.listen.tls_key,
        "listen.client_authority": config.listen.client_authority,
    }
    for key, path in paths.items():
        if path is not None and (not path.startswith("/") or "\0" in path):
            raise ConfigError(
                f"{path!r} is no absolute path", key=key, remedy="begin it with /"
            )
