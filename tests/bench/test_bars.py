"""The table of bars says what was found, and keeps what took long to find."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

BENCH = Path(__file__).parents[2] / "bench"
DETECTION = """\
Of 2026-01-05, commit 0123abc: what was run.

| judge     | recall, local evidence | recall, by vote | actionable precision | victim blame | negatives passed | findings per incident |
|-----------|------------------------|-----------------|----------------------|--------------|------------------|-----------------------|
| fabricmon | 96 % (131/136)         | 85 % (17/20)    | 61 % (138/226)       | 0 % (0/167)  | 100 % (90/90)    | 2.6                   |
| gpud      | 17 % (23/136)          | 0 % (0/29)      | 19 % (125/645)       | 8 % (13/167) | 86 % (77/90)     | 4.3                   |

| class | found |
|-------|-------|
| F01   | 10    |
"""


@pytest.fixture(autouse=True)
def beside(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let scripts be imported, which are beside the package and not in it."""
    monkeypatch.syspath_prepend(str(BENCH))


def module(name: str) -> Any:
    """Return a script."""
    return __import__(name)


def document(folder: Path, **blocks: str) -> Path:
    """Write a document with these blocks between their markers."""
    path = folder / "benchmarks.md"
    parts = (
        f"<!-- {name}:begin -->\n{text}<!-- {name}:end -->\n"
        for name, text in blocks.items()
    )
    path.write_text("# Benchmarks\n\n" + "\n".join(parts), "utf-8")
    return path


def test_a_table_of_bars_can_be_read_again() -> None:
    """What took long is kept from one run to the next with its date and load."""
    bars = module("bars")
    row = bars.Row(
        "memory: 45 MiB", "44.1 MiB", bars.YES, "make x", "0.1", "2026-01-05"
    )
    assert bars.read("\n".join(bars.render([row]))) == {row.bar: row}


def test_a_figure_cannot_break_the_table() -> None:
    """A bar in a figure would be another column."""
    bars = module("bars")
    row = bars.Row("memory", "a | b\nc", bars.YES, "make x")
    assert bars.read("\n".join(bars.render([row])))["memory"].figure == "a / b c"


def test_detection_is_judged_from_what_the_last_run_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of its bars is met or not by its own cell, and says when and of what."""
    long = module("bars_long")
    path = document(tmp_path, **{"bench-detect": DETECTION})
    monkeypatch.setattr(long, "DOCUMENT", path)
    monkeypatch.setattr(long, "FULL", False)
    rows = {row.bar.partition(":")[0]: row for row in long.detection({})}
    met = {name: row.met == "yes" for name, row in rows.items()}
    assert met == {
        "recall with local evidence": True,
        "recall by vote": True,
        "precision of what is to be acted on": False,
        "hard negatives that stay silent": True,
        "victims blamed": True,
        "findings per incident": True,
        "the peers' rules on the same traces": True,
    }
    assert {row.measured for row in rows.values()} == {"2026-01-05, commit 0123abc"}


def test_a_bar_that_was_never_measured_is_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is claimed where nothing was left behind."""
    long = module("bars_long")
    monkeypatch.setattr(long, "DOCUMENT", document(tmp_path))
    monkeypatch.setattr(long, "FULL", False)
    rows = [*long.detection({}), *long.healthy({}), *long.fleet_rules({})]
    assert {(row.met, row.measured) for row in rows} == {("open", "never")}


def test_too_few_days_do_not_show_that_false_pages_are_rare(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No page in ten days leaves the bar open: its upper bound is far above."""
    long = module("bars_long")
    text = "| life | node-days | pages |\n|---|---|---|\n| full | 10.0 | {} |\n"
    monkeypatch.setattr(long, "FULL", False)
    verdicts = []
    for pages in ("0 (below 300)", "0 (below 0.04)", "0.2 (below 0.3)"):
        blocks = {"bench-healthy": text.format(pages)}
        monkeypatch.setattr(long, "DOCUMENT", document(tmp_path, **blocks))
        verdicts += [row.met for row in long.healthy({})]
    assert verdicts == ["open", "yes", "**no**"]


def test_only_reads_within_a_burst_window_count_to_it() -> None:
    """A window is a run of close steps; start-up and what lies between do not count."""
    firmware = module("bench_firmware")
    counts = firmware.Counts(600)
    counts.steps = [(10.0, 0), (10.2, 500), (11.0, 500), (90.0, 1000)]
    counts.steps += [(90.2, 1030), (90.4, 1060), (95.0, 2000)]
    assert counts.windows() == [60 / 3]


def test_the_ratio_is_of_cpu_a_value_minute_by_minute() -> None:
    """Twice the values for the same time are half the cost."""
    beside = module("side_by_side")
    ours = beside.Cost("fabricmon", 0.1, values=200, scraped=[4.0, 8.0])
    other = beside.Cost("peer", 0.1, values=100, scraped=[4.0, 4.0])
    done = beside.Comparison(beside.Size(8), (ours, other), (0.0, 0.0))
    assert done.ratios(other) == [0.5, 1.0]


def test_virtual_functions_of_the_node_are_seen_as_such(tmp_path: Path) -> None:
    """Else "folded" would be measured on ports that are not folded."""
    tree, hurried = module("tree"), module("hurried")
    series = []
    for functions in (0, 3):
        root = tmp_path / str(functions)
        tree.Node(root, devices=2, functions=functions)
        agent = hurried.HurriedAgent(root, {})
        agent.play(60)
        series.append(agent.scrape().decode().splitlines())
    assert not any("mlx5_1v3" in line for line in series[1])
    count = "fabricmon_infiniband_virtual_functions{"
    assert sum(float(s.split()[-1]) for s in series[1] if s.startswith(count)) == 6


@pytest.mark.slow
def test_what_is_measured_is_loaded_without_tools_of_development(
    tmp_path: Path,
) -> None:
    """Only what the package needs can be imported; the package can."""
    python = module("programs").shipped_python(tmp_path)
    for name, status in (("fabricmon.cli.run", 0), ("pytest", 1)):
        done = subprocess.run(
            [python, "-I", "-c", f"import {name}"], capture_output=True, check=False
        )
        assert done.returncode == status, name
