"""What fabricmon answers to a few small fleets, so that it never gets worse.

The whole table is made by ``bench/bench_detect.py``; here are short runs of classes
that today's detectors answer, and negatives that they must not.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from fabricmon.sim.profiles import PROFILES
from fabricmon.sim.scenario import Injection, JobPlan, Scenario
from fabricmon.sim.score import Outcome, RunScore
from fabricmon.trial import OWN, run_trial

SEED = 7  # one for tuning: what is published is never looked at here
RAIL = 1
DEVICE = "mlx5_1"  # of that rail
INFINIBAND, ETHERNET = "H100-IB-NDR-8x400", "H100-RoCE-8x400-DCQCN"
ONSET, SECONDS = 90.0, 240.0


@pytest.fixture(autouse=True)
def _small_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let machines have three rails and nothing else: they are as hard, and quicker."""
    for name in (INFINIBAND, ETHERNET):
        rails = PROFILES[name].compute[:3]
        slots = (replace(rail, device=f"mlx5_{n}") for n, rail in enumerate(rails))
        small = replace(PROFILES[name], slots=tuple(slots))
        monkeypatch.setitem(PROFILES, name, small)


def play(
    folder: Path, what: str, profile: str = INFINIBAND, **parameters: Any
) -> RunScore:
    """Return the score of two nodes for four minutes, the first of them hit."""
    hit = Injection(what=what, node=0, onset=ONSET, parameters=parameters)
    if what.startswith("F") or what == "N34":
        hit = structs.replace(hit, rail=RAIL)
    scenario = Scenario(
        name=f"small-{what}",
        summary="A small fleet.",
        profile=profile,
        nodes=2,
        duration=SECONDS,
        jobs=(JobPlan(init=20),),
        inject=(hit,),
        negative=what.startswith("N"),
    )
    return run_trial(scenario, SEED, folder).scores[OWN]


@pytest.mark.parametrize(
    ("what", "kind", "parameters"),
    [
        ("F01", "link_errors", {"ber": 1e-10}),
        ("F06", "port_flapping", {"gap": 60, "flaps": 3, "down": 5}),
        ("F08", "port_flap", {}),
        ("F10", "port_down", {}),
        ("F11", "rate_degraded", {}),
        ("F14", "port_not_active", {}),
    ],
)
def test_found(what: str, kind: str, parameters: Any, tmp_path: Path) -> None:
    """The kind, the place, within the deadline, and nobody else blamed."""
    result = play(tmp_path, what, **parameters)
    (answer,) = result.answers
    assert (answer.outcome, answer.kind) == (Outcome.FOUND, kind)
    assert answer.place == f"node000/{DEVICE}/1/rail={RAIL}"
    assert answer.evidence
    assert result.false == result.blames == result.breaches == ()


def test_found_on_ethernet(tmp_path: Path) -> None:
    """A flap of a RoCE port, where no InfiniBand counter remembers it."""
    result = play(tmp_path, "F05", ETHERNET)
    assert [each.outcome for each in result.answers] == [Outcome.FOUND]
    assert result.false == ()


@pytest.mark.parametrize("what", ["N03", "N04", "N30", "N32", "N34"])
def test_silent(what: str, tmp_path: Path) -> None:
    """A driver reload, cleared counters, an agent's restart, a clock step, a new name."""
    result = play(tmp_path, what)
    assert result.loud == result.breaches == ()
    assert result.passed
