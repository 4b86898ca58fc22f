"""Every series and label that a rule reads is there to be read."""

from __future__ import annotations

import re
from collections.abc import Iterator

import promql_parser
import pytest

from fabricmon.fleet.options import FleetOptions
from fabricmon.fleet.rule import Alert, Recording
from fabricmon.fleet.rules import groups
from tests.support.promql import RENAMED, SCRAPER, exported, selectors

RULES = [rule for group in groups(FleetOptions()) for rule in group.rules]
RECORDED = {rule.record for rule in RULES if isinstance(rule, Recording)}
SITE = {"ALERTS", "kube_node_spec_unschedulable"}
"""Series of the site that options name."""


def queries(rule: Alert | Recording) -> Iterator[str]:
    """Yield the expression of a rule, and the queries of its templates."""
    yield rule.expr
    if isinstance(rule, Alert):
        for template in (rule.summary, rule.description):
            for query in re.findall(r"`([^`]+)`", template):
                yield query.replace("%q", '"x"')
            for query in re.findall(r'query "((?:[^"\\]|\\.)+)"', template):
                yield query.replace('\\"', '"')


def known_labels() -> set[str]:
    """Return every label that a series or an earlier rule brings."""
    found = {label for labels in exported().values() for label in labels}
    for rule in RULES:
        found |= set(
            re.findall(r',\s*"(\w+)", "[^"]*", "\w*", "[^"]*"\s*\)', rule.expr)
        )
    return found | SCRAPER | RENAMED | {"quantile"}


LABELS = known_labels()


@pytest.mark.parametrize(
    "rule", RULES, ids=lambda rule: getattr(rule, "name", None) or rule.record
)
def test_what_a_rule_reads_is_there(rule: Alert | Recording) -> None:
    """Names come from the tables or an earlier rule, labels with the name."""
    metrics = exported()
    for query in queries(rule):
        for selector in selectors(query):
            assert selector.name in {*metrics, *RECORDED, *SITE}, query
            labels = metrics.get(selector.name, LABELS)
            assert selector.labels <= labels | SCRAPER | RENAMED, query


@pytest.mark.parametrize(
    "rule", RULES, ids=lambda rule: getattr(rule, "name", None) or rule.record
)
def test_what_a_rule_groups_by_is_there(rule: Alert | Recording) -> None:
    """Labels of joins and aggregations exist somewhere."""
    for query in queries(rule):
        named = re.findall(
            r"\b(?:by|on|ignoring|without|group_left|group_right)\s*\(([^)]*)\)", query
        )
        used = {label.strip() for part in named for label in part.split(",")}
        assert used - {""} <= LABELS, query


def test_levels_are_true() -> None:
    """A recording reads only what stands at a lower level: a backfill goes by them."""
    levels = {rule.record: rule.level for rule in RULES if isinstance(rule, Recording)}
    for rule in RULES:
        if isinstance(rule, Recording):
            below = [levels.get(each.name, 0) for each in selectors(rule.expr)]
            assert rule.level == max(below) + 1, rule.record


def test_a_name_that_nothing_exports_is_found() -> None:
    """The check itself sees a metric that was renamed."""
    (selector,) = selectors("max(fabricmon_gone_total)")
    assert selector.name not in exported()
    with pytest.raises(ValueError, match=r".+"):
        promql_parser.parse("max(")
