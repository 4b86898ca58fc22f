"""Trials that are scraped, and what the rules are worth in several of them at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from fabricmon.fleet.concluding import Site, metrics_read
from fabricmon.fleet.options import FleetOptions
from fabricmon.fleet.programs import find_programs
from fabricmon.fleet.rule import Alert, Group, Label, Notice, Recording
from fabricmon.fleet.trial import (
    JUDGE,
    STRICT,
    FleetScore,
    ScrapedTrial,
    allowance_seconds,
    allowed,
    conclude_scenes,
    read_scene,
    score_scene,
)
from fabricmon.sim.scenario import Injection, JobPlan, Scenario
from fabricmon.sim.score import Outcome
from fabricmon.trial import OWN, Trial, run_trial
from tests.sim.scoring import fault, truth
from tests.support.programs import require

DEAD = Scenario(
    name="dead",
    summary="A port dies.",
    nodes=2,
    duration=240,
    jobs=(JobPlan(start=5, init=10),),
    inject=(Injection(what="F10", node=1, rail=0, onset=60),),
)
CALM = Scenario(
    name="calm",
    summary="Nothing happens.",
    nodes=2,
    duration=120,
    jobs=(JobPlan(start=5, init=10),),
    negative=True,
)
SITE = Site(
    FleetOptions(),
    (
        Group(
            "g",
            15,
            (
                Recording("port:fabricmon_x:max", "max(fabricmon_port_verdict)", ""),
                Alert(
                    name="PortDown",
                    kind="port_down",
                    expr='fabricmon_finding_open{kind="port_down"}',
                    notice=Notice.PAGE,
                    summary="{{ $labels.node }}",
                    description="",
                    is_not="",
                    labels=(Label("origin", "node"),),
                ),
            ),
        ),
    ),
)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, ...]:
    """Return what was kept of two trials."""
    require("prometheus")
    folder = tmp_path_factory.mktemp("scraped")
    for scenario in (DEAD, CALM):
        run(scenario, folder)
    return (folder / "dead", folder / "calm")


def run(scenario: Scenario, folder: Path) -> Trial:
    """Run a trial and keep its metrics."""
    work = folder / f"work-{scenario.name}"
    work.mkdir()
    scraped = ScrapedTrial(SITE, find_programs(), folder / scenario.name)
    trial = scraped.run(scenario, 3, work, with_peers=False)
    assert list(work.iterdir()) == []
    return trial


@pytest.fixture(scope="module")
def scores(folders: tuple[Path, ...]) -> tuple[FleetScore, ...]:
    """Return the scores of both, out of one engine."""
    found = conclude_scenes(SITE, folders, find_programs())
    return tuple(
        score_scene(SITE, read_scene(folder), each)
        for folder, each in zip(folders, found, strict=True)
    )


@pytest.mark.slow
@pytest.mark.server
class TestBatch:
    def test_each_fleet_gets_its_own(self, scores: tuple[FleetScore, ...]) -> None:
        """The fault is found where it is, and nothing where there is none."""
        dead, calm = scores
        (answer,) = dead.scores[JUDGE].answers
        assert answer.outcome is Outcome.FOUND
        assert calm.scores[JUDGE].negative
        assert calm.scores[JUDGE].passed

    def test_allowance(self, scores: tuple[FleetScore, ...]) -> None:
        """A minute later than an agent is late for an agent."""
        (strict,) = scores[0].scores[STRICT].answers
        (answer,) = scores[0].scores[JUDGE].answers
        assert strict.outcome is Outcome.LATE
        assert strict.seconds == answer.seconds
        assert answer.deadline == strict.deadline + 60

    def test_scraping_changes_nothing(self, tmp_path: Path) -> None:
        """The agents give what they give unwatched."""
        require("prometheus")
        watched = run(DEAD, tmp_path).scores
        assert watched == run_trial(DEAD, 3, tmp_path).scores
        assert set(watched) == {OWN}


def test_allowance_is_of_the_site() -> None:
    """A scrape, an evaluation, and the wait of the group."""
    assert allowance_seconds(SITE) == 15 + 15 + 30


def test_allowed() -> None:
    """Each fault may be answered later, nothing else changes."""
    before = truth(fault(deadline=10.0), fault(deadline=300.0))
    after = allowed(before, 60)
    assert [each.deadline for each in after.faults] == [70, 360]
    assert allowed(after, -60) == before


def test_metrics_read() -> None:
    """Those of expressions; all where names are matched by a pattern."""
    names = metrics_read(SITE.groups).split("|")
    assert {"fabricmon_port_verdict", "fabricmon_finding_open"} <= set(names)
    alert = SITE.groups[0].alerts[0]
    wild = Group("w", 15, (Recording("a:b:c", '{__name__=~"x.*"}', ""), alert))
    assert metrics_read([wild]) == ".*"
