"""The documents of ``check``: from a running agent, a sample, or ibstat's output."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import msgspec

from fabricmon.cli.document import (
    Document,
    Json,
    check_document,
    failure_object,
    why_not_read,
)
from fabricmon.detect.sample import Judgement, judge_lifetime, judge_port
from fabricmon.finding_document import (
    FindingDocument,
    finding_document,
    sample_document,
)
from fabricmon.job_hearsay import ports_of
from fabricmon.model import (
    Finding,
    JobUse,
    PortId,
    PortInfo,
    Severity,
    Snapshot,
    Verdict,
)
from fabricmon.parse.device_list import parse_device_list
from fabricmon.parse.report import PortReport, Report, ToolFailure
from fabricmon.sample_findings import sample_findings
from fabricmon.snapshot_report import report, tool_failure
from fabricmon.verdicts import of_finding

if TYPE_CHECKING:  # dear to import, and not there for who asks the agent
    from fabricmon.pipeline import Pipeline
    from fabricmon.sampling import Sampler

WHOLE_DEVICE = Judgement(Verdict.HEALTHY)
"""What a device counts as a whole has no state of its own."""

REASON_CHARACTERS = 80
"""Longest reason: Slurm's lists cut what is longer."""

_DEVICES = "NCCL_IB_HCA"

_NAGIOS = {
    Verdict.HEALTHY: "OK",
    Verdict.DEGRADED: "WARNING",
    Verdict.DOWN: "CRITICAL",
    Verdict.UNKNOWN: "UNKNOWN",
}


def from_pipeline(pipeline: Pipeline) -> Document:
    """Return what the agent holds to be true: its findings and verdicts."""
    snapshot = pipeline.snapshot
    known = {port.info.id: port for port in snapshot.ports}

    def judge(port: PortReport) -> Judgement:
        if port.port == 0:
            return WHOLE_DEVICE
        seen = known[PortId(port.device, port.port)]
        # Detectors judge what happens; what was before the agent is told as a sample
        # tells it, or the answer would depend on who gives it.
        against = judge_lifetime(port)
        verdict = max(seen.verdict, Verdict.DEGRADED) if against else seen.verdict
        return Judgement(verdict, (*seen.reasons, *against))

    document = check_document(
        report(snapshot),
        node=snapshot.node,
        findings=[_plain(finding_document(item)) for item in snapshot.incidents],
        judge=judge,
    )
    wide = [item for item in snapshot.incidents if item.finding.subject.port is None]
    reasons = [item.finding.summary for item in wide]
    document.content["errors"] += map(failure_object, _complaints(snapshot))
    document.content["jobs"] = [_job(use, snapshot) for use in snapshot.job.jobs]
    return _concluded(document, "agent", snapshot.verdict, reasons)


def from_sample(sampler: Sampler, interval_seconds: float | None) -> Document:
    """Return what one look, or two, can tell: state, and counters out of proportion."""
    snapshot = sampler.pipeline.snapshot
    alone = tuple(_all_findings(sampler, snapshot))

    def judge(port: PortReport) -> Judgement:
        if port.port == 0:
            return WHOLE_DEVICE
        lifetime = judge_port(port)
        mine = [finding for finding in alone if _is_about(finding, port)]
        grown = tuple(_growth(sampler, port, interval_seconds))
        verdict = max(map(of_finding, mine), default=Verdict.HEALTHY)
        if grown:
            verdict = max(verdict, Verdict.DEGRADED)
        reasons = (*lifetime.reasons, *(finding.summary for finding in mine), *grown)
        return Judgement(max(lifetime.verdict, verdict), reasons)

    document = check_document(
        report(snapshot),
        node=snapshot.node,
        findings=[
            _plain(sample_document(finding, snapshot.node, snapshot.wall))
            for finding in alone
        ],
        judge=judge,
    )
    wide = [finding for finding in alone if finding.subject.port is None]
    worst = max(map(of_finding, wide), default=Verdict.HEALTHY)
    return _concluded(document, "sample", worst, [item.summary for item in wide])


def from_ibstat(read: Report, node: str) -> Document:
    """Return what ibstat's output alone can tell."""
    return _concluded(check_document(read, node=node), "sample", Verdict.HEALTHY, [])


