"""One alert for each kind of finding: page, ticket or information.

All open findings are sorted once, in recordings; each kind's alert only picks its own.
A page is critical, to be acted on, with a job on the port, on a node that is neither
being worked on nor cordoned. A ticket is anything else to be acted on. Information is
what is a warning or worse with nothing to do, and the kinds that are told although they
are only info: at once, while they are new, or when they have gone on for a while.

A scrape that failed is no repair: what was known of a node stays for
``pace.keep_seconds`` while nothing is known of it. That is within the expressions and
not ``keep_firing_for``, which would keep the page beside the ticket it became.

The value is the onset of the finding in Unix seconds, 0 from agents without it.
"""

from __future__ import annotations

from fabricmon.fleet.kind_table import KIND_ALERTS, KindAlert
from fabricmon.fleet.names import Names
from fabricmon.fleet.options import FleetOptions
from fabricmon.fleet.promql import duration, join_lines, tidy, within
from fabricmon.fleet.rule import TRAINING, Alert, Group, Label, Notice, Recording
from fabricmon.fleet.wording import (
    END,
    SINCE,
    SINCE_DAY,
    lower_first,
    measured,
    place,
    surroundings,
)
from fabricmon.kinds import BY_SLUG, About

KEPT = "finding:fabricmon_open:kept"
PORT_JOB = "port:fabricmon_job:seen"
NODE_JOB = "node:fabricmon_job:seen"
SLOW_JOB = "node:fabricmon_slow_job:seen"
WORKED_ON = "port:fabricmon_maintenance:max"
PAGED = "finding:fabricmon_open:paged"
PORT_PLACE = "port:fabricmon_place:info"
NODE_PLACE = "node:fabricmon_place:info"
SORTED = "finding:fabricmon_open:sorted"
NOTICED = "finding:fabricmon_open:noticed"

PORT_LABELS = "leaf, rail, netdev"
NODE_LABELS = "rack"

_WHAT = "kind, severity, role, action"
_OF_JOB = frozenset({"straggler_link", "rail_slow"})
"""Kinds that are about a job: their alerts name it, others live longer than a job."""


def groups(options: FleetOptions) -> tuple[Group, ...]:
    """Return the group that sorts open findings and alerts on them."""
    names = Names(options)
    rules: tuple[Recording | Alert, ...] = (
        *_recordings(names, options),
        *_judgements(names, options),
        *(_alert(names, row) for row in KIND_ALERTS),
    )
    return (Group("fabricmon.findings", options.pace.evaluation_seconds, rules),)


def _recordings(names: Names, options: FleetOptions) -> tuple[Recording, ...]:
    return (
        Recording(
            KEPT,
            _kept(names, options),
            "Open findings by place and kind; the value is the onset, Unix seconds.",
        ),
        Recording(
            PORT_JOB,
            _port_job(names, options),
            "1 for each job of a port, now or moments ago, on nodes with findings.",
            level=2,
        ),
        Recording(
            NODE_JOB,
            _node_job(names, options),
            "1 for nodes with findings and a job, or with one moments ago.",
            level=3,
        ),
        Recording(
            SLOW_JOB,
            _slow_job(names, options),
            "1 for each job of which a node sees a slow rail, now or moments ago.",
            level=2,
        ),
        Recording(
            WORKED_ON,
            f"max by ({names.on_port}) ({names.series('fabricmon_maintenance')})",
            "1 for places that somebody works on; without a device the whole node.",
        ),
    )


def _judgements(names: Names, options: FleetOptions) -> tuple[Recording, ...]:
    return (
        Recording(
            PAGED,
            _paged(names, options),
            "Open findings that somebody is to be woken up for.",
            level=4,
        ),
        Recording(
            PORT_PLACE,
            _one(names, options, names.on_port, "fabricmon_infiniband_port_info"),
            "Where ports with open findings are; one series a port.",
            level=2,
        ),
        Recording(
            NODE_PLACE,
            _one(names, options, names.on_node, "fabricmon_node_info"),
            "Where nodes with open findings are; one series a node.",
            level=2,
        ),
        Recording(
            SORTED,
            _sorted(names, options),
            "Open findings that people hear of, by who hears (notice).",
            level=5,
        ),
        Recording(
            NOTICED,
            _placed(names),
            "The same with leaf, rail, interface and rack, as far as they are known.",
            level=6,
        ),
    )


