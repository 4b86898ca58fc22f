"""What a site may set of the fleet's rules: labels, periods, thresholds, severities.

The same closed sections as the agent's configuration: ``fabricmon rules --config`` and
``--set`` read them, the manual is made from them.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, field

from fabricmon.config import Count, Pause, Ratio, Seconds, Section
from fabricmon.fleet.options_comparisons import Comparisons

LabelName = Annotated[str, Meta(pattern="^[a-zA-Z_][a-zA-Z0-9_]*$", max_length=64)]
Selector = Annotated[str, Meta(max_length=1000)]
Held = Annotated[float, Meta(gt=0, le=120)]
"""Seconds between evaluations; a sample stands for 300 s, and must outlive a late one."""
Severity = Literal["critical", "warning", "info", "off"]


class Where(Section, frozen=True):
    """How series of agents are found and told apart."""

    cluster_label: LabelName = "cluster"
    """Label of the cluster; external labels of each Prometheus usually bring it.

    Nodes are compared within a cluster only, also where one ruler sees many.
    """
    node_label: LabelName = "node"
    """Label of the node, set by the scraper."""
    selector: Selector = ""
    """Matchers that all series of agents have, as ``job="fabricmon"``; empty: all."""
    node_down: Selector = 'ALERTS{alertname=~"KubeNodeNotReady|NodeDown|InstanceDown"}'
    """The site's own alert that a node is down: all is inhibited under it."""
    cordoned: Selector = "kube_node_spec_unschedulable == 1"
    """Nodes that are cordoned or reserved: nobody is paged for them; empty: unknown."""
    runbook_url: str = ""
    """Where ``docs/`` is served, ends in a slash; empty leaves paths as they are."""
    dashboard_url: str = "/d/"
    """Where Grafana serves dashboards, before a uid; ends in a slash."""


class Pace(Section, frozen=True):
    """Periods of scraping and evaluation."""

    scrape_seconds: Seconds = 15
    """How often agents are scraped; windows must hold four scrapes."""
    evaluation_seconds: Held = 15
    """How often rules are evaluated."""
    slow_seconds: Held = 30
    """How often what looks over minutes is evaluated (rails, losses, stalls, ranks).

    Agents take bursts every 30 s, so nothing is known sooner.
    """
    place_seconds: Held = 60
    """How often places and jobs of all ports are looked up: jobs last for hours."""
    rare_seconds: Held = 120
    """How often nodes of a job and identities are compared, which holds for minutes."""
    hold_seconds: Pause = 30
    """How long a ticket's condition must hold: two scrapes agree."""
    keep_seconds: Seconds = 120
    """How long an alert goes on after its condition: a missed scrape is no repair."""
    clock_error_seconds: Pause = 1
    """Order of onsets over nodes is judged only where no clock is off by more."""


class Findings(Section, frozen=True):
    """Alerts for what agents found."""

    job_seconds: Seconds = 300
    """How long a job counts as being on a port after it was seen there.

    A job that the fault itself has killed was on it: the page must not become a
    ticket before anybody reads it.
    """
    lasting_seconds: Seconds = 180
    """How long kinds that are only info for moments go on before they are told.

    A finding stays open for up to 120 s after its last sign: of moments nobody hears.
    """
    young_seconds: Seconds = 300
    """How long a device that is gone is told of as perhaps its driver's reload.

    A card that failed is critical after ``link_state.reload_seconds`` (90 s), or when
    a boot is over (300 s); what is still info then is no card.
    """
    budget_ports: Count = 10
    """Ports with advice at a time in a cluster that are plausible; beyond, see below."""
    budget_ratio: Ratio = 0.005
    """The same as a share of all ports; the larger of the two counts.

    UFM and CorrOpt hold back for the same reason: when so much is to be drained at
    once, the cause is elsewhere, or the advice is wrong.
    """


class Agents(Section, frozen=True):
    """Alerts about the agents themselves."""

    evaluation_seconds: Held = 60
    """How often these are evaluated: none is about a moment, and they look back a day."""
    seen_seconds: Seconds = 86400
    """How long a node is missed that had an agent; then it counts as taken away."""
    absent_seconds: Pause = 900
    """How long an agent may be absent: upgrades take up to 10 minutes, boots up to 7."""
    absent_ratio: Ratio = 0.05
    """Share of a cluster's agents from which their absence is one story, not many."""
    absent_least: Count = 3
    """Fewest agents that make such a story."""
    snapshot_seconds: Seconds = 60
    """Age of what an agent exports that is too old: twelve periods of its fastest."""
    snapshot_hold_seconds: Pause = 120
    """How long it must be that old: a starved node recovers by itself."""
    unsaved_seconds: Pause = 900
    """How long an agent may fail to save what must survive its restart."""
    sink_seconds: Pause = 900
    """How long a broker may be away: findings are spooled meanwhile."""
    blind_seconds: Pause = 1800
    """How long a kind must have been impossible to judge: devices come up slowly."""
    blind_past_seconds: Seconds = 86400
    """How far back a kind must have been judged, to say that this was lost."""
    clock_seconds: Pause = 600
    """How long a clock must be off: time daemons need minutes after a boot."""


class FleetOptions(Section, frozen=True):
    """All of it."""

    where: Where = field(default_factory=Where)
    pace: Pace = field(default_factory=Pace)
    findings: Findings = field(default_factory=Findings)
    agents: Agents = field(default_factory=Agents)
    comparisons: Comparisons = field(default_factory=Comparisons)
    severities: dict[str, Severity] = field(default_factory=dict)
    """Severity of an alert by its name in place of its own; ``off`` leaves it out."""


__all__ = [
    "Agents",
    "Comparisons",
    "Count",
    "Findings",
    "FleetOptions",
    "LabelName",
    "Pace",
    "Ratio",
    "Seconds",
    "Selector",
    "Severity",
    "Where",
]
