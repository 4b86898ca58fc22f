"""What the metrics about jobs and their logs measure; nothing where there are none.

Counters of logs begin with the first file that is followed, so that a node without
logs has no series for them. Labels are bounded: what finds no room is ``other``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

from fabricmon.job_hearsay import ports_of
from fabricmon.model import JobUse, LogCounts, PortInfo, Role
from fabricmon.sinks.measures import Sample, Samples, Scene

MOST_JOBS = 32
"""Values of the label ``job``."""

MOST_KINDS = 32
"""Kinds of log events with a name of their own; operators add kinds."""

OTHER = "other"

_MAY_COMPUTE = frozenset({Role.COMPUTE, Role.UNKNOWN})


def job_info(scene: Scene) -> Iterator[Sample]:
    """The jobs on the node, always 1; without known rails that label is empty."""
    jobs = scene.snapshot.job.jobs
    for use in jobs[: _room(len(jobs))]:
        yield Sample((use.job, _rails(use)), 1)
    if len(jobs) > MOST_JOBS:
        yield Sample((OTHER, ""), 1)


def port_jobs(scene: Scene) -> Iterable[Sample]:
    """Each job on each port that it uses, always 1; ports of virtual ones are left out.

    Where the rails of a job are not known it may be on any port for computing.
    """
    jobs = scene.snapshot.job.jobs
    if not jobs:
        return ()
    ports = [each.info for each in scene.snapshot.ports if not each.info.is_vf]
    found: dict[tuple[object, ...], None] = {}
    for order, use in enumerate(jobs):
        name = use.job if order < _room(len(jobs)) else OTHER
        for port in _ports(use, ports):
            found[port.id.device, port.id.port, name] = None
    return (Sample(place, 1) for place in found)


def _ports(use: JobUse, ports: Sequence[PortInfo]) -> Sequence[PortInfo]:
    named = ports_of(use, ports)
    rails = [port for port in ports if port.rail is not None and port.rail in use.rails]
    if named or rails:
        return tuple(dict.fromkeys((*named, *rails)))
    return [port for port in ports if port.role in _MAY_COMPUTE]


def job_nodes(scene: Scene) -> Iterator[Sample]:
    """Nodes of each job, as its log says."""
    jobs = scene.snapshot.job.jobs
    for use in jobs[: _room(len(jobs))]:
        if use.nodes is not None:
            yield Sample((use.job,), use.nodes)


def transports(scene: Scene) -> Iterator[Sample]:
    """What carries the data of each job, always 1."""
    told = scene.snapshot.job.transports
    kept = told[-_room(len(told)) :]  # the newest are last
    for each in kept:
        yield Sample((each.job, each.transport), 1)
    rest = {each.transport for each in told[: len(told) - len(kept)]}
    for transport in sorted(rest):
        yield Sample((OTHER, transport), 1)


def events(scene: Scene) -> Iterator[Sample]:
    """Log events by kind and severity."""
    found: Counter[tuple[object, ...]] = Counter()
    named = _named(scene)
    for tally in scene.snapshot.log_tallies:
        kind = tally.kind if tally.kind in named else OTHER
        found[kind, tally.severity.value] += tally.events
    return (Sample(key, number) for key, number in found.items())


def last_event(scene: Scene) -> Iterator[Sample]:
    """When the last event of each kind came in, Unix seconds."""
    found: dict[str, float] = {}
    named = _named(scene)
    for tally in scene.snapshot.log_tallies:
        kind = tally.kind if tally.kind in named else OTHER
        found[kind] = max(tally.last, found.get(kind, 0))
    return (Sample((kind,), last) for kind, last in found.items())


def count(value: Callable[[LogCounts], int]) -> Samples:
    """Return a function for a count of all logs."""

    def samples(scene: Scene) -> Iterable[Sample]:
        return (Sample((), value(scene.snapshot.job.counts)),) if _any(scene) else ()

    return samples


def trouble(value: Callable[[LogCounts], int]) -> Samples:
    """Return a function for a count that appears with its first."""

    def samples(scene: Scene) -> Iterable[Sample]:
        number = value(scene.snapshot.job.counts)
        return (Sample((), number),) if number else ()

    return samples


def files(scene: Scene) -> Iterable[Sample]:
    """Log files that are followed."""
    return (Sample((), len(scene.snapshot.job.logs)),) if _any(scene) else ()


def unread(scene: Scene) -> Iterable[Sample]:
    """Bytes of all followed files that are known and not yet read."""
    logs = scene.snapshot.job.logs
    total = sum(max(log.size - log.offset, 0) for log in logs)
    return (Sample((), total),) if _any(scene) else ()


def lag(scene: Scene) -> Iterable[Sample]:
    """Seconds since the file that is most behind was last read to its end."""
    logs = scene.snapshot.job.logs
    behind = (scene.now - log.read_at for log in logs if log.size > log.offset)
    return (Sample((), max(behind, default=0)),) if _any(scene) else ()


def _any(scene: Scene) -> bool:
    job = scene.snapshot.job
    return bool(job.logs) or job.counts.bytes > 0


def _room(number: int) -> int:
    """Return how many of so many have a name of their own: one is ``other``."""
    return number if number <= MOST_JOBS else MOST_JOBS - 1


def _named(scene: Scene) -> frozenset[str]:
    kinds = dict.fromkeys(tally.kind for tally in scene.snapshot.log_tallies)
    room = len(kinds) if len(kinds) <= MOST_KINDS else MOST_KINDS - 1
    return frozenset(tuple(kinds)[:room])


def _rails(use: JobUse) -> str:
    return ",".join(map(str, use.rails))
