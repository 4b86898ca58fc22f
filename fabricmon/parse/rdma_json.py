"""The JSON form (-j) of ``rdma link`` and ``rdma statistic``: a list of objects."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from fabricmon.value import Value


class JsonLink(Value, frozen=True):
    """One object: whose it is, and its other fields as they stand."""

    device: str
    port: int
    fields: tuple[tuple[str, Any], ...]


def json_links(text: str) -> tuple[JsonLink, ...]:
    """Return the objects that name a link; none where the text is not whole JSON."""
    if not text.lstrip().startswith("["):
        return ()
    try:
        items = json.loads(text)
    except (ValueError, RecursionError):
        return ()
    return tuple(_links(items))


def _links(items: list[Any]) -> Iterator[JsonLink]:
    for item in items:
        if not isinstance(item, dict):
            continue
        device, port = item.get("ifname"), item.get("port")
        if isinstance(device, str) and isinstance(port, int):
            fields = ((k, v) for k, v in item.items() if k not in {"ifname", "port"})
            yield JsonLink(device, port, tuple(fields))
