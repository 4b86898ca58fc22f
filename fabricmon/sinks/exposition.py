"""The exposition of a snapshot, in the format that a client prefers.

Every scrape asks readings for their values, and families only where what they are about
has changed. While what they are values of stays the same, a `Template` makes the text;
otherwise prometheus_client renders it anew and a new template is cut from that. There
are two of them, so that a finding or an error that comes and goes does not cost the
text of a thousand counters.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from prometheus_client import Metric

from fabricmon.config import Config
from fabricmon.label_redaction import make_redactor, redacted
from fabricmon.model import PortSnapshot, Snapshot
from fabricmon.redaction import Redactor
from fabricmon.sinks.families import NODE_FAMILIES, PORT_FAMILIES, Family
from fabricmon.sinks.measures import Sample, Scene, scene_of
from fabricmon.sinks.name_key import load_key
from fabricmon.sinks.negotiation import choose
from fabricmon.sinks.node_exporter_names import ALIAS_FAMILIES
from fabricmon.sinks.port_measures import Hardware, hardware_of
from fabricmon.sinks.series import CounterSeries, Shown, readings_of
from fabricmon.sinks.template import (
    END_OF_OPENMETRICS,
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

    def __init__(
        self, families: Sequence[Family[Any]], samples: list[tuple[Sample, ...]]
    ) -> None:
        self._families = families
        self._samples = samples
        self.labels = [[s.labels for s in each] for each in samples]
        self.texts = [number(s.value) for each in samples for s in each]

    def metrics(self) -> list[Metric]:
        """Return the families as prometheus_client has them."""
        return list(map(_metric, self._families, self._samples))


def _of(families: Sequence[Family[Any]], subject: object) -> _Sampled:
    return _Sampled(families, [tuple(each.samples(subject)) for each in families])


class _Memory:
    """Families of the node; of a part that is the same as before, nothing is asked."""

    def __init__(self, families: Sequence[Family[Scene]]) -> None:
        self._families = families
        self._kept: list[tuple[object, _Sampled]] = [(None, _of((), None))] * len(
            families
        )

    def look(self, scene: Scene) -> list[_Sampled]:
        """Return each family on its own, with its samples of this moment."""
        snapshot = scene.snapshot
        for place, family in enumerate(self._families):
            part = None if family.of is None else family.of(snapshot)
            known = self._kept[place]
            if part is None or part is not known[0]:
                sampled = _of((family,), scene)
                if sampled.labels == known[1].labels:
                    sampled.labels = known[1].labels  # the same one is found equal soon
                self._kept[place] = (part, sampled)
        return [sampled for _, sampled in self._kept]


class _Content(Value, frozen=True):
    """All that is to be exposed now.

    The head is what changes its shape often, with findings and errors; the tail, the
    bulk of it, is about devices and ports.
    """

    ports: tuple[PortSnapshot, ...]
    node: list[_Sampled]
    hardware: _Sampled
    beside: list[Metric]

    @property
    def head_labels(self) -> list[object]:
        """What the samples of the head are of; cheap to compare."""
        beside = [(each.name, len(each.samples)) for each in self.beside]
        return [[each.labels for each in self.node], beside]

    @property
    def head_texts(self) -> list[str]:
        """The values of the same samples, in order."""
        texts = [text for each in self.node for text in each.texts]
        texts += [number(s.value) for metric in self.beside for s in metric.samples]
        return texts

    def head(self) -> list[Metric]:
        """Return the head as prometheus_client has it."""
        node = [metric for each in self.node for metric in each.metrics()]
        return [*node, *self.beside]

    def tail(self, series: CounterSeries) -> list[Metric]:
        """Return the tail as prometheus_client has it."""
        return [*self.hardware.metrics(), *series.metrics(readings_of(self.ports))]


class _Head(Value, frozen=True):
    """A template of a head, and what must still be the same for it to hold."""

    template: Template
    labels: list[object]

    def fill(self, content: _Content) -> bytes | None:
        """Return the text with these values, None if it does not hold any more."""
        if self.labels != content.head_labels:
            return None
        return self.template.fill(content.head_texts)


class _Tail(Value, frozen=True):
    """The same of a tail."""

    template: Template
    labels: Sequence[object]
    series: CounterSeries

    def fill(self, content: _Content) -> bytes | None:
        """Return the text with these values, None if it does not hold any more."""
        if self.labels != content.hardware.labels:
            return None
        values = self.series.values(readings_of(content.ports))
        if values is None:
            return None
        try:
            return self.template.fill((*content.hardware.texts, *values))
        except TypeError:  # a value that was there is None now
            return None


@dataclass(slots=True)
class _Ready:
    """What is kept ready of one format."""

    head: _Head | None = None
    tail: _Tail | None = None


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
        self._of_hardware = _of(self._families, self._hardware)
        self._node = _Memory(NODE_FAMILIES)
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
            return [*content.head(), *content.tail(series)]

    def _render(self, newest: _Newest, encoder: Encoder, content_type: str) -> bytes:
        content = self._content(newest)
        ready = self._prepared(content_type)
        tail = None if ready.tail is None else ready.tail.fill(content)
        if tail is None:
            series = self._series(content)
            content = self._content(newest)  # which tells what found no room
            ready.tail = _cut_tail(content, series, encoder)
            tail = ready.tail.fill(content)
        head = None if ready.head is None else ready.head.fill(content)
        if head is None:
            ready.head = _cut_head(content, encoder)
            head = ready.head.fill(content)
        if head is None or tail is None:
            message = "a template does not fit the snapshot that it was made of"
            raise RuntimeError(message)
        return head + tail

    def _prepared(self, content_type: str) -> _Ready:
        ready = self._ready.get(content_type)
        if ready is None:
            while len(self._ready) >= MOST_TEMPLATES:
                del self._ready[next(iter(self._ready))]
            ready = self._ready[content_type] = _Ready()
        return ready

    def _content(self, newest: _Newest) -> _Content:
        snapshot = newest.snapshot
        if self._redactor is not None:
            snapshot = redacted(snapshot, self._redactor)
        ports = tuple(port for port in snapshot.ports if not self._is_folded(port))
        hardware = hardware_of(snapshot, ports)
        if hardware != self._hardware:
            self._of_hardware = _of(self._families, hardware)
            self._hardware = hardware
        now = snapshot.now + self._clock() - newest.published
        node = self._node.look(scene_of(snapshot, now, self._shown.withheld))
        return _Content(ports, node, self._of_hardware, self._beside())

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


def _cut_head(content: _Content, encoder: Encoder) -> _Head:
    text = encoder(Fixed(content.head())).removesuffix(END_OF_OPENMETRICS)
    return _Head(cut(text, len(content.head_texts)), content.head_labels)


def _cut_tail(content: _Content, series: CounterSeries, encoder: Encoder) -> _Tail:
    text = encoder(Fixed(content.tail(series)))
    places = len(content.hardware.texts) + series.places
    return _Tail(cut(text, places), content.hardware.labels, series)


def _metric(family: Family[Any], samples: Sequence[Sample]) -> Metric:
    name = f"{family.prefix}_{family.name}"
    metric = Metric(name, family.help, family.kind.value)
    for sample in samples:
        values = map(label, sample.labels)
        labels = dict(zip(family.labels, values, strict=True))
        metric.add_sample(family.metric, labels, sample.value)
    return metric
