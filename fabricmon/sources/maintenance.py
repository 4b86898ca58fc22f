"""The maintenance file: which ports are being worked on, and until when."""

from __future__ import annotations

from datetime import datetime
from fnmatch import fnmatchcase
from typing import Annotated

import msgspec

from fabricmon.config import Config
from fabricmon.host.protocol import Host, ReadError
from fabricmon.model import MaintenancePlan, MaintenanceWindow, Target
from fabricmon.sources.node_jobs import host_name

FILE = "maintenance.json"
MAX_WINDOWS = 1000  # more than a node has ports; a file without end stops here

_SHAPE = (
    'write a list such as [{"until": "2026-01-31T18:00:00Z", "ports": ["mlx5_0/1"]}]'
)


class _Window(msgspec.Struct):
    """One entry of the file; keys that later versions add are passed over.

    ``nodes`` are names or patterns, for a file that many nodes share; none: every node
    that reads it.
    """

    until: Annotated[datetime, msgspec.Meta(tz=True)]
    ports: tuple[str, ...] = ()
    reason: str = ""
    nodes: tuple[str, ...] = ()


def plan_file(config: Config) -> str:
    """Return the path of the file with the windows."""
    return config.maintenance_file or f"{config.run_folder.rstrip('/')}/{FILE}"


def poll(host: Host, _target: Target, config: Config) -> tuple[MaintenancePlan, ...]:
    """Read the file; a bad entry costs only itself, an absent file is an empty plan."""
    path = plan_file(config)
    raw = host.read(path)
    at = host.monotonic()
    if isinstance(raw, ReadError):
        if raw.errno == "ENOENT":
            return (MaintenancePlan(at),)
        error = f"{path}: {raw.errno}: make it readable for fabricmon or remove it"
        return (MaintenancePlan(at, error=error),)
    return (parse_plan(raw, path, at, config.node or host_name(host)),)


def parse_plan(
    raw: bytes, path: str, at: float, node: str | None = None
) -> MaintenancePlan:
    """Return this node's windows that can be understood, and the others' first error."""
    try:
        entries = msgspec.json.decode(raw, type=list[msgspec.Raw])[:MAX_WINDOWS]
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return MaintenancePlan(at, error=f"{path}: {error}: {_SHAPE}")
    windows = []
    first_error = None
    for number, entry in enumerate(entries, start=1):
        try:
            window = msgspec.json.decode(entry, type=_Window)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            first_error = first_error or f"{path}: entry {number}: {error}: {_SHAPE}"
            continue
        if window.nodes and not any(fnmatchcase(node or "", n) for n in window.nodes):
            continue
        until = window.until.timestamp()
        windows.append(MaintenanceWindow(until, window.ports, window.reason))
    return MaintenancePlan(at, tuple(windows), first_error)
