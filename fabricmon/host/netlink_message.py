"""Attributes of netlink messages (netlink(7)): type, length, value, four byte borders."""

from __future__ import annotations

import struct
from collections.abc import Iterator

_ATTRIBUTE = struct.Struct("=HH")  # length, type
_TYPE_MASK = 0x3FFF  # the two upper bits of a type are flags


def attributes(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield type and value of each attribute; stop where it makes no sense."""
    offset = 0
    while offset + _ATTRIBUTE.size <= len(data):
        length, kind = _ATTRIBUTE.unpack_from(data, offset)
        if length < _ATTRIBUTE.size or offset + length > len(data):
            return
        yield kind & _TYPE_MASK, data[offset + _ATTRIBUTE.size : offset + length]
        offset += aligned(length)


def packed(kind: int, value: bytes) -> bytes:
    """Return one attribute, padded."""
    length = _ATTRIBUTE.size + len(value)
    return _ATTRIBUTE.pack(length, kind) + value + bytes(aligned(length) - length)


def aligned(length: int) -> int:
    """Return where what follows so many bytes begins."""
    return (length + 3) & ~3
