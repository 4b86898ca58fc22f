"""Dashboards: what every one must have, and that their files are fresh."""

import json
from itertools import chain
from pathlib import Path

import pytest
from panel import Board, Look, Panel

from build import BOARDS, FOLDERS, documents
from tests.support.promql import SCRAPER, exported, selectors

PANELS = [
    pytest.param(board, panel, id=f"{board.uid}: {panel.title}")
    for board in BOARDS
    for row in board.rows
    for panel in row.panels
]
ALERT_LABELS = frozenset({"alertname", "alertstate", "notice", "kind", "severity"})


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: path.parent.name)
def test_files_are_fresh(folder: Path) -> None:
    """What is committed, also in the chart, is what the boards make."""
    committed = {path.name: path.read_text("utf-8") for path in folder.glob("*.json")}

    assert committed == documents(), "run `make generate`"


def test_no_two_boards_share_a_name() -> None:
    """Grafana would show one and hide the other."""
    assert len({board.uid for board in BOARDS}) == len(BOARDS)
    assert len({board.title for board in BOARDS}) == len(BOARDS)


@pytest.mark.parametrize(("board", "panel"), PANELS)
def test_a_panel_says_what_it_shows(board: Board, panel: Panel) -> None:
    """Every panel has a title, a sentence, a unit and at least one query."""
    assert panel.title
    assert panel.what.endswith(".")
    assert panel.unit
    assert panel.queries
    assert board.what.endswith(".")


@pytest.mark.parametrize(("board", "panel"), PANELS)
def test_a_panel_reads_series_that_exist(board: Board, panel: Panel) -> None:
    """Every name and label is one that agents, the scraper or rules make."""
    del board
    names = exported()
    for query in panel.queries:
        for selector in selectors(query.expr):
            if selector.name == "ALERTS":
                assert selector.labels <= ALERT_LABELS | SCRAPER
            else:
                assert selector.name in names, selector.name
                assert selector.labels <= names[selector.name] | SCRAPER


@pytest.mark.parametrize(("board", "panel"), PANELS)
def test_a_panel_asks_for_the_chosen_cluster(board: Board, panel: Panel) -> None:
    """No query mixes clusters, and time series have a legend of their own."""
    del board
    for query in panel.queries:
        assert all("cluster" in each.labels for each in selectors(query.expr))
        assert panel.look not in {Look.SERIES, Look.TIMELINE} or query.legend


@pytest.mark.parametrize("name", sorted(documents()))
def test_a_board_is_bound_to_no_data_source(name: str) -> None:
    """Every query and variable uses the data source that is chosen on the board."""
    board = json.loads(documents()[name])
    panels = [panel for panel in board["panels"] if panel["type"] != "row"]
    targets = chain.from_iterable(panel["targets"] for panel in panels)
    variables = board["templating"]["list"]

    assert board["schemaVersion"] >= 41
    assert {target["datasource"]["uid"] for target in targets} == {"${datasource}"}
    assert variables[0]["type"] == "datasource"
    assert all(each["datasource"]["uid"] == "${datasource}" for each in variables[1:])


@pytest.mark.parametrize("name", sorted(documents()))
def test_panels_of_a_board_do_not_overlap(name: str) -> None:
    """Each panel has its place on the grid of 24 columns."""
    board = json.loads(documents()[name])
    taken: set[tuple[int, int]] = set()
    for panel in board["panels"]:
        at = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(at["x"], at["x"] + at["w"])
            for y in range(at["y"], at["y"] + at["h"])
        }
        assert at["x"] + at["w"] <= 24
        assert taken.isdisjoint(cells), panel["title"]
        taken |= cells
