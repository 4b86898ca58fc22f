"""Rules on a real Prometheus, over two fleets whose metrics were made by hand."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from fabricmon.errors import AbsentError, ConfigError, HostError
from fabricmon.fleet import programs as own_programs
from fabricmon.fleet.alert_life import Life
from fabricmon.fleet.engine import Fleet, Rhythm, Run, evaluate, spans_of
from fabricmon.fleet.firing import Firing
from fabricmon.fleet.programs import Programs, find_programs
from fabricmon.fleet.queries import Span
from fabricmon.fleet.rule import Alert, Group, Label, Notice, Recording
from tests.support.programs import require

START = 1767600000
ODD = 'b "\\'
"""A name that has to be quoted wherever it goes."""

pytestmark = pytest.mark.server


def alert(name: str, expr: str, **more: float) -> Alert:
    """Return an alert that says its node and its value."""
    return Alert(
        name=name,
        kind="port_down",
        expr=expr,
        notice=Notice.TICKET,
        summary='{{ $labels.node }} has {{ $value | humanize }} <"&'
        '{{ with $labels.none }}never{{ end }} {{ printf "%.1f" $value }}',
        description="",
        is_not="",
        labels=(Label("severity", "warning"),),
        **more,  # type: ignore[arg-type]
    )


RULES = (
    Recording("node:x:sum", "sum by (cluster, node) (x)", ""),
    Recording("cluster:x:sum", "sum by (cluster) (node:x:sum)", "", level=2),
    Recording("cluster:x:double", "2 * cluster:x:sum", "", level=3),
    alert("High", "x > 4", for_seconds=30, keep_seconds=60),
    alert("There", "x"),
    alert("Recorded", "node:x:sum > 4"),
    alert("Deep", "cluster:x:double > 10"),
    alert("Down", "up == 0"),
    alert("Nowhere", "absent(y)"),
)
SLOW_RULES = (
    Recording("node:x:seen", "max by (cluster, node) (x)", ""),
    Recording("node:x:counted", "max by (cluster, node) (x)", ""),
    alert("Rare", "x > 4", for_seconds=60),
    alert("Many", "count_over_time(node:x:counted[2m]) > 2"),
)
GROUPS = (
    Group("g", 15, (*RULES, alert("Held", "node:x:seen > 4"))),
    Group("slow", 60, SLOW_RULES),
)


def series(name: str, values: Iterable[float | None], begin: int, **labels: str) -> str:
    """Return samples every 15 s, 7 s after the minute's quarters; None is no sample."""
    quoted = {key: json.dumps(value) for key, value in labels.items()}
    text = ",".join(f"{key}={value}" for key, value in quoted.items())
    return "".join(
        f"{name}{{{text}}} {value} {begin + 7 + 15 * number}.000\n"
        for number, value in enumerate(values)
        if value is not None
    )


def fleet(
    folder: Path, cluster: str, begin: int, *parts: str, count: int = 20
) -> Fleet:
    """Write a fleet's metrics."""
    path = folder / f"{cluster}.om"
    path.write_text("# TYPE x gauge\n" + "".join(parts) + "# EOF\n")
    return Fleet(cluster, path, begin, begin + 15 * count)


@pytest.fixture(scope="module")
def programs() -> Programs:
    """Return the real programs."""
    require("prometheus")
    return find_programs()


