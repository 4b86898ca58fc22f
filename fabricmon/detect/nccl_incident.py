"""Troubles of one job that have one cause: what started together, told once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from fabricmon.detect.nccl_places import NOWHERE, Place
from fabricmon.detect.nccl_ports import Shown
from fabricmon.parse.log_event import LogSeverity
from fabricmon.stories.nature import FALLBACKS, SET_UP, Nature, Tier, tier
from fabricmon.stories.story import Trouble
from fabricmon.value import Value

_TOLD = frozenset({Tier.ROOT, Tier.LATE, Tier.FLUSH})
_ELSEWHERE = frozenset({Nature.APPLICATION, Nature.SPEED, Nature.OFFLOAD})
"""What is no failure of communication, or has a kind of its own."""

Key = tuple[object, ...]

Episode = tuple[Key, float | None]
"""A trouble and when it began: the same trouble later is another episode."""


class LogIncident(Value, frozen=True):
    """What one job suffered on this node, its troubles in order of time.

    ``seen`` and ``heard`` are when its first and newest line came in, Unix seconds.
    ``place`` and ``peer`` are fixed once the incident was told. ``shown`` is what the
    port showed while it was open. ``onset`` is given where its line joins what was over.
    """

    key: Key
    troubles: tuple[Trouble, ...]
    seen: float
    heard: float
    place: Place = NOWHERE
    peer: str | None = None
    is_told: bool = False
    shown: tuple[Shown, ...] = ()
    onset: float | None = None

    @property
    def root(self) -> Trouble:
        """The first of them that explains most."""
        return self.troubles[0]

    @property
    def job(self) -> str | None:
        """The job, if any line names it."""
        return next((t.root.job for t in self.troubles if t.root.job), None)

    @property
    def jobs(self) -> tuple[str, ...]:
        """Every job that suffered it, the one of its first line first."""
        named = (job for trouble in self.troubles for job in trouble.jobs)
        return tuple(dict.fromkeys((*(() if not self.job else (self.job,)), *named)))


def is_told(trouble: Trouble) -> bool:
    """Tell whether a trouble is an error of communication that people must hear of."""
    event = trouble.root
    return (
        event.severity is not LogSeverity.INFO
        and tier(event) in _TOLD
        and trouble.nature not in _ELSEWHERE
        and event.kind not in FALLBACKS | SET_UP
    )


def gather(
    troubles: Sequence[Trouble],
    known: Mapping[Key, LogIncident],
    wall: float,
    together_seconds: float,
    ended: Mapping[Episode, float],
) -> dict[Key, LogIncident]:
    """Make incidents of troubles that are not over; those known already go on.

    Troubles of one job that begin within ``together_seconds`` of its first are one. One
    that turns out to be the cause of what was known goes on as that: it is not told
    twice. ``ended`` are troubles of incidents that were told to be over, with the time
    of their newest line: only a newer one is news, of another incident.
    """
    earlier = {key_of(t): one.key for one in known.values() for t in one.troubles}
    explained = _explained(troubles, known)
    news = [t for t in troubles if is_told(t) and _is_news(t, ended)]
    found: dict[Key, LogIncident] = {}
    for cluster in _clusters(news, together_seconds):
        if all(trouble.over for trouble in cluster):
            continue
        key = next((earlier[k] for t in cluster if (k := key_of(t)) in earlier), None)
        if key is None:
            key = next((o.key for o in explained if _goes_on_as(o, cluster)), None)
        before = known.get(key) if key is not None else None
        if before is None:
            key = key_of(cluster[0])
        if key is None or key in found:
            continue
        ordered = tuple(sorted(cluster, key=lambda t: -tier(t.root)))
        heard = max((t.heard or wall for t in cluster), default=wall)
        if before is None:
            again = any(episode_of(t) in ended for t in cluster)
            onset = heard if again else None
            found[key] = LogIncident(key, ordered, wall, heard, onset=onset)
        else:
            found[key] = replace(before, troubles=ordered, heard=heard)
    return found


def _explained(
    troubles: Sequence[Trouble], known: Mapping[Key, LogIncident]
) -> tuple[LogIncident, ...]:
    """Return the incidents of which all troubles follow from another one by now."""
    standing = {key_of(trouble) for trouble in troubles}
    return tuple(
        one
        for one in known.values()
        if standing.isdisjoint(key_of(trouble) for trouble in one.troubles)
    )


def _goes_on_as(incident: LogIncident, cluster: Sequence[Trouble]) -> bool:
    """Tell whether an incident may be about what newly found troubles are about.

    One that was told without a port cannot be about a port that is named now.
    """
    root = cluster[0].root
    names_more = incident.is_told and incident.place.port is None and root.device
    same_job = len({incident.job, root.job} - {None}) < len(("one", "other"))
    return same_job and not names_more


def key_of(trouble: Trouble) -> Key:
    """Return what stays the same of a trouble as more of it is heard."""
    event = trouble.root
    status = None if tier(event) is Tier.LATE else event.status
    return trouble.node, event.kind, status, event.device, event.port


def episode_of(trouble: Trouble) -> Episode:
    """Return what tells a trouble from the same one at another time."""
    return key_of(trouble), trouble.first


def _is_news(trouble: Trouble, ended: Mapping[Episode, float]) -> bool:
    end = ended.get(episode_of(trouble))
    return end is None or (trouble.heard is not None and trouble.heard > end)


def _clusters(
    troubles: Sequence[Trouble], together_seconds: float
) -> Iterator[list[Trouble]]:
    """Yield troubles of one job that began together, in order of time."""
    jobs: dict[str | None, list[Trouble]] = defaultdict(list)
    for trouble in troubles:
        jobs[trouble.root.job].append(trouble)
    for members in jobs.values():
        cluster: list[Trouble] = []
        for trouble in members:
            began = cluster[0].first if cluster else None
            apart = (
                began is not None
                and trouble.first is not None
                and trouble.first - began > together_seconds
            )
            if apart:
                yield cluster
                cluster = []
            cluster.append(trouble)
        if cluster:
            yield cluster
