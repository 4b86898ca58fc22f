"""One canonical log line for each finding that opens, changes or resolves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fabricmon.config import Config, LineRedaction
from fabricmon.finding_document import finding_document
from fabricmon.model import Health, Incident, IncidentState, Severity, Snapshot
from fabricmon.redaction import WITHHELD, Names, Redactor
from fabricmon.runtime.heartbeat import Heartbeat
from fabricmon.runtime.logging import Changes
from fabricmon.sinks.name_key import load_key
from fabricmon.value import Value

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

MOST_EVIDENCE = 4
"""Pieces of evidence in one line; the rest is in the finding."""

MOST_TOLD = 1000
"""Problems that are not said again; a job may make new ones without end."""


class _Line(Value, frozen=True):
    """What of a finding is in its line beside words of fabricmon's own."""

    summary: str
    evidence: tuple[str, ...]
    id: str | None


class LogSink:
    """Writes changes of findings, and of what the agent can see."""

    name = "log"

    def __init__(
        self, log: FilteringBoundLogger, redactor: Redactor | None = None
    ) -> None:
        """Write to ``log``; None: it may name everything."""
        self._log = log
        self._redactor = redactor
        self._changes = Changes()
        self._failing: set[tuple[str, str]] = set()
        self._told: set[str] = set()

    def open(self) -> None:
        """Nothing to start."""

    def publish(self, snapshot: Snapshot, changes: tuple[Incident, ...]) -> None:
        """Write what changed since the last snapshot."""
        for incident in changes:
            self._write(incident, snapshot)
        if self._changes.note("class", snapshot.class_error) and snapshot.class_error:
            self._log.warning("devices_unreadable", err=snapshot.class_error)
        error = snapshot.maintenance_error
        if self._changes.note("maintenance", error) and error:
            self._log.warning("maintenance_ignored", err=error)
        self._note_problems(snapshot)
        for health in snapshot.health:
            if self._failing or not health.ok or health.quarantined is not None:
                self._note_health(health)

    def close(self) -> None:
        """Nothing to stop."""

    def _write(self, incident: Incident, snapshot: Snapshot) -> None:
        finding = incident.finding
        told = self._told_of(incident, snapshot)
        subject = finding.subject
        where = {"device": subject.device, "port": subject.port, "rail": subject.rail}
        over = incident.state is IncidentState.RESOLVED
        mild = over or finding.severity is Severity.INFO
        line = self._log.info if mild else self._log.warning
        line(
            f"finding_{incident.state.value}",
            summary=told.summary,
            kind=finding.kind,
            severity=finding.severity.word,
            action=finding.action.value,
            **{key: value for key, value in where.items() if value is not None},
            evidence=list(told.evidence),
            id=told.id,
        )

    def _told_of(self, incident: Incident, snapshot: Snapshot) -> _Line:
        """Return what may be told of a finding."""
        if self._redactor is None:
            finding = incident.finding
            shown = finding.evidence[:MOST_EVIDENCE]
            facts = tuple(f"{item.signal}={item.value}" for item in shown)
            return _Line(finding.summary, facts, incident.id)
        document = self._redactor.finding(finding_document(incident), _names(snapshot))
        return _Line(
            document.summary,
            tuple(
                f"{item.signal}={WITHHELD if item.value is None else item.value}"
                for item in document.evidence[:MOST_EVIDENCE]
            ),
            document.id,
        )

    def _note_problems(self, snapshot: Snapshot) -> None:
        """Say once what stands in the way of logs and jobs."""
        if len(self._told) > MOST_TOLD:
            self._told.clear()
        for problem in snapshot.job.problems:
            if problem not in self._told:
                self._told.add(problem)
                err = problem
                if self._redactor is not None:
                    err = self._redactor.text(problem, _names(snapshot))
                self._log.warning("jobs_unseen", err=err)

    def _note_health(self, health: Health) -> None:
        """Say when a source starts or ceases to fail; that it is well is no news."""
        well = health.ok and health.quarantined is None
        key = (health.source, health.unit)
        if well and key not in self._failing:
            return
        if not self._changes.note(key, (health.ok, health.quarantined)):
            return
        where = {"source": health.source, "device": health.unit}
        if well:
            self._failing.discard(key)
            self._log.info("source_recovered", **where)
        elif health.quarantined is not None:
            self._failing.add(key)
            self._log.warning("source_quarantined", **where, err=health.quarantined)
        else:
            self._failing.add(key)
            errors = {error.errno: error.count for error in health.errors}
            self._log.warning("source_failed", **where, err=errors)


def make(
    config: Config, heartbeat: Heartbeat, log: FilteringBoundLogger
) -> LogSink | None:
    """Return the sink; there always is one."""
    del heartbeat
    policy = config.log.redact
    if policy == LineRedaction(key_file=policy.key_file):
        return LogSink(log)
    key = load_key(policy.key_file, config, "log.redact.key_file")
    return LogSink(log, Redactor(policy, key))


def _names(snapshot: Snapshot) -> Names:
    from fabricmon.sinks.mqtt_payloads import names_of  # noqa: PLC0415 - seldom needed

    return names_of(snapshot)
