"""What Prometheus would have scraped of a node that is replayed, as OpenMetrics.

The agent's own exposition is rendered at each instant of a scrape, at an offset that
differs from node to node, as Prometheus spreads its scrapes. Times are those of the
scraper, which are true; what the node exports may carry its own clock.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from math import ceil
from pathlib import Path

from fabricmon.fleet.alert_series import escaped
from fabricmon.fleet.rule import Label
from fabricmon.pipeline import Pipeline
from fabricmon.sinks.exposition import Exposition

OPENMETRICS = "application/openmetrics-text;version=1.0.0"
EVERYTHING = ".*"
JOB = "fabricmon"
MARGIN_MS = 2
"""No scrape coincides with an evaluation, which fall on whole seconds."""

_META = re.compile(rb"# (?:HELP|TYPE|UNIT) (\S+)")
_UP = b"up"
_UP_META = (b"# HELP up 1 if the node answered the scrape", b"# TYPE up gauge")


@dataclass(frozen=True, slots=True)
class Scraping:
    """How nodes are scraped: how often, and which metrics are kept (a pattern).

    ``cluster`` is the value of the label ``cluster_label``, which tells fleets apart
    that share a Prometheus. Labels that an agent exports win, as where a scraper
    honours them.
    """

    interval_seconds: float = 15
    cluster: str = "replay"
    cluster_label: str = "cluster"
    node_label: str = "node"
    keep: str = EVERYTHING

    def labels(self, node: str) -> tuple[Label, ...]:
        """Return the labels that the scraper adds."""
        return (
            Label("job", JOB),
            Label("instance", node),
            Label(self.node_label, node),
            Label(self.cluster_label, self.cluster),
        )

    def times(self, node: str, start: float) -> Callable[[int], int]:
        """Return when the n-th scrape is, in Unix milliseconds, from ``start`` on."""
        interval = round(self.interval_seconds * 1000)
        hashed = int.from_bytes(sha256(node.encode("utf-8", "replace")).digest()[:8])
        offset = MARGIN_MS + hashed % (interval - MARGIN_MS)
        first = ceil((start * 1000 - offset) / interval) * interval + offset
        return lambda number: first + number * interval


@dataclass(frozen=True, slots=True)
class Section:
    """The samples of one family in a node's file, from one octet to another."""

    family: bytes
    meta: tuple[bytes, ...]
    begin: int
    end: int


@dataclass(frozen=True, slots=True)
class NodeMetrics:
    """A file with what was scraped of a node, family by family.

    ``first`` and ``last`` are the times of its scrapes in Unix seconds; of a trace
    that is shorter than an interval there may be none.
    """

    path: Path
    sections: tuple[Section, ...]
    first: float | None
    last: float | None


@dataclass(slots=True)
class _Series:
    """One series; ``at`` are numbers of scrapes."""

    prefix: bytes
    at: array[int] = field(default_factory=lambda: array("L"))
    values: list[bytes] = field(default_factory=list)

    def add(self, at: int, value: bytes) -> None:
        """Keep a sample; an equal value takes no more memory."""
        values = self.values
        values.append(values[-1] if values and values[-1] == value else value)
        self.at.append(at)


@dataclass(slots=True)
class _Family:
    meta: tuple[bytes, ...]
    series: list[_Series] = field(default_factory=list)


