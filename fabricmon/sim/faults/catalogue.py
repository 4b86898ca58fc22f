"""The catalogue of faults and hard negatives: all families in one tuple."""

from __future__ import annotations

from fabricmon.errors import ConfigError
from fabricmon.sim.effects import Made
from fabricmon.sim.faults import (
    bit_errors,
    congestion,
    counts,
    fabric,
    flaps,
    host_side,
    link_state,
    lives,
    loads,
    pace,
    pause,
    pcie,
    presence,
    storage,
    surroundings,
    transport,
)
from fabricmon.sim.faults.row import FaultClass
from fabricmon.sim.planning import Draw, Plan
from fabricmon.sim.scenario import Injection

_FAMILIES = (
    bit_errors.ROWS,
    flaps.ROWS,
    link_state.ROWS,
    pcie.ROWS,
    host_side.ROWS,
    congestion.ROWS,
    pause.ROWS,
    fabric.ROWS,
    transport.ROWS,
    pace.ROWS,
    lives.ROWS,
    counts.ROWS,
    presence.ROWS,
    loads.ROWS,
    storage.ROWS,
    surroundings.ROWS,
)

FAULTS: tuple[FaultClass, ...] = tuple(
    sorted((row for rows in _FAMILIES for row in rows), key=lambda row: row.id)
)
"""Every class, in the order of the catalogue."""

_BY_ID = {row.id: row for row in FAULTS}


def class_of(what: str) -> FaultClass:
    """Return the class of an injection; raises `ConfigError` where there is none."""
    row = _BY_ID.get(what)
    if row is None:
        raise ConfigError(
            f"no class {what!r}",
            key="inject.what",
            remedy="F01 to F57 and N01 to N50 as in docs/scenarios.md",
        )
    return row


def make(injection: Injection, plan: Plan, draw: Draw) -> Made:
    """Turn an injection into effects and truth; raises `ConfigError`."""
    return class_of(injection.what).make(injection, plan, draw)
