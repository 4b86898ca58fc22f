"""From findings to incidents: one story per cause, told once, until it is over.

An incident is a finding with an identity. It opens when a finding is new, is updated
when its severity, part or action changes, and is resolved when the finding was gone
for the kind's ``clear_seconds``; an event resolves ``hold_seconds`` after it was last
seen. A subject that cannot be seen now resolves nothing. A kind that is switched off
or to shadow takes its open incidents along.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256

from fabricmon.config import Config, Mode
from fabricmon.covers import covers_of, told_with
from fabricmon.kinds import BY_SLUG, KINDS, Kind
from fabricmon.maintenance import under_maintenance
from fabricmon.model import (
    Action,
    Finding,
    Incident,
    IncidentState,
    MaintenanceWindow,
    Severity,
    Subject,
)
from fabricmon.summaries import one_line, span

SEQUENCE_GAP = 1000
"""Numbers left out after a restart: more than are given between two saves."""

JOINED = frozenset({"config_mismatch", "telemetry_stale"})
"""Kinds of which several may be found at one place: one story, all of it."""

_Key = tuple[str, str]
_Place = tuple[str, str | None, int | None]
_RANK = {action: rank for rank, action in enumerate(Action)}


def identity(finding: Finding) -> str:
    """Join what the kind is about with ``/``: ``mlx5_0/1``, empty for the node.

    These are the fields of `fabricmon.kinds.About`, in its order; a field that the
    subject lacks is empty.
    """
    fields = BY_SLUG[finding.kind].about.fields
    values = (getattr(finding.subject, field) for field in fields)
    return "/".join("" if value is None else str(value) for value in values)


def incident_id(node: str, finding: Finding) -> str:
    """Return the id that an incident gets when this finding opens it.

    First 16 hexadecimal digits of SHA-256 over ``node|kind|identity|onset``, the onset
    in whole milliseconds of Unix time.
    """
    onset = round(finding.onset * 1000)
    text = f"{node}|{finding.kind}|{identity(finding)}|{onset}"
    return sha256(text.encode("utf-8", "backslashreplace")).hexdigest()[:16]


@dataclass(slots=True)
class _Case:
    """An open incident and when it was last seen, monotonic."""

    incident: Incident
    kind: Kind
    seen_at: float
    unseen_since: float | None = None
    milder_since: float | None = None

    @property
    def place(self) -> _Place:
        return _place(self.incident.finding)


class Incidents:
    """The open incidents of one node."""

    def __init__(self, config: Config, node: str) -> None:
        """Start without any."""
        self._node = node
        self._limits = config.link_state
        self._modes: dict[str, Mode] = config.kinds
        self._runbooks = config.runbooks
        self._covers = {kind.slug: covers_of(kind.slug) for kind in KINDS}
        self._cases: dict[_Key, _Case] = {}
        self._seq = 0

    @property
    def seq(self) -> int:
        """The last number given."""
        return self._seq

    def open(self) -> tuple[Incident, ...]:
        """Return the open incidents as they stand, oldest first."""
        return tuple(case.incident for case in self._cases.values())

    @property
    def are_grave(self) -> bool:
        """Tell whether one of them is worse than information."""
        cases = self._cases.values()
        return any(case.incident.finding.severity > Severity.INFO for case in cases)

    def update(
        self,
        now: float,
        wall: float,
        findings: Iterable[Finding],
        held: Callable[[Subject], bool],
        maintenance: Sequence[MaintenanceWindow],
    ) -> tuple[Incident, ...]:
        """Take in all that holds now; return what opened, changed or was resolved.

        ``held`` tells that a subject cannot be seen now (its values are old), so that
        its absence means nothing. What is worked on opens nothing and changes nothing;
        it may be resolved, and opens after the window if it is still there.
        """
        live = self._choose(findings)
        if not live and not self._cases:
            return ()
        changes = self._follow_modes(wall)
        changes += self._resolve(live, now, wall, held)
        told = self._told(live)
        speaking: set[tuple[str, str | None]] = set()
        for key, finding in _leaders_first(live):
            silent = under_maintenance(finding.subject, maintenance, wall)
            silent = silent or self._is_covered(finding, wall, told)
            silent = silent or (finding.kind, told_with(finding)) in speaking
            case = self._cases.get(key)
            if case is not None or not silent:
                speaking.add((finding.kind, finding.subject.device))
            if case is not None:
                changes += self._see(case, finding, now, wall, silent=silent)
            elif not silent:
                changes.append(self._begin(key, finding, now, wall))
        return tuple(changes)

    def save(self) -> tuple[Incident, ...]:
        """Return what must survive a restart, beside `seq`."""
        return self.open()

    def restore(
        self, incidents: Iterable[Incident], seq: int, now: float, wall: float
    ) -> None:
        """Go on with the incidents of an earlier run: same ids, nothing told again.

        They stay until ``held`` is False for their subject and no finding is there.
        """
        self._seq = seq + SEQUENCE_GAP
        for incident in incidents:
            kind = BY_SLUG.get(incident.finding.kind)
            if kind is not None:
                key = (kind.slug, identity(incident.finding))
                seen_at = now - max(wall - incident.last_seen, 0)
                self._cases[key] = _Case(incident, kind, seen_at)

    def _choose(self, findings: Iterable[Finding]) -> dict[_Key, Finding]:
        """Drop kinds that are off; of several findings of one identity keep the worst."""
        chosen: dict[_Key, Finding] = {}
        for finding in findings:
            if self._mode(finding.kind) == "off":
                continue
            key = (finding.kind, identity(finding))
            known = chosen.get(key)
            if known is None:
                chosen[key] = finding
            elif finding.kind in JOINED:
                chosen[key] = _joined(known, finding)
            elif _weight(finding) > _weight(known):
                chosen[key] = finding
        return chosen

    def _follow_modes(self, wall: float) -> list[Incident]:
        """Resolve what is off now; alert on what is on, and on shadow no more."""
        changes = []
        for key, case in tuple(self._cases.items()):
            mode = self._mode(case.kind.slug)
            if mode == "off":
                changes.append(self._end(key, wall))
            elif case.incident.dry_run != (mode == "shadow"):
                moved = replace(case.incident, dry_run=mode == "shadow")
                update = IncidentState.UPDATE
                case.incident = self._tell(moved, moved.finding, update, wall)
                changes.append(case.incident)
        return changes

    def _resolve(
        self,
        live: dict[_Key, Finding],
        now: float,
        wall: float,
        held: Callable[[Subject], bool],
    ) -> list[Incident]:
        changes = []
        for key, case in tuple(self._cases.items()):
            if key not in live and _is_over(case, now, held):
                changes.append(self._end(key, wall))
        return changes

    def _end(self, key: _Key, wall: float) -> Incident:
        """Close a case; its summary is of the past from now on."""
        case = self._cases.pop(key)
        finding = case.incident.finding
        age = wall - finding.onset
        # How long an event is shown says nothing; nor does a clock that was set back.
        after = "" if case.kind.event or age < 0 else f" after {span(age)}"
        summary = one_line(f"resolved{after}: {finding.summary}")
        past = replace(finding, summary=summary)
        return self._tell(case.incident, past, IncidentState.RESOLVED, wall)

    def _told(self, live: dict[_Key, Finding]) -> dict[_Place, bool]:
        """Return the kinds that hold at each place, with whether they are alerted on."""
        told = {case.place: not case.incident.dry_run for case in self._cases.values()}
        for finding in live.values():
            told[_place(finding)] = self._mode(finding.kind) == "on"
        return told

    def _is_covered(
        self, finding: Finding, wall: float, told: dict[_Place, bool]
    ) -> bool:
        """Tell whether another finding tells this one's story.

        A kind in shadow covers only what is in shadow itself.
        """
        subject = finding.subject
        if subject.device is None:
            return False
        enough = (True,) if self._mode(finding.kind) == "on" else (True, False)
        age = wall - finding.onset
        return any(
            told.get((row.kind, subject.device, port)) in enough
            for row in self._covers[finding.kind]
            if age < row.younger_than(self._limits)
            for port in (subject.port, None)
        )

    def _begin(self, key: _Key, finding: Finding, now: float, wall: float) -> Incident:
        kind = BY_SLUG[finding.kind]
        blank = Incident(
            id=incident_id(self._node, finding),
            seq=0,
            state=IncidentState.OPEN,
            time=wall,
            finding=finding,
            node=self._node,
            runbook=f"{self._runbooks}{kind.slug}.md",
            dry_run=self._mode(finding.kind) == "shadow",
            last_seen=wall,
        )
        incident = self._tell(blank, finding, IncidentState.OPEN, wall)
        self._cases[key] = _Case(incident, kind, now)
        return incident

    def _see(
        self, case: _Case, finding: Finding, now: float, wall: float, *, silent: bool
    ) -> tuple[Incident, ...]:
        case.seen_at, case.unseen_since = now, None
        old = case.incident.finding
        if silent or self._waits(case, finding, now):
            case.incident = replace(case.incident, last_seen=wall)
            return ()
        case.milder_since = None
        finding = replace(finding, onset=old.onset)
        if _verdict(finding) == _verdict(old):
            case.incident = replace(case.incident, finding=finding, last_seen=wall)
            return ()
        case.incident = self._tell(case.incident, finding, IncidentState.UPDATE, wall)
        case.incident = replace(case.incident, last_seen=wall)
        return (case.incident,)

    def _waits(self, case: _Case, finding: Finding, now: float) -> bool:
        """Tell whether a milder judgement must hold on before it is believed.

        Otherwise a value at a threshold would give an update at every poll. An event
        is as bad as its worst moment.
        """
        if _weight(finding)[:2] >= _weight(case.incident.finding)[:2]:
            return False
        if case.kind.event:
            return True
        if case.milder_since is None:
            case.milder_since = now
        return now - case.milder_since < case.kind.clear_seconds

    def _tell(
        self, incident: Incident, finding: Finding, state: IncidentState, wall: float
    ) -> Incident:
        self._seq += 1
        return replace(incident, seq=self._seq, state=state, time=wall, finding=finding)

    def _mode(self, kind: str) -> Mode:
        return self._modes.get(kind, "on")


def _leaders_first(live: dict[_Key, Finding]) -> list[tuple[_Key, Finding]]:
    """Return what tells of others before those: it may be silent itself."""
    return sorted(live.items(), key=lambda item: told_with(item[1]) is not None)


def _is_over(case: _Case, now: float, held: Callable[[Subject], bool]) -> bool:
    if case.kind.event:
        return now - case.seen_at >= case.kind.hold_seconds
    if held(case.incident.finding.subject):
        case.unseen_since = None
        return False
    if case.unseen_since is None:
        case.unseen_since = now
    return now - case.unseen_since >= case.kind.clear_seconds


def _place(finding: Finding) -> _Place:
    return finding.kind, finding.subject.device, finding.subject.port


def _joined(known: Finding, finding: Finding) -> Finding:
    """Return the worse of two with the evidence of both, the worse one's first."""
    worse, other = known, finding
    if _weight(finding) > _weight(known):
        worse, other = finding, known
    return replace(worse, evidence=(*worse.evidence, *other.evidence))


def _weight(finding: Finding) -> tuple[Severity, int, float]:
    return finding.severity, _RANK[finding.action], finding.confidence


def _verdict(finding: Finding) -> tuple[object, ...]:
    return finding.severity, finding.part, finding.action
