"""Series as rules read them: names that exist, with the site's matchers and labels.

A name that no table exports is an error where the rule is made, so that renaming a
metric breaks the rules that read it at once.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass

from fabricmon.catalogue import ROWS, CounterKind
from fabricmon.errors import ConfigError
from fabricmon.fleet.options import FleetOptions
from fabricmon.fleet.rule import TRAINING
from fabricmon.sinks.families import FAMILIES

_PORT = frozenset({"device", "port"})
_COUNTERS = {
    spec.metric: _PORT | ({spec.label} if spec.label else set())
    for spec in ROWS
    if spec.kind is not CounterKind.KNOB
}
EXPORTED: dict[str, frozenset[str]] = {
    **_COUNTERS,
    **{family.metric: frozenset(family.labels) for family in FAMILIES},
}
"""Labels of every metric of the agent, by its name; the scraper adds more."""

_MATCHER = re.compile(r'\s*([a-zA-Z_]\w*)\s*(=~|!~|!=|=)\s*("(?:[^"\\]|\\.)*")\s*')
_JOB, _EXPORTED = "job", "exported_job"


@dataclass(frozen=True, slots=True)
class SiteMatcher:
    """A matcher as a site wrote it: label, operator and value within its quotes."""

    label: str
    operator: str
    quoted: str

    @property
    def text(self) -> str:
        """Return it as PromQL."""
        return f"{self.label}{self.operator}{self.quoted}"

    @property
    def value(self) -> str:
        """Return the value without quotes; escapes are those of Go, as JSON has."""
        return str(json.loads(self.quoted))


class Names:
    """Names of series and labels as one site has them."""

    def __init__(self, options: FleetOptions) -> None:
        """Take ``where``; raises `ConfigError` for a selector that is none."""
        where = options.where
        self.cluster = where.cluster_label
        self.node = where.node_label
        self.on_cluster = self.cluster
        self.on_node = f"{self.cluster}, {self.node}"
        self.on_port = f"{self.on_node}, device, port"
        self._matchers = matchers(where.selector, "where.selector")

    def series(self, metric: str, matchers: str = "") -> str:
        """Return a selector of an exported metric; raises `KeyError` if it is none.

        Where the metric has a label ``job`` of its own, which is a training job, a
        matcher of the site for ``job`` is left out: it means the target's.
        """
        own = EXPORTED[metric]
        site = [
            each.text
            for each in self._matchers
            if not (each.label == _JOB and _JOB in own)
        ]
        inner = ",".join([*site, matchers] if matchers else site)
        return f"{metric}{{{inner}}}" if inner else metric

    def training(
        self, metric: str, matchers: str = "", of: Callable[[str], str] = str
    ) -> str:
        """Return the same with the training job in the label `TRAINING` as well.

        The scraper honours labels (``job``) or does not (``exported_job``). Put it
        between parentheses: it has two sides, each labelled once. ``of`` makes an
        expression of each selector, to label only what is left.
        """
        return "\nor\n".join(
            f'label_replace({of(series)}, "{TRAINING}", "$1", "{label}", "(.+)")'
            for series, label in (
                (self.series(metric, _both(matchers, f'{_EXPORTED}=""')), _JOB),
                (self.series(metric, _both(matchers, f'{_EXPORTED}!=""')), _EXPORTED),
            )
        )


def _both(*matchers: str) -> str:
    return ",".join(filter(None, matchers))


def matchers(selector: str, key: str) -> tuple[SiteMatcher, ...]:
    """Return the matchers in a selector; raises `ConfigError` that names ``key``."""
    found: list[SiteMatcher] = []
    rest = selector.strip()
    while rest:
        match = _MATCHER.match(rest)
        if match is None:
            remedy = 'write matchers with commas between, as in job="fabricmon"'
            raise ConfigError(f"{rest!r} is no matcher", key=key, remedy=remedy)
        found.append(SiteMatcher(match[1], match[2], match[3]))
        rest = rest[match.end() :].removeprefix(",").strip()
    return tuple(found)
