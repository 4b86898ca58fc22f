"""One verdict from the evidence of all detectors, and how bold it may be (A11, A12).

A pure step between detectors and incidents, in the order of ``health-systems`` 4.5:
what has a common cause is no fault of its ports; advice needs local evidence and
enough of it; what only suffers is no culprit; one node gives up few ports at a time.
Maintenance is known to incidents and suppresses there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from fabricmon.config import Config
from fabricmon.detect.fallen import FallenPorts
from fabricmon.detect.host_cause import HostCauses
from fabricmon.detect.local_evidence import LocalEvidence, Nature
from fabricmon.detect.protocol import Detector, Suspects
from fabricmon.kinds import BY_SLUG, Proof
from fabricmon.model import (
    Action,
    Evidence,
    Finding,
    Incident,
    IncidentState,
    Part,
    Role,
    Severity,
    View,
)

LOCAL = frozenset({Proof.LINK, Proof.PCIE, Proof.STATE})
"""Evidence that lies at this end."""


MOST_LINES = 4
"""Kinds of kernel lines that one finding quotes."""

_NATURES = {
    Nature.LINK: Proof.LINK,
    Nature.MODULE: Proof.LINK,
    Nature.STATE: Proof.STATE,
    Nature.PCIE: Proof.PCIE,
    Nature.DEVICE: Proof.PCIE,
}
_SLOWS_RAIL = frozenset(
    {"port_down", "port_flapping", "post_flap_degraded", "rate_degraded"}
)
_SAYS_WHY = _SLOWS_RAIL | {"pcie_degraded"}
_OF_HOST_PATH = frozenset({"pause_origin", "congestion", "not_network"})
_DRAINS = frozenset({Action.DRAIN_AFTER_JOB, Action.DRAIN_NOW})


def _is_slow_host(finding: Finding) -> bool:
    """Tell whether all rails wait for the host, so much that it explains the rest."""
    is_grave = finding.severity >= Severity.WARNING
    return finding.kind == "host_path_slow" and is_grave


class Fusion:
    """Weighs the findings of a node against each other, once for each judgement."""

    def __init__(self, config: Config, detectors: Sequence[Detector]) -> None:
        """Take ``fusion``; ``detectors`` may suspect what they do not tell yet."""
        self._limits = limits = config.fusion
        self._weights = {
            Proof.LINK: limits.link_weight,
            Proof.PCIE: limits.pcie_weight,
            Proof.STATE: limits.state_weight,
            Proof.VOTE: limits.vote_weight,
            Proof.LOG: limits.log_weight,
            Proof.TRANSPORT: limits.transport_weight,
        }
        self._local = LocalEvidence(config)
        self._suspecting = [each for each in detectors if isinstance(each, Suspects)]
        self._fallen = FallenPorts(config.link_state)
        self._host = HostCauses(config.fusion)
        self._doubted = float("-inf")

    def judge(self, findings: Sequence[Finding], view: View) -> list[Finding]:
        """Return the findings as they hold in the light of each other."""
        self._local.note(view)
        findings = self._host.told_once(findings, view)
        if not findings:
            return []
        kept = self._fallen.without(findings, view)
        self._note_doubts(kept, view)
        kept = [each for each in kept if not self._is_idle_talk(each, kept)]
        if any(_is_slow_host(each) for each in kept):  # all rails alike
            kept = [each for each in kept if each.kind not in _OF_HOST_PATH]
        kept = [self._weighed(self._assured(each, kept), kept, view) for each in kept]
        kept = [self._witnessed(each, view) for each in kept]
        return self._within_budget(kept)

    def suspects(self, changes: Iterable[Incident]) -> bool:
        """Tell whether the rails should be looked at closely now."""
        return any(each.suspicious for each in self._suspecting) or any(
            change.state is IncidentState.OPEN
            and change.finding.severity >= Severity.WARNING
            for change in changes
        )

    def _note_doubts(self, findings: Sequence[Finding], view: View) -> None:
        """Remember when a rail of this node was last in doubt."""
        doubts = [
            each
            for each in findings
            if each.severity >= Severity.WARNING and each.kind != "not_network"
        ]
        if not doubts:
            return
        rails = {
            port.info.id.device for port in view.ports if port.info.role is Role.COMPUTE
        }
        if any(
            each.kind == "rail_slow" or each.subject.device in rails for each in doubts
        ):
            self._doubted = view.wall

    def _is_idle_talk(self, finding: Finding, findings: Sequence[Finding]) -> bool:
        """Tell whether others know better than a finding without a place.

        The network was not clean, the port that makes the rail slow is known, or why
        that port is slow is told as gravely.
        """
        if finding.kind == "not_network":
            return finding.onset <= self._doubted
        if finding.kind == "straggler_link":
            return any(_says_why(other, finding) for other in findings)
        if finding.kind != "rail_slow":
            return False
        rail = finding.subject.rail
        return any(
            other.kind in _SLOWS_RAIL and other.subject.rail == rail
            for other in findings
        )

    def _weighed(
        self, finding: Finding, findings: Sequence[Finding], view: View
    ) -> Finding:
        """Return a finding with no more blame and advice than its evidence bears."""
        proof = BY_SLUG[finding.kind].proof
        if proof is Proof.OTHER:
            return finding
        suffers = proof in (Proof.TRANSPORT, Proof.CONGESTION)
        blames = suffers and finding.part is Part.CULPRIT
        if finding.action is Action.NONE and not blames:
            return finding
        proofs = {proof, *_beside(finding, findings)}
        if not proofs & LOCAL:
            proofs |= self._shown(finding, view)
        if proofs & LOCAL and self._weight(proofs) >= self._limits.action_weight:
            return finding
        part = Part.VICTIM if blames and not proofs & LOCAL else finding.part
        return replace(finding, action=Action.NONE, part=part)

    def _assured(self, finding: Finding, findings: Sequence[Finding]) -> Finding:
        """Return a finding as sure as it and other kinds of evidence of its port make it.

        Each takes a share off the doubt that is left (as a noisy-or does); congestion
        takes it off what is believed of a fault that does not show at this end.
        """
        own = BY_SLUG[finding.kind].proof
        others = _beside(finding, findings) - {own}
        if own is Proof.OTHER or not others:
            return finding
        weights, share = self._weights, self._limits.corroboration_share
        doubt = 1 - finding.confidence
        for other in sorted(others):  # a replay gives the same to the last bit
            doubt *= 1 - share * weights.get(other, 0.0)
        sure = 1 - doubt
        if Proof.CONGESTION in others and own not in LOCAL:
            sure *= 1 - share * self._limits.congestion_weight
        return replace(finding, confidence=round(sure, 2))

    def _witnessed(self, finding: Finding, view: View) -> Finding:
        """Return a finding about what this end shows with what the kernel said of it."""
        subject = finding.subject
        if subject.device is None or BY_SLUG[finding.kind].proof not in LOCAL:
            return finding
        since = finding.onset - view.onset_offset - self._limits.kernel_seconds
        lines = self._local.kernel_lines(subject, since, view)
        known = {(each.signal, each.value) for each in finding.evidence}
        new = [each for each in lines if (each.signal, each.value) not in known]
        if not new:
            return finding
        return replace(finding, evidence=(*finding.evidence, *new[:MOST_LINES]))

    def _weight(self, proofs: set[Proof]) -> float:
        """Return the sum of what each kind of evidence weighs.

        Congestion explains what comes from afar, not what this end shows of its own.
        """
        weights = self._weights
        local = sum(weights[proof] for proof in proofs & LOCAL)
        afar = sum(weights.get(proof, 0.0) for proof in proofs - LOCAL)
        if Proof.CONGESTION in proofs:
            afar = max(afar - self._limits.congestion_weight, 0.0)
        return local + afar

    def _shown(self, finding: Finding, view: View) -> set[Proof]:
        """Return what the finding's port showed of its own lately."""
        subject = finding.subject
        found: set[Proof] = set()
        for port in view.ports:
            same = port.info.id.port == subject.port or subject.port is None
            if port.info.id.device == subject.device and same:
                natures = self._local.natures(port, view)
                found |= {_NATURES[nature] for nature in natures}
        return found

    def _within_budget(self, findings: list[Finding]) -> list[Finding]:
        """Advise to drain for few devices at once; the others are to be looked at.

        What is said of a device and of its port is about one part to be replaced.
        """
        limit = self._limits.drain_ports
        draining = [each for each in findings if each.action in _DRAINS]
        devices = {each.subject.device for each in draining}
        if len(devices) <= limit:
            return findings
        draining.sort(key=_urgency)
        first = dict.fromkeys(each.subject.device for each in draining)
        allowed = set(list(first)[:limit])
        spent = Evidence(
            "drain_advice", len(devices), "devices", "fusion.drain_ports", limit
        )
        return [
            replace(each, action=Action.INSPECT, evidence=(*each.evidence, spent))
            if each.action in _DRAINS and each.subject.device not in allowed
            else each
            for each in findings
        ]


def _says_why(other: Finding, straggler: Finding) -> bool:
    """Tell whether a finding has the reason of a straggler, and is as grave."""
    subject, there = straggler.subject, other.subject
    is_there = there.device == subject.device and there.port in {None, subject.port}
    is_grave = other.severity >= straggler.severity
    return is_there and is_grave and other.kind in _SAYS_WHY


def _urgency(finding: Finding) -> tuple[bool, int, float, str]:
    """Sort what cannot wait for the end of a job first, then the worst, the oldest."""
    waits = finding.action is not Action.DRAIN_NOW
    return waits, -finding.severity, finding.onset, str(finding.subject.device)


def _beside(finding: Finding, findings: Sequence[Finding]) -> set[Proof]:
    """Return what other findings prove of the same port, or of its device."""
    subject = finding.subject
    found: set[Proof] = set()
    if subject.device is None:
        return found
    for other in findings:
        there = other.subject
        same = there.port == subject.port or None in (there.port, subject.port)
        if other is not finding and there.device == subject.device and same:
            found.add(BY_SLUG[other.kind].proof)
    return found
