"""Peers that several nodes name (``health-systems`` A9).

Three observers make a suspect of a peer, if they are half of those of its job that
complain at all. In a ring only two talk to it: they do, where the peer's own agent fell
silent. One observer that names many whom nobody else names is suspect itself; a pair is
left to what the agents of both say.

Agents name a peer by its node where a topology has the address, else by the address.
"""

from __future__ import annotations

from collections.abc import Iterator

from fabricmon.fleet.comparing import NODE_TRAININGS, Site, laid_out, told
from fabricmon.fleet.kind_alerts import NOTICED
from fabricmon.fleet.promql import duration
from fabricmon.fleet.rule import TRAINING, Alert, Notice, Recording

PEER = "peer:fabricmon_node:info"
VOTE = "node:fabricmon_vote:bool"
COUNTED = "node:fabricmon_vote:counted"
SILENT = "node:fabricmon_agent:silent"
SUSPECTS = "peer:fabricmon_vote:nodes"

_PAST_SECONDS, _PAST_STEP_SECONDS = 3600, 60
"""Who fell silent is known by what it was: votes stand for some minutes."""


def peers(site: Site) -> Recording:
    """Return who has which name and address: of places, not of this moment."""
    return Recording(
        PEER, _peers(site), "The node of a name or address, in the label suspect."
    )


def recordings(site: Site) -> Iterator[Recording]:
    """Yield them."""
    node = site.names.node
    build = site.series("fabricmon_build_info")
    past = _past(build)
    yield Recording(
        SILENT,
        laid_out(f"""
            label_replace(
              group by ({site.node}) ({past}) unless on ({site.node}) {build},
              "suspect", "$1", "{node}", "(.+)"
            )
        """),
        "Nodes whose agent answered within the hour and does not now.",
    )
    yield Recording(
        VOTE,
        _votes(site),
        "1 for each node and each peer that it names, with a job of the node.",
        level=4,
    )
    limits = site.options.comparisons.votes
    yield Recording(
        COUNTED,
        laid_out(f"""
            {VOTE}
            unless on ({site.node}) (
              count by ({site.node}) ({VOTE}) >= {limits.targets}
            )
        """),
        "The same without nodes that name many: with them it is themselves.",
        level=5,
    )
    yield Recording(
        SUSPECTS,
        _named(site, _suspects(site)),
        "Nodes that name a peer, where they are enough to make a suspect of it.",
        level=6,
    )


def _past(series: str) -> str:
    """Return a series as it is or was: a sample a minute, no matter how long ago."""
    steps = f"[{duration(_PAST_SECONDS)}:{duration(_PAST_STEP_SECONDS)}]"
    return f"last_over_time({series}{steps})"


def _peers(site: Site) -> str:
    """Return each address and name once; what several nodes have names nobody."""
    node, cluster = site.names.node, site.cluster
    address = site.series("fabricmon_node_address_info")
    build = site.series("fabricmon_build_info")
    shared = f"count by ({cluster}, address) (group by ({site.node}, address) ({address})) > 1"
    addresses = laid_out(f"""
        (
          group by ({site.node}, address) ({address})
          or on ({cluster}, address)
          group by ({site.node}, address) ({_past(address)})
        )
        unless on ({cluster}, address) ({shared})
    """)
    both = laid_out(f"""
        label_replace({addresses}, "peer", "$1", "address", "(.+)")
        or
        label_replace(
          group by ({site.node}) ({_past(build)}), "peer", "$1", "{node}", "(.+)"
        )
    """)
    return laid_out(f"""
        topk by ({cluster}, peer) (1,
          group by ({cluster}, peer, suspect) (
            label_replace({both}, "suspect", "$1", "{node}", "(.+)")
          )
        )
    """)


def _votes(site: Site) -> str:
    node, peer = site.names.node, f"{site.cluster}, peer"
    votes = f"group by ({site.node}, peer) ({site.series('fabricmon_peer_votes')} > 0)"
    build = site.series("fabricmon_build_info")
    job = f"topk by ({site.node}) (1, {NODE_TRAININGS})"
    named = laid_out(f"""
        group by ({site.node}, suspect) (
          {votes} * on ({peer}) group_left (suspect) {PEER}
          or
          label_replace(
            {votes} unless on ({peer}) {PEER}, "suspect", "$1", "peer", "(.+)"
          )
        )
        unless on ({site.node}, suspect)
        label_replace({build}, "suspect", "$1", "{node}", "(.+)")
    """)
    return laid_out(f"""
        ({named}) * on ({site.node}) group_left ({TRAINING}) {job}
        or
        ({named}) unless on ({site.node}) {NODE_TRAININGS}
    """)


