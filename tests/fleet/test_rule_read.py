"""Rules out of files as Prometheus and its operator have them."""

from __future__ import annotations

from pathlib import Path

import pytest

from fabricmon.errors import AbsentError, ParseError
from fabricmon.fleet.options import FleetOptions
from fabricmon.fleet.render import prometheus_rule, rule_file
from fabricmon.fleet.rule import Group
from fabricmon.fleet.rule_read import read_rules
from fabricmon.fleet.rules import groups

OPTIONS = FleetOptions()


def written(path: Path, text: str) -> Path:
    """Write a file of rules."""
    path.write_text(text, encoding="utf-8")
    return path


def told(rules: tuple[Group, ...]) -> list[tuple[object, ...]]:
    """Return of each rule what an engine goes by."""
    return [
        *(
            (rule.record, rule.expr.strip())
            for group in rules
            for rule in group.recordings
        ),
        *(
            (
                rule.name,
                rule.expr.strip(),
                rule.for_seconds,
                rule.keep_seconds,
                sorted((each.name, each.value) for each in rule.own_labels),
            )
            for group in rules
            for rule in group.alerts
        ),
    ]


def test_own_rules_come_back(tmp_path: Path) -> None:
    """The files that are shipped are read as the rules that they were made of."""
    made = groups(OPTIONS)
    plain = written(tmp_path / "a.yml", rule_file(made, OPTIONS))
    crd = prometheus_rule(made, OPTIONS, name="fabricmon")
    of_operator = written(tmp_path / "b.yml", crd)
    assert told(read_rules(plain)) == told(made) == told(read_rules(of_operator))


def test_levels_are_found(tmp_path: Path) -> None:
    """By which recordings read which, in whatever order they stand."""
    path = written(
        tmp_path / "r.yml",
        """
groups:
- name: a
  interval: 1m30s
  rules:
  - {record: "c:x:max", expr: "max(b:x:sum) + max(a:x:sum)"}
  - {record: "b:x:sum", expr: "sum(a:x:sum)"}
  - {record: "a:x:sum", expr: sum(x)}
""",
    )
    (group,) = read_rules(path)
    levels = {each.record: each.level for each in group.recordings}
    assert levels == {"a:x:sum": 1, "b:x:sum": 2, "c:x:max": 3}
    assert group.interval_seconds == 90


def test_own_levels_are_deep_enough() -> None:
    """A recording of the fleet reads none of its own level or above."""
    made = [each for group in groups(OPTIONS) for each in group.recordings]
    for rule in made:
        read = [each for each in made if each.record in rule.expr]
        assert all(each.level < rule.level for each in read), rule.record


def test_reads_itself(tmp_path: Path) -> None:
    """A recording over its own past has a level all the same."""
    text = "groups: [{name: g, rules: [{record: 'a:x:m', expr: 'a:x:m or x'}]}]"
    (group,) = read_rules(written(tmp_path / "r.yml", text))
    assert group.recordings[0].level == 1


@pytest.mark.parametrize(
    "text",
    [
        "[]",
        "groups: 3",
        "groups: [{name: g, rules: [{alert: A}]}]",
        "groups: [{name: g, rules: [{alert: A, expr: x, for: soon}]}]",
        "a: [",
    ],
)
def test_no_rules(text: str, tmp_path: Path) -> None:
    """The file is named."""
    with pytest.raises(ParseError, match=r"r\.yml"):
        read_rules(written(tmp_path / "r.yml", text))


def test_no_file(tmp_path: Path) -> None:
    """An error of its own, as for other files that are named."""
    with pytest.raises(AbsentError, match=r"none\.yml"):
        read_rules(tmp_path / "none.yml")
