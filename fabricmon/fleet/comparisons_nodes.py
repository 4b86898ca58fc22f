"""Node against node within a job, rail by rail: who sends slower than all others.

A job that keeps in step hides this: all nodes run at the pace of the slowest
(``health-systems`` 4.2). What is left are planes and links in reserve, a path that was
failed over, and jobs that do not wait for each other. Windows of two nodes lie in
different phases of a step, so duty is not compared, and of the rate only the highest
of the last windows.
"""

from __future__ import annotations

from collections.abc import Iterator

from fabricmon.fleet.comparing import TRAININGS, Site, laid_out, told
from fabricmon.fleet.comparisons_rails import BUSY, LOCAL, MAD_TO_DEVIATION, RATE
from fabricmon.fleet.promql import duration
from fabricmon.fleet.rule import TRAINING, Alert, Notice, Recording

BEST = "port:fabricmon_burst_rate:max"
MEDIAN = "rail:fabricmon_burst_rate:median"
SPREAD = "rail:fabricmon_burst_rate:spread"
SLOWER = "port:fabricmon_burst_rate:below"
SLOW_NODES = "node:fabricmon_burst_rate:below_ports"


def recordings(site: Site) -> Iterator[Recording]:
    """Yield them."""
    limits = site.options.comparisons.rails
    window = duration(limits.window_seconds)
    rail = f"{site.trained}, rail"
    yield Recording(
        BEST,
        laid_out(f"""
            max_over_time({RATE}[{window}])
            and on ({site.port}, {TRAINING}) (
              max_over_time({BUSY}[{window}]) >= {limits.busy_least_ratio:g}
            )
        """),
        "Highest rate of a job's rail in the last windows, where it carried something.",
        level=4,
    )
    yield Recording(
        MEDIAN,
        laid_out(f"""
            quantile by ({rail}) (0.5, {BEST})
            and on ({rail}) count by ({rail}) ({BEST}) >= {limits.compared_nodes}
        """),
        "The same of the median node, where enough nodes have the rail.",
        level=5,
    )
    floor = f"{limits.spread_floor:g} * {MEDIAN}"
    yield Recording(
        SPREAD,
        laid_out(f"""
            (
              {MAD_TO_DEVIATION} * quantile by ({rail}) (
                0.5, abs({BEST} - on ({rail}) group_left () {MEDIAN})
              )
              > on ({rail}) {floor}
            )
            or {floor}
        """),
        "Deviation over nodes, by the median absolute one, with a floor.",
        level=6,
    )
    yield from _below(site)


def _below(site: Site) -> Iterator[Recording]:
    limits = site.options.comparisons.rails
    on = f"on ({site.trained}, rail) group_left ()"
    found = site.series("fabricmon_finding_open", f'kind=~"{LOCAL}",severity!="info"')
    yield Recording(
        SLOWER,
        laid_out(f"""
            (
              ({BEST} <= {on} ({limits.rate_ratio:g} * {MEDIAN}))
              <= {on} ({MEDIAN} - {limits.score:g} * {SPREAD})
            )
            / {on} {MEDIAN}
            unless on ({site.device}) max by ({site.device}) ({found})
        """),
        "Share of the median node's rate, of ports that are far below it and show "
        "nothing of their own.",
        level=7,
    )
    yield Recording(
        SLOW_NODES,
        laid_out(f"""
            count by ({site.node}, {TRAINING}) ({SLOWER})
            >= on ({site.node}, {TRAINING})
            {limits.slow_rails_ratio:g}
            * count by ({site.node}, {TRAINING}) ({TRAININGS}{{rail!=""}})
        """),
        "Slow ports of nodes with so many that it is the node.",
        level=8,
    )


def alerts(site: Site) -> Iterator[Alert]:
    """Yield the alerts of a node, and of one rail of a node."""
    limits = site.options.comparisons.rails
    node = f"{{{{ $labels.{site.names.node} }}}}"
    window = duration(limits.window_seconds)
    yield Alert(
        name="FabricNodeSlow",
        kind="host_path_slow",
        expr=SLOW_NODES,
        notice=Notice.INFO,
        summary=f"{node}: {{{{ $value }}}} rails of job {{{{ $labels.training }}}} send "
        "slower than on all other nodes",
        description=f"Their highest rate in {window} is below {limits.rate_ratio:.0%} "
        "of the median node's, and no port shows a fault: look at the host (GPU "
        "Direct, PCIe, a process that is late).",
        is_not="one bad link: most rails of the node are slow alike",
        for_seconds=limits.node_hold_seconds,
        keep_seconds=site.options.pace.keep_seconds,
        labels=told("warning"),
        dashboard="fabricmon-stragglers",
    )
    yield Alert(
        name="FabricNodeRailSlow",
        kind="rail_slow",
        expr=laid_out(f"""
            max without (link_layer, rack) ({SLOWER})
            unless on ({site.node}, {TRAINING}) {SLOW_NODES}
        """),
        notice=Notice.INFO,
        summary=f"{node} {{{{ $labels.device }}}}/{{{{ $labels.port }}}}: rail "
        "{{ $labels.rail }} of job {{ $labels.training }} sends at "
        "{{ $value | humanizePercentage }} of the median node",
        description=f"That is its highest rate in {window}. The other nodes do not "
        "wait for it: a path that was failed over, or connections from before a flap.",
        is_not="a rail that paces a job (FabricRailSlow): only this node is slow",
        for_seconds=limits.node_hold_seconds,
        keep_seconds=site.options.pace.keep_seconds,
        labels=told("info"),
        dashboard="fabricmon-stragglers",
    )
