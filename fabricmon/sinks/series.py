"""Which counters become series, and where in a snapshot's readings their values lie.

Finding that out is dear and done when the set of series changes; taking the values
out of a new snapshot is one pass in C.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from operator import itemgetter
from typing import Any

from prometheus_client import Metric

from fabricmon.catalogue import ROWS, CounterKind, CounterSpec, Directory, Export
from fabricmon.model import PortId, PortSnapshot, Reading
from fabricmon.parse.words import LinkLayer
from fabricmon.sinks.node_exporter_names import Alias, alias_of
from fabricmon.sinks.template import label, number
from fabricmon.value import Value

_RANK = {spec: rank for rank, spec in enumerate(ROWS)}
_HIDING_LAYER = {
    Export.INFINIBAND: LinkLayer.ETHERNET,
    Export.ETHERNET: LinkLayer.INFINIBAND,
}
_LIMITED = frozenset({Export.COUNTED, Export.SPARE})
_Values = tuple[int | None, ...]


class Shown:
    """Series that appeared because they counted, and stay; a port has room for few.

    ``limit`` is the room of a port for counters of the kind `Export.COUNTED`; those of
    the kind `Export.SPARE` have what these leave.
    """

    def __init__(self, limit: int) -> None:
        """Begin with none."""
        self._limit = limit
        self._shown: dict[PortId, set[CounterSpec]] = {}
        self._refused: dict[PortId, set[CounterSpec]] = {}
        self._room: dict[PortId, int] = {}
        self._has_moved = False

    @property
    def withheld(self) -> int:
        """Series that counted and found no room."""
        return sum(map(len, self._refused.values()))

    def keep_only(self, ports: Iterable[PortId]) -> None:
        """Forget the series of ports that are gone."""
        for port in self._shown.keys() - set(ports):
            del self._shown[port]
            self._refused.pop(port, None)
            self._room.pop(port, None)

    def fate(
        self,
        port: PortId,
        layer: LinkLayer | None,
        spec: CounterSpec,
        value: int | None,
    ) -> bool | None:
        """Tell whether a series is shown; None if only because it has not counted."""
        if spec.kind is CounterKind.KNOB or spec.export is Export.NEVER:
            return False
        if _is_always_shown(spec.export, layer):
            return True
        mine = self._shown.setdefault(port, set())
        if spec in mine:
            return True
        if not value:
            return None
        if spec.export in _LIMITED and not self._has_room(port, spec, mine):
            self._refused.setdefault(port, set()).add(spec)
            return False
        mine.add(spec)
        return True

    def was_rearranged(self) -> bool:
        """Tell whether a series lost its room since this was asked last."""
        moved, self._has_moved = self._has_moved, False
        return moved

    def _has_room(
        self, port: PortId, spec: CounterSpec, mine: set[CounterSpec]
    ) -> bool:
        """Take the room for a series, from one of less worth where there is no other."""
        room = self._room.get(port, self._limit)
        if room > 0:
            self._room[port] = room - 1
            return True
        if spec.export is Export.SPARE or spec in self._refused.get(port, ()):
            return False
        spare = [each for each in mine if each.export is Export.SPARE]
        if not spare:
            return False
        least = max(spare, key=_rank)
        mine.remove(least)
        self._refused.setdefault(port, set()).add(least)
        self._has_moved = True
        return True


class _Place(Value, frozen=True):
    """One series: its counter, its port, and the place of its value.

    With an ``alias`` it is the same counter under the name that node_exporter has.
    """

    port: PortId
    spec: CounterSpec
    index: int
    alias: Alias | None = None

    @property
    def metric(self) -> str:
        """Full name of the metric."""
        return self.alias.metric if self.alias else self.spec.metric

    @property
    def factor(self) -> float:
        """What turns the file's number into that of the series."""
        return self.alias.factor if self.alias else self.spec.factor

    @property
    def is_whole(self) -> bool:
        """Whether the number is written without a fraction: node_exporter cuts it."""
        return self.alias is not None or self.spec.factor >= 1


