"""Runs with the fleet's rules are kept, and only what has changed is done again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fabricmon.fleet.programs import find_programs
from fabricmon.fleet.trial import JUDGE, STRICT
from fabricmon.sim.score import Outcome
from fabricmon.sim.score_summary import summarize
from fabricmon.trial import OWN
from tests.fleet.test_trial import SITE
from tests.sim.scoring import fault, run, told, truth
from tests.support.programs import require

BENCH = Path(__file__).parents[2] / "bench"
SCENARIO = """
name: dead
summary: A port dies.
nodes: 2
duration: 200
jobs: [{start: 5, init: 10}]
inject: [{what: F10, node: 1, rail: 0, onset: 60}]
"""


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return the module, which is beside the package and not in it."""
    monkeypatch.syspath_prepend(str(BENCH))
    monkeypatch.setenv("PYTHONPATH", str(BENCH))  # for the processes that it starts
    monkeypatch.delenv("PYTHONSAFEPATH", raising=False)
    import detect_runs  # type: ignore[import-not-found, unused-ignore]  # noqa: PLC0415

    return detect_runs


@pytest.mark.slow
@pytest.mark.server
def test_rules_alone_are_evaluated_again(runs: Any, tmp_path: Path) -> None:
    """After a change of rules no agent is played again, where metrics were kept."""
    require("prometheus")
    file = tmp_path / "dead.yaml"
    file.write_text(SCENARIO)
    tasks, cache = [runs.Task(file, 3)], tmp_path / "cache"
    said: list[str] = []

    def bench(site: Any) -> Any:
        fleet = runs.FleetBench(site, find_programs(), keep_metrics=True)
        said.clear()
        return list(runs.run_all_with_fleet(tasks, cache, 1, said.append, fleet))

    (first,) = bench(SITE)
    assert set(first.trial.scores) >= {OWN, JUDGE, STRICT}
    assert first.score(JUDGE).answers[0].outcome is Outcome.FOUND
    assert "0 runs of fleets kept, 1 to do" in said

    (again,) = bench(SITE)
    assert again == first
    assert not any(line.startswith("rules over") for line in said)

    fleet = runs.FleetBench(SITE, find_programs(), keep_metrics=True)
    more = [*tasks, runs.Task(file, 4)]
    kept = list(runs.run_all_with_fleet(more, cache, 0, said.append, fleet))
    assert kept == [first]  # of the other seed nothing is kept, and nothing is run

    (other,) = bench(replace(SITE, groups=()))
    assert "1 runs of fleets kept, 0 to do" in said
    assert other.score(JUDGE).answers[0].outcome is Outcome.MISSED
    assert other.score(OWN) == first.score(OWN)


def test_table_of_the_fleet(monkeypatch: pytest.MonkeyPatch) -> None:
    """One row for each class that occurs, and one for what has no fault."""
    monkeypatch.syspath_prepend(str(BENCH))
    import detect_report  # type: ignore[import-not-found, unused-ignore]  # noqa: PLC0415

    leaf = truth(fault(fault="F40"))
    peace = truth(negative=True)
    found = summarize([run(leaf, told()), run(peace)])
    missed = summarize([run(leaf), run(peace, told())])
    table = detect_report.fleet_table({JUDGE: found, OWN: missed})
    _, _, *rows = [
        [cell.strip() for cell in line.split("|")] for line in table.split("\n")
    ]
    assert rows == [
        ["", "F40", "100 % (1/1)", "0 % (0/1)", "10", "-", ""],
        ["", "negatives", "100 % (1/1)", "0 % (0/1)", "-", "-", ""],
    ]
