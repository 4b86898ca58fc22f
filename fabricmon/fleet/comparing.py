"""What all rules that compare nodes are made with."""

from __future__ import annotations

import re
from dataclasses import dataclass

from fabricmon.fleet.names import Names
from fabricmon.fleet.options import FleetOptions
from fabricmon.fleet.promql import duration
from fabricmon.fleet.rule import TRAINING, Label

RAILS = "port:fabricmon_rail:info"
TRAININGS = "port:fabricmon_training:info"
LEAF_RAIL = "leaf:fabricmon_rail:info"

_TEXT = re.compile(r'"(?:[^"\\]|\\.)*"')


@dataclass(frozen=True, slots=True)
class Site:
    """The site's names, and labels to join on."""

    options: FleetOptions
    names: Names

    @property
    def cluster(self) -> str:
        """Label of the cluster."""
        return self.names.on_cluster

    @property
    def node(self) -> str:
        """Labels of a node."""
        return self.names.on_node

    @property
    def device(self) -> str:
        """Labels of a device."""
        return f"{self.names.on_node}, device"

    @property
    def port(self) -> str:
        """Labels of a port."""
        return self.names.on_port

    @property
    def trained(self) -> str:
        """Labels of a job within a cluster."""
        return f"{self.names.on_cluster}, {TRAINING}"

    def of(self, *labels: str) -> str:
        """Return labels within a cluster."""
        return ", ".join((self.names.on_cluster, *labels))

    def series(self, metric: str, matchers: str = "") -> str:
        """Return a selector of an exported metric."""
        return self.names.series(metric, matchers)

    def per_port(self, metric: str, matchers: str = "") -> str:
        """Return an exported gauge, one value a port, whoever scraped it."""
        return f"max by ({self.port}) ({self.series(metric, matchers)})"

    def counted(self, function: str, metric: str, seconds: float) -> str:
        """Return a counter's ``rate`` or ``increase``, one value a port."""
        window = f"{self.series(metric)}[{duration(seconds)}]"
        return f"sum by ({self.port}) ({function}({window}))"


def site(options: FleetOptions) -> Site:
    """Return the site; raises `ConfigError` for a selector that is none."""
    return Site(options, Names(options))


def told(severity: str, role: str = "observer") -> tuple[Label, ...]:
    """Return the labels of what only a fleet sees: nothing is advised on it alone.

    Advice needs local evidence (formats, 2), and that is with the node's own finding.
    """
    return (
        Label("severity", severity),
        Label("role", role),
        Label("action", "none"),
        Label("origin", "fleet"),
    )


def laid_out(text: str) -> str:
    """Return an expression with its lines moved in by the parentheses around them."""
    lines, depth = [], 0
    for line in map(str.strip, text.splitlines()):
        if not line:
            continue
        bare = _TEXT.sub("", line)
        closing = len(bare) - len(bare.lstrip(")"))
        lines.append(" " * (2 * max(depth - closing, 0)) + line)
        depth += bare.count("(") - bare.count(")")
    return "\n".join(lines)


def on_most_of_a_leaf(
    site: Site, hit: str, known: str, ports: int, ratio: float
) -> str:
    """Return leafs, with their rail, on which so many and so large a share are hit.

    ``hit`` and ``known`` are series of ports with the label ``leaf``; the value is the
    number of those that are hit.
    """
    leaf = site.of("leaf")
    number = f'count by ({leaf}) ({hit}{{leaf!=""}})'
    all_ports = f'count by ({leaf}) ({known}{{leaf!=""}})'
    found = laid_out(f"""
        ({number} >= {ports})
        and on ({leaf}) ({number} >= on ({leaf}) {ratio:g} * {all_ports})
    """)
    return laid_out(f"""
        ({found}) + on ({leaf}) group_left (rail) 0 * {LEAF_RAIL}
        or
        ({found}) unless on ({leaf}) {LEAF_RAIL}
    """)
