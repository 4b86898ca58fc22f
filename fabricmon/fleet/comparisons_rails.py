"""Rail against rail on each node, then node against node: which rail paces a job.

``health-systems`` A5 and 4.2. In a synchronous job all rails carry the same bytes at
the same mean rate, and the slow one is busy for longer, at a lower rate. Rails of one
node are measured at the same moment; windows of two nodes are not, so nodes only vote.
A slow hop paces its rail on every node: most nodes agree, and the place is not known.

One direction is enough, and costs half: whoever receives slowly makes its senders slow.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from fabricmon.fleet.comparing import (
    NODE_TRAININGS,
    RAIL_NODES,
    TRAINING_PORTS,
    TRAININGS,
    Site,
    laid_out,
    told,
)
from fabricmon.fleet.promql import duration
from fabricmon.fleet.rule import TRAINING, Alert, Notice, Recording

BUSY = "port:fabricmon_busy:ratio"
RATE = "port:fabricmon_burst_rate:bytes_per_second"
BUSY_MEDIAN = "node:fabricmon_busy:median"
RATE_MEDIAN = "node:fabricmon_burst_rate:median"
BUSY_LIMIT = "node:fabricmon_busy:limit"
BUSY_SPREAD = "node:fabricmon_busy:spread"
RATE_LIMIT = "node:fabricmon_burst_rate:limit"
RATE_SPREAD = "node:fabricmon_burst_rate:spread"
ODD = "port:fabricmon_rail_odd:bool"
SLOW = "node:fabricmon_rail_slow:bool"
SLOW_NODES = "rail:fabricmon_rail_slow:nodes"
EXPLAINED = "rail:fabricmon_rail_slow:explained"
JITTER_NODES = "rail:fabricmon_rail_jitter:nodes"

MAD_TO_DEVIATION = 1.4826
"""A normal distribution's standard deviation is so many median absolute deviations."""

LOCAL = (
    "straggler_link|rate_degraded|pcie_degraded|pcie_errors|link_errors|link_unstable"
    "|post_flap_degraded|pause_origin|host_path_slow|device_stuck"
)
"""Findings of a node that explain a slow rail: the place is known then."""


def recordings(site: Site) -> Iterator[Recording]:
    """Yield them."""
    sent = 'direction="transmitted"'
    busy = site.per_port("fabricmon_port_busy_ratio", sent)
    rate = site.per_port(
        "fabricmon_port_burst_rate_bytes_per_second", f'{sent},quantile="0.99"'
    )
    for record, expr, meaning in (
        (BUSY, busy, "Share of the last burst in which a job's rail was busy sending."),
        (RATE, rate, "99th percentile of the sending rate of a job's rail."),
    ):
        yield Recording(record, _of_training(site, expr), meaning, level=3)
    yield from _middles(site)
    yield from _limits(site)
    yield Recording(
        ODD,
        _odd(site),
        "1 for rails that are busier or slower than the others of their node.",
        level=7,
    )
    yield Recording(
        SLOW,
        _slow(site),
        "1 for nodes on which a rail of a job is slow in most windows.",
        level=8,
    )
    rail = f"{site.trained}, rail"
    yield Recording(
        SLOW_NODES, f"count by ({rail}) ({SLOW})", "How many such nodes.", level=9
    )
    yield Recording(
        EXPLAINED,
        _explained(site),
        "1 for rails of a job with a port that shows why it is slow.",
        level=3,
    )
    moments = site.names.training(
        "fabricmon_rail_finding_open", 'kind="rail_slow",severity="info"'
    )
    yield Recording(
        JITTER_NODES,
        laid_out(f"""
            count by ({rail}) (
              group by ({site.node}, {TRAINING}, rail) (
                {moments}
              )
            )
        """),
        "Nodes whose agents see a rail of a job that is slow for moments.",
    )


def _of_training(site: Site, expr: str) -> str:
    return laid_out(f"""
        {TRAININGS}{{rail!=""}}
        * on ({site.port}) group_left ()
        {expr}
    """)


def _middles(site: Site) -> Iterator[Recording]:
    limits = site.options.comparisons.rails
    by = f"{site.node}, {TRAINING}"
    yield Recording(
        BUSY_MEDIAN,
        laid_out(f"""
            quantile by ({by}) (0.5, {BUSY}) >= {limits.busy_least_ratio:g}
            and on ({by}) sum by ({by}) ({NODE_TRAININGS}) >= {limits.least_rails}
        """),
        "Duty of the median rail of a job on a node, where there is enough of it.",
        level=4,
    )
    yield Recording(
        RATE_MEDIAN,
        f"quantile by ({by}) (0.5, {RATE})",
        "Rate of the median rail of a job on a node.",
        level=4,
    )
    for record, value, median in (
        (BUSY_SPREAD, BUSY, BUSY_MEDIAN),
        (RATE_SPREAD, RATE, RATE_MEDIAN),
    ):
        yield Recording(
            record,
            _spread(value, median, by, limits.spread_floor),
            "Deviation of the rails of a job on a node, by the median absolute one, "
            "with a floor.",
            level=5,
        )


