"""Scenario files: what is wrong in them is said once, with place and remedy."""

from pathlib import Path

import pytest

from fabricmon.errors import ConfigError
from fabricmon.sim.load import load, load_file, read, shipped

GOOD = """
name: flap
summary: A port flaps.
nodes: 4
jobs:
  - {id: train, step: [3, 6], rails: [0, 1, 2, 3]}
inject:
  - {what: F05, node: 1, rail: 3, parameters: {down: [2, 5]}}
tags: [compound]
"""


def test_a_file_is_read(tmp_path: Path) -> None:
    """Numbers, ranges and words come out as they were written."""
    path = tmp_path / "own.yaml"
    path.write_text(GOOD, encoding="utf-8")
    scenario = load(str(path))
    assert str(scenario.jobs[0].step) == "(3.0, 6.0)"
    assert scenario.inject[0].parameters == {"down": (2, 5)}
    assert scenario.tags == ("compound",)


@pytest.mark.parametrize(
    ("before", "after", "says"),
    [
        ("nodes: 4", "nodes: many", "own.yaml:4: nodes: expected `int`"),
        ("nodes: 4", "node: 4", "node: no such key (did you mean nodes?)"),
        ("what: F05", "what: F99", "inject[0].what"),
        ("rail: 3,", "rail: 9,", "inject[0].rail: there is no number 9"),
        ("node: 1", "node: 4", "inject[0].node: there is no number 4"),
        ("[2, 5]", "[5, 2]", "the lower one first"),
        ("down:", "dwn:", "did you mean down?"),
        ("[3, 6]", "[6, 3]", "jobs[0].step"),
        ("[0, 1, 2, 3]", "[0, 0]", "jobs[0].rails: names one twice"),
        ("[0, 1, 2, 3]", "[]", "jobs[0].rails: is empty"),
        ("id: train", "id: ../up", "jobs[0].id"),
        ("nodes: 4", "profile: Cray", "write H100-IB-NDR-8x400"),
        ("nodes: 4", "duration: 0", "duration"),
        ("nodes: 4", "- 4", "not YAML"),
        ("rail: 3,", "device: eth0,", "is no device of H100-IB-NDR-8x400"),
        ("nodes: 4", "sights: [sysfs, x-ray]", "sights"),
    ],
)
def test_a_mistake_is_named(before: str, after: str, says: str) -> None:
    """One error with file, key and what to write instead."""
    text = GOOD.replace(before, after)
    assert text != GOOD
    with pytest.raises(ConfigError) as caught:
        read(text, "own.yaml")
    message = str(caught.value)
    assert says in message
    assert message.startswith("own.yaml")
    assert "\n" not in message


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    """So is one that is no text."""
    with pytest.raises(ConfigError, match="No such file"):
        load_file(tmp_path / "none.yaml")
    (tmp_path / "raw.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match="not UTF-8"):
        load_file(tmp_path / "raw.yaml")


def test_a_name_that_is_none_is_refused() -> None:
    """With where to look."""
    with pytest.raises(ConfigError, match="no scenario is called"):
        load("no-such-scenario-at-all")


def test_every_shipped_scenario_can_be_used() -> None:
    """They come with the package; each loads and is called as its file is."""
    assert shipped()
    for name in shipped():
        assert load(name).name == name
