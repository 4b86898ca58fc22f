"""``fabricmon maintenance``: say that a port or the node is being worked on.

Findings about it are held back until the end time. The agent reads the file within
seconds; any other program may write it too. Leafs, racks and many nodes at once are
silenced in Alertmanager: see `maintenance_fleet`.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from fabricmon.cli import CLASS_FOLDER, FAILED, USAGE_ERROR, maintenance_fleet
from fabricmon.config import Config
from fabricmon.config_load import load
from fabricmon.sources.maintenance import plan_file

_MODE = 0o644
_EXAMPLE = "2026-01-31T18:00:00Z"
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_SPAN = re.compile(r"(\d{1,6})([smhd])")
_PORT = re.compile(r"[^/\s]{1,64}/\d{1,3}")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "what", nargs="?", choices=("set", "clear", "show"), help="on this node"
    )
    parser.add_argument(
        "--ports",
        nargs="+",
        default=[],
        metavar="DEVICE/PORT",
        help="set: these, else the whole node; clear: the windows of these, else all",
    )
    parser.add_argument(
        "--for", dest="span", metavar="TIME", help="how long: 90s, 30m, 2h, 1d"
    )
    parser.add_argument("--until", metavar="TIME", help=f"end, as in {_EXAMPLE}")
    parser.add_argument("--reason", default="", metavar="TEXT", help="why")
    parser.add_argument("--config", type=Path, metavar="FILE", help="file to read")
    maintenance_fleet.add_arguments(parser)
    parser.set_defaults(refuse=parser.error)


def run(options: argparse.Namespace) -> int:
    """Change or print the windows, of this node or of the fleet."""
    config = load(options.config, os.environ).config
    try:
        if maintenance_fleet.is_asked(options):
            return maintenance_fleet.run(
                options, config, lambda now: _end(options, now)
            )
        _check_words(options)
        return _run_here(options, config)
    except ValueError as error:
        return _fail(str(error), USAGE_ERROR)


def _run_here(options: argparse.Namespace, config: Config) -> int:
    """Change or print the file; what has ended is dropped on the way."""
    path = Path(plan_file(config))
    now = datetime.now(UTC)
    try:
        windows = list(_still_open(_read(path), now))
        if options.what == "show":
            return _show(windows)
        if options.what == "set":
            windows.append(_window(options, now))
            _warn_of_unknown(options.ports, config.root)
        else:
            windows = _cleared(windows, options.ports)
        _write(path, windows)
    except FileNotFoundError:
        remedy = "there is no such folder: start the agent, which makes it, or do so"
        return _fail(f"{path.parent}: {remedy}", FAILED)
    except OSError as error:
        return _fail(f"{path}: {error.strerror}", FAILED)
    return _show(windows)


def _fail(message: str, status: int) -> int:
    print(f"fabricmon maintenance: {message}", file=sys.stderr)
    return status


def _check_words(options: argparse.Namespace) -> None:
    if options.what is None:
        options.refuse("say set, clear or show, or --leaf, --rack or --nodes")
    given = {"--for": options.span, "--until": options.until}
    if options.what == "set":
        return
    for word in (word for word, value in given.items() if value is not None):
        raise ValueError(f"{word} goes with set, not with {options.what}")


def _warn_of_unknown(ports: Iterable[str], root: str) -> None:
    """Say which ports this node does not have: a device may be away while mended."""
    for port in ports:
        device, _, number = port.partition("/")
        if not Path(root, CLASS_FOLDER, device, "ports", number).exists():
            note = "this node has no such port now; it is noted all the same"
            print(f"fabricmon maintenance: {port}: {note}", file=sys.stderr)


def _cleared(windows: list[dict[str, Any]], ports: list[str]) -> list[dict[str, Any]]:
    """Return the windows that stay, and print those that do not."""
    wanted = set(ports)
    stay = [w for w in windows if wanted and wanted != set(w["ports"])]
    for window in windows:
        if window not in stay:
            print(f"cleared: {_told(window)}")
    return stay


def _window(options: argparse.Namespace, now: datetime) -> dict[str, Any]:
    until = _end(options, now)
    for port in options.ports:
        if not _PORT.fullmatch(port):
            raise ValueError(f"{port!r} is no port: write device/port, as in mlx5_0/1")
    return {
        "until": until.isoformat().replace("+00:00", "Z"),
        "ports": options.ports,
        "reason": options.reason,
    }


def _end(options: argparse.Namespace, now: datetime) -> datetime:
    if (options.span is None) == (options.until is None):
        raise ValueError("say when it ends: either --for or --until")
    if options.span is not None:
        span = _SPAN.fullmatch(options.span)
        if span is None:
            raise ValueError(f"{options.span!r} is no time: write 90s, 30m, 2h or 1d")
        seconds = int(span[1]) * _UNITS[span[2]]
        return (now + timedelta(seconds=seconds)).replace(microsecond=0)
    try:
        until = datetime.fromisoformat(options.until)
    except ValueError:
        message = f"{options.until!r} is no time: write it as in {_EXAMPLE}"
        raise ValueError(message) from None
    if until.tzinfo is None:
        raise ValueError(f"{options.until!r} needs a time zone: end it in Z or +02:00")
    if until <= now:
        raise ValueError(f"{options.until!r} has passed")
    return until.astimezone(UTC)


def _read(path: Path) -> list[dict[str, Any]]:
    try:
        found = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return []
    except (ValueError, RecursionError):
        found = None
    if isinstance(found, list):
        return found
    raise ValueError(f"{path} is no list of windows: mend or remove it")


def _still_open(
    windows: Iterable[dict[str, Any]], now: datetime
) -> Iterable[dict[str, Any]]:
    for window in windows:
        with suppress(KeyError, TypeError, ValueError):
            if datetime.fromisoformat(window["until"]) > now:
                whole = {"ports": [], "reason": ""} | window
                " ".join(whole["ports"])  # else it is no window
                yield whole


def _write(path: Path, windows: list[dict[str, Any]]) -> None:
    """Put the file in place whole: the agent may read it at any moment."""
    with tempfile.NamedTemporaryFile(
        "w", encoding="utf-8", dir=path.parent, prefix=path.name, delete=False
    ) as stream:
        json.dump(windows, stream, indent=1)
        stream.write("\n")
        # By descriptor: root writes into the agent's folder, where a name may be a link.
        os.fchmod(stream.fileno(), _MODE)
        name = Path(stream.name)
    name.replace(path)


def _show(windows: list[dict[str, Any]]) -> int:
    for window in windows:
        print(_told(window))
    if not windows:
        print("no maintenance")
    return 0


def _told(window: dict[str, Any]) -> str:
    ports = " ".join(window["ports"]) or "the whole node"
    return f"until {window['until']}: {ports}  {window['reason']}".rstrip()
