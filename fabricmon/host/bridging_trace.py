"""Data centre bridging in a trace, and as sources ask for it.

A trace holds ECN as a driver names it, so several spellings are read:
``{"enabled": [3]}``, ``{"3": true}``, and by direction as mlx5 has it,
``{"roce_np": {"3": 1}, "roce_rp": {"3": 1}}``: then both must be on.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fabricmon.host.trace import Bridging
from fabricmon.model import PriorityUse
from fabricmon.parse.text import decimal

PRIORITIES = 8
DSCPS = 64
ENABLED = "enabled"


def from_trace(netdev: str, known: Bridging | None) -> PriorityUse | None:
    """Return what a trace says of a network device, None if it says nothing."""
    if known is None:
        return None
    return PriorityUse(
        netdev,
        pfc_enabled=known.pfc_enabled,
        ecn_enabled=None if known.ecn is None else _enabled(known.ecn),
        dscp_to_priority=None
        if known.dscp_to_priority is None
        else _by_dscp(known.dscp_to_priority),
    )


def to_trace(use: PriorityUse) -> Bridging:
    """Return what makes a trace say this."""
    table = use.dscp_to_priority
    mapped = None
    if table is not None:
        mapped = {str(dscp): priority for dscp, priority in enumerate(table)}
    ecn = None if use.ecn_enabled is None else {ENABLED: list(use.ecn_enabled)}
    return Bridging(use.pfc_enabled, ecn, mapped)


def _enabled(ecn: Mapping[str, Any]) -> tuple[int, ...] | None:
    """Return the priorities with ECN; None where it is spelt in no known way."""
    parts = [part for part in ecn.values() if isinstance(part, Mapping)]
    if not parts:
        return _of_one(ecn)
    known = [set(found) for part in parts if (found := _of_one(part)) is not None]
    return tuple(sorted(set.intersection(*known))) if known else None


def _of_one(ecn: Mapping[str, Any]) -> tuple[int, ...] | None:
    listed = ecn.get(ENABLED)
    if isinstance(listed, list):
        return _priorities(listed)
    numbers = {decimal(name): on for name, on in ecn.items()}
    if None in numbers:
        return None
    return _priorities(
        [number for number, on in numbers.items() if on is True or on == 1]
    )


def _priorities(numbers: list[Any]) -> tuple[int, ...]:
    good = {each for each in numbers if isinstance(each, int)}
    return tuple(sorted(each for each in good if 0 <= each < PRIORITIES))


def _by_dscp(known: Mapping[str, int]) -> tuple[int, ...]:
    """Return the priority of each DSCP; what is not named goes to 0.

    An empty map is that of a port that looks at no DSCP.
    """
    if not known:
        return ()
    table = [0] * DSCPS
    for name, priority in known.items():
        dscp = decimal(name)
        if dscp is not None and dscp < DSCPS and 0 <= priority < PRIORITIES:
            table[dscp] = priority
    return tuple(table)
