"""Which kinds tell the story of others: one row each, read by `fabricmon.incidents`.

A covered finding opens nothing and changes nothing: its cause is already told. It
keeps an incident alive that was open before, so that nothing is told twice when the
covering incident ends first.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from fabricmon.config import LinkState


def _always(_limits: LinkState) -> float:
    return float("inf")


@dataclass(frozen=True, slots=True)
class Cover:
    """``kind`` covers ``covered`` on the same port, or on every port of its device.

    An empty ``covered`` means every kind. ``younger_than`` gives the age in seconds
    from which a covered finding speaks for itself.
    """

    kind: str
    covered: frozenset[str] = frozenset()
    younger_than: Callable[[LinkState], float] = _always


COVERS: tuple[Cover, ...] = (
    Cover("device_missing"),
    Cover(
        "port_down",
        frozenset(
            {
                "config_mismatch",
                "link_errors",
                "link_unstable",
                "port_not_active",
                "rate_degraded",
            }
        ),
    ),
    Cover("port_flapping", frozenset({"port_flap", "link_unstable"})),
    # An episode has short outages and odd rates while the link trains; what stays is
    # a fault of its own.
    Cover(
        "port_flapping",
        frozenset({"port_down", "port_not_active", "rate_degraded"}),
        lambda limits: limits.flapping_down_seconds,
    ),
    Cover(
        "port_flap",
        frozenset({"port_down"}),
        lambda limits: limits.outage_critical_seconds,
    ),
)


def covers_of(kind: str) -> tuple[Cover, ...]:
    """Return the rows whose kind may tell the story of ``kind``."""
    return tuple(
        row
        for row in COVERS
        if row.kind != kind and (not row.covered or kind in row.covered)
    )
