"""``fabricmon maintenance --leaf|--rack|--nodes``: many nodes are being worked on.

Alertmanager silences what is told of them, and a retained message of MQTT says so to
whoever acts on findings. Agents are not asked: their findings go on, for the record.
"""

from __future__ import annotations

import argparse
import getpass
import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import msgspec
from msgspec import Struct

from fabricmon.config import Config
from fabricmon.errors import HostError
from fabricmon.fleet.options_load import load_options
from fabricmon.fleet.silences import (
    PREFIX,
    Access,
    Alertmanager,
    Scope,
    Silence,
    Standing,
    matchers_of,
    rfc3339,
)
from fabricmon.sinks.mqtt_client import publish_retained
from fabricmon.sinks.mqtt_topics import NO_CLUSTER, STEM, level

URL_VARIABLE = "ALERTMANAGER_URL"
WORD = "maintenance"
"""Level of the topic after the cluster's."""


class Notice(Struct, frozen=True):
    """The retained message; the topic is cleared when the silence is ended."""

    schema: str
    id: str
    since: str
    until: str
    leafs: tuple[str, ...]
    racks: tuple[str, ...]
    nodes: tuple[str, ...]
    reason: str
    by: str


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the fleet."""
    group = parser.add_argument_group(
        "many nodes at once", "silence them in Alertmanager; needs no agent here"
    )
    for name, what in (("leaf", "LEAF"), ("rack", "RACK"), ("nodes", "NODE")):
        text = f"all that is told of these {name if name == 'nodes' else name + 's'}"
        group.add_argument(f"--{name}", nargs="+", default=[], metavar=what, help=text)
    group.add_argument(
        "--list", action="store_true", help="print silences that are not over"
    )
    group.add_argument("--end", metavar="ID", help="end one of them now")
    group.add_argument(
        "--cluster", metavar="NAME", help="of this cluster only; the configured one"
    )
    group.add_argument(
        "--alertmanager",
        metavar="URL",
        default=os.environ.get(URL_VARIABLE),
        help=f"where it is, else ${URL_VARIABLE}",
    )
    group.add_argument(
        "--authorization-file",
        type=Path,
        metavar="FILE",
        help="one line: Bearer TOKEN, or Basic USER:PASSWORD",
    )
    for name, text in (
        ("authority", "authorities that vouch for it, PEM"),
        ("certificate", "certificate to show to it, PEM"),
        ("key", "key of that certificate, PEM"),
        ("rules-config", "options of `fabricmon rules`, for other labels"),
    ):
        group.add_argument(f"--{name}", type=Path, metavar="FILE", help=text)


def is_asked(options: argparse.Namespace) -> bool:
    """Tell whether the fleet is meant, not this node."""
    named = options.leaf or options.rack or options.nodes
    return bool(named or options.list or options.end)


def run(
    options: argparse.Namespace, config: Config, end: Callable[[datetime], datetime]
) -> int:
    """Make, list or end silences; raises `ValueError` for words that do not fit.

    ``end`` returns until when, by the time now. Raises `HostError`.
    """
    _check(options)
    server = Alertmanager(
        Access(
            options.alertmanager,
            options.authorization_file,
            options.authority,
            options.certificate,
            options.key,
        )
    )
    if options.end:
        server.end(options.end)
        print(f"ended {options.end}")
        return _tell(config, _topic(config, options, options.end), b"")
    if not options.list:
        now = datetime.now(UTC)
        return _silence(server, options, config, now, end(now))
    standing = server.list()
    for each in standing:
        print(_told(each))
    if not standing:
        print("no maintenance")
    return 0


def _check(options: argparse.Namespace) -> None:
    named = bool(options.leaf or options.rack or options.nodes)
    if named + bool(options.list) + bool(options.end) > 1:
        raise ValueError("--list and --end go alone")
    if options.what is not None or options.ports:
        raise ValueError("set, clear, show and --ports are about this node alone")
    if not options.alertmanager:
        raise ValueError(
            f"say where Alertmanager is: --alertmanager or ${URL_VARIABLE}"
        )
    if not named and (options.until or options.span):
        raise ValueError("--until and --for go with --leaf, --rack or --nodes")


def _silence(
    server: Alertmanager,
    options: argparse.Namespace,
    config: Config,
    now: datetime,
    until: datetime,
) -> int:
    where = load_options(options.rules_config).where
    cluster = config.cluster if options.cluster is None else options.cluster
    scope = Scope(
        cluster, tuple(options.leaf), tuple(options.rack), tuple(options.nodes)
    )
    silence = Silence(
        matchers=matchers_of(scope, where),
        starts_at=rfc3339(now),
        ends_at=rfc3339(until),
        created_by=_user(),
        comment=f"{PREFIX}: {options.reason}".rstrip(": "),
    )
    identity = server.add(silence)
    print(f"{identity}  until {silence.ends_at}")
    notice = Notice(
        schema="fabricmon.maintenance/1",
        id=identity,
        since=silence.starts_at,
        until=silence.ends_at,
        leafs=scope.leafs,
        racks=scope.racks,
        nodes=scope.nodes,
        reason=options.reason,
        by=silence.created_by,
    )
    topic = _topic(config, options, identity)
    return _tell(config, topic, msgspec.json.encode(notice))


def _tell(config: Config, topic: str, payload: bytes) -> int:
    """Publish, where a broker is configured; a silence stands also without it."""
    if config.mqtt.host is None:
        return 0
    try:
        publish_retained(config, topic, payload)
    except HostError as error:
        note = "Alertmanager knows, who listens to MQTT does not"
        raise HostError(f"{error}; {note}") from None
    return 0


def _topic(config: Config, options: argparse.Namespace, identity: str) -> str:
    cluster = config.cluster if options.cluster is None else options.cluster
    levels = [*filter(None, (config.mqtt.topic_prefix.strip("/"), STEM))]
    return "/".join((*levels, level(cluster or NO_CLUSTER), WORD, level(identity)))


def _told(standing: Standing) -> str:
    scope = " ".join(
        f"{each.name}={each.value}"
        for each in standing.matchers
        if each.name != "origin"
    )
    text = f"{standing.id}  until {standing.ends_at}: {scope}  {standing.comment}"
    return f"{text}  ({standing.created_by}, {standing.status.state})"


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container without the user's name
        return f"uid {os.getuid()}"
