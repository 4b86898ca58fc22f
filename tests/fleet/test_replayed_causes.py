"""What only the fleet can tell, of fleets that are played, scraped and evaluated.

The real agents, a real Prometheus, the rules as they are shipped.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from msgspec import structs

from fabricmon.fleet.concluding import Conclusion, Site
from fabricmon.fleet.options import FleetOptions
from fabricmon.fleet.programs import find_programs
from fabricmon.fleet.rules import groups
from fabricmon.fleet.site import DEFAULT, site_of
from fabricmon.fleet.trial import ScrapedTrial, conclude_scenes
from fabricmon.sim.plan import FleetPlan
from fabricmon.sim.profiles import Use
from fabricmon.sim.scenario import Injection, Scenario
from tests.support.programs import require

pytestmark = [pytest.mark.slow, pytest.mark.server]

_FELL_AT = 33
_RACK = 3  # nodes of a rack; of a leaf there are seven
_RAILS = range(5)  # most ports of the rack, less than half of each leaf's

SCENARIOS = (
    Scenario(
        name="cluster",
        summary="The subnet manager changes over between two scrapes; one node has "
        "older firmware.",
        nodes=4,
        duration=285,
        jobs=(),
        noise=0,
        inject=(
            Injection(what="F29", node=3, onset=1),
            Injection(what="F42", onset=77, parameters={"length": 4.0, "share": 0.7}),
        ),
    ),
    Scenario(
        name="rack",
        summary="Ports of one rack fall together, on several leafs.",
        nodes=7,
        duration=90,
        jobs=(),
        noise=0,
        inject=tuple(
            Injection(
                what="F05",
                node=node,
                rail=rail,
                onset=_FELL_AT,
                parameters={"down": 40.0},
            )
            for node in range(_RACK)
            for rail in _RAILS
        ),
    ),
)


def _topology(plan: FleetPlan, node: int) -> dict[str, object]:
    """Return what a site says of a node: its rack, and what its ports are for."""
    ports: dict[str, dict[str, object]] = {
        f"{port.device}/{port.port}": {"role": str(plan.slot(port).use)}
        for port in plan.ports(node)
        if plan.slot(port).use is not Use.UNUSED
    }
    for rail in range(plan.rails):
        port = plan.rail(node, rail)
        where = {"leaf": plan.leaf(port), "rail": rail}
        ports[f"{port.device}/{port.port}"].update(where)
    return {"rack": f"rack{node // _RACK}", "ports": ports}


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, ...]]:
    """Play all of them and return what was scraped.

    Traces of nodes without planes have no topology: these get one, for it has racks.
    """
    require("prometheus")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("fabricmon.sim.node._topology", _topology)
        yield _played(tmp_path_factory)


def _played(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, ...]:
    folder = tmp_path_factory.mktemp("played")
    site, programs = site_of(DEFAULT), find_programs()
    for scenario in SCENARIOS:
        work = folder / f"work-{scenario.name}"
        work.mkdir()
        trial = ScrapedTrial(site, programs, folder / scenario.name)
        trial.run(scenario, 11, work, with_peers=False)
    return tuple(folder / each.name for each in SCENARIOS)


@pytest.fixture(scope="module")
def concluded(folders: tuple[Path, ...]) -> Mapping[str, Conclusion]:
    """Return what the shipped rules make of each."""
    found = conclude_scenes(site_of(DEFAULT), folders, find_programs())
    return {folder.name: each for folder, each in zip(folders, found, strict=True)}


def told(conclusion: Conclusion, alert: str) -> list[dict[str, str]]:
    """Return where an alert was told of."""
    labels = ("node", "leaf", "rail", "rack", "severity")
    return [
        {name: each.firing.label(name) for name in labels if each.firing.label(name)}
        for each in conclusion.heard
        if each.firing.alert.name == alert and each.told is not None
    ]


def test_a_changeover_between_two_scrapes(
    concluded: Mapping[str, Conclusion], folders: tuple[Path, ...]
) -> None:
    """It is told, by what the agents counted meanwhile: no scrape saw enough of it."""
    assert told(concluded["cluster"], "FabricControlChange") == [{"severity": "info"}]
    (seen,) = conclude_scenes(_without_counts(), folders[:1], find_programs())
    assert told(seen, "FabricControlChange") == []


def _without_counts() -> Site:
    """Return a site whose rules ask for more time than there was."""
    options = FleetOptions()
    causes = structs.replace(options.comparisons.causes, interrupted_seconds=1000.0)
    options = structs.replace(
        options, comparisons=structs.replace(options.comparisons, causes=causes)
    )
    return replace(site_of(DEFAULT), options=options, groups=groups(options))


def test_ports_of_a_rack_that_fall_together(
    concluded: Mapping[str, Conclusion],
) -> None:
    """The rack is told once, and none of what its ports tell meanwhile."""
    heard = concluded["rack"].heard
    cause = [{"rack": "rack0", "severity": "warning"}]
    assert told(concluded["rack"], "FabricCommonCause") == cause
    silenced = {each.silenced for each in heard if each.told is None}
    assert silenced == {"what falls with a rack is told with the rack"}
    assert len([each for each in heard if each.told is not None]) == 1


def test_firmware_that_drifted(concluded: Mapping[str, Conclusion]) -> None:
    """The node that differs is told, and no other."""
    odd = told(concluded["cluster"], "FabricFirmwareDrift")
    assert [each["node"] for each in odd] == ["node003"]
