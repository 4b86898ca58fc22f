"""One cause that hits many ports: a leaf, rail or rack that falls, a subnet manager.

``health-systems`` A10. Times are those that agents export (``last_down``), because
scrapes are 15 s apart and an outage may lie between two; nodes whose clock is off are
not counted. It is read from states and times, not from findings: agents confirm an
outage for ten seconds, so this fires with their findings or before.
"""

from __future__ import annotations

from collections.abc import Iterator

from fabricmon.fleet import recordings_signs as signs
from fabricmon.fleet.agent_alerts import OFF
from fabricmon.fleet.comparing import (
    CLOCKED,
    LEAF_RAIL,
    NODE_TRAININGS,
    PORTS,
    TRAININGS,
    Site,
    laid_out,
    on_most_of_a_leaf,
    told,
)
from fabricmon.fleet.kind_alerts import NOTICED
from fabricmon.fleet.promql import duration
from fabricmon.fleet.recordings_signs import INACTIVE, of
from fabricmon.fleet.rule import TRAINING, Alert, Label, Notice, Recording
from fabricmon.fleet.wording import SINCE_DAY

FELL = "port:fabricmon_fell:timestamp_seconds"
LEAF = "leaf:fabricmon_fell:ports"
RAIL = "rail:fabricmon_fell:ports"
RACK = "rack:fabricmon_fell:ports"
INITIALISING = "port:fabricmon_initialising:bool"
INTERRUPTED = "port:fabricmon_interrupted:bool"
TIMED_OUT = "port:fabricmon_ack_timeouts:increase1m"


def recordings(site: Site) -> Iterator[Recording]:
    """Yield them."""
    yield Recording(
        FELL,
        f"{of(signs.FELL)} unless on ({site.node}) {OFF}",
        "When ports went down that did so lately, or are down still.",
        level=3,
    )
    yield Recording(
        LEAF,
        _together(site, "leaf", f'{FELL}{{leaf!=""}}'),
        "Ports of a leaf that went down together.",
        level=4,
    )
    outside = f'{FELL}{{rail!=""}} unless on ({site.of("leaf")}) {LEAF}'
    yield Recording(
        RAIL,
        _together(site, "rail", f"({outside})"),
        "Ports of a rail that went down together, without those of a leaf that did.",
        level=5,
    )
    outside = f'{FELL}{{rack!=""}} unless on ({site.of("leaf")}) {LEAF}'
    yield Recording(
        RACK,
        _together(site, "rack", f"({outside})"),
        "Ports of a rack that went down together, without those of a leaf that did.",
        level=5,
    )
    for record, sign, meaning in (
        (INITIALISING, signs.INITIALISING, "is trained and that are not configured"),
        (INTERRUPTED, signs.INTERRUPTED, "stayed up and that were not ACTIVE lately"),
    ):
        yield Recording(
            record,
            f"""{of(sign, 'link_layer="InfiniBand"')} * 0 + 1""",
            f"1 for ports whose link {meaning}.",
            level=3,
        )


def stall_recordings(site: Site) -> Iterator[Recording]:
    """Yield what a stall of the whole fabric is told by."""
    timeouts = site.counted(
        "increase", "fabricmon_infiniband_local_ack_timeout_errors_total", 60
    )
    least = site.options.comparisons.causes.stall_timeouts
    yield Recording(
        TIMED_OUT,
        laid_out(f"""
            {TRAININGS}{{rail!=""}}
            * on ({site.port}) group_left () ({timeouts} >= {least})
        """),
        "Acknowledge timers of a job's ports that ran out within a minute.",
        level=3,
    )


