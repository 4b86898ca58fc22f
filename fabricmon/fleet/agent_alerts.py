"""Alerts about the agents themselves: silence must not be taken for health."""

from __future__ import annotations

from collections.abc import Iterator

from fabricmon.fleet.kind_alerts import NOTICED, joined
from fabricmon.fleet.names import Names
from fabricmon.fleet.options import FleetOptions
from fabricmon.fleet.promql import duration, tidy
from fabricmon.fleet.rule import Alert, Group, Label, Notice, Recording

PRESENT = "node:fabricmon_agent:present"
MISSED = "node:fabricmon_agent:missed"
OFF = "node:fabricmon_clock:off"

_SEEN_STEPS = 96
"""In how many steps they look back: every quarter of an hour of a day.

A node that was there for less is not missed; each step costs as much as a sample.
"""

_DASHBOARD = "fabricmon-agents"


def groups(options: FleetOptions) -> tuple[Group, ...]:
    """Return the group about agents."""
    names = Names(options)
    rules: tuple[Recording | Alert, ...] = (
        *_recordings(names, options),
        _absent(names, options),
        _many_absent(names, options),
        _snapshot(names, options),
        _unsaved(names, options),
        _sink(names, options),
        _lost(names, options),
        _clocks(names, options),
        _budget(names, options),
    )
    return (Group("fabricmon.agents", options.agents.evaluation_seconds, rules),)


def _labels(severity: str = "warning") -> tuple[Label, ...]:
    return (
        Label("severity", severity),
        Label("role", "observer"),
        Label("action", "none"),
        Label("origin", "fleet"),
    )


def _seen(options: FleetOptions) -> str:
    """Return the range over which a node is missed, in steps."""
    seconds = options.agents.seen_seconds
    step = max(options.pace.scrape_seconds, seconds / _SEEN_STEPS)
    return f"[{duration(seconds)}:{duration(step)}]"


def _recordings(names: Names, options: FleetOptions) -> Iterator[Recording]:
    seen = _seen(options)
    build = names.series("fabricmon_build_info")
    node = names.on_node
    racks = names.series("fabricmon_node_info", 'rack!=""')
    one = f"topk by ({node}) (1, max by ({node}, rack) ({racks}))"
    yield Recording(
        PRESENT,
        joined(f"max by ({node}) ({build})", node, "rack", one),
        "1 for every node with an agent that can be scraped, with its rack.",
    )
    yield Recording(
        MISSED,
        tidy(f"""
            (
              topk by ({node}) (1, last_over_time({PRESENT}{{rack!=""}}{seen}))
              or on ({node})
              last_over_time({PRESENT}{{rack=""}}{seen})
            )
            unless on ({node}) {build}
        """),
        "1 for every node that had an agent within a day and has none now.",
        level=2,
    )
    error = names.series("fabricmon_clock_error_seconds")
    kept = names.series("fabricmon_clock_synchronized")
    limit = f"{options.pace.clock_error_seconds:g}"
    yield Recording(
        OFF,
        tidy(f"""
            max by ({node}) ({error} > {limit})
            or
            max by ({node}) ({kept} == 0)
        """),
        "Nodes whose clock is off by more than may be, in seconds; 0: nobody keeps it.",
    )


def _absent(names: Names, options: FleetOptions) -> Alert:
    limits = options.agents
    node = f"{{{{ $labels.{names.node} }}}}"
    return Alert(
        name="FabricAgentAbsent",
        kind="agent_absent",
        expr=MISSED,
        notice=Notice.TICKET,
        summary=f"{node}: the agent has not been scraped for "
        f"{duration(limits.absent_seconds)} or longer",
        description="Nothing watches the fabric of this node. It had an agent within "
        f"the last {duration(limits.seen_seconds)}: the agent, the node or the way to "
        "it is down.",
        is_not="a finding about a port; a node that is known to be down is told by "
        "the site's own alert",
        for_seconds=limits.absent_seconds,
        labels=_labels(),
        dashboard=_DASHBOARD,
    )


def _many_absent(names: Names, options: FleetOptions) -> Alert:
    limits = options.agents
    return Alert(
        name="FabricAgentsAbsent",
        kind="agent_absent",
        expr=tidy(f"""
            (
              count by ({names.on_cluster}) ({MISSED})
              / (
                count by ({names.on_cluster}) ({MISSED})
                + (
                  count by ({names.on_cluster}) ({PRESENT})
                  or count by ({names.on_cluster}) ({MISSED}) * 0
                )
              )
              >= {limits.absent_ratio:g}
            )
            and count by ({names.on_cluster}) ({MISSED}) >= {limits.absent_least}
        """),
        notice=Notice.TICKET,
        summary="{{ $value | humanizePercentage }} of the agents that were seen today "
        "are absent",
        description="So many at once have one cause: a rollout, the scrape "
        "configuration, a network policy, a rack or a leaf without power.",
        is_not="so many single faults; alerts for single nodes are inhibited meanwhile",
        for_seconds=limits.absent_seconds,
        labels=_labels("critical"),
        dashboard=_DASHBOARD,
    )


