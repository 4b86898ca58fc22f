"""The exposition of a snapshot, in the format that a client prefers.

Every scrape asks the families and readings for their values, the families of devices
and ports only after a change. While what they are values of stays the same, a
`Template` makes the text; otherwise prometheus_client renders it anew and a new
template is cut from that.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from prometheus_client import Metric

from fabricmon.config import Config
from fabricmon.label_redaction import make_redactor, redacted
from fabricmon.model import PortSnapshot, Snapshot
from fabricmon.redaction import Redactor
from fabricmon.sinks.families import NODE_FAMILIES, PORT_FAMILIES, Family
from fabricmon.sinks.measures import Sample, scene_of
from fabricmon.sinks.name_key import load_key
from fabricmon.sinks.negotiation import choose
from fabricmon.sinks.node_exporter_names import ALIAS_FAMILIES
from fabricmon.sinks.port_measures import Hardware, hardware_of
from fabricmon.sinks.series import CounterSeries, Shown, readings_of
from fabricmon.sinks.template import (
    Collected,
    Encoder,
    Fixed,
    Template,
    cut,
    label,
    number,
)
from fabricmon.value import Value

MOST_TEMPLATES = 4
"""Formats that are kept ready; clients that ask for more kinds pay for them."""


class Rendered(Value, frozen=True):
    """An exposition and its content type."""

    body: bytes
    content_type: str


class _Newest(Value, frozen=True):
    """A snapshot, and when it was published."""

    snapshot: Snapshot
    published: float


class _Sampled:
    """Families with their samples: what these are of, and their values as text."""

    __slots__ = ("_families", "_samples", "labels", "texts")

    def __init__(self, families: Sequence[Family[Any]], subject: object) -> None:
        self._families = families
        self._samples = [tuple(family.samples(subject)) for family in families]
        self.labels = [[s.labels for s in samples] for samples in self._samples]
        self.texts = [number(s.value) for samples in self._samples for s in samples]

    def metrics(self) -> list[Metric]:
        """Return the families as prometheus_client has them."""
        return list(map(_metric, self._families, self._samples))


class _Content(Value, frozen=True):
    """All that is to be exposed now."""

    layout: int
    ports: tuple[PortSnapshot, ...]
    node: _Sampled
    hardware: _Sampled
    beside: list[Metric]

    @property
    def labels(self) -> list[object]:
        """What the samples are of, but for those of counters; cheap to compare."""
        beside = [(each.name, len(each.samples)) for each in self.beside]
        return [self.node.labels, self.hardware.labels, beside]

    @property
    def texts(self) -> list[str]:
        """The values of the same samples, in order."""
        beside = (number(s.value) for metric in self.beside for s in metric.samples)
        return [*self.node.texts, *self.hardware.texts, *beside]

    def metrics(self) -> list[Metric]:
        """Return the same as prometheus_client has it."""
        return [*self.node.metrics(), *self.hardware.metrics(), *self.beside]


class _Ready(Value, frozen=True):
    """A template, and what must still be the same for it to hold."""

    template: Template
    layout: int
    labels: list[object]
    series: CounterSeries

    def fill(self, content: _Content) -> bytes | None:
        """Return the text with these values, None if it does not hold any more."""
        if self.layout != content.layout or self.labels != content.labels:
            return None
        values = self.series.values(readings_of(content.ports))
        if values is None:
            return None
        try:
            return self.template.fill((*content.texts, *values))
        except TypeError:  # a value that was there is None now
            return None


class Exposition:
    """Renders the newest snapshot; safe to call from many threads."""

    def __init__(
        self,
        config: Config,
        collectors: Sequence[Collected] = (),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Render what ``config`` says, and the metrics of ``collectors`` beside it."""
        self._fold = config.devices.virtual_functions == "fold"
        self._collectors = collectors
        self._clock = clock
        self._shown = Shown(config.metrics.counted_series)
        self._ready: dict[str, _Ready] = {}
        self._newest: _Newest | None = None
        self._aliases = config.metrics.node_exporter_names
        more = ALIAS_FAMILIES if self._aliases else ()
        self._families = (*PORT_FAMILIES, *more)
        self._hardware = Hardware((), (), ())
        self._of_hardware = _Sampled(self._families, self._hardware)
        self._lock = threading.Lock()
        self._redactor = _redactor(config)

    @property
    def is_ready(self) -> bool:
        """Tell whether there is a snapshot."""
        return self._newest is not None

    def publish(self, snapshot: Snapshot) -> None:
        """Take a new snapshot; the old one is forgotten."""
        self._newest = _Newest(snapshot, self._clock())

    def render(self, accept: str = "") -> Rendered:
        """Render in the format that a client's ``Accept`` header prefers."""
        encoder, content_type = choose(accept)
        with self._lock:
            # Taken once: a template of one snapshot does not fit the next one.
            newest = self._newest
            if newest is None:
                body = encoder(Fixed(self._beside()))
            else:
                body = self._render(newest, encoder, content_type)
        return Rendered(body, content_type)

    def metrics(self) -> list[Metric]:
        """Return everything as prometheus_client has it, which is the slow way."""
        with self._lock:
            newest = self._newest
            if newest is None:
                return self._beside()
            series = self._series(self._content(newest))
            content = self._content(newest)  # which tells what found no room
            return [*content.metrics(), *series.metrics(readings_of(content.ports))]

    def _render(self, newest: _Newest, encoder: Encoder, content_type: str) -> bytes:
        content = self._content(newest)
        ready = self._ready.get(content_type)
        filled = None if ready is None else ready.fill(content)
        if filled is None:
            series = self._series(content)
            content = self._content(newest)  # which tells what found no room
            made = self._prepare(content, series, encoder, content_type)
            filled = made.fill(content)
        if filled is None:
            message = "a template does not fit the snapshot that it was made of"
            raise RuntimeError(message)
        return filled

    def _prepare(
        self,
        content: _Content,
        series: CounterSeries,
        encoder: Encoder,
        content_type: str,
    ) -> _Ready:
        metrics = [*content.metrics(), *series.metrics(readings_of(content.ports))]
        places = ["%s"] * len(content.texts) + series.places
        template = cut(encoder(Fixed(metrics)), places)
        self._ready.pop(content_type, None)
        while len(self._ready) >= MOST_TEMPLATES:
            del self._ready[next(iter(self._ready))]
        ready = _Ready(template, content.layout, content.labels, series)
        self._ready[content_type] = ready
        return ready

    def _content(self, newest: _Newest) -> _Content:
        snapshot = newest.snapshot
        if self._redactor is not None:
            snapshot = redacted(snapshot, self._redactor)
        ports = tuple(port for port in snapshot.ports if not self._is_folded(port))
        hardware = hardware_of(snapshot, ports)
        if hardware != self._hardware:
            self._of_hardware = _Sampled(self._families, hardware)
            self._hardware = hardware
        now = snapshot.now + self._clock() - newest.published
        scene = scene_of(snapshot, now, self._shown.withheld)
        node = _Sampled(NODE_FAMILIES, scene)
        return _Content(snapshot.layout, ports, node, self._of_hardware, self._beside())

    def _series(self, content: _Content) -> CounterSeries:
        return CounterSeries(content.ports, self._shown, aliases=self._aliases)

    def _is_folded(self, port: PortSnapshot) -> bool:
        return self._fold and port.info.is_vf

    def _beside(self) -> list[Metric]:
        return [
            metric for collector in self._collectors for metric in collector.collect()
        ]


def _redactor(config: Config) -> Redactor | None:
    """Return what hides names in labels, None where nothing is hidden."""
    policy = config.metrics.redact
    if policy.jobs == policy.peers == "keep":
        return None
    key = load_key(policy.key_file, config, "metrics.redact.key_file")
    return make_redactor(policy, key)


def _metric(family: Family[Any], samples: Sequence[Sample]) -> Metric:
    name = f"{family.prefix}_{family.name}"
    metric = Metric(name, family.help, family.kind.value)
    for sample in samples:
        values = map(label, sample.labels)
        labels = dict(zip(family.labels, values, strict=True))
        metric.add_sample(family.metric, labels, sample.value)
    return metric
