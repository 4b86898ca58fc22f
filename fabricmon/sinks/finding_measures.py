"""What the metrics about open findings measure, apart from how many there are.

Kinds in shadow are in none of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from fabricmon.model import Finding, Snapshot
from fabricmon.model.findings import IncidentState
from fabricmon.sinks.job_measures import MOST_JOBS, OTHER
from fabricmon.sinks.measures import Sample, Scene


def onsets(scene: Scene) -> Iterable[Sample]:
    """When the oldest open finding of each kind and place began, Unix seconds."""
    found: dict[tuple[object, ...], float] = {}
    for finding in _open(scene.snapshot):
        subject = finding.subject
        port = "" if subject.port is None else subject.port
        key = (finding.kind, subject.device or "", port)
        found[key] = min(finding.onset, found.get(key, finding.onset))
    return (Sample(key, onset) for key, onset in found.items())


def rails(scene: Scene) -> Iterable[Sample]:
    """Open findings about a rail as a whole, by rail and job."""
    about = [f for f in _open(scene.snapshot) if _is_of_rail(f)]
    jobs = tuple(dict.fromkeys(finding.subject.job or "" for finding in about))
    room = len(jobs) if len(jobs) <= MOST_JOBS else MOST_JOBS - 1
    named = frozenset(jobs[:room])
    found: Counter[tuple[object, ...]] = Counter()
    for finding in about:
        job = finding.subject.job or ""
        what = (finding.kind, finding.severity.word, finding.part)
        found[*what, finding.subject.rail, job if job in named else OTHER] += 1
    return (Sample(key, count) for key, count in found.items())


def _open(snapshot: Snapshot) -> Iterator[Finding]:
    for incident in snapshot.incidents:
        if not incident.dry_run and incident.state is not IncidentState.RESOLVED:
            yield incident.finding


def _is_of_rail(finding: Finding) -> bool:
    subject = finding.subject
    return subject.rail is not None and subject.device is None
