"""Whether a finding points at the right place, and whether it blames somebody."""

from __future__ import annotations

from fabricmon.sim.score_groups import Naming, naming
from fabricmon.sim.score_stories import Told, ToldSubject
from fabricmon.sim.truth import FaultTruth, Forbidden, Place


def answers(record: Told, fault: FaultTruth) -> bool:
    """Tell whether a record is of an accepted kind and names the fault's place."""
    return record.kind in fault.accept and names(record, fault)


def names(record: Told, fault: FaultTruth) -> bool:
    """Tell whether a record names the fault's place, as precisely as its kind does."""
    how, subject = naming(record.kind), record.subject
    if how.by_peer and subject.peer is not None:
        return _names_peer(subject, fault)
    if how.by_peer and not how.must:
        return False
    return (
        all(_same(subject, fault, key) is not False for key in (*how.must, *how.may))
        and not any(_is_missing(subject, fault, key) for key in how.must)
        and _names_one(subject, fault, how)
    )


def blames_culprit(record: Told, fault: FaultTruth) -> bool:
    """Tell whether a record, of whatever kind, is about the place of the fault.

    Work there is not wasted: any kind will do, also a coarser place.
    """
    subject, how = record.subject, naming(record.kind)
    if how.by_peer and subject.peer is not None:
        return _names_peer(subject, fault)
    if how.any_of or "node" not in how.must:
        return any(_same(subject, fault, key) for key in ("leaf", "rail"))
    if fault.node is None:
        return False
    return all(
        _same(subject, fault, key) is not False for key in ("node", "device", "port")
    )


def blames_victim(record: Told, victim: Place) -> bool:
    """Tell whether a record points at somebody who only suffers."""
    subject, how = record.subject, naming(record.kind)
    if how.by_peer and subject.peer is not None:
        return subject.peer == victim.node
    if "node" not in how.must or subject.node != victim.node:
        return False
    mine, theirs = (subject.device, subject.port), (victim.device, victim.port)
    return all(
        own is None or other is None or own == other
        for own, other in zip(mine, theirs, strict=True)
    )


def breaches(record: Told, rule: Forbidden) -> bool:
    """Tell whether a record is what a rule forbids, at a time when it does."""
    if not rule.holds_at(record.t):
        return False
    subject = record.subject
    pairs = (
        (rule.node, subject.node),
        (rule.device, subject.device),
        (rule.kind, record.kind),
        (rule.severity, record.severity),
        (rule.role, record.role),
        (rule.actionable, record.is_actionable),
    )
    return all(wanted is None or wanted == told for wanted, told in pairs)


def place_text(subject: ToldSubject) -> str:
    """Return a place as one word, such as ``node03/mlx5_4/1``."""
    parts = [subject.node, subject.device, subject.port]
    named = [str(part) for part in parts if part is not None]
    if subject.peer is not None:
        named.append(f"peer={subject.peer}")
    if subject.rail is not None and subject.device is None:
        named.append(f"rail={subject.rail}")
    if subject.leaf is not None and subject.device is None:
        named.append(f"leaf={subject.leaf}")
    return "/".join(named) or "fabric"


def _names_peer(subject: ToldSubject, fault: FaultTruth) -> bool:
    """A pair has two ends: either may name the other."""
    if fault.peer is None or fault.node is None:
        return subject.peer in {fault.peer, fault.node}
    return subject.peer == fault.peer or (
        subject.peer == fault.node and subject.node == fault.peer
    )


def _names_one(subject: ToldSubject, fault: FaultTruth, how: Naming) -> bool:
    """Tell whether the finding has one of the names that would do, if there is one."""
    known = [key for key in how.any_of if getattr(fault, key) is not None]
    return not known or any(_same(subject, fault, key) for key in known)


def _is_missing(subject: ToldSubject, fault: FaultTruth, key: str) -> bool:
    return getattr(fault, key) is not None and getattr(subject, key) is None


def _same(subject: ToldSubject, fault: FaultTruth, key: str) -> bool | None:
    """Tell whether both say the same; None where one of them says nothing."""
    told, true = getattr(subject, key), getattr(fault, key)
    if told is None or true is None:
        return None
    return str(told) == str(true)
