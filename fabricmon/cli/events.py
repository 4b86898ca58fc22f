"""``fabricmon events``: what the nodes say to the broker, live and readable.

Asks the broker of the node's configuration, or one that is named. Ctrl-C ends it with
status 0.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiomqtt
import msgspec

from fabricmon.cli.event_fleet import (
    FindingMessage,
    Fleet,
    UnreadableError,
    Wanted,
    shown,
    table,
)
from fabricmon.cli.event_lines import Lines, as_json, say, wants_colour
from fabricmon.config import Config, Mqtt
from fabricmon.config_load import load
from fabricmon.config_rules_mqtt import check_mqtt
from fabricmon.errors import ConfigError, HostError
from fabricmon.kinds import BY_SLUG
from fabricmon.model import Severity
from fabricmon.sinks import mqtt_topics as topics
from fabricmon.sinks.mqtt_client import (
    LEAVE_SECONDS,
    LOST_ERRORS,
    Backoff,
    Message,
    cut,
    make_client,
    messages,
)
from fabricmon.sinks.mqtt_client import (
    run as run_loop,
)
from fabricmon.sinks.mqtt_settings import TLS_PORT, broker_of, read_access

QUIET_SECONDS = 1.0
"""``--once`` is done when the broker said nothing for so long."""

ONCE_SECONDS = 30.0
"""``--once`` is done after so long in any case."""

_FILES = {
    "user-file": "file with the user's name",
    "password-file": "file with the password",
    "tls-authority": "authorities (PEM) that may vouch for the broker; means --tls",
    "tls-certificate": "certificate (PEM) to show; means --tls",
    "tls-key": "key (PEM) of that certificate",
}


@dataclass(slots=True)
class Watch:
    """What is watched and how it is shown."""

    mqtt: Mqtt
    filter: str
    wanted: Wanted
    as_json: bool
    lines: Lines
    fleet: Fleet = field(default_factory=Fleet)
    heard_at: float = 0.0
    was_connected: bool = False


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("--config", type=Path, metavar="FILE", help="file to read")
    parser.add_argument("--broker", metavar="HOST[:PORT]", help="another broker")
    parser.add_argument("--tls", action="store_true", help="speak TLS to it")
    for name, text in _FILES.items():
        parser.add_argument(f"--{name}", metavar="FILE", help=text)
    parser.add_argument("--prefix", metavar="LEVELS", help="levels before fabricmon/v1")
    parser.add_argument("--cluster", metavar="NAME", help="this cluster only")
    parser.add_argument("--node", metavar="NAME", help="this node only")
    parser.add_argument(
        "--kind", action="append", default=[], metavar="KIND",
        help="findings of this kind only; may be given again",
    )  # fmt: skip
    parser.add_argument(
        "--severity",
        choices=[each.word for each in Severity],
        default=Severity.INFO.word,
        help="findings so grave at least",
    )
    parser.add_argument("--format", choices=("text", "jsonl"), default="text")
    parser.add_argument("--color", choices=("auto", "always", "never"), default="auto")
    parser.add_argument(
        "--once", "--since-retained", action="store_true",
        help="print what the broker retains of the fleet as a table, and end",
    )  # fmt: skip


def run(options: argparse.Namespace) -> int:
    """Print until Ctrl-C; raises `ConfigError`, `HostError`."""
    watch = _watch(options)
    with suppress(KeyboardInterrupt):
        run_loop(_once(watch) if options.once else _follow(watch))
    return 0


def _watch(options: argparse.Namespace) -> Watch:
    for kind in options.kind:
        if kind not in BY_SLUG:
            known = ", ".join(sorted(BY_SLUG))
            raise ConfigError("no such kind", key=f"--kind {kind}", remedy=known)
    mqtt = _settings(options)
    least = next(each for each in Severity if each.word == options.severity)
    return Watch(
        mqtt=mqtt,
        filter=topics.filter_of(mqtt.topic_prefix, options.cluster, options.node),
        wanted=Wanted(frozenset(options.kind), least),
        as_json=options.format == "jsonl",
        lines=Lines(colour=wants_colour(options.color, sys.stdout)),
    )


def _settings(options: argparse.Namespace) -> Mqtt:
    """Return the broker and how it is spoken to: as configured, but for the options."""
    own = options.broker is None or options.config is not None
    mqtt = load(options.config, os.environ).config.mqtt if own else Mqtt()
    changes: dict[str, Any] = {
        name.replace("-", "_"): value
        for name in _FILES
        if (value := getattr(options, name.replace("-", "_"))) is not None
    }
    if options.tls or any(name.startswith("tls_") for name in changes):
        changes["tls"] = True
    if options.prefix is not None:
        changes["topic_prefix"] = options.prefix
    if options.broker is not None:
        changes |= _address(options.broker)
    mqtt = msgspec.structs.replace(mqtt, **changes)
    if mqtt.host is None:
        remedy = "name a broker with --broker, or set mqtt.host"
        raise ConfigError("no broker is known", key="mqtt.host", remedy=remedy)
    check_mqtt(Config(mqtt=mqtt))
    return mqtt


def _address(text: str) -> dict[str, Any]:
    """Split ``host``, ``host:port`` or ``[ipv6]:port``."""
    if text.startswith("["):
        host, _, rest = text[1:].partition("]")
        port = rest.removeprefix(":")
    elif text.count(":") == 1:
        host, _, port = text.partition(":")
    else:
        host, port = text, ""
    if port and not (port.isdecimal() and 0 < int(port) < 1 << 16):
        raise ConfigError(f"{text!r} is no broker", key="--broker")
    return {"host": host, "port": int(port) if port else None}


async def _follow(watch: Watch) -> None:
    """Print what comes, over as many connections as it takes."""
    mqtt = watch.mqtt
    pauses = Backoff(mqtt.retry_seconds, mqtt.retry_cap_seconds)
    while True:
        begun = time.monotonic()
        try:
            await _listen(watch)
        except LOST_ERRORS as error:
            if not watch.was_connected:
                raise _unreachable(mqtt, error) from None
            say(f"{broker_of(mqtt)}: {shown(str(error))}; trying again")
        if time.monotonic() - begun >= mqtt.steady_seconds:
            pauses.reset()
        await asyncio.sleep(pauses.next())


async def _once(watch: Watch) -> None:
    """Take what is retained until the broker falls silent, then print it."""
    listening = asyncio.create_task(_listen(watch, show=False), name="listen")
    end = time.monotonic() + ONCE_SECONDS
    while not listening.done() and time.monotonic() < end:
        await asyncio.wait({listening}, timeout=QUIET_SECONDS / 4)
        silent = time.monotonic() - watch.heard_at
        if watch.was_connected and silent >= QUIET_SECONDS:
            break
    if listening.done():
        with suppress(asyncio.CancelledError):
            error = listening.exception()
            if isinstance(error, LOST_ERRORS):
                raise _unreachable(watch.mqtt, error) from None
            if error is not None:
                raise error
    listening.cancel()
    await asyncio.wait({listening}, timeout=LEAVE_SECONDS * 2)
    head, *rows = table(watch.fleet.nodes)
    if not rows:
        say(f"nothing is retained below {watch.filter}, or this user may not read it")
    if watch.as_json:
        for row in rows:
            named = zip(map(str.lower, head), row, strict=True)
            print(json.dumps(dict(named)), flush=True)
    else:
        watch.lines.table([head, *rows])


def _unreachable(mqtt: Mqtt, error: BaseException) -> HostError:
    why = shown(str(error)) or type(error).__name__
    # A broker that waits for a client's greeting of TLS says nothing to others.
    hint = (
        " (does it want TLS? --tls)" if mqtt.port == TLS_PORT and not mqtt.tls else ""
    )
    return HostError(f"{broker_of(mqtt)}: {why}{hint}")


async def _listen(watch: Watch, *, show: bool = True) -> None:
    """Subscribe over one connection and take what comes; raises one of `LOST_ERRORS`."""
    access = await asyncio.to_thread(read_access, watch.mqtt)
    client = make_client(watch.mqtt, access, "")
    try:
        await client.__aenter__()
        await _subscribe(client, watch)
        async for message in messages(client):
            watch.heard_at = time.monotonic()
            _take(watch, message, show=show)
    finally:
        client.timeout = LEAVE_SECONDS
        cut(client)


async def _subscribe(client: aiomqtt.Client, watch: Watch) -> None:
    granted: Any = await client.subscribe(watch.filter, qos=1)
    refused = 0x80  # of the codes of SUBACK, in every version
    if any(int(getattr(code, "value", code)) >= refused for code in granted):
        raise HostError(f"the broker does not let us subscribe to {watch.filter}")
    if not watch.was_connected:
        say(f"connected to {broker_of(watch.mqtt)}, {watch.filter}")
    else:
        say("connected again")
    watch.heard_at = time.monotonic()
    watch.was_connected = True


def _take(watch: Watch, message: Message, *, show: bool) -> None:
    place = topics.parse(message.topic, watch.mqtt.topic_prefix)
    if place is None:
        return
    try:
        told = watch.fleet.take(place, message.payload)
    except UnreadableError as error:
        told = None
        if show and not watch.as_json:
            watch.lines.unreadable(place, str(error))
    if not show:
        return
    is_finding = place.what == topics.FINDING
    if isinstance(told, FindingMessage) and not watch.wanted.admits(told):
        return
    if not is_finding and not watch.wanted.is_everything:
        return
    if watch.as_json:
        print(as_json(place, message, time.time()), flush=True)
    elif told is not None and not (message.retained and _is_usual(told)):
        watch.lines.event(place, told)


def _is_usual(told: msgspec.Struct) -> bool:
    """Tell whether a node that was there before us is just online."""
    return getattr(told, "state", None) == "online"
