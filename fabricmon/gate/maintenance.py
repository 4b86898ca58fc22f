"""Which nodes somebody works on, as a file of the site says."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

MOST_BYTES = 1 << 20
"""Longest file."""


class _Window(Struct, frozen=True, forbid_unknown_fields=True):
    until: datetime
    nodes: list[Annotated[str, Meta(min_length=1, max_length=256)]]
    reason: str = ""


def worked_on(file: str | None, now: float) -> tuple[str, ...] | None:
    """Return patterns of nodes; None where the file cannot be read or is wrong."""
    if file is None:
        return ()
    try:
        with Path(file).open("rb") as stream:
            data = stream.read(MOST_BYTES + 1)
        windows = msgspec.json.decode(data, type=list[_Window])
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    moment = datetime.fromtimestamp(now, UTC)
    if any(window.until.tzinfo is None for window in windows):
        return None
    return tuple(
        node for window in windows if window.until > moment for node in window.nodes
    )
