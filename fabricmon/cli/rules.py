"""``fabricmon rules``: the rules of the fleet for one site, to be loaded by a ruler.

Prometheus, Thanos Ruler and Mimir read the file as it is; ``prometheusrule`` is for the
Prometheus operator.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from fabricmon.errors import ConfigError
from fabricmon.fleet.alertmanager import alertmanager_file
from fabricmon.fleet.options import FleetOptions
from fabricmon.fleet.options_load import load_options
from fabricmon.fleet.render import prometheus_rule, rule_file
from fabricmon.fleet.rule import Group
from fabricmon.fleet.rules import groups


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "--config", type=Path, metavar="FILE", help="options of the site, YAML"
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        dest="settings",
        metavar="KEY=VALUE",
        help="one option, as where.cluster_label=cluster; wins over the file",
    )
    parser.add_argument(
        "--format",
        choices=("prometheus", "prometheusrule", "alertmanager"),
        default="prometheus",
        help="a file of rules (Prometheus, Thanos, Mimir), an object of the Prometheus "
        "operator, or an example configuration of Alertmanager",
    )
    parser.add_argument(
        "--group",
        action="append",
        default=[],
        dest="groups",
        metavar="NAME",
        help="only this group of rules; can be repeated",
    )
    parser.add_argument(
        "--name", default="fabricmon", help="prometheusrule: name of the object"
    )
    parser.add_argument("--namespace", help="prometheusrule: its namespace")
    parser.add_argument(
        "--list", action="store_true", help="print one line for each rule instead"
    )


def run(options: argparse.Namespace) -> int:
    """Print the rules; a wrong option is an error of one line."""
    site = load_options(options.config, options.settings)
    made = _chosen(groups(site), options.groups)
    if options.list:
        print("\n".join(_lines(made)))
    else:
        print(_text(options, made, site), end="")
    return 0


def _chosen(made: Sequence[Group], names: Sequence[str]) -> tuple[Group, ...]:
    known = [group.name for group in made]
    for name in names:
        if name not in known:
            remedy = f"there are {', '.join(known)}"
            raise ConfigError("no such group", file=f"--group {name}", remedy=remedy)
    return tuple(group for group in made if not names or group.name in names)


def _text(
    options: argparse.Namespace, made: Sequence[Group], site: FleetOptions
) -> str:
    if options.format == "alertmanager":
        return alertmanager_file(site)
    if options.format == "prometheusrule":
        name, namespace = options.name, options.namespace
        return prometheus_rule(made, site, name=name, namespace=namespace)
    return rule_file(made, site)


def _lines(made: Sequence[Group]) -> list[str]:
    lines: list[str] = []
    for group in made:
        lines.append(f"{group.name}, every {group.interval_seconds:g} s")
        lines += [f"  {each.record}  {each.meaning}" for each in group.recordings]
        for alert in group.alerts:
            notice = alert.notice.value if alert.notice else "as the finding"
            lines.append(f"  {alert.name}  {alert.kind}  {notice}")
    return lines
