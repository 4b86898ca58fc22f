from __future__ import annotations

from pathlib import Path

import pytest

from fabricmon.cli import main
from fabricmon.config_load import build
from fabricmon.sim.baselines import NAMES
from fabricmon.sim.folder import write_fleet
from fabricmon.sim.scenario import Injection, JobPlan, Scenario
from fabricmon.sim.score import Outcome, score
from fabricmon.sim.score_files import read_findings, read_fleet, read_truth
from fabricmon.sim.staging import Stage
from fabricmon.trial import OWN, run_trial

SCENARIO = Scenario(
    name="small",
    summary="A port dies.",
    nodes=2,
    duration=120,
    jobs=(JobPlan(start=5, init=10),),
    inject=(Injection(what="F10", node=1, rail=0, onset=60),),
)


def test_all_judges(tmp_path: Path) -> None:
    """Fabricmon and every peer are scored on the same run; no trace is left."""
    trial = run_trial(SCENARIO, 1000, tmp_path, with_peers=True)
    assert set(trial.scores) == {OWN, *NAMES}
    outcomes = {name: each.answers[0].outcome for name, each in trial.scores.items()}
    assert outcomes[OWN] is Outcome.FOUND
    assert outcomes["mean-throughput"] is Outcome.MISSED
    assert trial.node_seconds == 240
    assert min(trial.simulate_seconds, trial.replay_seconds, trial.peer_seconds) > 0
    assert list(tmp_path.iterdir()) == []


def test_same_by_files(tmp_path: Path) -> None:
    """The commands give the same score as the run in one process."""
    fleet, found = tmp_path / "fleet", tmp_path / "found.jsonl"
    write_fleet(Stage(SCENARIO, 7), fleet, show=False)
    words = ["replay", "--fleet", str(fleet), "--rules", "none"]
    assert main([*words, "--findings", str(found)]) == 0
    by_files = score(read_truth(fleet), read_fleet(fleet), read_findings(found))
    assert by_files == run_trial(SCENARIO, 7, tmp_path).scores[OWN]


@pytest.mark.parametrize(
    ("mode", "outcome"), [("on", Outcome.FOUND), ("off", Outcome.MISSED)]
)
def test_configuration(mode: str, outcome: Outcome, tmp_path: Path) -> None:
    """A configuration of the agent can be tried."""
    loaded = build({"kinds": {"port_down": mode}}, (), ())
    trial = run_trial(SCENARIO, 1000, tmp_path, loaded=loaded)
    assert trial.scores[OWN].answers[0].outcome is outcome
