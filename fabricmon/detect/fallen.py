"""What is told of ports that fell with others: their common cause, and that is all.

Their outages and flaps are left out, and so is what follows from them at the same port:
retries and dead queue pairs. A job that died of it is told for information.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from fabricmon.config import LinkState
from fabricmon.detect.common_cause import CONFIRM_SECONDS, members_of
from fabricmon.model import Action, Finding, Part, Severity, View
from fabricmon.parse.words import PortState

COMMON = frozenset({"common_cause", "fabric_control"})
"""Kinds that tell of several ports at once."""

_OUTAGES = frozenset({"port_down", "port_not_active"})
_FOLLOWING = frozenset({"transport_retries", "retries_exhausted", "post_flap_degraded"})
_TOGETHER_SECONDS = 10.0  # a poll of the state and the training of a link apart
_WAIT_SECONDS = 2 * CONFIRM_SECONDS  # by then it is known whether ports fell together


class FallenPorts:
    """Remembers which ports fell together, and since when, Unix seconds."""

    def __init__(self, limits: LinkState) -> None:
        """Start without any."""
        self._limits = limits
        self._fallen: dict[str, float] = {}
        self._going_on = False

    def without(self, findings: Sequence[Finding], view: View) -> list[Finding]:
        """Return the findings without those that the common cause tells."""
        self._going_on = False
        for finding in findings:
            if finding.kind in COMMON:
                self._going_on = True
                self._fallen = dict.fromkeys(members_of(finding), finding.onset)
        if self._fallen and not self._going_on:
            since = view.wall - max(self._fallen.values())
            if since > self._limits.common_cause_seconds:
                self._fallen = {}
        return list(self._left(findings, view))

    def _left(self, findings: Sequence[Finding], view: View) -> Iterator[Finding]:
        for finding in findings:
            fell = self._fallen.get(f"{finding.subject.device}/{finding.subject.port}")
            later = fell is not None and finding.onset >= fell - _TOGETHER_SECONDS
            if fell is None or not later:
                if not self._waits(finding, view):
                    yield finding
            elif finding.kind == "nccl_error":
                yield replace(
                    finding,
                    severity=Severity.INFO,
                    part=Part.VICTIM,
                    action=Action.NONE,
                )
            elif not self._is_told(finding, fell):
                yield finding

    def _is_told(self, finding: Finding, fell: float) -> bool:
        """Tell whether the common cause tells a finding of a port that fell.

        Flaps come late, when the port is back; what falls anew is another story.
        """
        if finding.kind in _FOLLOWING:
            return True
        same = finding.onset <= fell + _TOGETHER_SECONDS
        outage = finding.kind in _OUTAGES and self._going_on
        return same and (outage or finding.kind == "port_flap")

    def _waits(self, finding: Finding, view: View) -> bool:
        """Tell whether a job's error is younger than what may be its common cause."""
        if finding.kind != "nccl_error" or view.wall - finding.onset > _WAIT_SECONDS:
            return False
        down = sum(
            port.ever_active
            and port.status is not None
            and port.status.state not in (PortState.ACTIVE, None)
            for port in view.ports
        )
        return down >= self._limits.common_cause_ports