def alerts(site: Site) -> Iterator[Alert]:
    """Yield the alerts."""
    yield _suspect(site)
    yield _alone(site)
    yield _observer(site)


def _named(site: Site, expr: str) -> str:
    """Put a suspect into the labels of an alert: it is the peer and, if ours, a node."""
    node, by = site.names.node, f"{site.cluster}, suspect"
    ours = f"group by ({by}) ({PEER})"
    as_peer = f'label_replace({expr}, "peer", "$1", "suspect", "(.+)")'
    return laid_out(f"""
        sum by ({site.node}, peer) (
          label_replace(
            {as_peer} and on ({by}) {ours},
            "{node}", "$1", "suspect", "(.+)"
          )
          or
          {as_peer} unless on ({by}) {ours}
        )
    """)


def _suspects(site: Site) -> str:
    """Return peers that enough nodes of a job name, or two if they fell silent."""
    limits = site.options.comparisons.votes
    by, trained = f"{site.cluster}, suspect", site.trained
    observers = f"count by ({by}) ({COUNTED})"
    of_job = f"count by ({by}, {TRAINING}) ({COUNTED})"
    complaining = f"count by ({trained}) (group by ({site.node}, {TRAINING}) ({VOTE}))"
    return laid_out(f"""
        (
          max by ({by}) (
            ({of_job} >= {limits.observers})
            >= on ({trained}) group_left ()
            {limits.observers_ratio:g} * {complaining}
          )
          or
          (({observers} >= {limits.silent_observers}) and on ({by}) {SILENT})
        )
    """)


def _suspect(site: Site) -> Alert:
    return Alert(
        name="FabricPeerSuspect",
        kind="peer_suspect",
        expr=SUSPECTS,
        notice=Notice.INFO,
        summary="{{ $labels.peer }}: {{ $value }} nodes failed towards it, fault at "
        "its end",
        description="Their connections to it were given up. What its own agent says "
        "tells whether it is the node or one of its ports; if that is silent, the node "
        "is likely down.",
        is_not="a fault of those who name it: they are observers",
        keep_seconds=site.options.pace.keep_seconds,
        labels=told("warning", "culprit"),
        dashboard="fabricmon-jobs",
    )


def _alone(site: Site) -> Alert:
    """Return the ticket of a peer about which nobody hears anything else.

    One that is worked on is explained, also while its agent is away for that.
    """
    worked_on = site.series("fabricmon_maintenance", 'device=""')
    return Alert(
        name="FabricPeerUnexplained",
        kind="peer_suspect",
        expr=laid_out(f"""
            {SUSPECTS}
            unless on ({site.node}) {NOTICED}{{notice!="info"}}
            unless on ({site.node}) {_past(worked_on)}
        """),
        notice=Notice.TICKET,
        summary="{{ $labels.peer }}: {{ $value }} nodes failed towards it, and nothing "
        "is told of it",
        description="Their connections to it were given up, and its own agent found "
        "nothing, or is silent: look whether the node is alive, then at its switch "
        "ports, which see what it cannot.",
        is_not="a fault of those who name it: they are observers",
        for_seconds=site.options.comparisons.votes.alone_seconds,
        keep_seconds=site.options.pace.keep_seconds,
        labels=told("warning", "culprit"),
        dashboard="fabricmon-jobs",
    )


def _observer(site: Site) -> Alert:
    limits = site.options.comparisons.votes
    node, by = site.names.node, f"{site.cluster}, suspect"
    return Alert(
        name="FabricObserverSuspect",
        kind="peer_suspect",
        expr=laid_out(f"""
            label_replace(
              count by ({site.node}) (
                {VOTE} and on ({by}) (count by ({by}) ({VOTE}) == 1)
              ) >= {limits.targets},
              "peer", "$1", "{node}", "(.+)"
            )
        """),
        notice=Notice.INFO,
        summary=f"{{{{ $labels.{node} }}}}: it failed towards {{{{ $value }}}} peers "
        "that nobody else names, fault at its end",
        description="Peers that only one node cannot reach are well: this node, or its "
        "way into the fabric, is not.",
        is_not="a fault of the peers that it names",
        keep_seconds=site.options.pace.keep_seconds,
        labels=told("warning", "culprit"),
        dashboard="fabricmon-jobs",
    )
