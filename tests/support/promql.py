"""Which series a query reads, and which series there are to be read."""

import re
from dataclasses import dataclass
from functools import cache

import promql_parser

from fabricmon.catalogue import ROWS, CounterKind
from fabricmon.sinks.families import FAMILIES

SCRAPER = frozenset({"cluster", "node", "job", "instance"})
"""Labels that whoever scrapes adds; without honoured labels one more."""

RENAMED = frozenset({"exported_job"})

_BESIDE = {
    "up": frozenset[str](),
    "scrape_duration_seconds": frozenset[str](),
    "scrape_samples_scraped": frozenset[str](),
    "process_cpu_seconds_total": frozenset[str](),
    "process_resident_memory_bytes": frozenset[str](),
}
"""What Prometheus writes of each scrape, and every exporter of its process."""

_VARIABLES = (
    (re.compile(r"\$__(rate_)?interval|\$__range"), "5m"),
    (re.compile(r"\$\{?\w+(:\w+)?\}?"), "x"),
)


@dataclass(frozen=True, slots=True)
class Selector:
    """A series that a query reads: its name and the labels it is chosen by."""

    name: str
    labels: frozenset[str]


@cache
def exported() -> dict[str, frozenset[str]]:
    """Return the labels of every metric that an agent or the scraper exports."""
    found = {family.metric: frozenset(family.labels) for family in FAMILIES}
    for spec in ROWS:
        if spec.kind is not CounterKind.KNOB:
            own = frozenset({spec.label} if spec.label else ())
            place = frozenset({"device", "port"})
            found[spec.metric] = found.get(spec.metric, place) | own
    return found | _BESIDE


def without_variables(query: str) -> str:
    """Return a query of a dashboard with values in place of Grafana's variables."""
    for pattern, value in _VARIABLES:
        query = pattern.sub(value, query)
    return query


def selectors(query: str) -> list[Selector]:
    """Return every series that a query reads; raises `ValueError` if it is none."""
    found: list[Selector] = []

    def see(expr: promql_parser.Expr) -> None:
        if isinstance(expr, promql_parser.VectorSelector):
            found.append(_selector(expr))

    promql_parser.walk(promql_parser.parse(without_variables(query)), see)
    return found


def _selector(expr: promql_parser.VectorSelector) -> Selector:
    matchers = expr.matchers.matchers
    name = expr.name or next(m.value for m in matchers if m.name == "__name__")
    labels = frozenset(m.name for m in matchers if m.name != "__name__")
    return Selector(name, labels)
