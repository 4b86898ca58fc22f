"""What a soak says: each quantity at its beginning, at its end, and how it grows.

The slope is that of a line through means of blocks of a few minutes: samples that
follow each other are alike, means of blocks hardly are, so its uncertainty is honest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import inf, isnan, nan, sqrt
from statistics import fmean

EDGE_SECONDS = 600.0
"""Beginning and end are means of ten minutes, or of a sixth of a shorter run."""

BLOCKS = 12
"""So many blocks make a line; two degrees of freedom are its own."""

_LARGE = 1000
STUDENT = 2.23
"""Half the width of a 95 % interval in standard errors, 10 degrees of freedom."""


@dataclass(frozen=True, slots=True)
class Series:
    """One quantity over time; ``at`` in seconds since the agent was ready."""

    name: str
    unit: str
    at: tuple[float, ...]
    values: tuple[float, ...]

    @property
    def edge(self) -> float:
        """How long beginning and end are."""
        return min(EDGE_SECONDS, self.at[-1] / 6)

    @property
    def first(self) -> float:
        """Mean of the beginning."""
        return self.mean(0.0, self.edge)

    @property
    def last(self) -> float:
        """Mean of the end."""
        return self.mean(self.at[-1] - self.edge, inf)

    @property
    def most(self) -> float:
        """Largest value of all."""
        return max(self.values)

    def slope(self) -> tuple[float, float]:
        """Growth per hour after the beginning, and half of its 95 % interval."""
        return slope(self.at, self.values, self.edge)

    def mean(self, since: float, until: float) -> float:
        """Mean of what lies between two times."""
        found = [
            value
            for at, value in zip(self.at, self.values, strict=True)
            if since <= at <= until
        ]
        return fmean(found) if found else nan


def slope(
    at: Sequence[float], values: Sequence[float], since: float
) -> tuple[float, float]:
    """Return the slope per hour of what comes after ``since``, and its uncertainty."""
    points = [(t, v) for t, v in zip(at, values, strict=True) if t >= since]
    blocks = _blocks(points)
    if len(blocks) < BLOCKS:
        return nan, nan
    hours = [t / 3600 for t, _ in blocks]
    middle, level = fmean(hours), fmean(v for _, v in blocks)
    spread = sum((t - middle) ** 2 for t in hours)
    pairs = [(t - middle, v - level) for t, (_, v) in zip(hours, blocks, strict=True)]
    grows = sum(t * v for t, v in pairs) / spread
    rest = sum((v - grows * t) ** 2 for t, v in pairs) / (len(pairs) - 2)
    return grows, STUDENT * sqrt(rest / spread)


def _blocks(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    each = len(points) / BLOCKS
    cuts = [round(each * number) for number in range(BLOCKS + 1)]
    parts = [points[begin:end] for begin, end in pairwise(cuts) if end > begin]
    return [(fmean(t for t, _ in part), fmean(v for _, v in part)) for part in parts]


def table(series: Sequence[Series]) -> str:
    """Return a table in Markdown."""
    minutes = series[0].edge / 60
    lines = [
        f"| | unit | first {minutes:.0f} min | last | max | growth an hour (95 %) |",
        "|---|---|---|---|---|---|",
    ]
    for each in series:
        grows, off = each.slope()
        lines.append(
            f"| {each.name} | {each.unit} | {_short(each.first)} | {_short(each.last)} "
            f"| {_short(each.most)} | {growing(grows, off)} |"
        )
    return "\n".join(lines)


def growing(grows: float, off: float) -> str:
    """Write a growth and how sure it is; a dash where too little was seen to tell."""
    return "-" if isnan(grows) else f"{grows:+.3g} ± {off:.2g}"


def _short(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= _LARGE else f"{value:.4g}"