def _snapshot(names: Names, options: FleetOptions) -> Alert:
    limits = options.agents
    age = names.series("fabricmon_snapshot_age_seconds")
    return Alert(
        name="FabricSnapshotOld",
        kind="snapshot_old",
        expr=f"max by ({names.on_node}) ({age}) > {limits.snapshot_seconds:g}",
        notice=Notice.TICKET,
        summary=f"{{{{ $labels.{names.node} }}}}: the agent answers with values "
        "that are {{ $value | humanizeDuration }} old",
        description="The agent's loop stands still while its listener answers: all "
        "values and findings of this node are from that time.",
        is_not="a source that is late (telemetry_stale): nothing is judged at all",
        for_seconds=limits.snapshot_hold_seconds,
        labels=_labels(),
        dashboard=_DASHBOARD,
    )


def _unsaved(names: Names, options: FleetOptions) -> Alert:
    saved = names.series("fabricmon_state_saved")
    return Alert(
        name="FabricStateNotSaved",
        kind="state_unsaved",
        expr=f"min by ({names.on_node}) ({saved}) == 0",
        notice=Notice.TICKET,
        summary=f"{{{{ $labels.{names.node} }}}}: the agent cannot save its state",
        description="After a restart it would not know which ports were ever up, nor "
        "its history of flaps, and would tell open findings again as new.",
        is_not="a fault of the fabric; the agent judges as before until it restarts",
        for_seconds=options.agents.unsaved_seconds,
        labels=_labels(),
        dashboard=_DASHBOARD,
    )


def _sink(names: Names, options: FleetOptions) -> Alert:
    connected = names.series("fabricmon_sink_connected")
    return Alert(
        name="FabricSinkDown",
        kind="sink_down",
        expr=f"count by ({names.on_cluster}, sink) ({connected} == 0)",
        notice=Notice.TICKET,
        summary="{{ $value }} agents do not reach the server of {{ $labels.sink }}",
        description="Findings wait on the nodes, the oldest are dropped when there "
        "are too many (fabricmon_sink_dropped_findings_total). One node: its network "
        "or certificate; all: the broker.",
        is_not="a fault of the fabric; metrics and alerts do not go this way",
        for_seconds=options.agents.sink_seconds,
        labels=_labels(),
        dashboard=_DASHBOARD,
    )


def _lost(names: Names, options: FleetOptions) -> Alert:
    limits = options.agents
    past = duration(limits.blind_past_seconds)
    blind = names.series("fabricmon_detector_blind")
    build = names.series("fabricmon_build_info")
    return Alert(
        name="FabricDetectorLost",
        kind="detector_lost",
        expr=tidy(f"""
            count by ({names.on_cluster}, lost) (
              label_replace(
                (
                  max by ({names.on_node}, kind) ({blind})
                  unless on ({names.on_node}, kind) ({blind} offset {past})
                )
                and on ({names.on_node}) ({build} offset {past}),
                "lost", "$1", "kind", "(.+)"
              )
            )
        """),
        notice=Notice.TICKET,
        summary="{{ $labels.lost }} cannot be judged any more on {{ $value }} nodes",
        description="A day ago it could. An upgrade of fabricmon, the driver or the "
        "kernel, or a changed permission, took away what it reads; "
        "fabricmon_detector_blind names the reason on each node.",
        is_not="health: no finding of this kind can come from those nodes",
        for_seconds=limits.blind_seconds,
        labels=_labels(),
        dashboard=_DASHBOARD,
    )


def _clocks(names: Names, options: FleetOptions) -> Alert:
    worst = f"topk(3, {OFF}{{{names.cluster}=%q}})"
    return Alert(
        name="FabricClocksDisagree",
        kind="clock_disagreement",
        expr=f"count by ({names.on_cluster}) ({OFF})",
        notice=Notice.TICKET,
        summary="clocks of {{ $value }} nodes are off by more than "
        f"{options.pace.clock_error_seconds:g} s, or kept by nobody",
        description="What came first over nodes is not judged where they are involved. "
        f"Among them:{{{{ range printf `{worst}` $labels.{names.cluster} | query }}}} "
        f"{{{{ .Labels.{names.node} }}}}{{{{ end }}}}.",
        is_not="a fault of the fabric; single nodes are judged by a clock that does "
        "not jump",
        for_seconds=options.agents.clock_seconds,
        labels=_labels(),
        dashboard=_DASHBOARD,
    )


def _budget(names: Names, options: FleetOptions) -> Alert:
    limits = options.findings
    advised = f'{NOTICED}{{notice=~"page|ticket"}}'
    ports = names.series("fabricmon_port_verdict")
    kinds = f'`sort_desc(count by (kind) ({NOTICED}{{notice!="info"}}))`'
    return Alert(
        name="FabricAlertBudgetExceeded",
        kind="alert_budget",
        expr=tidy(f"""
            count by ({names.on_cluster}) (
              count by ({names.on_port}) ({advised})
            )
            > on ({names.on_cluster})
            clamp_min({limits.budget_ratio:g} * count by ({names.on_cluster}) ({ports}), {limits.budget_ports})
        """),
        notice=Notice.TICKET,
        summary="{{ $value }} places carry advice at once: take none of it before the "
        "common cause is known",
        description="More than single faults explain; the gate suspends all advice "
        f"meanwhile. Kinds:{{{{ range query {kinds} }}}} {{{{ .Labels.kind }}}} "
        "{{ .Value }}{{ end }}.",
        is_not="a reason to drain so many nodes: look at leafs, racks, a rollout, the "
        "expectations that are configured",
        labels=_labels("critical"),
        dashboard="fabricmon-fleet",
    )
