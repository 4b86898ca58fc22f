from __future__ import annotations

import msgspec
import pytest

from fabricmon.sim.score import RunScore
from fabricmon.sim.score_summary import Share, summarize
from fabricmon.sim.score_tables import (
    blame_table,
    classes_table,
    confusion_table,
    judges_table,
    percent,
    rate,
    table,
)
from fabricmon.sim.truth import Forbidden, Place
from tests.sim.scoring import fault, run, suffering, told, truth

PEACE = truth(negative=True, scenario="n20-idle")


def test_recall() -> None:
    """By class and in groups; what is hidden is no miss."""
    runs = [
        run(fault(), told(304)),
        run(fault(), told(312)),
        run(fault()),
        run(fault(visible=False)),
        run(fault(fault="F39", accept=("peer_suspect",), by_vote=True)),
    ]
    summary = summarize(runs)
    downs = summary.by_class["F10"]
    assert (downs.found, downs.hidden) == (Share(2, 3), 1)
    assert (downs.median, downs.p95) == (4, 12)
    assert summary.local.found == Share(2, 3)
    assert summary.vote.found == Share(0, 1)


def test_late_is_no_find() -> None:
    """Late answers are counted as such and have no part in the times."""
    downs = summarize([run(fault(), told(400))]).by_class["F10"]
    assert (downs.found, downs.late, downs.median) == (Share(0, 1), 1, None)


def test_explained() -> None:
    """Of the finds whose cause has known signals."""
    runs = [run(fault(), told(310)), run(fault(), told(310, "rate"))]
    assert summarize(runs).every.explained == Share(1, 2)


def test_precision_and_blame() -> None:
    """Precision goes by findings, blame by runs that have victims."""
    victim = Place(node="node01")
    wrong = told(320, subject={"node": "node01"})
    other = told(321, subject={"node": "node01", "device": "mlx5_2"})
    runs = [
        run(suffering(victim), told(310), wrong, other),
        run(suffering(victim), told(310)),
        run(fault(), told(310)),
    ]
    summary = summarize(runs)
    assert summary.precision == Share(3, 5)
    assert summary.blame == Share(1, 2)
    assert summary.blame_by_class == {"F10": Share(1, 2)}


def test_negatives() -> None:
    """Silent ones pass; those that fail are named."""
    summary = summarize([run(PEACE), run(PEACE, told(100))])
    assert summary.negatives == Share(1, 2)
    assert summary.failed_negatives == {"n20-idle": Share(1, 2)}


def test_false_pages() -> None:
    """Per 1,000 node-days of life without a fault, with the bound."""
    day = truth(negative=True, duration=43200)  # of two nodes: one node-day
    summary = summarize([run(day), run(day, told(100)), run(fault(), told(1))])
    assert summary.pages.count == 1
    assert summary.pages.node_days == 2
    assert summary.pages.value == 500
    assert summary.pages.upper == pytest.approx(4743.9 / 2, rel=1e-3)


def test_economy() -> None:
    """Only where something was said: silence is no economy."""
    many = [told(310 + n, id=str(n)) for n in range(4)]
    assert summarize([run(fault(), *many), run(fault())]).economy == 4


def test_confusion() -> None:
    """True groups against what was said, with a row for peace."""
    runs = [
        run(fault(), told(310)),
        run(fault(), told(310, kind="link_errors")),
        run(fault()),
        run(fault(visible=False)),
        run(PEACE),
        run(PEACE, told(100, kind="pcie_errors")),
    ]
    assert summarize(runs).confusion == {
        "flap/down": {"flap/down": 1, "link": 1, "nothing": 1},
        "nothing": {"nothing": 1, "pcie": 1},
    }


def test_kept_and_read_again() -> None:
    """A score survives the file that it is kept in."""
    score = run(suffering(Place(node="node01")), told(310), told(20))
    kept = msgspec.json.encode(score)
    assert msgspec.json.decode(kept, type=RunScore) == score


def test_tables() -> None:
    """Every table says what was counted."""
    blame = told(320, subject={"node": "node01"})
    runs = [run(suffering(Place(node="node01")), told(310), blame), run(PEACE)]
    summaries = {"fabricmon": summarize(runs), "other": summarize([])}
    judges = judges_table(summaries).splitlines()
    assert judges[2].startswith("| fabricmon | 100 % (1/1)")
    assert "| F10" in classes_table(summaries, "fabricmon")
    assert "| F10   | 1/1       | -     |" in blame_table(summaries)
    assert confusion_table(summaries["fabricmon"]).count("\n") == 3


def test_table() -> None:
    """Columns are as wide as their widest cell; a bar in a text ends no cell."""
    assert table(("a", "b"), [("x|y", "z")]) == (
        "| a    | b |\n|------|---|\n| x\\|y | z |"
    )


def test_nothing_to_count() -> None:
    """What was not measured is a dash, not a zero."""
    summary = summarize([])
    assert percent(summary.precision) == "-"
    assert rate(summary.pages) == "-"
    assert summary.economy is None


def test_a_negative_that_may_warn() -> None:
    """A run without a fault that is not silent passes while no rule is broken."""
    warns = truth(scenario="n26", forbid=(Forbidden(actionable=True),))
    warning = told(100, severity="warning", action="none", role="victim")
    summary = summarize([run(warns, warning), run(warns, told(100))])
    assert summary.negatives == Share(1, 2)
    assert summary.confusion == {"nothing": {"nothing": 1, "flap/down": 1}}