def _kept(names: Names, options: FleetOptions) -> str:
    """Return open findings with their onset, also over a scrape that failed."""
    keep = duration(options.pace.keep_seconds)
    on, node = names.on_port, names.on_node
    found = names.series("fabricmon_finding_open")
    onset = names.series("fabricmon_finding_onset_timestamp_seconds")
    build = names.series("fabricmon_build_info")
    open_ = join_lines(f"{found}", "or", "(", within(_last_told(names, options)), ")")
    return tidy(f"""
        (
          max by ({on}, {_WHAT}) (
{within(open_, 12)}
          ) * 0
        )
        + on ({on}, kind) group_left ()
        (
          min by ({on}, kind) (
            {onset} or (last_over_time({onset}[{keep}]) unless on ({node}) {build})
          )
          or
          max by ({on}, kind) (
{within(open_, 12)}
          ) * 0
        )
    """)


def _last_told(names: Names, options: FleetOptions) -> str:
    """Return what the last scrape told of nodes that cannot be scraped now.

    What was resolved before that scrape is over: its last time is not the node's. With
    a step for each scrape, one step sees the last of them.
    """
    pace, node = options.pace, names.on_node
    found = names.series("fabricmon_finding_open")
    build = names.series("fabricmon_build_info")
    steps = f"[{duration(pace.keep_seconds)}:{duration(pace.scrape_seconds)}]"
    return tidy(f"""
        max_over_time(timestamp({found}){steps})
        >= on ({node}) group_left ()
        max by ({node}) (max_over_time(timestamp({build}){steps}))
        unless on ({node}) {build}
    """)


def _seen(series: str, names: Names, options: FleetOptions) -> str:
    past = duration(options.findings.job_seconds)
    return f"last_over_time({series}[{past}]) and on ({names.on_node}) {KEPT}"


def _port_job(names: Names, options: FleetOptions) -> str:
    jobs = names.training(
        "fabricmon_port_job_info", of=lambda series: _seen(series, names, options)
    )
    return tidy(f"""
        max by ({names.on_port}, {TRAINING}) (
{within(jobs, 10)}
        )
    """)


def _node_job(names: Names, options: FleetOptions) -> str:
    jobs = _seen(names.series("fabricmon_job_info"), names, options)
    node = names.on_node
    return f"max by ({node}) ({jobs})\nor\nmax by ({node}) ({PORT_JOB})"


def _slow_job(names: Names, options: FleetOptions) -> str:
    jobs = names.training(
        "fabricmon_rail_finding_open",
        'kind="rail_slow"',
        of=lambda series: _seen(series, names, options),
    )
    return tidy(f"""
        max by ({names.on_node}, {TRAINING}) (
{within(jobs, 10)}
        )
    """)


def _paged(names: Names, options: FleetOptions) -> str:
    """Return what is critical, to be acted on, and on a port with a job.

    Where no port of the node is known to have a job, as from older agents, any job
    on the node counts; so it does for what is about a device or the node.
    """
    on, node, port = names.on_port, names.on_node, PORT_JOB
    urgent = f'{KEPT}{{severity="critical",action!="none"}}'
    somewhere = f'{KEPT}{{severity="critical",action!="none",port=""}}'
    return tidy(f"""
        (
          ({urgent} and on ({on}) {port})
          or
          ({somewhere} and on ({node}) {NODE_JOB})
          or
          (({urgent} unless on ({node}) {port}) and on ({node}) {NODE_JOB})
        )
    """) + "".join(
        f"\n{each}" for each in (*_not_worked_on(names), *_free(options, node))
    )


def _not_worked_on(names: Names) -> tuple[str, ...]:
    """Return what takes away findings of places that somebody works on."""
    device = f"{names.on_node}, device"
    return (
        f'unless on ({names.on_node}) {WORKED_ON}{{device=""}}',
        f"unless on ({names.on_port}) {WORKED_ON}",
        # A finding of a device that one works on a port of has no port.
        f'unless on ({device}, port) max by ({device}) ({WORKED_ON}{{device!=""}})',
    )


def _free(options: FleetOptions, node: str) -> tuple[str, ...]:
    cordoned = options.where.cordoned.strip()
    return (f"unless on ({node}) ({cordoned})",) if cordoned else ()


