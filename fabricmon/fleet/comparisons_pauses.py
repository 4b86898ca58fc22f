"""Who holds the network up with pause: the first to pause, or a switch.

``health-systems`` A8 and 4.4. Transmit pause says that a host cannot absorb, receive
pause that the network cannot. Where many ports are held and none of them sends, a
switch is the origin (``faults`` F35). Where several send, the first began it, as far as
their clocks can tell: else nothing is said of the order.
"""

from __future__ import annotations

from collections.abc import Iterator

from fabricmon.fleet import recordings_signs as signs
from fabricmon.fleet.agent_alerts import OFF
from fabricmon.fleet.comparing import PORTS, Site, laid_out, told
from fabricmon.fleet.rule import Alert, Notice, Recording

HELD = "port:fabricmon_pause_received:held"
SENDING = "port:fabricmon_pause_sent:sending"
ONSET = "port:fabricmon_pause_onset:timestamp_seconds"
FIRST = "rail:fabricmon_pause_onset:first"
UNMARKED = "port:fabricmon_pause_unmarked:bool"


def recordings(site: Site) -> Iterator[Recording]:
    """Yield them."""
    for record, sign, meaning in (
        (HELD, signs.HELD, "Ports that the network holds up, by share of time, or 1."),
        (SENDING, signs.SENDING, "Ports that hold the network up, by share, or 1."),
        (ONSET, signs.ONSET, "Since when ports hold the network up."),
        (UNMARKED, signs.UNMARKED, "1 for ports that are paused and never marked."),
    ):
        yield Recording(record, signs.of(sign), meaning, level=3)
    yield Recording(
        FIRST,
        laid_out(f"""
            min by ({site.of("rail")}) ({ONSET}{{rail!=""}})
            unless on ({site.of("rail")}) ({ONSET} and on ({site.node}) {OFF})
        """),
        "The first onset of a rail, where all clocks of those that pause agree.",
        level=4,
    )


def alerts(site: Site) -> Iterator[Alert]:
    """Yield the alerts."""
    yield _tree(site)
    yield _first(site)
    yield _follower(site)
    yield _unmarked(site)


def _tree(site: Site) -> Alert:
    limits = site.options.comparisons.pauses

    def held(what: str) -> str:
        by = site.of(what)
        ports = f'count by ({by}) ({HELD}{{{what}!=""}})'
        there = site.ports_of(what)
        return f"""
            ({ports} >= {limits.ports})
            and on ({by}) ({ports} >= on ({by}) {limits.ports_ratio:g} * {there})
            unless on ({by}) {SENDING}
        """

    rail, leaf = site.of("rail"), site.of("leaf")
    sending = f'group by ({rail}) ({SENDING}{{rail!=""}})'
    leafs = laid_out(f"""
        count by ({site.of("leaf", "rail")}) (
          {HELD}{{leaf!=""}} and on ({leaf}) (
            {held("leaf")}
          )
        )
        unless on ({rail}) {sending}
    """)
    return Alert(
        name="FabricPauseTree",
        kind="fabric_suspect",
        expr=laid_out(f"""
            {leafs}
            or
            (
              {held("rail")}
            ) unless on ({rail}) ({leafs})
        """),
        notice=Notice.TICKET,
        summary="{{ with $labels.leaf }}leaf {{ . }}{{ else }}rail {{ $labels.rail }}"
        "{{ end }}: the network holds up {{ $value }} ports and no host sends pause",
        description=f"Each of them is paused for over {limits.victim_ratio:.0%} of the "
        "time, and no compute port of the rail pauses the network: a switch does. "
        "Look for its watchdog, its buffers, and a port of it that is no host's.",
        is_not="a fault of these ports or nodes: they are all held alike",
        for_seconds=limits.hold_seconds,
        keep_seconds=site.options.pace.keep_seconds,
        labels=told("warning"),
        dashboard="fabricmon-roce",
    )


def _first(site: Site) -> Alert:
    limits, rail = site.options.comparisons.pauses, site.of("rail")
    apart = f"{limits.apart_seconds:g}"
    near = f"({ONSET} <= on ({rail}) group_left () ({FIRST} + {apart}))"
    return Alert(
        name="FabricPauseFirst",
        kind="pause_origin",
        expr=laid_out(f"""
            max without (link_layer) ({ONSET} == on ({rail}) group_left () {FIRST})
            and on ({rail}) (count by ({rail}) ({near}) == 1)
            and on ({rail}) (count by ({rail}) ({ONSET}) > 1)
        """),
        notice=Notice.INFO,
        summary=f"{{{{ $labels.{site.names.node} }}}} {{{{ $labels.device }}}}/"
        "{{ $labels.port }}: the first of its rail to pause the network, since "
        '{{ (toTime $value).Format "15:04:05 MST" }}, fault at this end',
        description="Other ports of rail {{ $labels.rail }} pause it as well, "
        f"{apart} s later or more: they answer this one. What its own agent found tells "
        "how much, and what to do.",
        is_not="a switch: this host began",
        keep_seconds=site.options.pace.keep_seconds,
        labels=told("warning", "culprit"),
        dashboard="fabricmon-roce",
    )


def _follower(site: Site) -> Alert:
    limits, rail = site.options.comparisons.pauses, site.of("rail")
    apart = f"{limits.apart_seconds:g}"
    return Alert(
        name="FabricPauseFollower",
        kind="pause_victim",
        expr=laid_out(f"""
            max without (link_layer) (
              {ONSET} > on ({rail}) group_left () ({FIRST} + {apart})
            )
        """),
        notice=Notice.INFO,
        summary=f"{{{{ $labels.{site.names.node} }}}} {{{{ $labels.device }}}}/"
        "{{ $labels.port }}: pauses the network later than another of its rail, "
        "this end only suffers",
        description='It began at {{ (toTime $value).Format "15:04:05 MST" }}. Who '
        "waits for a host that pauses fills up as well.",
        is_not="the origin: look for FabricPauseFirst on rail {{ $labels.rail }}",
        keep_seconds=site.options.pace.keep_seconds,
        labels=told("info", "victim"),
        dashboard="fabricmon-roce",
    )


def _unmarked(site: Site) -> Alert:
    """Return the alert of a leaf that marks nothing; of a rail where none is known."""
    limits, leaf = site.options.comparisons.pauses, site.of("leaf", "rail")
    ports = f"count by ({leaf}) ({UNMARKED})"
    return Alert(
        name="FabricLeafUnmarked",
        kind="config_mismatch",
        expr=laid_out(f"""
            ({ports} >= {limits.unmarked_ports})
            and on ({leaf}) (
              {ports} >= on ({leaf}) {limits.unmarked_ratio:g} * sum by ({leaf}) ({PORTS})
            )
        """),
        notice=Notice.INFO,
        summary="{{ with $labels.leaf }}leaf {{ . }}{{ else }}rail {{ $labels.rail }}"
        "{{ end }}: {{ $value }} ports are paused and never notified of congestion: "
        "ECN of the switch",
        description="The other rails of these nodes are notified before they are "
        "paused. Where a switch does not mark, pause takes the place of it and spreads: "
        "compare its ECN thresholds with those of its like.",
        is_not="a setting of these nodes: their other rails have the same",
        for_seconds=site.options.pace.hold_seconds,
        keep_seconds=site.options.pace.keep_seconds,
        labels=told("info"),
        dashboard="fabricmon-roce",
    )