def _together(site: Site, what: str, fell: str) -> str:
    """Return how many fell within seconds of the median one, if that is enough.

    Half of all that are there have the median of those that fell among them.
    """
    limits = site.options.comparisons.causes
    by = site.of(what)
    near = laid_out(f"""
        (
          {fell}
        )
        and on ({site.port}) (
          abs(
            ({fell})
            - on ({by}) group_left () quantile by ({by}) (0.5, {fell})
          ) <= {limits.together_seconds:g}
        )
    """)
    return laid_out(f"""
        (count by ({by}) ({near}) >= {limits.ports})
        and on ({by}) (
          count by ({by}) ({near})
          >= on ({by}) {limits.ports_ratio:g} * {site.ports_of(what, CLOCKED)}
        )
        and on ({by}) (
          count by ({by}) (group by ({by}, {site.names.node}) ({near})) >= {limits.nodes}
        )
    """)


def alerts(site: Site) -> Iterator[Alert]:
    """Yield the alerts."""
    yield _fallen(site)
    yield _left(site)
    yield _leaf_control(site)
    yield _changeover(site)


def _fallen(site: Site) -> Alert:
    leaf = site.of("leaf")
    limits = site.options.comparisons.causes
    return Alert(
        name="FabricCommonCause",
        kind="common_cause",
        expr=laid_out(f"""
            {LEAF} + on ({leaf}) group_left (rail) 0 * {LEAF_RAIL}
            or
            {LEAF} unless on ({leaf}) {LEAF_RAIL}
            or
            {RAIL}
            or
            {RACK} unless on ({site.cluster}) {RAIL}
        """),
        notice=Notice.TICKET,
        summary="{{ with $labels.leaf }}leaf {{ . }}{{ else }}{{ with $labels.rail }}"
        "rail {{ . }}{{ else }}rack {{ $labels.rack }}{{ end }}{{ end }}: "
        "{{ $value }} ports went down within seconds: one cause",
        description=f"At least {limits.ports_ratio:.0%} of its ports fell within "
        f"{limits.together_seconds:g} s of each other. It stays one event for "
        f"{duration(limits.recent_seconds)}, and while so many are down.",
        is_not="so many bad cables or nodes: what these ports tell meanwhile is not "
        "held against them",
        labels=told("warning"),
    )


def _left(site: Site) -> Alert:
    """Return the alert of a port that stays down when the others are up again."""
    limits = site.options.comparisons.causes
    leaf = site.of("leaf")
    down = f'{FELL}{{leaf!=""}} and on ({site.port}) {INACTIVE}'
    return Alert(
        name="FabricPortLeftDown",
        kind="port_down",
        expr=laid_out(f"""
            {NOTICED}{{kind="port_down"}}
            and on ({site.port}) (
              {down}
              and on ({leaf}) (
                count by ({leaf}) ({down})
                <= on ({leaf}) {limits.left_ratio:g} * {LEAF}
              )
            )
        """),
        notice=None,
        summary=f"{{{{ $labels.{site.names.node} }}}} {{{{ $labels.device }}}}/"
        "{{ $labels.port }}: still down while leaf {{ $labels.leaf }} is up again, "
        "fault at this end",
        description="It fell with the other ports of its leaf, and they came back. "
        f"{SINCE_DAY}Severity {{{{ $labels.severity }}}}, advice "
        "{{ $labels.action }}.",
        is_not="the leaf: most of its ports are ACTIVE",
        for_seconds=limits.control_seconds,
        keep_seconds=0,
        labels=(Label("origin", "fleet"),),
        dashboard="fabricmon-node",
    )


def _leaf_control(site: Site) -> Alert:
    limits = site.options.comparisons.causes
    return Alert(
        name="FabricLeafNotConfigured",
        kind="fabric_control",
        expr=on_most_of_a_leaf(
            site,
            INITIALISING,
            site.ports_of("leaf"),
            limits.ports,
            limits.ports_ratio,
        ),
        notice=Notice.TICKET,
        summary="leaf {{ $labels.leaf }}: {{ $value }} ports are trained and not "
        "configured: the subnet manager",
        description="The links of these ports are up and stay in INIT or ARMED for "
        f"{duration(limits.control_seconds)} or longer: nobody gives them an address.",
        is_not="cables or nodes: their links are trained",
        for_seconds=limits.control_seconds,
        keep_seconds=site.options.pace.keep_seconds,
        labels=told("warning"),
    )


