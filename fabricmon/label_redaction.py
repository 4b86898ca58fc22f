"""A snapshot without the names of jobs and peers that metrics may not tell. Pure."""

from __future__ import annotations

from dataclasses import replace

from fabricmon.config import LabelRedaction, Redaction
from fabricmon.model import Incident, JobFacts, JobView, Snapshot
from fabricmon.redaction import Redactor
from fabricmon.topology import addresses_of


def make_redactor(policy: LabelRedaction, key: bytes) -> Redactor:
    """Return what applies the policy of labels; raises ValueError for a short key."""
    return Redactor(Redaction(jobs=policy.jobs, peers=policy.peers), key)


def redacted(snapshot: Snapshot, redactor: Redactor) -> Snapshot:
    """Return the snapshot as it may be exported; what is removed has no series."""
    return replace(
        snapshot,
        job=_job_view(snapshot.job, redactor),
        job_facts=_facts(snapshot.job_facts, redactor),
        incidents=tuple(_incident(item, redactor) for item in snapshot.incidents),
        topology=replace(snapshot.topology, addresses=_addresses(snapshot, redactor)),
        host_side=replace(snapshot.host_side, addresses=None),
    )


def _addresses(snapshot: Snapshot, redactor: Redactor) -> tuple[str, ...]:
    """Return what stands for the node's own addresses: a peer's name for it."""
    names = map(redactor.peer, addresses_of(snapshot))
    return tuple(name for name in names if name)


def _job_view(view: JobView, redactor: Redactor) -> JobView:
    uses = ((redactor.job(use.job), use) for use in view.jobs)
    carriers = ((redactor.job(each.job), each) for each in view.transports)
    return replace(
        view,
        jobs=tuple(replace(use, job=name) for name, use in uses if name),
        transports=tuple(replace(each, job=n) for n, each in carriers if n),
        gids=(),  # their addresses are among those of the node
    )


def _facts(facts: JobFacts, redactor: Redactor) -> JobFacts:
    budgets = ((redactor.job(each.job), each) for each in facts.budgets)
    votes = ((redactor.peer(each.peer), each) for each in facts.votes)
    return JobFacts(
        tuple(replace(each, job=name) for name, each in budgets if name),
        tuple(replace(each, peer=name) for name, each in votes if name),
    )


def _incident(incident: Incident, redactor: Redactor) -> Incident:
    subject = incident.finding.subject
    if subject.job is None and subject.peer is None:
        return incident
    shown = replace(
        subject, job=redactor.job(subject.job), peer=redactor.peer(subject.peer)
    )
    return replace(incident, finding=replace(incident.finding, subject=shown))
