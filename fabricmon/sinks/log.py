"""One canonical log line for each finding that opens, changes or resolves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fabricmon.config import Config
from fabricmon.model import Health, Incident, IncidentState, Severity, Snapshot
from fabricmon.runtime.heartbeat import Heartbeat
from fabricmon.runtime.logging import Changes

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

MOST_EVIDENCE = 4
"""Pieces of evidence in one line; the rest is in the finding."""

MOST_TOLD = 1000
"""Problems that are not said again; a job may make new ones without end."""


class LogSink:
    """Writes changes of findings, and of what the agent can see."""

    name = "log"

    def __init__(self, log: FilteringBoundLogger) -> None:
        """Write to ``log``."""
        self._log = log
        self._changes = Changes()
        self._failing: set[tuple[str, str]] = set()
        self._told: set[str] = set()

    def open(self) -> None:
        """Nothing to start."""

    def publish(self, snapshot: Snapshot, changes: tuple[Incident, ...]) -> None:
        """Write what changed since the last snapshot."""
        for incident in changes:
            self._write(incident)
        if self._changes.note("class", snapshot.class_error) and snapshot.class_error:
            self._log.warning("devices_unreadable", err=snapshot.class_error)
        error = snapshot.maintenance_error
        if self._changes.note("maintenance", error) and error:
            self._log.warning("maintenance_ignored", err=error)
        self._note_problems(snapshot.job.problems)
        for health in snapshot.health:
            if self._failing or not health.ok or health.quarantined is not None:
                self._note_health(health)

    def close(self) -> None:
        """Nothing to stop."""

    def _write(self, incident: Incident) -> None:
        finding = incident.finding
        subject = finding.subject
        where = {"device": subject.device, "port": subject.port, "rail": subject.rail}
        over = incident.state is IncidentState.RESOLVED
        mild = over or finding.severity is Severity.INFO
        line = self._log.info if mild else self._log.warning
        line(
            f"finding_{incident.state.value}",
            summary=finding.summary,
            kind=finding.kind,
            severity=finding.severity.word,
            action=finding.action.value,
            **{key: value for key, value in where.items() if value is not None},
            evidence=[
                f"{item.signal}={item.value}"
                for item in finding.evidence[:MOST_EVIDENCE]
            ],
            id=incident.id,
        )

    def _note_problems(self, problems: tuple[str, ...]) -> None:
        """Say once what stands in the way of logs and jobs."""
        if len(self._told) > MOST_TOLD:
            self._told.clear()
        for problem in problems:
            if problem not in self._told:
                self._told.add(problem)
                self._log.warning("jobs_unseen", err=problem)

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
    del config, heartbeat
    return LogSink(log)
