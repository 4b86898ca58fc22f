"""What types cannot say about the configuration: rules between keys. Pure."""

from __future__ import annotations

from fabricmon.config import Config
from fabricmon.errors import ConfigError
from fabricmon.kinds import BY_SLUG


def check_rules(config: Config) -> None:
    """Raise `ConfigError` for the first rule that is broken."""
    _check_kinds(config)
    _check_addresses(config)
    _check_tls(config)
    _check_windows(config)


def split_address(address: str, key: str) -> tuple[str, int]:
    """Split ``host:port`` or ``[ipv6]:port``; raises `ConfigError` naming ``key``."""
    host, colon, port = address.rpartition(":")
    bracketed = host.startswith("[") and host.endswith("]")
    bare_v6 = ":" in host and not bracketed
    if not colon or not port.isdecimal() or int(port) > 65535 or bare_v6 or not host:  # noqa: PLR2004 - the highest port
        raise ConfigError(
            f"{address!r} is no address",
            key=key,
            remedy="write host:port or [ipv6]:port, as in 127.0.0.1:9879",
        )
    return host.strip("[]"), int(port)


def _check_kinds(config: Config) -> None:
    for slug in config.kinds:
        if slug not in BY_SLUG:
            raise ConfigError(
                "no such kind",
                key=f"kinds.{slug}",
                remedy="known: " + ", ".join(sorted(BY_SLUG)),
            )


def _check_addresses(config: Config) -> None:
    for name in ("metrics", "page"):
        address = getattr(config.listen, name)
        if address is not None:
            split_address(address, f"listen.{name}")


def _check_tls(config: Config) -> None:
    listen = config.listen
    if (listen.tls_certificate is None) != (listen.tls_key is None):
        raise ConfigError(
            "certificate and key go together",
            key="listen.tls_key"
            if listen.tls_key is None
            else "listen.tls_certificate",
            remedy="set both or none",
        )
    if listen.client_authority is not None and listen.tls_certificate is None:
        raise ConfigError(
            "client certificates need TLS",
            key="listen.client_authority",
            remedy="set listen.tls_certificate and listen.tls_key",
        )


def _check_windows(config: Config) -> None:
    state, errors = config.link_state, config.link_errors
    orders = (
        (
            "link_state.flapping_reuse_penalty",
            state.flapping_reuse_penalty < state.flapping_penalty,
            "must be below flapping_penalty, or an episode never ends",
        ),
        (
            "link_state.outage_warning_seconds",
            state.outage_warning_seconds <= state.outage_critical_seconds,
            "must not be above outage_critical_seconds",
        ),
        (
            "link_errors.warning_bit_error_ratio",
            errors.warning_bit_error_ratio <= errors.critical_bit_error_ratio,
            "must not be above critical_bit_error_ratio",
        ),
    )
    for key, right, message in orders:
        if not right:
            raise ConfigError(message, key=key)
