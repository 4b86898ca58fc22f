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
    TRAININGS,
    Site,
    laid_out,
    on_most_of_a_leaf,
    told,
)
from fabricmon.fleet.promql import duration
from fabricmon.fleet.recordings_signs import INACTIVE
from fabricmon.fleet.rule import TRAINING, Alert, Notice, Recording

STILL = "port:fabricmon_standing_still:bool"
WAITING = "port:fabricmon_standing_still:waits"

_SENT = "fabricmon_infiniband_port_data_transmitted_bytes_total"
_WAITED = "fabricmon_infiniband_port_transmit_wait_total"
_DROPPED = "fabricmon_infiniband_port_discards_transmitted_total"
_SCRAPES = 3
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
    window = duration(site.options.comparisons.stalls.window_seconds)
    dropped, waited = site.series(_DROPPED), site.series(_WAITED)
    yield Recording(
        WAITING,
        laid_out(f"""
            {STILL}
            and on ({site.port}) (
              increase({dropped}[{window}]) > 0
              or
              increase({waited}[{duration(_quiet_seconds(site))}]) >= {_HALF_FIELD}
            )
        """),
        "1 for those that wait meanwhile, or dropped what waited for too long.",
        level=4,
    )


def _quiet_seconds(site: Site) -> float:
    """Return how long nothing moves: a counter must have been scraped meanwhile."""
    quiet = site.options.comparisons.stalls.quiet_seconds
    return max(quiet, _SCRAPES * site.options.pace.scrape_seconds)


def _still(site: Site) -> str:
    """Return ports of a job that send next to nothing now, and more before."""
    limits, port = site.options.comparisons.stalls, site.port
    quiet = _quiet_seconds(site)
    least_past = _SCRAPES * site.options.pace.scrape_seconds
    before = max(limits.before_seconds - quiet, least_past)
    past = f"[{duration(before)}] offset {duration(quiet)}"
    sent = site.series(_SENT)
    least = f"{limits.moving_bytes_per_second:g}"
    return laid_out(f"""
        max without ({TRAINING}) (
          {TRAININGS}{{link_layer="InfiniBand"}}
          and on ({port}) (rate({sent}[{duration(quiet)}]) < {least})
          and on ({port}) (rate({sent}{past}) > {least})
          unless on ({port}) {INACTIVE}
        )
    """)


def alerts(site: Site) -> Iterator[Alert]:
    """Yield the alert."""
    limits = site.options.comparisons.stalls
    yield Alert(
        name="FabricDeadlock",
        kind="fabric_suspect",
        expr=on_most_of_a_leaf(
            site,
            WAITING,
            f'count by ({site.of("leaf")}) ({STILL}{{leaf!=""}})',
            limits.ports,
            limits.ports_ratio,
        ),
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
