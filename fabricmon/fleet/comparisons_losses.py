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

from fabricmon.fleet.comparing import Site, laid_out, told
from fabricmon.fleet.promql import duration
from fabricmon.fleet.recordings_signs import placed
from fabricmon.fleet.rule import Alert, Notice, Recording

LOSSES = "port:fabricmon_loss:placed"
LOST = "port:fabricmon_sequence_errors:increase"
GAPS = "port:fabricmon_out_of_sequence:increase"
ERRORS = "rail:fabricmon_link_errors:open"

_LINK = "link_errors|link_unstable|rate_degraded|port_down|port_flapping|port_flap"


def recordings(site: Site) -> Iterator[Recording]:
    """Yield them."""
    limits = site.options.comparisons.losses

    def lost(metric: str) -> str:
        counted = site.counted("increase", metric, limits.window_seconds)
        return f"{counted} >= {limits.packets}"

    found = site.per_port(
        "fabricmon_finding_open",
        f'kind=~"{_LINK}",role="culprit",severity!="info"',
    )
    losses = {
        "sent": lost("fabricmon_infiniband_packet_sequence_errors_total"),
        "received": lost("fabricmon_infiniband_out_of_sequence_packets_received_total"),
        "link": found,
    }
    yield Recording(
        LOSSES,
        placed(site, "loss", losses),
        "Ports that lose too many packets, by who saw it, or whose link is at fault.",
        level=2,
    )
    for record, loss, what in (
        (LOST, "sent", "sent again"),
        (GAPS, "received", "that arrived out of sequence"),
    ):
        yield Recording(
            record,
            f'max without (loss) ({LOSSES}{{loss="{loss}",rail!=""}})',
            f"Packets {what} within the window, where there are too many.",
            level=3,
        )
    yield Recording(
        ERRORS,
        f'group by ({site.of("rail")}) ({LOSSES}{{loss="link",rail!=""}})',
        "1 for rails with a port whose link is at fault.",
        level=3,
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
