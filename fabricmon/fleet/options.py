"""What a site may set of the fleet's rules: labels, periods, thresholds, severities.

The same closed sections as the agent's configuration: ``fabricmon rules --config`` and
``--set`` read them, the manual is made from them.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, field

from fabricmon.config import Count, Pause, Ratio, Seconds, Section

LabelName = Annotated[str, Meta(pattern="^[a-zA-Z_][a-zA-Z0-9_]*$", max_length=64)]
Selector = Annotated[str, Meta(max_length=1000)]
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
    evaluation_seconds: Seconds = 15
    """How often rules are evaluated."""
    hold_seconds: Pause = 30
    """How long a ticket's condition must hold: two scrapes agree."""
    keep_seconds: Pause = 120
    """How long an alert goes on after its condition: a missed scrape is no repair."""
    clock_error_seconds: Pause = 1
    """Order of onsets over nodes is judged only where no clock is off by more."""


class FleetOptions(Section, frozen=True):
    """All of it."""

    where: Where = field(default_factory=Where)
    pace: Pace = field(default_factory=Pace)
    severities: dict[str, Severity] = field(default_factory=dict)
    """Severity of an alert by its name in place of its own; ``off`` leaves it out."""


__all__ = [
    "Count",
    "FleetOptions",
    "LabelName",
    "Pace",
    "Ratio",
    "Seconds",
    "Selector",
    "Severity",
    "Where",
]
