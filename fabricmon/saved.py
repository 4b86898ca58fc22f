"""What survives a restart: one small record, encoded as MessagePack."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import TypeVar

import msgspec
from msgspec import Struct, field

from fabricmon.model import Incident

_Item = TypeVar("_Item")

VERSION = 1
"""Raised when an older reader would misunderstand what is written."""

MAX_BYTES = 8 << 20
"""More than a node with a hundred flapping ports needs; a file without end stops."""


class UnusableStateError(ValueError):
    """A saved state that cannot be taken back; the text says why."""


class SavedState(Struct, frozen=True, kw_only=True):
    """All that an agent takes over from the one before it.

    ``seq`` is the last number given to an incident, ``written`` Unix seconds.
    ``ever_active`` holds the keys of ports that were once up; ``detectors``,
    ``inventory``, ``counters`` and ``logs`` are what those parts saved of themselves.
    """

    version: int = VERSION
    node: str
    boot_id: str
    seq: int
    written: float
    ever_active: tuple[str, ...] = ()
    detectors: dict[str, bytes] = field(default_factory=dict)
    incidents: tuple[Incident, ...] = ()
    inventory: bytes = b""
    counters: bytes = b""
    logs: bytes = b""


def writable(items: Iterable[_Item]) -> tuple[_Item, ...]:
    """Return the items that can be written: a broken device has names of no text."""
    return tuple(item for item in items if _is_writable(item))


def _is_writable(item: object) -> bool:
    try:
        msgspec.json.encode(item)
    except UnicodeEncodeError:
        return False
    return True


class _Header(Struct):
    version: int


def encode(state: SavedState) -> bytes:
    """Return the bytes of ``state``, without what has names that are not text.

    Raises `UnusableStateError` where the name of the node itself is none.
    """
    try:
        with suppress(UnicodeEncodeError):
            return msgspec.msgpack.encode(state)
        sound = msgspec.structs.replace(
            state,
            ever_active=writable(state.ever_active),
            incidents=writable(state.incidents),
        )
        return msgspec.msgpack.encode(sound)
    except (UnicodeEncodeError, OverflowError) as error:
        raise UnusableStateError(f"cannot be written: {error}") from error


def decode(raw: bytes) -> SavedState:
    """Return the state that `encode` wrote.

    Raises `UnusableStateError` for what is damaged or of a newer version.
    """
    try:
        version = msgspec.msgpack.decode(raw, type=_Header).version
        if version > VERSION:
            raise UnusableStateError(
                f"version {version} was written by a newer fabricmon; this one knows "
                f"{VERSION}"
            )
        return msgspec.msgpack.decode(raw, type=SavedState)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise UnusableStateError(f"damaged: {error}") from error
