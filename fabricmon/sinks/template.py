"""Render metrics fast: the text is prometheus_client's, only the values are ours.

The client library renders once. Its text is cut into what stays (names, labels, help)
and values; from then on a scrape fills fresh values in, at a twentieth of the cost,
until the set of series changes. Whole numbers are written out, also above 2^53, where
the library's own text would round them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from prometheus_client import Metric
from prometheus_client.utils import floatToGoString

from fabricmon.runtime.logging import printable
from fabricmon.value import Value

MOST_CHARACTERS = 128
"""Length of a label's value: names of the kernel are shorter, forged ones not."""

END_OF_OPENMETRICS = b"# EOF\n"
"""The last line of that format, which stands once and at the end."""

_MISSING = str(None)  # no number is written like that
_DIGEST = 8  # characters that tell two long values apart


class Collected(Protocol):
    """What an encoder of prometheus_client takes."""

    def collect(self) -> Iterable[Metric]:
        """Return the metrics."""


Encoder = Callable[[Collected], bytes]


class Fixed(Value, frozen=True):
    """Metrics that are there already, for an encoder."""

    metrics: Sequence[Metric]

    def collect(self) -> Iterable[Metric]:
        """Return the metrics."""
        return self.metrics


class Template(Value, frozen=True):
    """The text of an exposition, cut where each value goes, in order."""

    pieces: tuple[str, ...]

    def fill(self, values: Sequence[object]) -> bytes:
        """Return the exposition with whole numbers, and others as text.

        Raises TypeError if a value is missing.
        """
        texts = list(map(str, values))
        if _MISSING in texts:
            raise TypeError("a value is missing")
        whole = [""] * (2 * len(texts) + 1)  # many times as fast as `text % values`
        whole[::2], whole[1::2] = self.pieces, texts
        return "".join(whole).encode()


def cut(exposition: bytes, places: int) -> Template:
    """Make a template of an encoder's text with so many samples.

    Raises ValueError if the text has not as many.
    """
    lines = exposition.decode().split("\n")
    samples = sum(1 for line in lines if _is_sample(line))
    if samples != places:
        message = f"{samples} samples in the text, {places} places for values"
        raise ValueError(message)
    pieces, piece = [], ""
    for line in lines:
        if _is_sample(line):
            pieces.append(f"{piece}{line.rpartition(' ')[0]} ")
            piece = "\n"
        else:
            piece += f"{line}\n"
    return Template((*pieces, piece.removesuffix("\n")))


def _is_sample(line: str) -> bool:
    return bool(line) and not line.startswith("#")


def number(value: float) -> str:
    """Write a value: a whole number exactly, any other as the library does."""
    if isinstance(value, int):
        return str(value)
    return str(floatToGoString(value))  # type: ignore[no-untyped-call]


def label(value: object) -> str:
    """Make any text fit for a label: printable, bounded, and still one of its kind."""
    text = str(value)
    if len(text) > MOST_CHARACTERS:
        digest = hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()
        text = f"{text[: MOST_CHARACTERS - _DIGEST - 1]}~{digest[:_DIGEST]}"
    return text if text.isprintable() else printable(text)