def reason(content: Json) -> str:
    """Say the worst in one line of at most 80 characters; empty if healthy."""
    worst = content["verdict"]
    if worst == "healthy":
        return ""
    told = [
        _named(f"{port['device']}/{port['port']}", why)
        for port in content["ports"]
        if port["verdict"] == worst
        for why in (port["reasons"] or [worst])[:1]
    ]
    told += content.get("reasons", [])
    told += [_named(e["device"] or "", why_not_read(e)) for e in content["errors"]]
    line = " ".join(f"fabricmon: {(told or [worst])[0]}".split())
    more = f" (+{len(told) - 1})" if len(told) > 1 else ""
    room = REASON_CHARACTERS - len(more)
    return (line if len(line) <= room else line[: room - 3] + "...") + more


def nagios(document: Document) -> str:
    """Say the worst as a plugin of Nagios does."""
    ports = sum(port["port"] > 0 for port in document.content["ports"])
    why = reason(document.content) or f"{ports} ports"
    return f"FABRIC {_NAGIOS[document.verdict]} - {why}"


def _named(subject: str, text: str) -> str:
    """Put a name before what is said of it, unless it is there already."""
    there = not subject or text.startswith(f"{subject} ")
    return text if there else f"{subject} {text}"


def _concluded(
    document: Document, source: str, floor: Verdict, reasons: Iterable[str]
) -> Document:
    """Add who says so, and what is said of the node as a whole."""
    verdict = max(document.verdict, floor)
    content = document.content | {"verdict": verdict.word, "source": source}
    told = [*content.get("reasons", []), *reasons]
    if told:
        content["reasons"] = told
    return Document(content, verdict)


def _job(use: JobUse, snapshot: Snapshot) -> Json:
    """Return a job and the ports it uses, none where they are not known.

    What it was given or was seen to use comes before what its settings choose.
    """
    infos = [port.info for port in snapshot.ports]
    found = ports_of(use, infos) or _chosen(use, snapshot, infos)
    return {"job": use.job, "ports": [f"{i.id.device}/{i.id.port}" for i in found]}


def _chosen(
    use: JobUse, snapshot: Snapshot, infos: Iterable[PortInfo]
) -> tuple[PortInfo, ...]:
    """Return the ports that the job's processes may use by ``NCCL_IB_HCA``."""
    lists = [
        parse_device_list(setting.value)
        for process in snapshot.job.processes
        if process.job == use.job
        for setting in process.settings
        if setting.name == _DEVICES
    ]
    return tuple(
        info
        for info in infos
        if any(each.chooses(info.id.device, info.id.port) for each in lists)
    )


def _complaints(snapshot: Snapshot) -> Iterator[ToolFailure]:
    """Go through what is wrong and leaves nothing unknown of the fabric."""
    if snapshot.unsaved is not None:
        yield tool_failure(snapshot.unsaved)
    if snapshot.unrecorded is not None:
        yield tool_failure(snapshot.unrecorded)
    if snapshot.maintenance_error is not None:
        yield ToolFailure("maintenance", snapshot.maintenance_error)


def _all_findings(sampler: Sampler, snapshot: Snapshot) -> Iterator[Finding]:
    """Go through what the look proves, and what detectors found in an interval."""
    found = [incident.finding for incident in snapshot.incidents]
    found = [each for each in found if each.severity is not Severity.INFO]
    told = {_place(finding) for finding in found}
    for finding in sample_findings(snapshot, sampler.pipeline.config):
        if _place(finding) not in told:
            yield finding
    yield from found


def _place(finding: Finding) -> tuple[object, ...]:
    return finding.kind, finding.subject.device, finding.subject.port


def _plain(document: FindingDocument) -> Json:
    """Return a finding's document as the mapping that it is printed as."""
    return dict(msgspec.to_builtins(document))


def _is_about(finding: Finding, port: PortReport) -> bool:
    subject = finding.subject
    return (subject.device, subject.port) == (port.device, port.port)


def _growth(sampler: Sampler, port: PortReport, seconds: float | None) -> Iterator[str]:
    if seconds is None:
        return
    for delta in sampler.growth(PortId(port.device, port.port), seconds):
        yield f"{delta.spec.file} +{delta.increase} in {delta.seconds:.0f} s"
