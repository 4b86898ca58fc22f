"""What the metrics about the agent and the node measure: samples out of a snapshot."""

from __future__ import annotations

import platform
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import NamedTuple

from fabricmon import __version__
from fabricmon.model import Action, Health, IncidentState, Snapshot
from fabricmon.value import Value


class Sample(NamedTuple):
    """One sample: the values of the family's labels, and the number."""

    labels: tuple[object, ...]
    value: float


@dataclass(slots=True)
class Fare:
    """How one source fares: the worst of its units; infinite is never."""

    ok: bool = True
    last_success: float = inf
    in_flight_since: float = inf


class Scene(Value, frozen=True):
    """What is exported of the agent and the node: a snapshot, and the time now.

    ``now`` is on the clock of ``snapshot.now``; ``withheld`` are the series that
    counted and found no room; ``fares`` is of each source that ever found anything or
    failed, by its name; ``durations`` of each lane; ``troubled`` are the units with
    failed reads, or put aside for them.
    """

    snapshot: Snapshot
    now: float
    withheld: int
    fares: Mapping[str, Fare]
    durations: Mapping[str, float]
    troubled: Sequence[Health]


Samples = Callable[[Scene], Iterable[Sample]]
"""What finds the samples of a family."""


def scene_of(snapshot: Snapshot, now: float, withheld: int) -> Scene:
    """Sum up how the sources fare, in one pass over what may be a thousand units."""
    fares: dict[str, Fare] = {}
    durations: dict[str, float] = {}
    troubled: list[Health] = []
    for health in snapshot.health:
        if health.ok and not health.found and health.in_flight_since is None:
            continue
        lane, took = health.lane, health.duration_seconds
        if took > durations.get(lane, -1):
            durations[lane] = took
        fare = fares.get(health.source)
        if fare is None:
            fare = fares[health.source] = Fare()
        if not health.ok:
            fare.ok = False
        success, since = health.last_success, health.in_flight_since
        if success is not None and success < fare.last_success:
            fare.last_success = success
        if since is not None and since < fare.in_flight_since:
            fare.in_flight_since = since
        if health.errors or health.quarantined is not None:
            troubled.append(health)
    return Scene(snapshot, now, withheld, fares, durations, troubled)


def one(value: Callable[[Snapshot], float]) -> Samples:
    """Return a function for a family of one sample without labels."""
    return lambda scene: (Sample((), value(scene.snapshot)),)


def history(scene: Scene) -> Iterable[Sample]:
    """Whether the last minutes are kept, where they are to be."""
    snapshot = scene.snapshot
    return (Sample((), int(snapshot.unrecorded is None)),) * snapshot.keeps_history


def build(_scene: Scene) -> Iterable[Sample]:
    """The running program, always 1."""
    return (Sample((__version__, platform.python_version()), 1),)


def config(scene: Scene) -> Iterable[Sample]:
    """The configuration in force, always 1."""
    return (Sample((scene.snapshot.config_hash,), 1),)


def age(scene: Scene) -> Iterable[Sample]:
    """Age of the snapshot in seconds."""
    return (Sample((), scene.now - scene.snapshot.now),)


def withheld(scene: Scene) -> Iterable[Sample]:
    """Series that found no room, if any."""
    return (Sample((), scene.withheld),) if scene.withheld else ()


def findings(*, shadow: bool) -> Samples:
    """Return a function for the open findings, counted by their labels."""

    def samples(scene: Scene) -> Iterable[Sample]:
        found: Counter[tuple[object, ...]] = Counter()
        for incident in scene.snapshot.incidents:
            if (
                incident.dry_run is shadow
                and incident.state is not IncidentState.RESOLVED
            ):
                finding, subject = incident.finding, incident.finding.subject
                place = (subject.device or "", _port(subject.port))
                what = (finding.kind, finding.severity.word)
                found[*what, finding.part, finding.action, *place] += 1
        return (Sample(key, count) for key, count in found.items())

    return samples


def actionable(scene: Scene) -> Iterable[Sample]:
    """Open findings that advise something, by their advice: what `fusion` bounds."""
    found = Counter(
        incident.finding.action
        for incident in scene.snapshot.incidents
        if incident.finding.action is not Action.NONE and not incident.dry_run
    )
    return (Sample((action,), count) for action, count in found.items())


def _port(port: int | None) -> object:
    return "" if port is None else port


def blind(scene: Scene) -> Iterable[Sample]:
    """Kinds that cannot be judged here, each reason once."""
    seen = dict.fromkeys((each.kind, each.reason) for each in scene.snapshot.blind)
    return (Sample(key, 1) for key in seen)


def success(scene: Scene) -> Iterable[Sample]:
    """1 for each source of which every unit succeeded last time, else 0."""
    return [Sample((name,), int(fare.ok)) for name, fare in scene.fares.items()]


def duration(scene: Scene) -> Iterable[Sample]:
    """Seconds that the longest last poll of each lane took."""
    return [Sample((lane,), seconds) for lane, seconds in scene.durations.items()]


def success_age(scene: Scene) -> Iterable[Sample]:
    """Seconds since the last success of the unit where that is longest ago."""
    return [
        Sample((name,), scene.now - fare.last_success)
        for name, fare in scene.fares.items()
        if fare.last_success < inf
    ]


def in_flight(scene: Scene) -> Iterable[Sample]:
    """Seconds since the longest of the polls that are going on began."""
    return [
        Sample((name,), scene.now - fare.in_flight_since)
        for name, fare in scene.fares.items()
        if fare.in_flight_since < inf
    ]


def errors(scene: Scene) -> Iterable[Sample]:
    """Failed reads by source and errno."""
    found: Counter[tuple[object, ...]] = Counter()
    for health in scene.troubled:
        for error in health.errors:
            found[health.source, _errno(error.errno)] += error.count
    return (Sample(key, count) for key, count in found.items())


def _errno(name: str) -> str:
    """Return the name of an errno, ``other`` for any text: labels stay bounded."""
    known = name.startswith("E") and name.isalnum() and name.isupper()
    return name if known else "other"


def unreadable(scene: Scene) -> Iterable[Sample]:
    """Places that cannot be read at all."""
    found = Counter(
        (failure.device or "", _port(failure.port), _errno(failure.errno or ""))
        for failure in scene.snapshot.failures
    )
    return (Sample(key, count) for key, count in found.items())


def quarantined(scene: Scene) -> Iterable[Sample]:
    """Sources that read a device rarely, because all of it failed."""
    return (
        Sample((health.unit, health.source, health.quarantined), 1)
        for health in scene.troubled
        if health.quarantined is not None
    )


def maintenance(scene: Scene) -> Iterable[Sample]:
    """Places under maintenance; the node has empty labels."""
    places: dict[tuple[object, ...], None] = {}
    for window in scene.snapshot.maintenance:
        for name in window.ports or ("",):
            device, _, port = name.partition("/")
            places[device, port] = None
    return (Sample(place, 1) for place in places)
