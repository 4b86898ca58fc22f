"""What a dashboard is: boards, rows and panels as records, without Grafana's words.

Boards are written as data in ``board_*.py``; ``looks.py`` turns them into Grafana's.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

FLEET = 'cluster=~"$cluster"'
"""Matchers of what is asked of the whole fleet; without the label, All matches too."""

NODE = f'{FLEET},node=~"$node"'
"""Matchers of what is asked of the chosen nodes."""

DEVICE = f'{NODE},device=~"$device"'
"""Matchers of what is asked of the chosen devices of the chosen nodes."""

PLACE = "cluster,node,device,port"
"""Labels that make a port."""


class Look(StrEnum):
    """How a panel looks."""

    STAT = "stat"
    SERIES = "time series"
    TABLE = "table"
    MATRIX = "matrix of coloured cells"
    TIMELINE = "state timeline"


class Colours(StrEnum):
    """What the colours of a panel's values mean."""

    PLAIN = "plain"
    GOOD_AT_ZERO = "good at 0"
    BAD_WHEN_HIGH = "from green to red"
    BAD_WHEN_LOW = "from red to green"
    VERDICT = "verdicts of ports"
    STATE = "states of ports"


@dataclass(frozen=True, slots=True)
class Query:
    """A query in PromQL and how its series are called."""

    expr: str
    legend: str = ""


@dataclass(frozen=True, slots=True)
class Panel:
    """A panel. ``unit`` is Grafana's; ``width`` is of 24 columns.

    A matrix shows ``rows`` by ``columns``; a table shows the labels ``columns_shown``
    and its queries' values under their legends. Values up to ``high`` have a colour.
    ``to_node`` links a value to the board of its node.
    """

    title: str
    what: str
    look: Look
    unit: str
    queries: tuple[Query, ...]
    width: int = 12
    height: int = 8
    colours: Colours = Colours.PLAIN
    rows: str = ""
    columns: str = ""
    columns_shown: tuple[str, ...] = ()
    high: float = 1
    to_node: bool = False


@dataclass(frozen=True, slots=True)
class Row:
    """Panels under one heading."""

    title: str
    panels: tuple[Panel, ...]


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable whose values are those of a label."""

    name: str
    title: str
    metric: str
    several: bool = True


@dataclass(frozen=True, slots=True)
class Board:
    """A dashboard."""

    uid: str
    title: str
    what: str
    variables: tuple[Variable, ...]
    rows: tuple[Row, ...] = field(default=())


CLUSTER = Variable("cluster", "Cluster", "fabricmon_build_info")
NODES = Variable("node", "Node", f"fabricmon_build_info{{{FLEET}}}")
DEVICES = Variable("device", "Device", f"fabricmon_infiniband_port_info{{{NODE}}}")


def compute(expr: str, *labels: str) -> str:
    """Return an expression over ports for the compute ports alone, with more labels."""
    info = f'fabricmon_infiniband_port_info{{{FLEET},role="compute"}}'
    return f"({expr}) * on ({PLACE}) group_left ({', '.join(labels)}) {info}"


def training(expr: str) -> str:
    """Return an expression whose label ``training`` is the job that agents name.

    They call it ``job``, as the scraper its target: one that does not honour labels
    makes ``exported_job`` of it.
    """
    honoured = f'label_replace({expr}, "training", "$1", "job", "(.+)")'
    return f'label_replace({honoured}, "training", "$1", "exported_job", "(.+)")'