def _sorted(names: Names, options: FleetOptions) -> str:
    """Return findings by who hears of them; a kind at a place is told once."""
    on = names.on_port
    held = _not_worked_on(names)
    to_act = f'{KEPT}{{action!="none"}}'
    ticket = join_lines(f"{to_act} unless on ({on}, kind) {PAGED}", *held)
    rest = join_lines(
        "(",
        f'  {KEPT}{{severity=~"warning|critical"}}',
        within(_informing(names, options)),
        ")",
        f"unless on ({on}, kind) {PAGED}",
        f"unless on ({on}, kind) (",
        within(join_lines(to_act, *held)),
        ")",
    )
    parts = ((PAGED, Notice.PAGE), (ticket, Notice.TICKET), (rest, Notice.INFO))
    return "\nor\n".join(
        f'label_replace(\n{within(expr)},\n  "notice", "{notice}", "", ""\n)'
        for expr, notice in parts
    )


def _informing(names: Names, options: FleetOptions) -> str:
    """Return, after what is told anyway, what is told although it is only info.

    The value of an open finding is its onset. Virtual functions come and go with the
    containers that they are lent to.
    """
    limits, device = options.findings, f"{names.on_node}, device"
    quiet, lasting, young = (
        "|".join(row.kind for row in KIND_ALERTS if getattr(row, when))
        for when in ("quiet", "lasting", "young")
    )
    ports = names.series("fabricmon_infiniband_port_info", 'is_vf="true"')
    functions = f"last_over_time({ports}[{duration(limits.young_seconds)}])"
    return join_lines(
        f'or {KEPT}{{kind=~"{quiet}"}}',
        f'or {KEPT}{{kind=~"{lasting}"}} <= time() - {limits.lasting_seconds:g}',
        "or (",
        f'  {KEPT}{{kind=~"{young}"}} > time() - {limits.young_seconds:g}',
        f"  unless on ({device}) max by ({device}) ({functions})",
        ")",
    )


def _one(names: Names, options: FleetOptions, on: str, metric: str) -> str:
    """Return one series of identity at each place: two at a time break a join."""
    keep = duration(options.pace.keep_seconds)
    known = f"last_over_time({names.series(metric)}[{keep}])"
    labels = PORT_LABELS if metric.endswith("port_info") else NODE_LABELS
    return tidy(f"""
        topk by ({on}) (1,
          max by ({on}, {labels}) ({known} and on ({on}) {KEPT})
        )
    """)


def _placed(names: Names) -> str:
    """Return what was sorted with where it is; nothing is lost where that is unknown."""
    ports = joined(SORTED, names.on_port, PORT_LABELS, PORT_PLACE)
    return joined(ports, names.on_node, NODE_LABELS, NODE_PLACE)


def joined(expr: str, on: str, labels: str, info: str) -> str:
    """Add labels of ``info`` to an expression; nothing is lost where there are none."""
    return join_lines(
        "(",
        within(expr),
        ")",
        f"+ on ({on}) group_left ({labels}) 0 * {info}",
        "or",
        "(",
        within(expr),
        f") unless on ({on}) {info}",
    )


def _with_job(names: Names, about: About, expr: str) -> str:
    """Return places with the training job that the finding is about, where known."""
    on, jobs = names.on_node, SLOW_JOB
    if about is About.PORT:
        on, jobs = names.on_port, PORT_JOB
    return joined(expr, on, TRAINING, f"topk by ({on}) (1, {jobs})")


def _alert(names: Names, row: KindAlert) -> Alert:
    kind = BY_SLUG[row.kind]
    labels: tuple[str, ...] = (names.cluster, names.node)
    if kind.about in {About.PORT, About.ERROR}:
        labels += ("device", "port")
    elif kind.about is About.DEVICE:
        labels += ("device",)
    much = measured(names, row.measure, labels) if row.measure else ""
    expr = f'{NOTICED}{{kind="{row.kind}"}}'
    return Alert(
        name=row.name,
        kind=row.kind,
        expr=_with_job(names, kind.about, expr) if row.kind in _OF_JOB else expr,
        notice=None,
        summary=f"{place(names)}: {lower_first(kind.title)}{END}{SINCE}",
        description=f"{kind.meaning} {SINCE_DAY}{much}{surroundings(names)}",
        is_not=row.is_not,
        labels=(Label("origin", "node"),),
        dashboard=row.dashboard,
    )
