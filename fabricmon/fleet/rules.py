"""All rules of the fleet, for one site."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import replace

from fabricmon.errors import ConfigError
from fabricmon.fleet import agent_alerts, comparisons, kind_alerts
from fabricmon.fleet.options import FleetOptions
from fabricmon.fleet.promql import within
from fabricmon.fleet.rule import Alert, Group, Label, Notice, Recording

SOURCES: tuple[Callable[[FleetOptions], tuple[Group, ...]], ...] = (
    kind_alerts.groups,
    agent_alerts.groups,
    comparisons.groups,
)
"""What makes groups of rules; one row each, in the order in which they are written."""


def groups(options: FleetOptions) -> tuple[Group, ...]:
    """Return all rules with the site's options; raises `ConfigError`."""
    made = tuple(group for source in SOURCES for group in source(options))
    _check_names(options, {alert.name for group in made for alert in group.alerts})
    return tuple(_with_severities(group, options) for group in made)


def _check_names(options: FleetOptions, known: set[str]) -> None:
    for name in options.severities:
        if name in known:
            continue
        close = difflib.get_close_matches(name, known, n=1)
        remedy = f"did you mean {close[0]}?" if close else "see fabricmon rules --list"
        raise ConfigError(
            "no alert has this name", key=f"severities.{name}", remedy=remedy
        )


def _with_severities(group: Group, options: FleetOptions) -> Group:
    kept: list[Recording | Alert] = []
    for rule in group.rules:
        severity = None
        if isinstance(rule, Alert):
            severity = options.severities.get(rule.name)
        if severity is None or not isinstance(rule, Alert):
            kept.append(rule)
        elif severity != "off":
            kept.append(_with_severity(rule, severity))
    return replace(group, rules=tuple(kept))


def _with_severity(alert: Alert, severity: str) -> Alert:
    """Return an alert of another severity: less than critical is no page."""
    others = tuple(label for label in alert.labels if label.name != "severity")
    changed = replace(alert, labels=(*others, Label("severity", severity)))
    if severity == "info":
        return replace(changed, notice=Notice.INFO)
    if severity == "critical":
        return changed
    if alert.notice is Notice.PAGE:
        return replace(changed, notice=Notice.TICKET)
    if alert.notice is not None:
        return changed
    milder = f'label_replace(\n{within(alert.expr)},\n  "notice", "ticket", "notice", "page"\n)'
    return replace(changed, expr=milder)