class _Clock:
    """A clock that stands where it is put."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


class Scraper:
    """Watches one node and keeps what is scraped of it; see `replaying.Watcher`."""

    def __init__(self, node: str, start: float, scraping: Scraping) -> None:
        """Begin at ``start``, Unix seconds of the trace's first moment."""
        self._start = start
        self._keep = re.compile(rf"(?:{scraping.keep})\Z".encode())
        self._time = scraping.times(node, start)
        self._number = 0
        self._labels = [
            (each.name.encode(), _escaped(each.value)) for each in scraping.labels(node)
        ]
        self._families: dict[bytes, _Family] = {_UP: _Family(_UP_META)}
        self._series: dict[bytes, _Series | None] = {}
        self._up = self._new_series(_UP, self._families[_UP])
        self._pipeline: Pipeline | None = None
        self._clock = _Clock()

    def runs(self, pipeline: Pipeline, until: float) -> None:
        """Scrape an agent that stays as it is."""
        while (t := self._next) < until:
            self._take(self._render(pipeline, t))
            self._up.add(self._number, b"1.0")
            self._number += 1

    def silent(self, until: float) -> None:
        """Get no answer."""
        while self._next < until:
            self._up.add(self._number, b"0.0")
            self._number += 1

    def write(self, path: Path) -> NodeMetrics:
        """Write what was scraped; raises `OSError`."""
        sections, begin = [], 0
        with path.open("wb") as out:
            for name, family in self._families.items():
                for series in family.series:
                    out.writelines(self._lines(series))
                if (end := out.tell()) > begin:
                    sections.append(Section(name, family.meta, begin, end))
                begin = end
        times = [self._time(number) / 1000 for number in (0, self._number - 1)]
        first, last = times if self._number else (None, None)
        return NodeMetrics(path, tuple(sections), first, last)

    @property
    def _next(self) -> float:
        """When the next scrape is, in seconds of the trace."""
        return self._time(self._number) / 1000 - self._start

    def _render(self, pipeline: Pipeline, t: float) -> bytes:
        if pipeline is not self._pipeline:
            self._exposition = Exposition(pipeline.config, clock=self._clock)
            self._published: object = None
            self._pipeline = pipeline
        if self._published is not pipeline.snapshot:
            self._published = pipeline.snapshot
            self._clock.now = pipeline.snapshot.now
            self._exposition.publish(pipeline.snapshot)
        self._clock.now = t
        return self._exposition.render(OPENMETRICS).body

    def _take(self, text: bytes) -> None:
        meta: list[bytes] = []
        name = b""
        for line in text.splitlines():
            if line.startswith(b"#"):
                if found := _META.match(line):
                    meta = [*meta, line] if found[1] == name else [line]
                    name = found[1]
                continue
            key, _, value = line.rpartition(b" ")
            try:
                series = self._series[key]
            except KeyError:
                series = self._series[key] = self._open(key, name, meta)
            if series is not None:
                series.add(self._number, value)

    def _open(self, key: bytes, name: bytes, meta: list[bytes]) -> _Series | None:
        if not self._keep.match(key.partition(b"{")[0]):
            return None
        family = self._families.setdefault(name, _Family(tuple(meta)))
        return self._new_series(key, family)

    def _new_series(self, key: bytes, family: _Family) -> _Series:
        """Add the scraper's labels, where the agent has none of that name."""
        metric, _, rest = key.partition(b"{")
        labels = rest.removesuffix(b"}")
        own = {found[1] for found in _LABEL_NAME.finditer(labels)}
        added = [b'%b="%b"' % pair for pair in self._labels if pair[0] not in own]
        both = b",".join([*([labels] if labels else []), *added])
        series = _Series(b"%b{%b} " % (metric, both))
        family.series.append(series)
        return series

    def _lines(self, series: _Series) -> Iterator[bytes]:
        prefix, time = series.prefix, self._time
        for at, value in zip(series.at, series.values, strict=True):
            yield b"%b%b %.3f\n" % (prefix, value, time(at) / 1000)


_LABEL_NAME = re.compile(rb'([a-zA-Z_][a-zA-Z0-9_]*)="(?:[^"\\]|\\.)*"(?:,|\Z)')


def _escaped(value: str) -> bytes:
    """Return a label's value as OpenMetrics writes it."""
    return escaped(value).encode("utf-8", "backslashreplace")


def write_openmetrics(nodes: Sequence[NodeMetrics], path: Path) -> None:
    """Merge the files of nodes into one that is OpenMetrics; raises `OSError`."""
    families: dict[bytes, list[tuple[NodeMetrics, Section]]] = {}
    for node in nodes:
        for section in node.sections:
            families.setdefault(section.family, []).append((node, section))
    with path.open("wb") as out:
        for parts in families.values():
            out.writelines(b"%b\n" % line for line in parts[0][1].meta)
            for node, section in parts:
                with node.path.open("rb") as text:
                    text.seek(section.begin)
                    out.write(text.read(section.end - section.begin))
        out.write(b"# EOF\n")
