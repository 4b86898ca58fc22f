"""Findings out of what logs say, with what the ports showed beside it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from fabricmon.detect.nccl_incident import LogIncident
from fabricmon.detect.nccl_places import may_be_link, may_follow
from fabricmon.model import (
    Evidence,
    Finding,
    Part,
    PeerVotes,
    Severity,
    Subject,
    View,
)
from fabricmon.parse.log_event import LogEvent, LogSeverity
from fabricmon.parse.nccl_codes import completion
from fabricmon.stories.job import JobStory
from fabricmon.stories.nature import (
    ASYNC,
    COMPLETION,
    PORT_ERROR,
    Nature,
    Phase,
    status_text,
)
from fabricmon.stories.story import Trouble
from fabricmon.summaries import one_line, span

SOURCE = "nccl_log"
"""Where evidence comes from that a log gave."""

MAX_EVIDENCE = 12
"""Items of one finding; the first explain most."""

MAX_TEXT = 255
"""Characters of names in one item of evidence."""

_GRAVE = frozenset({Nature.LINK, Nature.PATH, Nature.PEER, Nature.DEVICE})
_CONFIRMED, _LIKELY, _HEARD = 0.9, 0.6, 0.4  # health-systems weights of log and port

_JOINED = frozenset(
    {
        "device_missing",
        "link_errors",
        "link_unstable",
        "port_down",
        "port_flap",
        "port_flapping",
        "port_not_active",
        "rate_degraded",
    }
)
"""Kinds whose findings take what a log says of their port as further evidence."""


def tell_error(incident: LogIncident, view: View) -> Finding:
    """Return the finding of an incident as it stands now."""
    root, place = incident.root, incident.place
    port = place.port if may_follow(root) else None
    joined = () if port is None else incident.shown
    own = any(each.newest.is_own for each in joined)
    shown = tuple(each.evidence(view.now) for each in joined)
    cause = _cause(root, own=own)
    evidence = (
        *_log_evidence(incident),
        *shown,
        *_settings_evidence(root),
        *_jobs_evidence(incident),
    )
    return Finding(
        kind="nccl_error",
        subject=_subject(incident, view),
        onset=_onset(incident),
        evidence=evidence[:MAX_EVIDENCE],
        summary=one_line(_error_summary(incident, shown, cause)),
        severity=_severity(incident, cause),
        part=Part.CULPRIT if own else Part.OBSERVER,
        confidence=_CONFIRMED if own else _LIKELY if shown else _HEARD,
    )


def _onset(incident: LogIncident) -> float:
    if incident.onset is not None:
        return incident.onset
    return incident.seen if incident.root.first is None else incident.root.first


def tell_fallback(job: JobStory, active: int, since: float) -> Finding:
    """Return that a job over several nodes goes by TCP although ports are ACTIVE."""
    nodes = f"{job.nodes} nodes" if job.nodes else "several nodes"
    networks = ", ".join(job.networks) or "sockets"
    return Finding(
        kind="nccl_fallback",
        subject=Subject(job=job.name or None),
        onset=since,
        evidence=(
            Evidence("network", networks, "", SOURCE),
            Evidence("active_rdma_ports", active, "ports", "sysfs", threshold=1),
        ),
        summary=one_line(
            f"NCCL sends over TCP ({networks}) between {nodes}, "
            f"{active} RDMA ports here are ACTIVE: no port is at fault"
        ),
        severity=Severity.WARNING,
        part=Part.OBSERVER,
        confidence=_CONFIRMED,
    )


def tell_peer(votes: PeerVotes, least: int, window: float) -> Finding:
    """Return that several observers here name one peer."""
    return Finding(
        kind="peer_suspect",
        subject=Subject(peer=votes.peer),
        onset=votes.since,
        evidence=(
            Evidence("peer_votes", votes.votes, "observers", SOURCE, least, window),
        ),
        summary=one_line(
            f"{votes.votes} connections here failed towards {votes.peer}: "
            "look there, this node only sees it"
        ),
        severity=Severity.WARNING,
        part=Part.OBSERVER,
        confidence=_LIKELY,
    )


def annotated(
    finding: Finding, incidents: Iterable[LogIncident], wall: float
) -> Finding:
    """Return a finding about a port with what logs said of that port."""
    subject = finding.subject
    if finding.kind not in _JOINED or subject.device is None:
        return finding
    about = [
        trouble
        for incident in incidents
        for trouble in incident.troubles
        if may_follow(trouble) and _is_about(incident, trouble, subject)
    ]
    heard = [_trouble_evidence(same, wall) for same in _alike(about)]
    if not heard:
        return finding
    return replace(finding, evidence=(*finding.evidence, *heard)[:MAX_EVIDENCE])


def _is_about(incident: LogIncident, trouble: Trouble, subject: Subject) -> bool:
    port = incident.place.port
    if port is not None:
        return port.device == subject.device and subject.port in {None, port.port}
    event = trouble.root
    return event.device == subject.device and (
        subject.port is None or event.port in {None, subject.port}
    )


def _subject(incident: LogIncident, view: View) -> Subject:
    port, device = incident.place.port, None
    info = next((p.info for p in view.ports if p.info.id == port), None)
    if port is not None:
        device = port.device
    return Subject(
        device=device,
        port=None if port is None else port.port,
        rail=None if info is None else info.rail,
        netdev=None if info is None else info.netdev,
        peer=incident.peer,
        job=incident.job,
        comm=incident.root.root.comm,
    )


def _cause(root: Trouble, *, own: bool) -> Nature:
    """Return where to look: a port with a fault of its own is no matter of set-up."""
    return Nature.LINK if own and may_be_link(root) else root.nature


def _severity(incident: LogIncident, cause: Nature) -> Severity:
    """Critical is what a link, a path, a peer or a device may be at fault for.

    What a row of the operator's own calls critical is that.
    """
    if _is_hearsay(incident):
        return Severity.INFO
    if not cause.is_network:
        return Severity.WARNING
    root, *others = incident.troubles
    natures = ((cause, root), *((each.nature, each) for each in others))
    grave = any(
        (nature in _GRAVE or trouble.root.library is None)
        and trouble.root.severity is LogSeverity.CRITICAL
        for nature, trouble in natures
    )
    return Severity.CRITICAL if grave else Severity.WARNING


def _is_hearsay(incident: LogIncident) -> bool:
    """Tell an event of a port that is none of this node's, or that no port here shows.

    Its own files say more of a port than a line of text, which anybody can write.
    """
    return incident.place.port is None and all(
        trouble.root.kind == ASYNC and status_text(trouble.root) == PORT_ERROR
        for trouble in incident.troubles
    )


def _log_evidence(incident: LogIncident) -> Iterator[Evidence]:
    """Yield what the lines say, once for all the ports and processes that say it."""
    for same in _alike(incident.troubles):
        yield _trouble_evidence(same, incident.heard)


def _alike(troubles: Sequence[Trouble]) -> Iterator[list[Trouble]]:
    """Yield troubles that say the same of different ports together."""
    found: dict[object, list[Trouble]] = defaultdict(list)
    for trouble in troubles:
        event = trouble.root
        found[event.rule, event.kind, _status(event)].append(trouble)
    yield from found.values()


def _trouble_evidence(same: Sequence[Trouble], wall: float) -> Evidence:
    event, first = same[0].root, same[0].first
    return Evidence(
        f"{event.rule} {event.kind}",
        _status(event),
        f"{_lines(same)} lines",
        SOURCE,
        window_seconds=None if first is None else round(max(wall - first, 0), 1),
    )


def _lines(troubles: Iterable[Trouble]) -> int:
    return sum(trouble.reports + trouble.consequences for trouble in troubles)


def _jobs_evidence(incident: LogIncident) -> Iterator[Evidence]:
    """Yield the jobs where several suffer: the subject names the first of them."""
    if len(incident.jobs) > 1:
        names = ", ".join(incident.jobs[:MAX_EVIDENCE])
        yield Evidence("jobs", names[:MAX_TEXT], "", SOURCE)


def _settings_evidence(trouble: Trouble) -> Iterator[Evidence]:
    budget = trouble.budget
    if budget is not None and budget.seconds is not None:
        yield Evidence("outage_budget", round(budget.seconds, 1), "s", SOURCE)


def _status(event: LogEvent) -> int | str | None:
    return event.status if event.status is not None else event.cause


def _error_summary(
    incident: LogIncident, shown: tuple[Evidence, ...], cause: Nature
) -> str:
    root, place = incident.root, incident.place
    where = f" on {place.port}" if place.port is not None else ""
    named = {peer for trouble in incident.troubles for peer in trouble.peers}
    others = " and others" if len(named) > 1 else ""
    peer = f" to {incident.peer}{others}" if incident.peer else ""
    number = _lines(incident.troubles)
    lines = "1 line" if number == 1 else f"{number} lines"
    start = ", at the start" if root.phase is Phase.START else ""
    seen = ", ".join(_short(item) for item in shown[:2])
    port = f"; port: {seen}" if seen else "; the port shows nothing"
    if place.port is None:
        port = f"; {place.how}"
    elif not may_follow(root):
        port = "; no port is at fault"
    return (
        f"NCCL {_what(root.root)}{where}{peer}{start}: {cause.value}; {lines} of "
        f"{_processes(incident)}{port}"
    )


def _what(event: LogEvent) -> str:
    if event.kind == COMPLETION and isinstance(event.status, int):
        return f"status {event.status} {completion(event.status).name}"
    status = "" if event.status is None else f" ({event.status})"
    return f"{event.kind.replace('_', ' ')}{status}"


def _processes(incident: LogIncident) -> str:
    told = (trouble.members for trouble in incident.troubles)
    number = len(frozenset[object]().union(*told))
    text = "1 process" if number == 1 else f"{number} processes"
    jobs = len(incident.jobs)
    return f"{text} of {jobs} jobs" if jobs > 1 else text


def _short(item: Evidence) -> str:
    if item.unit == "state":
        return f"{item.value}"
    window = "" if item.window_seconds is None else f" in {span(item.window_seconds)}"
    return f"{item.signal} +{item.value}{window}"
