"""Payloads of MQTT: UTF-8 JSON as other programs read it. Pure."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable

import msgspec

from fabricmon import __version__
from fabricmon.detect.sample import Judgement, judge_lifetime
from fabricmon.finding_document import FindingDocument, rfc3339
from fabricmon.model import IncidentState, PortSnapshot, Snapshot, Verdict
from fabricmon.parse.report import PortReport
from fabricmon.port_document import Json, port_object
from fabricmon.redaction import Names
from fabricmon.snapshot_report import port_report

SUMMARY_SCHEMA = "fabricmon.summary/1"
ONLINE, OFFLINE = "online", "offline"
_COUNTERS = ("counters", "hw_counters")


def status(state: str, since: float) -> bytes:
    """Return that the node is online or offline since a time, Unix seconds.

    In a last will, which is written before it is needed, that is when the connection
    began that was lost.
    """
    return dump({"state": state, "since": rfc3339(since), "version": __version__})


def finding(document: FindingDocument) -> bytes:
    """Return one finding."""
    return msgspec.json.encode(document)


def judged(seen: PortSnapshot) -> Judgement:
    """Judge a port as ``check`` does: its lifetime counters have their say."""
    against = judge_lifetime(port_report(seen))
    verdict = max(seen.verdict, Verdict.DEGRADED) if against else seen.verdict
    return Judgement(verdict, (*seen.reasons, *against))


def port(told: PortReport, judgement: Judgement) -> bytes:
    """Return a port as ``check`` prints it, without its counters."""
    content = port_object(told, judgement)
    return dump({key: each for key, each in content.items() if key not in _COUNTERS})


def counts(snapshot: Snapshot, verdicts: Iterable[Verdict]) -> Json:
    """Return how many findings are open and how the ports are, without names."""
    open_: dict[str, Counter[str]] = {}
    for incident in snapshot.incidents:
        if incident.state is not IncidentState.RESOLVED:
            kind = open_.setdefault(incident.finding.kind, Counter())
            kind[incident.finding.severity.word] += 1
    ports = Counter(verdict.word for verdict in verdicts)
    return {
        "open": {kind: dict(found) for kind, found in sorted(open_.items())},
        "ports": {each.word: ports[each.word] for each in Verdict if ports[each.word]},
    }


def summary(counted: Json, wall: float) -> bytes:
    """Return these counts as of a time, Unix seconds."""
    return dump({"schema": SUMMARY_SCHEMA, "time": rfc3339(wall), **counted})


def names_of(snapshot: Snapshot) -> Names:
    """Return the names of jobs and peers that are known now."""
    subjects = [incident.finding.subject for incident in snapshot.incidents]
    jobs = {use.job for use in snapshot.job.jobs}
    peers = {vote.peer for vote in snapshot.job_facts.votes}
    jobs |= _given(subject.job for subject in subjects)
    peers |= _given(subject.peer for subject in subjects)
    return Names(frozenset(jobs), frozenset(peers))


def _given(names: Iterable[str | None]) -> set[str]:
    return {name for name in names if name}


def dump(content: Json) -> bytes:
    """Return JSON that any reader takes: UTF-8, no NaN, no half surrogates."""
    text = json.dumps(content, ensure_ascii=False, allow_nan=False)
    return text.encode("utf-8", "replace")
