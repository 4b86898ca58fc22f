"""What survives a restart: one small record, encoded as MessagePack."""

from __future__ import annotations

import msgspec
from msgspec import Struct, field

from fabricmon.model import Incident

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
    ``inventory`` and ``counters`` are what those parts saved of themselves.
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


class _Header(Struct):
    version: int


def encode(state: SavedState) -> bytes:
    """Return the bytes of ``state``.

    Raises `UnusableStateError` for names that are not text.
    """
    try:
        return msgspec.msgpack.encode(state)
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
