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
NODE_TRAININGS = "node:fabricmon_training:info"
LEAF_RAIL = "leaf:fabricmon_rail:info"
PORTS = "place:fabricmon_rail:ports"
CLOCKED = "place:fabricmon_rail:clocked_ports"
TRAINING_PORTS = "leaf:fabricmon_training:ports"
RAIL_NODES = "rail:fabricmon_training:nodes"

PLACE_LABELS = "rail, leaf, link_layer, rack"

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

    @property
    def not_worked_on(self) -> str:
        """Return what takes away ports that somebody works on."""
        held = "fabricmon_maintenance"
        whole, port = self.series(held, 'device=""'), self.series(held, 'device!=""')
        device = self.series(held, 'device!="",port=""')
        return (
            f"unless on ({self.node}) {whole}\n"
            f"unless on ({self.device}) {device}\n"
            f"unless on ({self.port}) {port}"
        )

    def ports_of(self, what: str, ports: str = PORTS) -> str:
        """Return how many ports a leaf, rail or rack has, of a recorded number."""
        return f'sum by ({self.of(what)}) ({ports}{{{what}!=""}})'


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
    site: Site, hit: str, there: str, ports: int, ratio: float
) -> str:
    """Return leafs, with their rail, on which so many and so large a share are hit.

    ``hit`` are series of ports with the label ``leaf``, ``there`` is how many ports a
    leaf has; the value is the number of those that are hit.
    """
    leaf = site.of("leaf")
    number = f'count by ({leaf}) ({hit}{{leaf!=""}})'
    found = laid_out(f"""
        ({number} >= {ports})
        and on ({leaf}) ({number} >= on ({leaf}) {ratio:g} * {there})
    """)
    return laid_out(f"""
        ({found}) + on ({leaf}) group_left (rail) 0 * {LEAF_RAIL}
        or
        ({found}) unless on ({leaf}) {LEAF_RAIL}
    """)
