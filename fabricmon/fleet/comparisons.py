"""All rules that compare nodes, in groups that cost what their ports do.

Recordings of one group are taken in order, so each sees those before it of the same
moment. What falls together is first: its alert must not be later than its members'.
"""

from __future__ import annotations

from fabricmon.fleet import (
    comparisons_causes,
    comparisons_drift,
    comparisons_losses,
    comparisons_nodes,
    comparisons_pauses,
    comparisons_rails,
    comparisons_ranks,
    comparisons_stalls,
    comparisons_votes,
    recordings_places,
)
from fabricmon.fleet.comparing import site
from fabricmon.fleet.options import FleetOptions
from fabricmon.fleet.rule import Alert, Group, Recording

_Rules = tuple[Recording | Alert, ...]

_SLOW_SECONDS = 60.0
"""How often identities are compared: they change by hand."""


def groups(options: FleetOptions) -> tuple[Group, ...]:
    """Return the groups; raises `ConfigError` for a selector that is none."""
    here = site(options)
    often = options.pace.evaluation_seconds
    faults: _Rules = (
        *recordings_places.recordings(here),
        *comparisons_causes.recordings(here),
        *comparisons_causes.alerts(here),
        *comparisons_pauses.recordings(here),
        *comparisons_pauses.alerts(here),
        *comparisons_votes.recordings(here),
        *comparisons_votes.alerts(here),
        *comparisons_losses.recordings(here),
        *comparisons_losses.alerts(here),
        *comparisons_stalls.recordings(here),
        *comparisons_stalls.alerts(here),
    )
    rails: _Rules = (
        *comparisons_rails.recordings(here),
        *comparisons_rails.alerts(here),
        *comparisons_nodes.recordings(here),
        *comparisons_nodes.alerts(here),
    )
    ranks: _Rules = (
        *comparisons_ranks.recordings(here),
        *comparisons_ranks.alerts(here),
    )
    drift: _Rules = (
        *comparisons_drift.recordings(here),
        *comparisons_drift.alerts(here),
    )
    return (
        Group("fabricmon.comparisons", often, faults),
        Group("fabricmon.rails", often, rails),
        Group("fabricmon.ranks", often, ranks),
        Group("fabricmon.drift", _SLOW_SECONDS, drift),
    )
