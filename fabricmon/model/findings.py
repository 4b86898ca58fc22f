"""What is concluded, and the story that is made of it."""

from __future__ import annotations

from enum import StrEnum

from fabricmon.model.words import Action, Part, Severity
from fabricmon.value import Value


class Evidence(Value, frozen=True):
    """One measured reason; for a counter ``signal`` is its file's name."""

    signal: str
    value: float | int | str | None
    unit: str
    source: str
    threshold: float | int | str | None = None
    window_seconds: float | None = None


class Subject(Value, frozen=True):
    """What a finding is about; None where it does not apply."""

    device: str | None = None
    port: int | None = None
    rail: int | str | None = None
    netdev: str | None = None
    peer: str | None = None
    leaf: str | None = None
    job: str | None = None
    comm: str | None = None


class Finding(Value, frozen=True):
    """What a detector holds to be true now; incidents make one story of them."""

    kind: str
    subject: Subject
    onset: float
    evidence: tuple[Evidence, ...]
    summary: str
    severity: Severity
    part: Part = Part.CULPRIT
    action: Action = Action.NONE
    confidence: float = 1.0


class IncidentState(StrEnum):
    """Life of an incident."""

    OPEN = "open"
    UPDATE = "update"
    RESOLVED = "resolved"


class Incident(Value, frozen=True):
    """A finding with an identity; what sinks send and the page shows."""

    id: str
    seq: int
    state: IncidentState
    time: float
    finding: Finding
    node: str
    runbook: str
    dry_run: bool = False
    last_seen: float = 0.0


class Blindness(Value, frozen=True):
    """A kind that cannot be judged on this node, and why."""

    kind: str
    reason: str
