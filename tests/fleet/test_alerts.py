"""Every alert is silent first and then says exactly what it should, by promtool."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from fabricmon.fleet.options import FleetOptions
from fabricmon.fleet.render import rule_file
from fabricmon.fleet.rules import groups
from tests.fleet import agent_cases, comparison_cases, kind_cases
from tests.fleet.promtool import Case, check
from tests.support.programs import require

CASES = (
    *kind_cases.cases(),
    *agent_cases.cases(),
    *comparison_cases.cases(),
)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_an_alert_is_silent_and_then_says_it_exactly(
    case: Case, tmp_path: Path
) -> None:
    """Nothing before the fault; then these labels and these words, no more alerts."""
    assert check(case, tmp_path) == ""


def test_every_alert_has_a_case() -> None:
    """Whoever adds an alert shows when it fires and when not."""
    alerts = {a.name for group in groups(FleetOptions()) for a in group.alerts}
    assert {case.alert for case in CASES} == alerts


def test_rules_are_right(tmp_path: Path) -> None:
    """Promtool takes all of them."""
    file = tmp_path / "rules.yaml"
    file.write_text(rule_file(groups(FleetOptions()), FleetOptions()))
    command = [require("promtool"), "check", "rules", str(file)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
