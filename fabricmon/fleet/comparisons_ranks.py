"""Ranks of a communicator against each other: who comes late (NVRx, Flight Recorder).

In a collective all wait for the last one. So the rank that is late is in it for the
shortest time, and the others for as long as it keeps them. A port of its node that has
a finding is the better story.
"""

from __future__ import annotations

from collections.abc import Iterator

from fabricmon.fleet.comparing import Site, laid_out, told
from fabricmon.fleet.comparisons_rails import MAD_TO_DEVIATION
from fabricmon.fleet.promql import duration
from fabricmon.fleet.rule import Alert, Notice, Recording

MEAN = "rank:fabricmon_collective_execution:mean"
MEDIAN = "comm:fabricmon_collective_execution:median"
SPREAD = "comm:fabricmon_collective_execution:spread"


def recordings(site: Site) -> Iterator[Recording]:
    """Yield them."""
    limits = site.options.comparisons.ranks
    seconds = site.series("fabricmon_collective_execution_seconds")
    window = duration(limits.window_seconds)
    by = site.of("comm", "collective", "size")
    on = f"on ({by})"
    yield Recording(
        MEAN,
        f"avg by ({site.node}, comm, rank, collective, size) "
        f"(avg_over_time({seconds}[{window}]))",
        "Mean time of a rank in a collective of one size.",
    )
    yield Recording(
        MEDIAN,
        laid_out(f"""
            quantile by ({by}) (0.5, {MEAN})
            and {on} count by ({by}) ({MEAN}) >= {limits.least_ranks}
        """),
        "The same of the median rank, where enough ranks are known.",
        level=2,
    )
    deviation = laid_out(f"""
        {MAD_TO_DEVIATION} * quantile by ({by}) (
          0.5, abs({MEAN} - {on} group_left () {MEDIAN})
        )
    """)
    floor = f"{limits.spread_floor:g} * {MEDIAN}"
    yield Recording(
        SPREAD,
        laid_out(f"""
            ({deviation} > {on} {floor})
            or {floor}
        """),
        "Deviation over ranks, by the median absolute one, with a floor.",
        level=3,
    )


def alerts(site: Site) -> Iterator[Alert]:
    """Yield the alert."""
    limits = site.options.comparisons.ranks
    on = f"on ({site.of('comm', 'collective', 'size')}) group_left ()"
    rank = f"{site.node}, comm, rank"
    found = site.series(
        "fabricmon_finding_open", 'role="culprit",severity!="info",device!=""'
    )
    yield Alert(
        name="FabricRankLate",
        kind="not_network",
        expr=laid_out(f"""
            max by ({rank}) (
              ({MEDIAN} - {on.replace("left", "right")} {MEAN})
              and on ({rank}, collective, size) (
                ({MEAN} <= {on} ({limits.ratio:g} * {MEDIAN}))
                <= {on} ({MEDIAN} - {limits.score:g} * {SPREAD})
              )
            )
            unless on ({site.node}) {found}
        """),
        notice=Notice.INFO,
        summary=f"{{{{ $labels.{site.names.node} }}}}: rank {{{{ $labels.rank }}}} comes "
        "late to collectives, the others wait {{ $value | humanizeDuration }}",
        description="Communicator {{ $labels.comm }}. It is in the collective for the "
        "shortest time of all ranks: what it does before takes longer (a slow GPU, a "
        "data loader, the host).",
        is_not="the network: no port of this node has a fault",
        for_seconds=limits.hold_seconds,
        keep_seconds=site.options.pace.keep_seconds,
        labels=told("info", "culprit"),
        dashboard="fabricmon-stragglers",
    )