class CounterSeries:
    """The counters that are exported of certain ports, found once."""

    def __init__(
        self, ports: Sequence[PortSnapshot], shown: Shown, *, aliases: bool = False
    ) -> None:
        """Find the series of these ports; ``shown`` remembers those that appeared.

        With ``aliases`` each has its twin by node_exporter's name, if it has one.
        """
        readings = readings_of(ports)
        shown.keep_only({reading.port for reading in readings})
        self._key = _key(readings)
        self._watched: list[int] = []
        found = [*self._find(ports, readings, shown)]
        if shown.was_rearranged():
            self._watched.clear()
            found = [*self._find(ports, readings, shown)]
        if aliases:
            found += _aliases(readings)
        places = sorted(found, key=lambda place: _rank(place.spec))
        self._metrics = _grouped(places)
        ordered = [place for group in self._metrics.values() for place in group]
        self._pick = _picker([place.index for place in ordered])
        self._watch = _picker(self._watched)
        self._scales = [
            (order, place.factor, place.is_whole)
            for order, place in enumerate(ordered)
            if place.factor != 1
        ]
        self.places = len(ordered)

    def metrics(self, readings: Sequence[Reading]) -> list[Metric]:
        """Return the metrics for prometheus_client, in the order of `values`."""
        flat = _flat(readings)
        found = []
        for places in self._metrics.values():
            first = places[0]
            spec, alias, name = first.spec, first.alias, first.metric
            kind = alias.kind if alias else spec.kind.value
            metric = Metric(name.removesuffix("_total"), spec.help, kind)
            for place in places:
                value = _scaled(flat[place.index] or 0, place.factor)
                whole = int(value) if place.is_whole else value
                metric.add_sample(name, _labels(place), whole)
            found.append(metric)
        return found

    def values(self, readings: Sequence[Reading]) -> list[Any] | None:
        """Return the values in order; None if the set of series has changed."""
        if _key(readings) != self._key:
            return None
        flat = _flat(readings)
        if any(self._watch(flat)):
            return None
        picked: list[Any] = list(self._pick(flat))
        for order, factor, is_whole in self._scales:
            value = picked[order]
            if value is None:
                return None
            scaled = _scaled(value, factor)
            picked[order] = int(scaled) if is_whole else number(scaled)
        return picked

    def _find(
        self, ports: Sequence[PortSnapshot], readings: Sequence[Reading], shown: Shown
    ) -> Iterable[_Place]:
        layers = {port.info.id: port.info.link_layer for port in ports}
        seen: set[tuple[PortId, str, str]] = set()
        start = 0
        for reading in readings:
            layer = layers.get(reading.port)
            for offset in _by_rank(reading.specs):
                spec, value = reading.specs[offset], reading.values[offset]
                fate = shown.fate(reading.port, layer, spec, value)
                series = (reading.port, spec.metric, spec.label_value)
                if fate is None:
                    self._watched.append(start + offset)
                elif fate and value is not None and series not in seen:
                    seen.add(series)
                    yield _Place(reading.port, spec, start + offset)
            start += len(reading.specs)


def _aliases(readings: Sequence[Reading]) -> Iterable[_Place]:
    """Go through all that node_exporter exports: it spares nothing at zero."""
    seen: set[tuple[PortId, str]] = set()
    start = 0
    for reading in readings:
        for offset, spec in enumerate(reading.specs):
            alias = alias_of(spec)
            if alias is None or reading.values[offset] is None:
                continue
            series = (reading.port, alias.metric)
            if series not in seen:
                seen.add(series)
                yield _Place(reading.port, spec, start + offset, alias)
        start += len(reading.specs)


def readings_of(ports: Sequence[PortSnapshot]) -> list[Reading]:
    """Return the readings of the ports, in order."""
    return [reading for port in ports for reading in port.readings]


def _is_always_shown(export: Export, layer: LinkLayer | None) -> bool:
    """Tell whether a series is there also at zero; an unknown layer spares nothing."""
    hiding = _HIDING_LAYER.get(export)
    return export is Export.ALWAYS or (hiding is not None and layer is not hiding)


def _key(readings: Sequence[Reading]) -> list[object]:
    """Return what changes when a value appears or disappears, cheap to compare."""
    return [(reading.port, reading.specs, reading.absent) for reading in readings]


def _flat(readings: Sequence[Reading]) -> _Values:
    return tuple(chain.from_iterable([reading.values for reading in readings]))


def _picker(indices: list[int]) -> Callable[[_Values], _Values]:
    """Return what takes these places out of a tuple."""
    if len(indices) > 1:
        return itemgetter(*indices)
    return lambda values: tuple(values[index] for index in indices)


def _scaled(value: int, factor: float) -> float:
    """Convert a file's number: exactly, so by division for fractions."""
    return value * int(factor) if factor >= 1 else value / round(1 / factor)


def _rank(spec: CounterSpec) -> int:
    """Return the place in the table; what has no row comes last."""
    return _RANK.get(spec, len(_RANK))


def _by_rank(specs: Sequence[CounterSpec]) -> list[int]:
    """Return the indices of the specs in the order of the table."""
    return sorted(range(len(specs)), key=lambda index: _rank(specs[index]))


def _grouped(places: Iterable[_Place]) -> dict[str, list[_Place]]:
    found: dict[str, list[_Place]] = {}
    for place in places:
        found.setdefault(place.metric, []).append(place)
    return found


def _labels(place: _Place) -> dict[str, str]:
    spec = place.spec
    labels = {"device": label(place.port.device)}
    if spec.directory is not Directory.PCI:
        labels["port"] = str(place.port.port or "")
    if spec.label and place.alias is None:
        labels[spec.label] = label(spec.label_value)
    return labels
