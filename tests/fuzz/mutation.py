"""Inputs that are nearly sound: seeds with a few faults, the same for the same number."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

MOST_BYTES = 16_384
"""Longest seed and longest result: what is wrong shows in little."""

DEEP = 3000
"""Brackets within each other: more than any decoder follows."""

ANYWHERE = (
    *(b"", b"\0", b"\n", b"\r\n", b"\xff", b"\xed\xa0\x80", b"\xf0\x9f\x98\x80"),
    *(b"\xc2\xa0", b"\xe2\x80\xa8", b"\\ud800", b"-1", b"1e999", b"nan", b"inf"),
    *(b"9" * 25, b"9" * 400, b"9" * 5000, b"null", b"true", b"{}", b"[]", b'""'),
    *(b"%s", b"../", b"\x1b[2J", b"${x}", b"*", b": ", b"=", b",", b"'", b'"'),
)
"""Words that are wrong in many a place."""

HOSTILE = (
    *(b"", b"\n", b"\0" * 100, b"\xff" * 100, b"9" * 10_000, b" " * 10_000),
    *(b"[" * DEEP, b'{"a":' * DEEP, b"[" * DEEP + b"]" * DEEP, b"\x91" * DEEP),
    *(b'{"a":' * 600 + b"1" + b"}" * 600, b"[" * 600 + b"]" * 600),
    *(b"[" + b'{"a":' * DEEP, b"\x91" + b"\x81\xa1a" * DEEP),
    *(b"\x81\xa1a" * DEEP, b"- " * DEEP, b"\xef\xbb\xbf{}", b"\n" * 10_000),
)
"""Inputs that every target is given."""


def mutated(seeds: Sequence[bytes], words: Sequence[bytes], number: int) -> bytes:
    """Return one of the seeds with one to six faults in it."""
    random = Random(number)
    data = bytearray(random.choice(seeds)[:MOST_BYTES])
    for _ in range(random.randint(1, 6)):
        fault = random.choice(_FAULTS)
        fault(data, random, (*ANYWHERE, *words, *seeds[:4]))
    return bytes(data[:MOST_BYTES])


def _flip(data: bytearray, random: Random, _words: Sequence[bytes]) -> None:
    if data:
        data[random.randrange(len(data))] ^= 1 << random.randrange(8)


def _replace(data: bytearray, random: Random, _words: Sequence[bytes]) -> None:
    if data:
        data[random.randrange(len(data))] = random.choice((0, 1, 127, 128, 255, 10, 32))


def _cut(data: bytearray, random: Random, _words: Sequence[bytes]) -> None:
    start = random.randint(0, len(data))
    del data[start : start + random.choice((1, 4, 16, 1 << 14))]


def _double(data: bytearray, random: Random, _words: Sequence[bytes]) -> None:
    start = random.randint(0, len(data))
    piece = bytes(data[start : start + random.choice((1, 8, 64))])
    data[start:start] = piece * random.choice((1, 2, 50))


def _insert(data: bytearray, random: Random, words: Sequence[bytes]) -> None:
    at = random.randint(0, len(data))
    data[at:at] = random.choice(words)[:MOST_BYTES]


def _overwrite(data: bytearray, random: Random, words: Sequence[bytes]) -> None:
    """Put a word in the place of a word."""
    word = random.choice(words)[:MOST_BYTES]
    starts = [at for at, byte in enumerate(data) if byte in b' \n"=:,[{;']
    at = random.choice(starts) + 1 if starts else 0
    end = next((i for i in range(at, len(data)) if data[i] in b' \n"=:,]};'), len(data))
    data[at:end] = word


_FAULTS = (_flip, _replace, _cut, _double, _insert, _insert, _overwrite, _overwrite)
