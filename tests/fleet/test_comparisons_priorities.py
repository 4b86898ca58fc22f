"""Where nodes with other priorities than most are not told of."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fleet.priority_cases import (
    DRIFT,
    MIXED,
    NODES,
    all_with,
    settings,
    settings_of,
)
from tests.fleet.promtool import Case, check, series

MANY = NODES[:6]
LOSSLESS = all_with(MANY, pfc="3")
WITHOUT = {"pfc": "none"}

SILENT: dict[str, dict[str, str]] = {
    "two against two": settings(
        {**all_with(NODES[:2], pfc="3"), **all_with(NODES[2:4], pfc="none")}
    ),
    "two of five": settings(
        {**all_with(NODES[:3], pfc="3"), **all_with(NODES[3:5], pfc="none")}
    ),
    "one of three": settings({**all_with(NODES[:3], pfc="3"), "n1": WITHOUT}),
    "the last rail of every node has none": {
        **settings(LOSSLESS, rails=3),
        **{
            name: values
            for node in MANY
            for name, values in settings_of(node, 3, **WITHOUT).items()
        },
    },
    "one rail of three, which its agent tells": {
        **settings(LOSSLESS, rails=2),
        **settings_of("n2", 2, **WITHOUT),
    },
    "it is another board": {
        **settings(LOSSLESS),
        **settings({"n7": WITHOUT}, board="MT_2"),
    },
    "it cannot be read there": settings({**LOSSLESS, "n2": {"ecn": "3"}}),
    "somebody works on the node": {
        **settings({**LOSSLESS, "n2": WITHOUT}),
        series("fabricmon_maintenance", node="n2"): "1x200",
    },
}


@pytest.mark.parametrize("alert", [DRIFT, MIXED])
@pytest.mark.parametrize("why", SILENT)
def test_nobody_is_odd(why: str, alert: str, tmp_path: Path) -> None:
    """There is no clear majority, or it is told elsewhere, or not known."""
    quiet = Case(alert, SILENT[why], silent_at="14m", fires_at="40m", told=[])
    assert check(quiet, tmp_path) == ""
