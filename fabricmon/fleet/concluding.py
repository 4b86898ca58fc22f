"""What the rules of a site conclude of fleets that were replayed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from fabricmon.fleet import engine
from fabricmon.fleet.alert_findings import (
    FROM_FLEET,
    AlertFinding,
    alert_findings,
    kind_of,
    origin,
)
from fabricmon.fleet.alertmanager import INTERVAL_SECONDS, WAIT_SECONDS
from fabricmon.fleet.firing import Heard
from fabricmon.fleet.notices import Grouping, hear
from fabricmon.fleet.options import FleetOptions
from fabricmon.fleet.programs import Programs
from fabricmon.fleet.rule import Group, Inhibition
from fabricmon.fleet.scraping import EVERYTHING, Scraping
from fabricmon.kinds import BY_SLUG

_METRIC = re.compile(r"\bfabricmon_[a-z0-9_]+\b")
_BY_PATTERN = re.compile(r"__name__\s*=~|\{__name__")


@dataclass(frozen=True, slots=True)
class Site:
    """How a site evaluates what it scrapes, and whom it tells."""

    options: FleetOptions
    groups: tuple[Group, ...]
    inhibitions: tuple[Inhibition, ...] = ()
    grouping: Grouping = field(
        default_factory=lambda: Grouping(WAIT_SECONDS, INTERVAL_SECONDS)
    )

    @property
    def rhythm(self) -> engine.Rhythm:
        """How it scrapes and evaluates."""
        pace, where = self.options.pace, self.options.where
        return engine.Rhythm(
            scrape_seconds=max(1, round(pace.scrape_seconds)),
            evaluation_seconds=max(1, round(pace.evaluation_seconds)),
            cluster_label=where.cluster_label,
        )

    def scraping(self, cluster: str, *, keep: str = EVERYTHING) -> Scraping:
        """Return how nodes of a cluster are scraped."""
        where = self.options.where
        return Scraping(
            interval_seconds=self.rhythm.scrape_seconds,
            cluster=cluster,
            cluster_label=where.cluster_label,
            node_label=where.node_label,
            keep=keep,
        )


@dataclass(frozen=True, slots=True)
class Conclusion:
    """What was concluded of one fleet.

    ``found`` is what only the fleet can see, of the kinds that findings have, as it is
    concluded and while nothing inhibits it; ``told`` is what people hear, of every origin; ``heard`` is each
    alert, told or not. ``stray`` are alerts that name no fleet where there are several.
    """

    fleet: engine.Fleet
    found: tuple[AlertFinding, ...]
    told: tuple[AlertFinding, ...]
    heard: tuple[Heard, ...]
    stray: tuple[str, ...] = ()


def conclude(
    site: Site,
    fleets: Sequence[engine.Fleet],
    programs: Programs,
    keep_data: Path | None = None,
) -> tuple[Conclusion, ...]:
    """Evaluate the rules over fleets; raises `HostError`, `OSError`."""
    run = engine.evaluate(fleets, site.groups, site.rhythm, programs, keep_data)
    return tuple(_conclusion(site, each, run.stray) for each in run.evaluations)


def _conclusion(
    site: Site, evaluation: engine.Evaluation, stray: tuple[str, ...]
) -> Conclusion:
    fleet = evaluation.fleet
    heard = hear(evaluation.firings, site.inhibitions, site.grouping, fleet.end)
    at_once = Grouping(0, site.rhythm.evaluation_seconds)
    known = hear(evaluation.firings, site.inhibitions, at_once, fleet.end)
    own = [
        each
        for each in known
        if origin(each.firing) == FROM_FLEET and kind_of(each.firing) in BY_SLUG
    ]
    return Conclusion(
        fleet,
        found=tuple(alert_findings(own, fleet.begin)),
        told=tuple(alert_findings(heard, fleet.begin)),
        heard=heard,
        stray=stray,
    )


def metrics_read(groups: Iterable[Group]) -> str:
    """Return a pattern of the metrics that rules read; all where that is not plain."""
    exprs = [rule.expr for group in groups for rule in group.rules]
    if any(map(_BY_PATTERN.search, exprs)):
        return EVERYTHING
    return "|".join(sorted({name for expr in exprs for name in _METRIC.findall(expr)}))
