"""A leaf in which nothing moves while all its ports wait: a loop of credits (F41).

Ports of the leaf carried traffic and stand still now, while their job is there. That
alone is a job that hangs; here most of them also say that they waited for credit
without end, or dropped what waited for too long, and ports of other rails do not.
The counter of waiting counts only while nothing moves: before, a busy port waits too.
Where it has 32 bits it is full within half a second of a stall at 400 Gb/s and tells no
more then (``counters``), and drops alone tell.
"""

from __future__ import annotations

from collections.abc import Iterator

from fabricmon.fleet.comparing import (
    RAILS,
    TRAININGS,
    Site,
    laid_out,
    on_most_of_a_leaf,
    told,
)
from fabricmon.fleet.promql import duration
from fabricmon.fleet.rule import Alert, Notice, Recording

STILL = "port:fabricmon_standing_still:bool"
WAITING = "port:fabricmon_standing_still:waits"

_SENT = "fabricmon_infiniband_port_data_transmitted_bytes_total"
_WAITED = "fabricmon_infiniband_port_transmit_wait_total"
_DROPPED = "fabricmon_infiniband_port_discards_transmitted_total"
_HALF_FIELD = 2**31
"""Half of the 32 bits of the counter of waiting: a third of a second at 400 Gb/s."""


def recordings(site: Site) -> Iterator[Recording]:
    """Yield them."""
    yield Recording(
        STILL,
        _still(site),
        "1 for ports with a job that carried traffic minutes ago and none now.",
        level=3,
    )
    limits = site.options.comparisons.stalls
    dropped = _grown(site, _DROPPED, 0, limits.window_seconds)
    waited = _grown(site, _WAITED, 0, limits.quiet_seconds)
    yield Recording(
        WAITING,
        laid_out(f"""
            {STILL}
            and on ({site.port}) ({dropped} > 0 or {waited} >= {_HALF_FIELD})
        """),
        "1 for those that wait meanwhile, or dropped what waited for too long.",
        level=4,
    )


def _grown(site: Site, metric: str, end: float, begin: float) -> str:
    """Return how much a counter grew between two times ago, of two samples a port.

    A range of samples would cost many times as much, on all ports at all times; a
    counter that was reset in between has shrunk, and is not judged.
    """
    series = site.series(metric)
    late = f"{series} offset {duration(end)}" if end else series
    early = f"{series} offset {duration(begin)}"
    by = site.port
    return f"(max by ({by}) ({late}) - max by ({by}) ({early}))"


def _still(site: Site) -> str:
    limits = site.options.comparisons.stalls
    quiet, before = limits.quiet_seconds, limits.before_seconds
    line = site.per_port("fabricmon_infiniband_rate_bytes_per_second")
    now = _grown(site, _SENT, 0, quiet)
    past = _grown(site, _SENT, quiet, before)
    port, least = site.port, limits.moving_ratio
    return laid_out(f"""
        {RAILS}{{link_layer="InfiniBand"}}
        and on ({port}) {TRAININGS}
        and on ({port}) ({now} >= 0)
        and on ({port}) ({now} < {least * quiet:g} * {line})
        and on ({port}) ({past} > {least * (before - quiet):g} * {line})
        and on ({port}) ({site.per_port("fabricmon_infiniband_state_id")} == 4)
    """)


def alerts(site: Site) -> Iterator[Alert]:
    """Yield the alert."""
    limits = site.options.comparisons.stalls
    yield Alert(
        name="FabricDeadlock",
        kind="fabric_suspect",
        expr=on_most_of_a_leaf(site, WAITING, STILL, limits.ports, limits.ports_ratio),
        notice=Notice.TICKET,
        summary="leaf {{ $labels.leaf }}: {{ $value }} ports wait for credit and "
        "nothing moves",
        description="Their job is there, carried traffic "
        f"{duration(limits.before_seconds)} ago and none now. They waited without end, "
        "or dropped what waited for too long: look for a loop of credits (routing "
        "without deadlock avoidance), a receiver that is stuck, or a failing switch.",
        is_not="a fault of these ports or nodes, nor an idle job: idle ports do not "
        "wait",
        for_seconds=limits.hold_seconds,
        keep_seconds=site.options.pace.keep_seconds,
        labels=told("warning"),
    )
