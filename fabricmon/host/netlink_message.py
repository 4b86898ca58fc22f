"""Netlink messages and their attributes (netlink(7)), each on a four byte border."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from fabricmon.value import Value

HEADER = struct.Struct("=IHHII")  # length, type, flags, sequence, sender
_ATTRIBUTE = struct.Struct("=HH")  # length, type
_TYPE_MASK = 0x3FFF  # the two upper bits of a type are flags


class Message(Value, frozen=True):
    """One message; ``sequence`` is that of the question that it answers."""

    kind: int
    sequence: int
    body: bytes


def messages(datagram: bytes) -> Iterator[Message]:
    """Yield the messages of a datagram; stop where it makes no sense."""
    offset = 0
    while offset + HEADER.size <= len(datagram):
        length, kind, _, sequence, _ = HEADER.unpack_from(datagram, offset)
        if length < HEADER.size or offset + length > len(datagram):
            return
        body = datagram[offset + HEADER.size : offset + length]
        yield Message(kind, sequence, body)
        offset += aligned(length)


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
