"""Reads the site's topology file: where nodes, ports and their addresses are."""

from __future__ import annotations

from pathlib import Path

from fabricmon.errors import ConfigError
from fabricmon.model import Topology
from fabricmon.topology import of_fleet
from fabricmon.yaml_text import parse

MAX_BYTES = 8 << 20
"""Size of the file: a larger fleet gives each node a file with what is near it."""

_KEY = "topology"
_REMEDY = "name a file with `nodes:`, or remove the key"


def load_topology(path: str, node: str) -> Topology:
    """Return what the file says of a node; raises `ConfigError` that names the line."""
    try:
        with Path(path).open("rb") as stream:
            raw = stream.read(MAX_BYTES + 1)
    except OSError as error:
        message = f"{path}: {error.strerror or error}"
        raise ConfigError(message, key=_KEY, remedy=_REMEDY) from None
    if len(raw) > MAX_BYTES:
        message = f"{path}: larger than {MAX_BYTES >> 20} MiB"
        remedy = "leave out the ports of other nodes, but for their addresses"
        raise ConfigError(message, key=_KEY, remedy=remedy)
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        raise ConfigError(f"no UTF-8: {error.reason}", file=path) from None
    document = parse(text, path)
    if not isinstance(document.tree.get("nodes"), dict):
        raise ConfigError("has no nodes", file=path, key="nodes", remedy=_REMEDY)
    return of_fleet(document.tree, node)
