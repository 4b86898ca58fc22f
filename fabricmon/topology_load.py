"""Reads the site's topology file: where nodes, ports and their addresses are."""

from __future__ import annotations

from pathlib import Path

from fabricmon.errors import ConfigError
from fabricmon.model import Topology
from fabricmon.text_file import read_text
from fabricmon.topology import of_fleet
from fabricmon.yaml_text import parse

MAX_BYTES = 8 << 20
"""Size of the file: a larger fleet gives each node a file with what is near it."""

_KEY = "topology"
_REMEDY = "name a file with `nodes:`, or remove the key"
_SHORTEN = "leave out the ports of other nodes, but for their addresses"


def load_topology(path: str, node: str) -> Topology:
    """Return what the file says of a node; raises `ConfigError` that names the line."""
    text = read_text(Path(path), MAX_BYTES, _REMEDY, key=_KEY, shorten=_SHORTEN)
    document = parse(text, path)
    if not isinstance(document.tree.get("nodes"), dict):
        raise ConfigError("has no nodes", file=path, key="nodes", remedy=_REMEDY)
    return of_fleet(document.tree, node)
