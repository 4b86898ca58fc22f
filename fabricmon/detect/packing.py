"""State of detectors as bytes, for the saved state."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

_S = TypeVar("_S", bound=msgspec.Struct)


def pack(state: msgspec.Struct) -> bytes:
    """Return the bytes of ``state``; empty where a name in it is not text."""
    try:
        return msgspec.msgpack.encode(state)
    except UnicodeEncodeError:
        return b""


def unpack(saved: bytes, kind: type[_S]) -> _S:
    """Return the state that `pack` wrote, a fresh one for no bytes.

    Raises ValueError for what is no such state.
    """
    if not saved:
        return kind()
    try:
        state: Any = msgspec.msgpack.decode(saved, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"saved {kind.__name__}: {error}") from error
    result: _S = state
    return result
