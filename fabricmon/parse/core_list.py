"""Lists of cores as the kernel writes them: ``0-3,8,16-31``. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby

MOST_CORES = 65_536
"""Far more than a node has; a typing error must not make a list of a billion."""


def parse_cores(text: str) -> frozenset[int]:
    """Return the cores of a list; none for an empty one, or ``(null)``.

    Kernels before 6.0 print ``(null)`` for ``nohz_full`` where it is not set. Raises
    `ValueError` for what is no such list.
    """
    text = text.strip()
    if text in {"", "(null)"}:
        return frozenset()
    return frozenset(core for part in text.split(",") for core in _span(part))


def write_cores(cores: Iterable[int]) -> str:
    """Return the list of cores, in order and as short as can be."""
    runs: list[str] = []
    for _, group in groupby(enumerate(sorted(cores)), lambda pair: pair[1] - pair[0]):
        run = [core for _, core in group]
        runs.append(f"{run[0]}-{run[-1]}" if len(run) > 1 else str(run[0]))
    return ",".join(runs)


def _span(part: str) -> Iterator[int]:
    first, dash, last = part.strip().partition("-")
    numbers = (first, last if dash else first)
    if not all(number.isascii() and number.isdecimal() for number in numbers):
        raise ValueError(f"{part!r} is no core, and no range of cores")
    begin, end = map(int, numbers)
    if begin > end or end >= MOST_CORES:
        raise ValueError(f"{part!r} is no range of cores")
    return iter(range(begin, end + 1))
