"""An example configuration of Alertmanager: routes, groups and inhibitions."""

from __future__ import annotations

from typing import Any

from fabricmon.fleet.inhibitions import inhibitions
from fabricmon.fleet.options import FleetOptions
from fabricmon.fleet.promql import duration
from fabricmon.fleet.render import yaml_text
from fabricmon.fleet.rule import TRAINING, Inhibition, Matcher, Notice

WAIT_SECONDS = 30
"""Two evaluations: the common cause is there before its members are told."""
INTERVAL_SECONDS = 300
"""A group that grows is told again, at most this often."""
PAGE_REPEAT_SECONDS = 4 * 3600
TICKET_REPEAT_SECONDS = 24 * 3600
"""A ticket is worked on in office hours: once a day is a reminder."""

PAGER, TICKETS, NOBODY = "pager", "tickets", "nobody"
_URLS = {
    PAGER: "http://127.0.0.1:9088/page",
    TICKETS: "http://127.0.0.1:9088/ticket",
}

_HEAD = """\
# Made by `fabricmon rules --format alertmanager`; an example to start from.
#
# Put your own receivers in place of the two webhooks. Alerts of fabricmon are told by
# the label `notice`: page, ticket or info. One notification is one incident: what a
# leaf, a rail, a rack or a job has in common, else a device of a node.
"""


def alertmanager_file(options: FleetOptions) -> str:
    """Return the configuration as YAML; raises `ConfigError`."""
    return _HEAD + yaml_text(
        {
            "route": _routes(options),
            "inhibit_rules": [_inhibition(row) for row in inhibitions(options)],
            "receivers": [
                {"name": NOBODY},
                *(
                    {"name": name, "webhook_configs": [{"url": url}]}
                    for name, url in _URLS.items()
                ),
            ],
        }
    )


def _routes(options: FleetOptions) -> dict[str, Any]:
    return {
        "receiver": NOBODY,
        "group_wait": duration(WAIT_SECONDS),
        "group_interval": duration(INTERVAL_SECONDS),
        "routes": [
            _notice(Notice.PAGE, PAGER, PAGE_REPEAT_SECONDS, options),
            _notice(Notice.TICKET, TICKETS, TICKET_REPEAT_SECONDS, options),
            {
                "matchers": [_matcher(Matcher("notice", Notice.INFO))],
                "receiver": NOBODY,
            },
        ],
    }


def _notice(
    notice: Notice, receiver: str, repeat: float, options: FleetOptions
) -> dict[str, Any]:
    """Return the route of a notice: incidents of the fleet, then those of nodes."""
    cluster, node = options.where.cluster_label, options.where.node_label
    return {
        "matchers": [_matcher(Matcher("notice", notice))],
        "receiver": receiver,
        "repeat_interval": duration(repeat),
        "group_by": [cluster, node, "device"],
        "routes": [
            {
                "matchers": [_matcher(Matcher("origin", "fleet"))],
                "group_by": [cluster, "kind", "leaf", "rail", "rack", TRAINING, node],
            }
        ],
    }


def _inhibition(row: Inhibition) -> dict[str, Any]:
    return {
        "source_matchers": [_matcher(each) for each in row.source],
        "target_matchers": [_matcher(each) for each in row.target],
        "equal": list(row.equal),
    }


def _matcher(matcher: Matcher) -> str:
    plain = matcher.pattern.replace("_", "").isalnum() or not matcher.pattern
    operator = "=" if plain else "=~"
    value = matcher.pattern.replace("\\", "\\\\").replace('"', '\\"')
    return f'{matcher.label}{operator}"{value}"'
