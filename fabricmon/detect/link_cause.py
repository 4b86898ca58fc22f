"""What a port that is not up means: how bad it is, whose fault, what to do."""

from __future__ import annotations

from dataclasses import replace

from fabricmon.config import LinkState as Limits
from fabricmon.detect.expectation import Why
from fabricmon.detect.outage import Outage, is_switched_off
from fabricmon.detect.wording import clock, lasting, port_source, subject_of
from fabricmon.model import (
    Action,
    Evidence,
    Finding,
    Part,
    PortView,
    Role,
    Severity,
    View,
)
from fabricmon.parse.words import LinkLayer
from fabricmon.summaries import one_line
from fabricmon.value import Value


class Company(Value, frozen=True):
    """How many ports of the node matter, fell with this one, and are stuck trained."""

    ports: int
    fell_together: int
    trained: int

    def enough(self, limits: Limits) -> int:
        """Return how many must fall together to have one cause (A10)."""
        return max(limits.common_cause_ports, (self.ports + 1) // 2)


class _Verdict(Value, frozen=True):
    severity: Severity
    action: Action
    text: str
    part: Part = Part.CULPRIT


def port_down(
    outage: Outage, port: PortView, view: View, limits: Limits, company: Company
) -> Finding:
    """Return the finding of a port that should be up and is down."""
    age = view.now - outage.since
    verdict = _of_down(outage, port, view.now, limits, company)
    phys = f", {outage.phys_state}" if outage.phys_state else ""
    together = (
        Evidence(
            signal="ports_down_together",
            value=company.fell_together,
            unit="ports",
            source=port_source(outage.port),
            threshold=company.enough(limits),
            window_seconds=limits.common_cause_window_seconds,
        ),
    )
    start = f"{outage.port} down since {_since(outage, view)} ({lasting(age)}{phys})"
    finding = _finding(
        "port_down", outage, port, view, verdict, threshold=limits.down_seconds
    )
    evidence = finding.evidence + (together if company.fell_together > 1 else ())
    return replace(
        finding, summary=one_line(f"{start}: {verdict.text}"), evidence=evidence
    )


def not_active(
    outage: Outage, port: PortView, view: View, limits: Limits, company: Company
) -> Finding:
    """Return the finding of a port whose link is trained and not in use."""
    verdict = _of_trained(outage, port, view.now, limits, company)
    waited = lasting(view.now - (outage.trained or outage.since))
    finding = _finding(
        "port_not_active",
        outage,
        port,
        view,
        verdict,
        threshold=limits.not_active_seconds,
    )
    start = f"{outage.port} trained but {outage.state} for {waited}"
    return replace(finding, summary=one_line(f"{start}: {verdict.text}"))


def _of_down(
    outage: Outage, port: PortView, now: float, limits: Limits, company: Company
) -> _Verdict:
    age = now - outage.since
    configured = outage.why is Why.CONFIGURED
    off = is_switched_off(outage, port)
    if off or outage.may_train(now, limits.switched_on_seconds):
        again = "switched on again, its link may still train"
        text = "switched off by hand, no fault" if off else again
        return _Verdict(Severity.INFO, Action.NONE, text)
    if port.info.role is Role.MANAGEMENT and not configured:
        return _of_management(age, limits)
    if off is None:
        text = "no netdev in sight: link lost, or off in another namespace"
        return _Verdict(Severity.WARNING, Action.INSPECT, text)
    if outage.why is Why.CARRIER:
        text = "had a carrier once; in use? then cable, module or peer"
        return _Verdict(Severity.WARNING, Action.INSPECT, text)
    at_once = company.fell_together >= company.enough(limits)
    if at_once and age < limits.common_cause_seconds:
        text = f"{company.fell_together} ports fell at once: one cause, not this cable"
        return _Verdict(Severity.CRITICAL, Action.NONE, text, Part.VICTIM)
    text = "link lost (cable, module or peer), not switched off"
    return _Verdict(Severity.CRITICAL, Action.DRAIN_NOW, text)


def _of_trained(
    outage: Outage, port: PortView, now: float, limits: Limits, company: Company
) -> _Verdict:
    if port.info.role is Role.MANAGEMENT and outage.why is not Why.CONFIGURED:
        return _of_management(now - outage.since, limits)
    if port.info.link_layer is not LinkLayer.INFINIBAND:
        text = "the driver waits, perhaps for an address; no link fault"
        return _Verdict(Severity.WARNING, Action.INSPECT, text)
    waited = now - (outage.trained or outage.since)
    long = waited >= limits.not_active_critical_seconds
    severity = Severity.CRITICAL if long else Severity.WARNING
    if company.trained > 1:
        text = f"{company.trained} ports so: subnet manager, not the cables"
        return _Verdict(severity, Action.NONE, text, Part.VICTIM)
    # The link has trained: what this end can do it did, so it is not to be drained.
    text = "the subnet manager did not activate it; not the cable"
    return _Verdict(severity, Action.NONE, text, Part.OBSERVER)


def _of_management(age: float, limits: Limits) -> _Verdict:
    text = "management port, not the fabric"
    if age < limits.management_down_seconds:
        return _Verdict(Severity.INFO, Action.NONE, text)
    return _Verdict(Severity.WARNING, Action.INSPECT, text)


def _finding(
    kind: str,
    outage: Outage,
    port: PortView,
    view: View,
    verdict: _Verdict,
    *,
    threshold: float,
) -> Finding:
    trained = kind == "port_not_active" and outage.trained is not None
    since = outage.trained if trained and outage.trained else outage.since
    return Finding(
        kind=kind,
        subject=subject_of(port.info),
        onset=since + view.onset_offset,
        evidence=_evidence(outage, view.now - since, threshold),
        summary="",
        severity=verdict.severity,
        part=verdict.part,
        action=verdict.action,
        confidence=outage.why.confidence if outage.why else 1.0,
    )


def _evidence(outage: Outage, age: float, threshold: float) -> tuple[Evidence, ...]:
    files, age = port_source(outage.port), round(age, 1)
    found = [Evidence("state", outage.state.value, "", files, "ACTIVE", age)]
    if outage.phys_state is not None:
        phys = outage.phys_state.value
        found.append(Evidence("phys_state", phys, "", files, "LinkUp"))
    found.append(Evidence("seconds_not_active", age, "s", files, threshold))
    if outage.why is not None:
        found.append(Evidence("expected_up", outage.why.value, "", "fabricmon"))
    return tuple(found)


def _since(outage: Outage, view: View) -> str:
    return clock(outage.since + view.onset_offset)
