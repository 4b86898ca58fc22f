"""What a peer has said of a node, as finding documents."""

from __future__ import annotations

from dataclasses import dataclass

from msgspec.structs import replace

from fabricmon.finding_document import (
    EvidenceDocument,
    FindingDocument,
    SubjectDocument,
    rfc3339,
)
from fabricmon.model import Action, PortId, Severity


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a rule concludes: the kind that comes nearest, how bad, what to do."""

    kind: str
    severity: Severity
    action: Action

    @property
    def rank(self) -> tuple[int, bool]:
        """How bad it is, to be compared."""
        return self.severity, self.action is not Action.NONE


FATAL = (Severity.CRITICAL, Action.DRAIN_NOW)
"""The node is cordoned and drained."""
FAILED = (Severity.CRITICAL, Action.DRAIN_AFTER_JOB)
"""The scheduler takes the node out when its job is over."""
UNHEALTHY = (Severity.CRITICAL, Action.INSPECT)
"""Somebody is to look at the hardware."""
NOTED = (Severity.WARNING, Action.NONE)
"""An event that leads to nothing by itself."""


class Ledger:
    """Opens each finding once, until it is closed; ``start`` is Unix seconds of t = 0."""

    def __init__(self, peer: str, node: str, start: float) -> None:
        self._peer = peer
        self._node = node
        self._start = start
        self._open: dict[tuple[str, PortId | None], FindingDocument] = {}
        self._rank: dict[tuple[str, PortId | None], tuple[int, bool]] = {}
        self.documents: list[FindingDocument] = []

    def tell(
        self, t: float, port: PortId | None, verdict: Verdict, signal: str, value: float
    ) -> None:
        """Open a finding, or make it worse; what is open already is not said again."""
        key = (verdict.kind, port)
        before = self._open.get(key)
        if before is not None and verdict.rank <= self._rank[key]:
            return
        document = FindingDocument(
            id=before.id if before else self._id(key, t),
            seq=len(self.documents) + 1,
            t=t,
            time=rfc3339(self._start + t),
            onset=before.onset if before else rfc3339(self._start + t),
            state="update" if before else "open",
            kind=verdict.kind,
            severity=verdict.severity.word,
            role="culprit",
            action=verdict.action.value,
            subject=self._subject(port),
            evidence=(EvidenceDocument(signal, value, "", self._peer),),
            summary=f"{self._peer}: {signal} = {value:g}",
            runbook="",
            confidence=1.0,
            dry_run=False,
        )
        self._open[key], self._rank[key] = document, verdict.rank
        self.documents.append(document)

    def close(self, t: float, port: PortId | None, kind: str) -> None:
        """Resolve a finding if it is open."""
        before = self._open.pop((kind, port), None)
        if before is None:
            return
        time = rfc3339(self._start + t)
        seq = len(self.documents) + 1
        self.documents.append(
            replace(before, t=t, time=time, seq=seq, state="resolved")
        )

    def _id(self, key: tuple[str, PortId | None], t: float) -> str:
        kind, port = key
        place = f"{port.device}/{port.port}" if port else ""
        return f"{self._peer}:{self._node}:{kind}:{place}:{t:.3f}"

    def _subject(self, port: PortId | None) -> SubjectDocument:
        if port is None:
            return SubjectDocument(node=self._node)
        return SubjectDocument(node=self._node, device=port.device, port=port.port)