def _spread(value: str, median: str, by: str, floor: float) -> str:
    """Return the deviation, at least a share of the median: PromQL has no ``max``."""
    deviation = laid_out(f"""
        {MAD_TO_DEVIATION} * quantile by ({by}) (
          0.5, abs({value} - on ({by}) group_left () {median})
        )
    """)
    return laid_out(f"""
        ({deviation} > on ({by}) {floor:g} * {median})
        or {floor:g} * {median}
    """)


def _limits(site: Site) -> Iterator[Recording]:
    """Yield what is odd on a node: one number for all of its ports."""
    limits = site.options.comparisons.rails
    on = f"on ({site.node}, {TRAINING})"
    score = f"{limits.score:g}"
    yield Recording(
        BUSY_LIMIT,
        laid_out(f"""
            (
              {BUSY_MEDIAN} + {on} clamp_min({score} * {BUSY_SPREAD}, {limits.busy_step_ratio:g})
              > {on} {limits.busy_ratio:g} * {BUSY_MEDIAN}
            )
            or {limits.busy_ratio:g} * {BUSY_MEDIAN}
        """),
        "Duty from which a rail is busier than the others of its node.",
        level=6,
    )
    yield Recording(
        RATE_LIMIT,
        laid_out(f"""
            (
              {RATE_MEDIAN} - {on} {score} * {RATE_SPREAD}
              < {on} {limits.rate_ratio:g} * {RATE_MEDIAN}
            )
            or {limits.rate_ratio:g} * {RATE_MEDIAN}
        """),
        "Rate up to which a rail is slower than the others of its node.",
        level=6,
    )


def _odd(site: Site) -> str:
    """Return rails that are busier, or slower and no less busy, than the others."""
    limits = site.options.comparisons.rails
    on = f"on ({site.node}, {TRAINING}) group_left ()"
    port = f"on ({site.port}, {TRAINING})"
    step = f"{limits.busy_step_ratio:g}"
    return laid_out(f"""
        (
          {BUSY} >= {on} {BUSY_LIMIT}
          or
          {BUSY} >= {on} clamp_min({BUSY_MEDIAN} - {step}, {limits.busy_least_ratio:g})
          and {port} (({RATE} > 0) <= {on} {RATE_LIMIT})
        ) * 0 + 1
    """)


def _slow(site: Site) -> str:
    """Return nodes and their slow rails, by windows here or by the agent's own.

    An agent that suspects a straggler takes windows without pause, and sees it sooner.
    """
    limits = site.options.comparisons.rails
    window = duration(limits.window_seconds)
    least = limits.judged_ratio * limits.window_seconds
    least /= site.options.pace.slow_seconds
    node = f"{site.node}, {TRAINING}"
    found = site.names.training(
        "fabricmon_rail_finding_open", 'kind="rail_slow",severity!="info"'
    )
    return laid_out(f"""
        group by ({node}, rail) (
          count_over_time({ODD}[{window}])
          >= on ({node}) group_left ()
          {limits.odd_ratio:g} * (count_over_time({BUSY_MEDIAN}[{window}]) >= {least:g})
        )
        or
        group by ({node}, rail) (
          {found}
        )
    """)


def _explained(site: Site) -> str:
    found = site.series("fabricmon_finding_open", f'kind=~"{LOCAL}",severity!="info"')
    rail = f"{site.trained}, rail"
    return laid_out(f"""
        group by ({rail}) (
          {TRAININGS} and on ({site.device}) max by ({site.device}) ({found})
        )
    """)


def alerts(site: Site) -> Iterator[Alert]:
    """Yield the alerts of a rail and a job, and of a leaf behind which it is slow."""
    yield _leaf(site)
    rail = _rail(site)
    yield rail
    yield _lasting(site, rail)
    yield _jitter(site)


