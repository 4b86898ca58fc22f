"""What every grammar here needs: safe numbers, folded words, lines, quotes.

All of it is linear in the length of the text, whatever the text is.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

MAX_DIGITS = 20  # of 2**64 - 1; int() of a longer text costs more than linear time
MAX_NUMBER = 24  # characters of a decimal fraction with exponent
MAX_WORD = 64  # characters of a word that is compared with known ones

_DIGITS = frozenset("0123456789")
_HEX = frozenset("0123456789abcdef")
_FRACTION = frozenset("0123456789.eE+-")
_COLOUR_END = frozenset("@ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz~")


def decode(raw: str | bytes) -> str:
    """Return text; bytes that are not UTF-8 become replacement characters."""
    return raw if isinstance(raw, str) else raw.decode("utf-8", "replace")


def decimal(text: str) -> int | None:
    """Return a non-negative decimal integer, None for anything else."""
    if 0 < len(text) <= MAX_DIGITS and _DIGITS.issuperset(text):
        return int(text)
    return None


def hexadecimal(text: str) -> int | None:
    """Return the value of up to 16 hexadecimal digits after an optional 0x."""
    digits = text.lower().removeprefix("0x")
    if 0 < len(digits) <= 16 and _HEX.issuperset(digits):  # noqa: PLR2004
        return int(digits, 16)
    return None


def number(text: str) -> float | None:
    """Return a finite decimal number, None for anything else, NaN included."""
    if not 0 < len(text) <= MAX_NUMBER or not _FRACTION.issuperset(text):
        return None
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def fold(word: str) -> str:
    """Return letters and digits in lower case: LINK_UP, LinkUp, Link Up are one."""
    return "".join(filter(str.isalnum, word[:MAX_WORD])).lower()


def lines(text: str) -> Iterator[str]:
    """Yield the lines without their ends; only a line feed ends a line."""
    for line in text.split("\n"):
        yield line.removesuffix("\r")


def field(line: str) -> tuple[str, str]:
    """Split ``key: value`` at the first colon and strip both."""
    key, _, value = line.partition(":")
    return key.strip(), value.strip()


def quoted(text: str, quote: str = "'") -> str | None:
    """Return what stands between the first and the last quote, None without two."""
    _, opening, rest = text.partition(quote)
    inside, closing, _ = rest.rpartition(quote)
    return inside if opening and closing else None


def without_colour(text: str) -> str:
    """Drop terminal colour codes (ESC [ ... letter)."""
    first, *rest = text.split("\x1b[")
    return first + "".join(map(_after_code, rest))


def _after_code(text: str) -> str:
    head = text[:MAX_WORD]
    end = next((i for i, char in enumerate(head) if char in _COLOUR_END), None)
    return text if end is None else text[end + 1 :]
