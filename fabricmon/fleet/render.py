"""Rules as files of Prometheus, and as the operator's object."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import yaml

from fabricmon.fleet.options import FleetOptions
from fabricmon.fleet.promql import duration
from fabricmon.fleet.rule import Alert, Group, Recording

API_VERSION = "monitoring.coreos.com/v1"
_WIDEST = 80


class _Dumper(yaml.SafeDumper):
    """Writes long and multi-line texts as blocks, keys in the order given."""

    def ignore_aliases(self, data: Any) -> bool:
        """Repeat what occurs twice: anchors are hard to read."""
        del data
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text or len(text) > _WIDEST else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)


def rule_file(groups: Sequence[Group], options: FleetOptions) -> str:
    """Return a file of rules, as ``rule_files`` of Prometheus and rulers read it."""
    return yaml_text({"groups": [_group(group, options) for group in groups]})


def prometheus_rule(
    groups: Sequence[Group],
    options: FleetOptions,
    *,
    name: str,
    namespace: str | None = None,
) -> str:
    """Return the same as an object of the Prometheus operator."""
    metadata: dict[str, Any] = {"name": name}
    if namespace:
        metadata["namespace"] = namespace
    metadata["labels"] = {"app.kubernetes.io/name": "fabricmon"}
    return yaml_text(
        {
            "apiVersion": API_VERSION,
            "kind": "PrometheusRule",
            "metadata": metadata,
            "spec": {"groups": [_group(group, options) for group in groups]},
        }
    )


def words_of(alert: Alert, options: FleetOptions) -> dict[str, str]:
    """Return what an alert says, with links."""
    where = options.where
    node = where.node_label
    link = (
        f"{where.dashboard_url}{alert.dashboard}"
        f"?var-cluster={{{{ $labels.{where.cluster_label} | urlquery }}}}"
        f"{{{{ with $labels.{node} }}}}&var-node={{{{ . | urlquery }}}}{{{{ end }}}}"
        "{{ with $labels.device }}&var-device={{ . | urlquery }}{{ end }}"
    )
    return {
        "summary": alert.summary,
        "description": f"{alert.description} What it is not: {alert.is_not}.",
        "runbook_url": where.runbook_url + alert.runbook,
        "dashboard_url": link,
    }


def _group(group: Group, options: FleetOptions) -> dict[str, Any]:
    return {
        "name": group.name,
        "interval": duration(group.interval_seconds),
        "rules": [_rule(rule, options) for rule in group.rules],
    }


def _rule(rule: Recording | Alert, options: FleetOptions) -> dict[str, Any]:
    if isinstance(rule, Recording):
        return {"record": rule.record, "expr": rule.expr}
    told: dict[str, Any] = {"alert": rule.name, "expr": rule.expr}
    if rule.for_seconds:
        told["for"] = duration(rule.for_seconds)
    if rule.keep_seconds:
        told["keep_firing_for"] = duration(rule.keep_seconds)
    labels = {label.name: label.value for label in rule.own_labels}
    return told | {"labels": labels, "annotations": words_of(rule, options)}


def yaml_text(document: dict[str, Any]) -> str:
    """Return YAML in the order given, long texts as blocks."""
    text: str = yaml.dump(
        document, Dumper=_Dumper, sort_keys=False, width=10**6, allow_unicode=True
    )
    return text
