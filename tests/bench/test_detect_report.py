"""Tables of detection, of scores that are given."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from fabricmon.fleet.trial import JUDGE
from fabricmon.sim.score import RunScore
from fabricmon.trial import OWN, Trial
from tests.sim.scoring import fault, run, told, truth

BENCH = Path(__file__).parents[2] / "bench"
FOUND, LATE, MISSED = run(None, told()), run(None, told(t=500)), run()


@dataclass(frozen=True)
class Bench:
    """The modules, which are beside the package and not in it."""

    amiss: Any
    runs: Any
    scores: Any

    def done(
        self, own: RunScore, heard: RunScore | None = None, magnitude: float = 1
    ) -> Any:
        """Return a run with the scores of the agents and of what people heard."""
        scores = {OWN: own} if heard is None else {OWN: own, JUDGE: heard}
        trial = Trial(
            scores=scores, node_seconds=1, simulate_seconds=1, replay_seconds=1
        )
        task = self.runs.Task(Path("small.yaml"), own.seed, magnitude)
        return self.runs.Done(task, trial)


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Bench:
    """Return the modules."""
    monkeypatch.syspath_prepend(str(BENCH))
    import detect_amiss  # type: ignore[import-not-found, unused-ignore]  # noqa: PLC0415
    import detect_runs  # type: ignore[import-not-found, unused-ignore]  # noqa: PLC0415
    import detect_scores  # type: ignore[import-not-found, unused-ignore]  # noqa: PLC0415

    return Bench(detect_amiss, detect_runs, detect_scores)


def cells(table: str) -> list[list[str]]:
    """Return the rows of a table below its head."""
    lines = [line for line in table.split("\n") if line.startswith("|")]
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines[2:]]


def test_what_people_did_not_hear(bench: Bench) -> None:
    """Each with what was said, by when it was due, and what the agents found."""
    done = (bench.done(FOUND, LATE), bench.done(FOUND, FOUND))
    report = bench.scores.Report(done, "command", 60.0)
    _, table = bench.amiss.unheard(report)
    assert cells(table) == [
        [
            "small", "F10", "local", "late", "200", "15", "port_down",
            "found", "10", "port_down",
        ]
    ]  # fmt: skip


def test_nothing_is_unheard_where_no_rules_were_evaluated(bench: Bench) -> None:
    """Then there is no such table."""
    report = bench.scores.Report((bench.done(MISSED),), "command")
    assert bench.amiss.unheard(report) == ()


def test_what_the_agents_missed(bench: Bench) -> None:
    """What was late has its time."""
    report = bench.scores.Report((bench.done(LATE), bench.done(FOUND)), "command")
    late = ["small", "F10", "late", "200", "15", "nothing"]
    assert cells(bench.amiss.missed(report)) == [late]


def test_other_magnitudes(bench: Bench) -> None:
    """They are told of what was run at all of them."""
    elsewhere = run(truth(fault(), scenario="elsewhere"), told())
    done = (
        bench.done(MISSED, magnitude=0.5),
        bench.done(FOUND, LATE, magnitude=1),
        bench.done(FOUND, magnitude=2),
        bench.done(elsewhere, magnitude=0.5),
    )
    text = bench.amiss.sensitivity(bench.scores.Report(done, "command"))
    assert "1 runs at each magnitude, seeds 1000 to 1000" in text
    assert cells(text)[0] == [
        "all, local evidence", "0 % (0/1)", "100 % (1/1)", "100 % (1/1)",
    ]  # fmt: skip


def test_other_magnitudes_that_were_not_run(bench: Bench) -> None:
    """They are not made up."""
    report = bench.scores.Report((bench.done(FOUND),), "command")
    assert bench.amiss.sensitivity(report) == "Not run."