@pytest.fixture(scope="module")
def run(programs: Programs, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Evaluate the rules once: two fleets at one time, one two days later."""
    folder = tmp_path_factory.mktemp("fleets")
    high = [0] * 4 + [5] * 6 + [0] * 10
    gone = [5] * 6 + [None] * 4 + [5] * 10
    one = fleet(
        folder,
        "one",
        START,
        series("x", high, START, cluster="one", node="a"),
        series("x", gone, START, cluster="one", node=ODD),
        series("up", [1] * 10 + [0] * 10, START, cluster="one", node="a"),
    )
    two = fleet(
        folder,
        "two",
        START,
        series("x", [9] * 30, START, cluster="two", node="a"),
        count=10,
    )
    later = START + 2 * 86400
    three = fleet(
        folder,
        "three",
        later,
        series("x", [6] * 20, later, cluster="three", node="a"),
    )
    return evaluate([one, two, three], GROUPS, Rhythm(15, 15), programs)


def of(run: Run, cluster: str, name: str, **labels: str) -> list[Firing]:
    """Return when an alert fired in a fleet."""
    return [
        firing
        for evaluation in run.evaluations
        if evaluation.fleet.cluster == cluster
        for firing in evaluation.firings
        if firing.alert.name == name
        and all(firing.label(key) == value for key, value in labels.items())
    ]


def times(firings: Iterable[Firing]) -> list[tuple[float, float | None]]:
    """Return beginnings and ends in seconds of the fleet."""
    return [
        (f.life.fired - START, None if f.life.ended is None else f.life.ended - START)
        for f in firings
    ]


def test_for_and_keep(run: Run) -> None:
    """Seen at the evaluation after the scrape, held for two, kept for four."""
    # Scraped at 67 to 142 s; it holds at evaluations 75 to 150.
    assert times(of(run, "one", "High", node="a")) == [(105, 225)]


def test_series_ends_when_it_is_not_scraped(run: Run) -> None:
    """As with a staleness marker, not five minutes later."""
    # Scraped until 82 s, then from 157 s on.
    found = of(run, "one", "There", node=ODD)
    assert times(found) == [(15, 105), (165, None)]


def test_recording_ends_with_its_series(run: Run) -> None:
    """A rule that reads a recording sees no sample of an evaluation before."""
    found = of(run, "one", "Recorded", node=ODD)
    assert times(found) == [(15, 105), (165, None)]


def test_a_slow_group_sees_its_own_evaluations(run: Run) -> None:
    """What holds between two of them it never sees, and ``for`` begins at one."""
    # High from 67 to 142 s: it is seen at 120 s only.
    assert times(of(run, "one", "Rare", node="a")) == []
    # There at 60 s, gone at 120 s, there at 180 s and since.
    assert times(of(run, "one", "Rare", node=ODD)) == [(240, None)]


def test_what_a_slow_group_records_is_held(run: Run) -> None:
    """Who is evaluated more often reads it until the next evaluation."""
    assert times(of(run, "one", "Held", node="a")) == [(120, 180)]


def test_what_a_slow_group_records_is_counted_once(run: Run) -> None:
    """A range of samples has one for each evaluation of the group."""
    assert times(of(run, "one", "Many", node="a")) == [(180, None)]


def test_levels(run: Run) -> None:
    """A recording reads those of the level below, an alert reads all."""
    # 2 * (5 + 5) while both hold: from 75 s on to the gap at 105 s.
    assert times(of(run, "one", "Deep")) == [(75, 105)]
    (deep,) = of(run, "two", "Deep")
    assert deep.life.value == 18


def test_fleet_is_not_evaluated_beyond_its_end(run: Run) -> None:
    """What is there in another at that time is nothing to it."""
    (there,) = of(run, "two", "There")
    assert there.life == Life(START + 15, START + 15, None, 9)


def test_fleets_of_other_times(run: Run) -> None:
    """Spans far apart are evaluated, what lies between is not."""
    later = START + 2 * 86400
    (there,) = of(run, "three", "There")
    assert (there.life.fired, there.life.ended) == (later + 15, None)


def test_labels(run: Run) -> None:
    """The expression's, the rule's, and the alert's name; empty ones are none."""
    down = of(run, "one", "Down")[0]
    assert {each.name: each.value for each in down.labels} == {
        "alertname": "Down",
        "cluster": "one",
        "kind": "port_down",
        "node": "a",
        "notice": "ticket",
        "severity": "warning",
    }


def test_summary_is_rendered(run: Run) -> None:
    """By Prometheus, with the value when it fired, and nothing escaped."""
    assert of(run, "one", "High", node="a")[0].summary == 'a has 5 <"& 5.0'
    assert of(run, "one", "There", node=ODD)[0].summary.startswith(f"{ODD} has 5")


def test_alert_that_names_no_fleet(run: Run) -> None:
    """It is told, and in nobody's account."""
    assert run.stray == ("Nowhere",)


def test_one_fleet_needs_no_name(programs: Programs, tmp_path: Path) -> None:
    """Where there is one only, everything is about it."""
    one = fleet(tmp_path, "one", START, series("x", [1] * 5, START, node="a"), count=5)
    groups = (Group("g", 15, (alert("Nowhere", "absent(y)"),)),)
    found = evaluate([one], groups, Rhythm(), programs)
    assert not found.stray
    assert times(of(found, "one", "Nowhere")) == [(0, None)]


def test_data_is_kept(programs: Programs, tmp_path: Path) -> None:
    """A folder in which promtool finds the blocks, recordings too."""
    one = fleet(tmp_path, "one", START, series("x", [1] * 5, START, node="a"), count=5)
    evaluate([one], GROUPS[:1], Rhythm(), programs, tmp_path / "data")
    command = [programs.promtool, "tsdb", "dump", str(tmp_path / "data")]
    dump = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert '"node:x:sum"' in dump


def test_two_values_at_a_time(programs: Programs, tmp_path: Path) -> None:
    """It would fail on site too: the rule is named."""
    one = fleet(
        tmp_path,
        "one",
        START,
        series("x", [1] * 5, START, node="a"),
        series("z", [1] * 5, START, node="a"),
        count=5,
    )
    groups = (Group("g", 15, (alert("Twice", '{__name__=~"x|z"}'),)),)
    with pytest.raises(ConfigError, match="Twice"):
        evaluate([one], groups, Rhythm(), programs)


def test_rule_that_is_none(programs: Programs, tmp_path: Path) -> None:
    """The expression and what Prometheus says of it."""
    one = fleet(tmp_path, "one", START, series("x", [1] * 5, START, node="a"), count=5)
    groups = (Group("g", 15, (alert("Wrong", "sum by ("),)),)
    with pytest.raises(HostError, match=r"sum by \(.*parse error"):
        evaluate([one], groups, Rhythm(), programs)
    assert not children()


def test_text_that_is_no_openmetrics(programs: Programs, tmp_path: Path) -> None:
    """The file and what promtool says of it."""
    path = tmp_path / "bad.om"
    path.write_text("x{ 1\n# EOF\n")
    with pytest.raises(HostError, match=r"bad\.om"):
        evaluate([Fleet("c", path, START, START + 60)], (), Rhythm(), programs)


def test_interrupted(
    programs: Programs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No Prometheus is left behind by who presses Ctrl-C."""
    one = fleet(tmp_path, "one", START, series("x", [1] * 5, START, node="a"), count=5)

    def interrupt(*_: object) -> Iterator[Firing]:
        assert children()
        raise KeyboardInterrupt

    monkeypatch.setattr("fabricmon.fleet.engine.lives", interrupt)
    with pytest.raises(KeyboardInterrupt):
        evaluate([one], GROUPS, Rhythm(), programs)
    assert not children()


def children() -> list[str]:
    """Return the Prometheus processes that this one has started."""
    found = subprocess.run(
        ["ps", "-o", "comm=", "--ppid", str(os.getpid())],
        capture_output=True,
        text=True,
        check=False,
    )
    return [name for name in found.stdout.split() if "prom" in name]


def test_program_that_ends_at_once(programs: Programs, tmp_path: Path) -> None:
    """What it said is in the error."""
    data = tmp_path / "data"
    data.write_text("a file, no folder")
    config = tmp_path / "p.yml"
    config.write_text("{}")
    running = own_programs.prometheus(programs, data, config, 15, tmp_path)
    with pytest.raises(HostError, match=r"prometheus ended with"), running:
        pass


def test_programs_that_are_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """The package that brings them is named."""
    monkeypatch.setattr("fabricmon.fleet.programs.shutil.which", lambda *_, **__: None)
    with pytest.raises(AbsentError, match=r"prometheus and promtool.*apt-get install"):
        find_programs()


def test_spans_are_joined_where_they_overlap() -> None:
    """On whole steps, in order."""
    fleets = [
        Fleet(str(begin), Path(), begin, end)
        for begin, end in ((100, 200), (20, 61), (10, 50), (500, 503))
    ]
    assert spans_of(fleets, 15) == (Span(15, 60), Span(105, 195))
