"""Which kinds tell the story of others: one row each, read by `fabricmon.incidents`.

A covered finding opens nothing and changes nothing: its cause is already told. It
keeps an incident alive that was open before, so that nothing is told twice when the
covering incident ends first.
"""

from __future__ import annotations

from collections.abc import Callable

from fabricmon.config import LinkState
from fabricmon.model import Finding
from fabricmon.value import Value

TOLD_WITH = "told_with"
"""Signal of the evidence that names the device whose finding tells of this one, too."""

DEVICES = "devices"
"""Signal of the evidence that names the devices of which a finding tells, by spaces."""


def _always(_limits: LinkState) -> float:
    return float("inf")


class Cover(Value, frozen=True):
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
    # A link that fails loses packets and queue pairs: the link is the story.
    *(
        Cover(kind, frozenset({"transport_retries", "retries_exhausted"}))
        for kind in ("port_down", "port_not_active", "port_flap", "port_flapping")
    ),
    *(
        Cover(kind, frozenset({"transport_retries"}))
        for kind in ("link_errors", "rate_degraded", "retries_exhausted")
    ),
    Cover(
        "device_stuck",
        frozenset({"transport_retries", "retries_exhausted", "straggler_link"}),
    ),
    # Who is slow for a reason that is told is slow for that reason.
    *(
        Cover(kind, frozenset({"post_flap_degraded"}))
        for kind in ("pcie_degraded", "rate_degraded")
    ),
    *(
        Cover(kind, frozenset({"straggler_link"}))
        for kind in (
            "pcie_degraded",
            "port_down",
            "port_flapping",
            "port_not_active",
            "post_flap_degraded",
            "rate_degraded",
        )
    ),
    Cover(
        "straggler_link",
        frozenset({"congestion", "post_flap_degraded", "transport_retries"}),
    ),
    Cover("post_flap_degraded", frozenset({"transport_retries", "congestion"})),
    Cover("pause_victim", frozenset({"congestion"})),
    Cover("pause_origin", frozenset({"congestion", "pause_victim"})),
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


def told_with(finding: Finding) -> str | None:
    """Return the device whose finding of the same kind tells of this one: one cause."""
    named = (each.value for each in finding.evidence if each.signal == TOLD_WITH)
    return next((str(value) for value in named), None)


def devices_of(finding: Finding) -> frozenset[str]:
    """Return the devices of which a finding about one of several tells."""
    named = (each.value for each in finding.evidence if each.signal == DEVICES)
    return frozenset(" ".join(str(value) for value in named).split())