def _changeover(site: Site) -> Alert:
    """Return the alert of a changeover, also of one that no scrape has seen."""
    limits = site.options.comparisons.causes
    cluster, leaf = site.cluster, site.of("leaf")
    hit = f"(({INITIALISING} or {INTERRUPTED}) unless on ({leaf}) {LEAF})"
    return Alert(
        name="FabricControlChange",
        kind="fabric_control",
        expr=laid_out(f"""
            (count by ({cluster}) ({hit}) >= {limits.ports})
            and on ({cluster}) (
              count by ({cluster}) ({hit})
              >= on ({cluster}) {limits.control_ratio:g} * sum by ({cluster}) ({PORTS})
            )
            and on ({cluster}) (
              count by ({cluster}) (group by ({site.node}) ({hit})) >= {limits.nodes}
            )
            and on ({cluster}) (
              count by ({cluster}) (group by ({site.of("rail")}) ({hit}))
              >= {limits.stall_rails}
            )
        """),
        notice=Notice.INFO,
        summary="{{ $value }} ports on several rails stand or stood in INIT at once: "
        "the subnet manager changes over",
        description="Their links are trained. A changeover takes 5 to 60 s; jobs wait "
        "for so long.",
        is_not="a fault of ports or nodes, nor an outage: no link went down",
        keep_seconds=site.options.pace.keep_seconds,
        labels=told("info"),
    )


def stall_alert(site: Site) -> Alert:
    """Return the alert of a stall that is over before a scrape sees a state.

    Rails of a fabric have nothing in common but its control, and the nodes; a node
    that fell silent, or that its peers name, explains timers on all rails.
    """
    limits = site.options.comparisons.causes
    trained, rail = site.trained, f"{site.trained}, rail"
    nodes = f"group by ({site.node}, {TRAINING}) ({TIMED_OUT})"
    build = site.series("fabricmon_build_info")
    members = f'count by ({trained}) ({NODE_TRAININGS}{{link_layer="InfiniBand"}})'
    gone = (
        f"{NODE_TRAININGS} offset {duration(site.options.findings.job_seconds)} "
        f"unless on ({site.node}) {build}"
    )
    named = site.series("fabricmon_peer_votes")
    fallen = site.series(
        "fabricmon_finding_open",
        'kind=~"port_down|port_flap|port_flapping|device_missing|device_stuck"',
    )
    return Alert(
        name="FabricStall",
        kind="fabric_control",
        expr=laid_out(f"""
            (count by ({trained}) ({nodes}) >= {limits.nodes})
            and on ({trained}) (
              count by ({trained}) ({nodes})
              >= on ({trained}) {limits.stall_ratio:g} * {members}
            )
            and on ({trained}) (
              count by ({trained}) (
                count by ({rail}) (group by ({rail}, {site.names.node}) ({TIMED_OUT})) > 1
              ) >= {limits.stall_rails}
            )
            unless on ({trained}) ({gone})
            unless on ({trained}) ({NODE_TRAININGS} and on ({site.node}) {named})
            unless on ({trained}) (
              {TRAININGS} and on ({site.device}) max by ({site.device}) ({fallen})
            )
        """),
        notice=Notice.INFO,
        summary="job {{ $labels.training }}: timers ran out on {{ $value }} nodes and "
        "several rails at once: the whole fabric stalled",
        description="No port of the job went down, no node fell silent, no peer is "
        "named. Rails share nothing but the control of the fabric: look for a "
        "changeover of the subnet manager, or a change of routes.",
        is_not="a fault of these nodes: they waited, and went on",
        keep_seconds=site.options.pace.keep_seconds,
        labels=told("info"),
    )
