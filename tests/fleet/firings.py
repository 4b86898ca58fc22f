"""Alerts that fired, made by hand."""

from __future__ import annotations

from collections.abc import Mapping

from fabricmon.fleet.alert_life import Life
from fabricmon.fleet.firing import Firing
from fabricmon.fleet.rule import Alert, Label


def firing(
    name: str,
    fired: float = 0,
    ended: float | None = None,
    *,
    hold: float = 0,
    value: float = 1,
    expr: str = "up == 0",
    more: Mapping[str, str] | None = None,
    **labels: str,
) -> Firing:
    """Return one time that an alert fired."""
    alert = Alert(name, "port_down", expr, None, "", "", "")
    all_of = {**labels, **(more or {}), "alertname": name}
    kept = tuple(Label(*each) for each in sorted(all_of.items()) if each[1])
    life = Life(fired - hold, fired, ended, value)
    return Firing(alert, kept, life, summary=f"{name} fires")
