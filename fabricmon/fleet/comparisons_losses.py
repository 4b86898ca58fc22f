"""Packets that get lost between ports that are all well.

Who sends counts sequence errors, who receives counts gaps. Where one sender has nearly
all losses of its rail and several receivers have gaps, what it sends is damaged on the
way, and its own counters cannot show that (``faults`` F02). Where several senders and
receivers behind several leafs have them, and no port of the rail has errors of its
link, it is inside the fabric (F38). Gaps without sequence errors are reordering, not
loss (N24). One receiver with all the gaps has a bad link itself (F01).
"""

from __future__ import annotations

from collections.abc import Iterator

from fabricmon.fleet.comparing import RAILS, Site, laid_out, told
from fabricmon.fleet.promql import duration
from fabricmon.fleet.rule import Alert, Notice, Recording

LOST = "port:fabricmon_sequence_errors:increase"
GAPS = "port:fabricmon_out_of_sequence:increase"
ERRORS = "rail:fabricmon_link_errors:open"

_LINK = "link_errors|link_unstable|rate_degraded|port_down|port_flapping|port_flap"


def recordings(site: Site) -> Iterator[Recording]:
    """Yield them."""
    limits = site.options.comparisons.losses
    for record, metric, what in (
        (LOST, "fabricmon_infiniband_packet_sequence_errors_total", "sent again"),
        (
            GAPS,
            "fabricmon_infiniband_out_of_sequence_packets_received_total",
            "that arrived out of sequence",
        ),
    ):
        counted = site.counted("increase", metric, limits.window_seconds)
        yield Recording(
            record,
            laid_out(f"""
                {RAILS}{{rail!=""}}
                * on ({site.port}) group_left () ({counted} >= {limits.packets})
            """),
            f"Packets {what} within the window, where there are too many.",
            level=2,
        )
    found = site.series(
        "fabricmon_finding_open",
        f'kind=~"{_LINK}",role="culprit",severity!="info"',
    )
    yield Recording(
        ERRORS,
        laid_out(f"""
            group by ({site.of("rail")}) (
              {RAILS}{{rail!=""}} and on ({site.port}) max by ({site.port}) ({found})
            )
        """),
        "1 for rails with a port whose link is at fault.",
        level=2,
    )


def alerts(site: Site) -> Iterator[Alert]:
    """Yield the alerts."""
    yield _sender(site)
    yield _inside(site)


def _several(site: Site, least: int) -> str:
    """Return rails on which several receivers have gaps, none of them nearly all."""
    limits, rail = site.options.comparisons.losses, site.of("rail")
    return f"""
        (count by ({rail}) ({GAPS}) >= {least})
        and on ({rail}) (
          max by ({rail}) ({GAPS})
          <= on ({rail}) {limits.receiver_share:g} * sum by ({rail}) ({GAPS})
        )
        unless on ({rail}) {ERRORS}
    """


def _sender(site: Site) -> Alert:
    limits, rail = site.options.comparisons.losses, site.of("rail")
    return Alert(
        name="FabricSenderLossy",
        kind="fabric_suspect",
        expr=laid_out(f"""
            max without (link_layer) (
              {LOST}
              >= on ({rail}) group_left ()
              {limits.share:g} * sum by ({rail}) ({LOST})
            )
            and on ({rail}) (
              {_several(site, limits.receivers)}
            )
        """),
        notice=Notice.TICKET,
        summary=f"{{{{ $labels.{site.names.node} }}}} {{{{ $labels.device }}}}/"
        "{{ $labels.port }}: what it sends gets lost, {{ $value | humanize }} packets in "
        f"{duration(limits.window_seconds)}; its switch port counts them",
        description="Nearly all losses of rail {{ $labels.rail }} are of this sender, "
        "and several receivers have gaps: its cable or module towards "
        "{{ with $labels.leaf }}{{ . }}{{ else }}the leaf{{ end }} damages what goes "
        "out, which only the switch can count. Read that port's symbol errors.",
        is_not="a fault of the receivers, nor of a peer: they all see it alike",
        for_seconds=limits.hold_seconds,
        keep_seconds=site.options.pace.keep_seconds,
        labels=told("warning"),
        dashboard="fabricmon-node",
    )


def _inside(site: Site) -> Alert:
    limits, rail = site.options.comparisons.losses, site.of("rail")
    return Alert(
        name="FabricCorruption",
        kind="fabric_suspect",
        expr=laid_out(f"""
            (
              {_several(site, limits.receivers)}
            )
            and on ({rail}) (count by ({rail}) ({LOST}) >= {limits.receivers})
            and on ({rail}) (
              max by ({rail}) ({LOST})
              < on ({rail}) {limits.share:g} * sum by ({rail}) ({LOST})
            )
            and on ({rail}) (
              count by ({rail}) (group by ({rail}, leaf) ({GAPS}{{leaf!=""}}))
              >= {limits.leafs}
            )
        """),
        notice=Notice.TICKET,
        summary="rail {{ $labels.rail }}: packets get lost towards {{ $value }} ports "
        "behind several leafs, none of which has a bad link",
        description="Senders send again, receivers have gaps, and no port of the rail "
        "counts errors of its link: a spine, a link between switches, or the memory of "
        "one damages what crosses it.",
        is_not="a fault of these ports or nodes: draining them changes nothing",
        for_seconds=limits.hold_seconds,
        keep_seconds=site.options.pace.keep_seconds,
        labels=told("warning"),
    )