def _leaf(site: Site) -> Alert:
    """Return the alert of a leaf that lost uplinks: nearly all of its ports wait.

    Behind a slow hop only those wait who send to it. A port that is notified of
    congestion receives from many: that is no uplink.
    """
    limits = site.options.comparisons.rails
    rail = f"{site.trained}, rail"
    leaf = f"{rail}, leaf"
    found = site.series(
        "fabricmon_finding_open",
        'kind=~"congestion|pause_victim",role="victim"',
    )
    receives = site.series(
        "fabricmon_finding_open", 'kind="congestion",role="observer"'
    )
    ports = laid_out(f"""
        count by ({leaf}) (
          {TRAININGS}{{leaf!="",rail!=""}}
          and on ({site.port}) max by ({site.port}) ({found})
        )
    """)
    return Alert(
        name="FabricLeafSlow",
        kind="fabric_suspect",
        expr=laid_out(f"""
            (
              {ports} >= {limits.leaf_ports}
              >= on ({leaf}) {limits.leaf_ratio:g} * {TRAINING_PORTS}
            )
            and on ({rail}) ({SLOW_NODES} >= {limits.least_nodes})
            unless on ({rail}) {EXPLAINED}
            unless on ({rail}) (
              {TRAININGS} and on ({site.port}) max by ({site.port}) ({receives})
            )
        """),
        notice=Notice.TICKET,
        summary="leaf {{ $labels.leaf }}: {{ $value }} ports of job "
        "{{ $labels.training }} wait for the network and their rail is slow",
        description="Nearly all ports of the job behind this leaf are held up, rail "
        "{{ $labels.rail }} paces the job, and no port has a reason of its own: look "
        "at the uplinks of the leaf.",
        is_not="a fault of these nodes: they are all held alike, and none of them "
        "receives from many",
        for_seconds=limits.hold_seconds,
        keep_seconds=limits.window_seconds,
        labels=told("warning"),
        dashboard="fabricmon-stragglers",
    )


def _agreed(site: Site, nodes: str) -> str:
    """Return rails of jobs of which enough nodes say the same."""
    limits, rail = site.options.comparisons.rails, f"{site.trained}, rail"
    return laid_out(f"""
        ({nodes} >= {limits.least_nodes})
        and on ({rail}) ({nodes} >= on ({rail}) {limits.nodes_ratio:g} * {RAIL_NODES})
    """)


def _rail(site: Site) -> Alert:
    """Return the alert of a rail and a job; nodes see it all alike."""
    limits = site.options.comparisons.rails
    rail = f"{site.trained}, rail"
    agreed = _agreed(site, SLOW_NODES)
    most = f"clamp_min({limits.split_ratio:g} * count by ({site.trained}) ({RAIL_NODES}), 1)"
    return Alert(
        name="FabricRailSlow",
        kind="rail_slow",
        expr=laid_out(f"""
            (
              {agreed}
            )
            unless on ({rail}) {EXPLAINED}
            unless on ({site.trained}) (
              count by ({site.trained}) ({SLOW_NODES} >= {limits.least_nodes})
              > on ({site.trained}) {most}
            )
        """),
        notice=Notice.INFO,
        summary="rail {{ $labels.rail }} paces job {{ $labels.training }} on "
        "{{ $value }} nodes, place not known",
        description="On these nodes the rail is busy for longer than the others of "
        f"the job, or sends at a lower rate, in {limits.odd_ratio:.0%} of the windows. "
        "One slow hop makes the whole rail slow: look for the port or leaf with a sign "
        "of its own. Duty of the rail now: "
        f"{{{{ with printf `avg({BUSY}{{{site.names.cluster}=%q,training=%q,rail=%q}})` "
        f"$labels.{site.names.cluster} $labels.training $labels.rail | query }}}}"
        "{{ . | first | value | humanizePercentage }}{{ else }}not known{{ end }}.",
        is_not="proof against any node: all of them see the same, and none has a "
        "reason of its own",
        for_seconds=limits.hold_seconds,
        keep_seconds=site.options.pace.keep_seconds,
        labels=told("warning"),
        dashboard="fabricmon-stragglers",
    )


def _lasting(site: Site, rail: Alert) -> Alert:
    """Return the ticket: for moments it is information, for long the job pays for it."""
    lasts = site.options.comparisons.rails.lasting_seconds
    return replace(
        rail,
        name="FabricRailSlowLasting",
        notice=Notice.TICKET,
        summary="rail {{ $labels.rail }} has paced job {{ $labels.training }} for "
        f"{duration(lasts)} or longer, on {{{{ $value }}}} nodes, place not known",
        for_seconds=lasts,
    )


def _jitter(site: Site) -> Alert:
    """Return the alert of a rail that is slow in some windows only."""
    rail = f"{site.trained}, rail"
    return Alert(
        name="FabricRailJitter",
        kind="rail_slow",
        expr=laid_out(f"""
            (
              {_agreed(site, JITTER_NODES)}
            )
            unless on ({rail}) {SLOW_NODES}
            unless on ({rail}) {EXPLAINED}
        """),
        notice=Notice.INFO,
        summary="rail {{ $labels.rail }} of job {{ $labels.training }} is slow for "
        "moments on {{ $value }} nodes, place not known",
        description="Some steps take longer for it, most do not. Look for a port or "
        "leaf of the rail with retransmissions or pause at the same moments.",
        is_not="a rail that paces the job all the time (FabricRailSlow), nor proof "
        "against any node",
        for_seconds=site.options.pace.hold_seconds,
        keep_seconds=site.options.comparisons.rails.window_seconds,
        labels=told("info"),
        dashboard="fabricmon-stragglers",
    )
