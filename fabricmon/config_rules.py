"""What types cannot say about the configuration: rules between keys. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from fabricmon.config import Config
from fabricmon.config_rules_mqtt import check_mqtt
from fabricmon.errors import ConfigError
from fabricmon.kinds import BY_SLUG
from fabricmon.parse.core_list import parse_cores
from fabricmon.parse.nccl_rules import RULES
from fabricmon.parse.nccl_table import coarse_literals
from fabricmon.parse.rule_pattern import row_fault

_BUILT_IN_ROWS = frozenset(row.id for row in RULES)


def check_rules(config: Config) -> None:
    """Raise `ConfigError` for the first rule that is broken."""
    _check_kinds(config)
    _check_addresses(config)
    _check_tls(config)
    _check_windows(config)
    _check_paths(config)
    _check_textfile(config)
    _check_cores(config)
    check_mqtt(config)
    _check_patterns(config)
    _check_log_rules(config)


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


def _check_cores(config: Config) -> None:
    cores = config.isolation.cores
    if cores in {"auto", "off"}:
        return
    try:
        listed = parse_cores(cores)
    except ValueError as error:
        problem = str(error)
    else:
        problem = "" if listed else "a list of no cores"
    if problem:
        raise ConfigError(
            problem, key="isolation.cores", remedy="write auto, off or 0-1,64"
        )


def _check_kinds(config: Config) -> None:
    for slug in config.kinds:
        if slug not in BY_SLUG:
            raise ConfigError(
                "no such kind",
                key=f"kinds.{slug}",
                remedy="known: " + ", ".join(sorted(BY_SLUG)),
            )


def _check_addresses(config: Config) -> None:
    for name in ("metrics", "health", "page"):
        address = getattr(config.listen, name)
        if address is not None:
            split_address(address, f"listen.{name}")
    if config.listen.health is not None and config.listen.metrics is None:
        raise ConfigError(
            "probes are answered by who serves the metrics",
            key="listen.health",
            remedy="set listen.metrics",
        )


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


def _check_paths(config: Config) -> None:
    listen = config.listen
    paths = {
        "root": config.root,
        "state_folder": config.state_folder,
        "run_folder": config.run_folder,
        "maintenance_file": config.maintenance_file,
        "kubernetes.kubeconfig": config.kubernetes.kubeconfig,
        "kubernetes.service_account": config.kubernetes.service_account,
        "listen.tls_certificate": listen.tls_certificate,
        "listen.tls_key": listen.tls_key,
        "listen.client_authority": listen.client_authority,
        "textfile.path": config.textfile.path,
    }
    for key, path in paths.items():
        if path is not None and "\0" in path:
            raise ConfigError("no path holds a zero byte", key=key)


def _check_textfile(config: Config) -> None:
    """Refuse a file that node_exporter would not read, or that has no fixed place."""
    path = config.textfile.path
    if path is not None and not (path.startswith("/") and path.endswith(".prom")):
        raise ConfigError(
            f"{path!r} is no file that node_exporter reads",
            key="textfile.path",
            remedy="write an absolute path that ends in .prom, in the folder of "
            "--collector.textfile.directory",
        )


def _check_patterns(config: Config) -> None:
    """Refuse a set of characters that does not end: it would match nothing."""
    for key, pattern in _patterns(config):
        start = pattern.find("[")
        while start >= 0:
            first = start + 2 if pattern[start + 1 : start + 2] == "!" else start + 1
            end = pattern.find("]", first + 1)  # "]" itself may come first
            if end < 0:
                raise ConfigError(
                    f"{pattern!r} is no pattern: its [ is not closed",
                    key=key,
                    remedy="write it as in mlx5_[0-3]",
                )
            start = pattern.find("[", end)


def _patterns(config: Config) -> Iterator[tuple[str, str]]:
    for name in ("include", "exclude"):
        for pattern in getattr(config.devices, name):
            yield f"devices.{name}", pattern
    expected = [(f"expect[{n}]", each) for n, each in enumerate(config.expect)]
    for number, profile in enumerate(config.profiles):
        place = f"profiles[{number}]"
        yield f"{place}.product", profile.product
        inner = enumerate(profile.ports)
        expected += [(f"{place}.ports[{n}]", each) for n, each in inner]
    for place, each in expected:
        for pattern in each.ports:
            yield f"{place}.ports", pattern


def _check_log_rules(config: Config) -> None:
    """Refuse rows that could make the reading of logs slow or are never found."""
    rows = config.logs.rules
    if fault := row_fault(rows, _BUILT_IN_ROWS):
        raise ConfigError(
            fault.message,
            key=f"logs.rules[{fault.number}].{fault.key}",
            remedy=fault.remedy,
        )
    for number, row in enumerate(rows):
        word = row.kind.replace("_", "")
        if not (word.isascii() and word.isalnum() and word == word.lower()):
            raise ConfigError(
                f"row {row.id!r}: {row.kind!r} is no kind",
                key=f"logs.rules[{number}].kind",
                remedy="use lower case letters, digits and underscores",
            )
    if coarse_literals(row.anchor for row in rows) is None:
        raise ConfigError(
            "the anchors of the rows have too little in common: each costs time for"
            " every line of every log",
            key="logs.rules",
            remedy="take anchors that hold one of the texts in docs/log-rules.md, or"
            " share some text",
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
