"""Healthy lives are added up over calls, and nothing old is taken for new."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fabricmon.finding_document import (
    EvidenceDocument,
    FindingDocument,
    SubjectDocument,
)
from fabricmon.sim.life import Moment, Staged
from fabricmon.sim.scenario import Scenario
from fabricmon.sim.score_statistics import poisson_upper
from fabricmon.sim.truth import FleetFile, FleetJob

BENCH = Path(__file__).parents[2] / "bench"
PACKAGE, OTHER = "a" * 64, "b" * 64


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return the module, which is beside the package and not in it."""
    monkeypatch.syspath_prepend(str(BENCH))
    import healthy_runs  # type: ignore[import-not-found, unused-ignore]  # noqa: PLC0415

    return healthy_runs


def result(runs: Any, seed: int, *kinds: tuple[str, str]) -> Any:
    """Return a life of 20 node-days in which these were told."""
    return runs.LifeResult(
        way=runs.Way.THINNED, seed=seed, profile="EFA", node_days=20,
        played_node_days=0.5, seconds=1, happened={"reboot": 2},
        alarms=tuple(
            runs.Alarm(what=runs.Loudness(what), kind=kind, place="node000", t=1,
                       summary="", evidence=(), amid=())
            for what, kind in kinds
        ),
    )  # fmt: skip


def keep(runs: Any, cache: Path, package: str, *results: Any) -> None:
    """Keep lives as a call does."""
    for each in results:
        order = runs.Order(each.way, each.seed, 2, 10)
        runs.keep(order.kept_at(cache, package), each)


def test_calls_add_up(runs: Any, tmp_path: Path) -> None:
    """Two ranges of seeds are one sum."""
    page = ("page", "port_down")
    keep(runs, tmp_path, PACKAGE, result(runs, 1, page), result(runs, 2))
    keep(runs, tmp_path, PACKAGE, result(runs, 3, page, ("warning", "pause_origin")))
    totals = runs.add_up(runs.kept(tmp_path, PACKAGE))
    assert (totals.lives, totals.node_days) == (3, 60)
    assert totals.happened == {"reboot": 6}
    assert totals.told == {"page": {"port_down": 2}, "warning": {"pause_origin": 1}}


def test_the_bound_is_of_all_that_was_lived(runs: Any, tmp_path: Path) -> None:
    """Rates are per 1,000 node-days with the one-sided Poisson bound."""
    keep(runs, tmp_path, PACKAGE, result(runs, 1, ("page", "port_down")))
    rate = runs.add_up(runs.kept(tmp_path, PACKAGE)).rate(runs.Loudness.PAGE)
    assert rate.value == pytest.approx(50)
    assert rate.upper == pytest.approx(poisson_upper(1) * 50)


def test_another_package_is_another_sum(runs: Any, tmp_path: Path) -> None:
    """What an older package lived is not counted."""
    keep(runs, tmp_path, OTHER, result(runs, 1))
    assert list(runs.kept(tmp_path, PACKAGE)) == []


def test_a_life_that_failed_stands_for_nothing(runs: Any) -> None:
    """It adds no node-days that would flatter the bound."""
    failed = runs.LifeResult(
        way=runs.Way.THINNED, seed=1, profile="", node_days=20, played_node_days=0,
        seconds=0, happened={}, problem="ValueError: x",
    )  # fmt: skip
    assert runs.add_up([failed]).node_days == 0


def test_what_is_kept_is_not_lived_again(runs: Any, tmp_path: Path) -> None:
    """A call in which everything is kept begins nothing."""
    keep(runs, tmp_path, PACKAGE, result(runs, 1))
    told: list[str] = []
    order = runs.Order(runs.Way.THINNED, 1, 2, 10)
    runs.run_all([order], tmp_path, PACKAGE, jobs=1, limit=60.0, tell=told.append)
    assert told == []


def test_nothing_is_begun_after_the_limit(runs: Any, tmp_path: Path) -> None:
    """A call without time lives nothing and counts nothing."""
    order = runs.Order(runs.Way.THINNED, 7, 2, 10)
    runs.run_all([order], tmp_path, PACKAGE, jobs=1, limit=0.0, tell=print)
    assert list(runs.kept(tmp_path, PACKAGE)) == []


def test_a_healthy_life_is_played_and_judged(runs: Any) -> None:
    """A short thinned life goes through the agent and stands for what it says."""
    lived = runs.live(runs.Order(runs.Way.THINNED, 1002, 2, 0.2))
    assert lived.node_days == pytest.approx(0.4)
    assert 0 < lived.played_node_days < 0.4
    assert lived.seconds > 0
    assert lived.happened["job"] >= 1


def document(severity: str, action: str, t: float) -> FindingDocument:
    """Return a finding at a time."""
    return FindingDocument(
        id="0" * 16, seq=1, t=t, time="2026-01-05T08:00:00.000Z",
        onset="2026-01-05T08:00:00.000Z", state="open", kind="port_down",
        severity=severity, role="culprit", action=action,
        subject=SubjectDocument(node="node000", device="mlx5_0", port=1),
        evidence=(EvidenceDocument("state", "DOWN", "", "sysfs"),),
        summary="mlx5_0/1 down", runbook="", confidence=1, dry_run=False,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("severity", "action", "t", "loudness"),
    [
        ("critical", "drain_now", 150, ["page"]),
        ("critical", "drain_now", 250, ["ticket"]),  # no job any more
        ("warning", "inspect", 150, ["ticket"]),
        ("critical", "none", 150, ["warning"]),
        ("info", "none", 150, []),
    ],
)
def test_what_a_false_alarm_costs(
    runs: Any, severity: str, action: str, t: float, loudness: list[str]
) -> None:
    """Who is woken, who gets a ticket, and what is only said, as the format has it."""
    fleet = FleetFile(
        nodes=("node000",),
        jobs=(FleetJob(id="job0", nodes=("node000",), start=100, end=200),),
    )
    moments = (Moment(50, 60, "reboot"), Moment(500, 510, "read errors"))
    staged = Staged(Scenario(name="life", summary=""), (), moments)
    told = list(runs.alarms([document(severity, action, t)], fleet, staged))
    assert [each.what for each in told] == loudness
    for each in told:
        assert each.summary == "mlx5_0/1 down"
        assert each.evidence == ("state=DOWN ",)
        assert each.amid == ("reboot 50-60",)


def test_the_report_names_each_false_alarm(runs: Any) -> None:
    """Figures with their bound, and place, time and text of what is to be mended."""
    import healthy_report  # type: ignore[import-not-found, unused-ignore]  # noqa: PLC0415

    lives = [result(runs, 7, ("ticket", "pcie_errors"))]
    text = healthy_report.report(lives, "Of today.")
    assert "| thinned to events | 20.0      | 0.50" in text
    assert "50 (below 237)" in text
    assert "- ticket `pcie_errors` (EFA, thinned, seed 7, node000, 1 s)" in text
