"""All rules that compare nodes, in groups that cost what their ports do.

Recordings of one group are taken in order, so each sees those before it of the same
moment; of another group it sees the last ones. What falls together, who pauses and who
is named is judged as often as findings are: their alerts must not be later than those
of the members. What needs a window of minutes is judged less often.
"""

from __future__ import annotations

from fabricmon.fleet import (
    comparisons_causes,
    comparisons_drift,
    comparisons_losses,
    comparisons_nodes,
    comparisons_pauses,
    comparisons_priorities,
    comparisons_rails,
    comparisons_ranks,
    comparisons_stalls,
    comparisons_votes,
    recordings_places,
    recordings_signs,
)
from fabricmon.fleet.comparing import site
from fabricmon.fleet.options import FleetOptions
from fabricmon.fleet.rule import Alert, Group, Recording

_Rules = tuple[Recording | Alert, ...]


def groups(options: FleetOptions) -> tuple[Group, ...]:
    """Return the groups; raises `ConfigError` for a selector that is none."""
    here, pace = site(options), options.pace
    places: _Rules = (
        *recordings_places.recordings(here),
        comparisons_votes.peers(here),
    )
    moments: _Rules = (
        *recordings_signs.recordings(here),
        *comparisons_causes.recordings(here),
        *comparisons_causes.alerts(here),
        *comparisons_pauses.recordings(here),
        *comparisons_pauses.alerts(here),
        *comparisons_votes.recordings(here),
        *comparisons_votes.alerts(here),
    )
    traffic: _Rules = (
        *comparisons_losses.recordings(here),
        *comparisons_losses.alerts(here),
        *comparisons_stalls.recordings(here),
        *comparisons_stalls.alerts(here),
        *comparisons_causes.stall_recordings(here),
        comparisons_causes.stall_alert(here),
    )
    rails: _Rules = (
        *comparisons_rails.recordings(here),
        *comparisons_rails.alerts(here),
    )
    nodes: _Rules = (
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
        *comparisons_priorities.recordings(here),
        *comparisons_priorities.alerts(here),
    )
    return (
        Group("fabricmon.places", pace.place_seconds, places),
        Group("fabricmon.comparisons", pace.evaluation_seconds, moments),
        Group("fabricmon.traffic", pace.slow_seconds, traffic),
        Group("fabricmon.rails", pace.slow_seconds, rails),
        Group("fabricmon.nodes", pace.rare_seconds, nodes),
        Group("fabricmon.ranks", pace.slow_seconds, ranks),
        Group("fabricmon.drift", pace.rare_seconds, drift),
    )
