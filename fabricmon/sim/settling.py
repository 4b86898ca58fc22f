"""What several injections of a scenario ask together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from msgspec.structs import replace as replaced

from fabricmon.sim.effects import Made
from fabricmon.sim.truth import FaultTruth, Forbidden, Place


def settle(parts: Sequence[Made], nodes: Sequence[str]) -> Made:
    """Return all parts as one; ``nodes`` are the names of all nodes.

    Who is at fault by one injection is no victim of another, and nothing is forbidden
    that would forbid the answer to a fault: a rule for all nodes then holds for those
    without a fault. A rule for a time stays: the answer is due when it is over.
    """
    windows = [rule for part in parts for rule in part.forbid if _is_timed(rule)]
    parts = [_after_windows(part, windows) for part in parts]
    faults = tuple(fault for part in parts for fault in part.faults)
    victims = dict.fromkeys(place for part in parts for place in part.victims)
    forbid = dict.fromkeys(
        rule
        for part in parts
        for each in part.forbid
        for rule in _narrowed(each, _others(part, faults), nodes)
    )
    return Made(
        tuple(effect for part in parts for effect in part.effects),
        faults,
        tuple(place for place in victims if not _is_culprit(place, faults)),
        tuple(forbid),
    )


def _is_timed(rule: Forbidden) -> bool:
    return rule.begin is not None


def _after_windows(part: Made, windows: Sequence[Forbidden]) -> Made:
    faults = tuple(_after(fault, windows) for fault in part.faults)
    return replace(part, faults=faults)


def _after(fault: FaultTruth, windows: Sequence[Forbidden]) -> FaultTruth:
    """Return a fault that is told after the windows which it begins in, if at all."""
    for window in sorted(windows, key=lambda rule: rule.begin or 0.0):
        if not _covers(window, fault) or not window.holds_at(fault.onset):
            continue
        if window.end is None or (fault.end is not None and fault.end <= window.end):
            return replaced(fault, visible=False)
        fault = replaced(fault, onset=window.end)
    return fault


def _others(part: Made, faults: Sequence[FaultTruth]) -> list[FaultTruth]:
    """Return the faults of the other parts; a part knows what its own forbids."""
    own = {id(fault) for fault in part.faults}
    return [fault for fault in faults if id(fault) not in own]


def _narrowed(
    rule: Forbidden, others: Sequence[FaultTruth], nodes: Sequence[str]
) -> list[Forbidden]:
    if _is_timed(rule) or not any(_covers(rule, fault) for fault in others):
        return [rule]
    if rule.node is not None:
        return []
    each = [replaced(rule, node=node) for node in nodes]
    return [one for one in each if not any(_covers(one, fault) for fault in others)]


def _covers(rule: Forbidden, fault: FaultTruth) -> bool:
    """Tell whether a rule could forbid an answer to a fault."""
    return (
        _meets(rule.node, fault.node)
        and _meets(rule.device, fault.device)
        and (rule.kind is None or rule.kind in fault.accept)
    )


def _meets(one: str | None, other: str | None) -> bool:
    return one is None or other is None or one == other


def _is_culprit(place: Place, faults: Sequence[FaultTruth]) -> bool:
    return any(
        fault.node == place.node
        and _meets(fault.device, place.device)
        and (fault.port is None or place.port is None or fault.port == place.port)
        for fault in faults
    )
