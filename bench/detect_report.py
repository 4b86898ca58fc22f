"""The detection tables and plots, written into the documentation."""

from __future__ import annotations

import os
import platform
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from detect_amiss import missed, sensitivity, unheard
from detect_runs import Done
from detect_scores import MAGNITUDES, Report
from markers import replace_between

from fabricmon.fleet.trial import JUDGE, STRICT
from fabricmon.kinds import BY_SLUG
from fabricmon.sim.baselines import NAMES
from fabricmon.sim.faults import FAULTS
from fabricmon.sim.faults.row import Known
from fabricmon.sim.score import Outcome
from fabricmon.sim.score_summary import Summary, summarize
from fabricmon.sim.score_tables import (
    blame_table,
    classes_table,
    confusion_table,
    judges_table,
    percent,
    seconds,
    table,
)
from fabricmon.trial import OWN

NAME = "bench-detect"
_PLOT_SIZE = (9.0, 3.2)  # inches: as wide as a page of the documentation
_BARS_OF = (OWN, "nvsentinel", "gpud")  # more bars a class cannot be told apart


def write(report: Report, document: Path, plots: Path) -> None:
    """Write tables between the document's markers, and the plots."""
    replace_between(document, NAME, text(report, plots))


def text(report: Report, plots: Path) -> str:
    """Return everything that stands between the markers; draws the plots."""
    fleet = () if report.allowance is None else (JUDGE, STRICT)
    judges = {name: report.summary(name) for name in (OWN, *fleet, *NAMES)}
    parts = [
        _preamble(report),
        "### Beside the peers' rules",
        judges_table(judges),
        _JUDGES_NOTE,
        *_fleet(report, judges),
        "### By class",
        classes_table({name: judges[name] for name in (OWN, *NAMES)}, OWN),
        _classes_note(report, judges[OWN]),
        *_plots(report, judges, plots),
        "### What is taken for what",
        confusion_table(judges[OWN]),
        "### Victims blamed, by class, where anybody blamed one",
        blame_table(judges),
        "### Negatives that were not silent",
        _negatives(report, judges[OWN]),
        "### Missed and late, by scenario",
        missed(report),
        *unheard(report),
        "### Half and double magnitudes",
        sensitivity(report),
        "### Scenarios by somebody who has not read the detectors",
        _outside(report),
        _problems(report),
    ]
    return "\n\n".join(part for part in parts if part)


_JUDGES_NOTE = (
    "The peers' rows are rules written from their published numbers, run on the same "
    "files at their own poll periods, watching the fabric's ports only. Their words "
    "are fewer than ours: any kind of the right group counts as their answer. False "
    "pages are those of scenarios without a fault; findings per incident are counted "
    "where anything was said."
)

_CLASSES_NOTE = (
    "`visible` counts faults whose signature the agent may read, `hidden` the others: "
    "there only silence is right, and they are no misses."
)


def _fleet(report: Report, judges: dict[str, Summary]) -> Sequence[str]:
    """Return what the fleet's rules are worth beside the agents alone."""
    if report.allowance is None:
        return ()
    trio = {name: judges[name] for name in (JUDGE, STRICT, OWN)}
    negatives = judges[JUDGE].failed_negatives
    said = table(
        ("scenario without a fault", "failed", "told"),
        [
            (name, f"{share.hits}/{share.total}", ", ".join(_loud(report, name)))
            for name, share in negatives.items()
        ],
    )
    return (
        "### The fleet's rules",
        _FLEET_NOTE.format(allowance=report.allowance),
        fleet_table(trio),
        said if negatives else "No scenario without a fault was loud.",
    )


def fleet_table(judges: dict[str, Summary]) -> str:
    """Return one row for each class, and one for all negatives."""
    rows = []
    for fault in sorted({name for each in judges.values() for name in each.by_class}):
        found = [each.by_class.get(fault) for each in judges.values()]
        medians = [seconds(each.median if each else None) for each in found]
        shares = [percent(each.found if each else None) for each in found]
        rows.append((fault, *shares, *medians))
    passed = [percent(each.negatives) for each in judges.values()]
    rows.append(("negatives", *passed, *("-" for _ in judges)))
    head = ("class", *judges, *(f"median s, {name}" for name in judges))
    return table(head, rows)


_FLEET_NOTE = (
    "What a person hears: alerts after `for`, `keep_firing_for`, the wait of their "
    "group and inhibition, evaluated on a real Prometheus over the metrics of all "
    "nodes. Deadlines of the truth count from when the signature is complete on the "
    "node; the rules are given {allowance:.0f} s more (a scrape, an evaluation and the "
    "wait of the group: counted from when the engine could know and tell), and are "
    "shown without it as well. The last column is the agents alone."
    " Alerts give the series of a rule as evidence, no counter of a port: none of theirs "
    "counts as evidence named."
)


def _loud(report: Report, scenario: str) -> list[str]:
    return sorted(
        {
            each.kind
            for run in report.scores(JUDGE)
            if run.scenario == scenario
            for each in (*run.loud, *run.breaches)
        }
    )


def _preamble(report: Report) -> str:
    runs = report.scores(OWN)
    nodes = sum(each.node_days for each in runs)
    seeds = sorted({run.seed for run in runs})
    span = f"{seeds[0]} to {seeds[-1]}" if seeds else "none"
    pace = _pace(report.done)
    return (
        f"Of {datetime.now(UTC):%Y-%m-%d}, {_machine()}: `{report.command}`. "
        f"{len({run.scenario for run in runs})} scenarios, {len(runs)} runs "
        f"({nodes:.1f} node-days), seeds {span}; detectors are tuned on seeds 0 to 99 "
        f"only.{pace}\n\n"
        "**All accuracy here is from simulation.** The signatures of the fault "
        "classes come from documents and arithmetic where there are any; at least "
        "one magnitude is an engineering estimate, not measured on hardware, in "
        f"{', '.join(_estimated())}."
    )


def _pace(done: Iterable[Done]) -> str:
    trials = [each.trial for each in done if each.trial is not None]
    lived = sum(each.node_seconds for each in trials)
    simulated = sum(each.simulate_seconds for each in trials)
    replayed = sum(each.replay_seconds for each in trials)
    if not simulated or not replayed:
        return ""
    return (
        f" A node was simulated {lived / simulated:,.0f} times and replayed "
        f"{lived / replayed:,.0f} times as fast as real time, on one processor."
    )


def _estimated() -> list[str]:
    return sorted(
        row.id
        for row in FAULTS
        if not row.is_negative
        and any(each.known is Known.ESTIMATE for each in row.parameters)
    )


def _classes_note(report: Report, own: Summary) -> str:
    hidden = sorted(
        {
            f"{answer.fault} in {run.scenario}"
            for run in report.scores(OWN)
            for answer in run.answers
            if answer.outcome in {Outcome.ABSTAINED, Outcome.GUESSED}
        }
    )
    blind = [
        f"{row.id} ({', '.join(row.accept)})"
        for row in FAULTS
        if row.id in own.by_class and not any(kind in BY_SLUG for kind in row.accept)
    ]
    parts = [_CLASSES_NOTE]
    if hidden:
        parts.append(f"Undetectable under their mask: {', '.join(hidden)}.")
    if blind:
        parts.append(
            "No detector has been written yet for what answers "
            f"{', '.join(blind)}: these are misses."
        )
    return "\n\n".join(parts)


def _negatives(report: Report, own: Summary) -> str:
    if not own.failed_negatives:
        return f"None: {percent(own.negatives)}."
    said: defaultdict[str, set[str]] = defaultdict(set)
    for run in report.scores(OWN):
        for each in (*run.loud, *run.breaches):
            said[run.scenario].add(each.kind)
    return table(
        ("scenario", "failed", "said"),
        [
            (name, f"{share.hits}/{share.total}", ", ".join(sorted(said[name])))
            for name, share in own.failed_negatives.items()
        ],
    )


def _outside(report: Report) -> str:
    own = {
        "written beside the detectors": report.summary(OWN, outside=False),
        "written by others": report.summary(OWN, outside=True),
    }
    if not own["written by others"].runs:
        return "None yet."
    return table(
        ("scenarios", "recall, local", "by vote", "precision", "negatives", "p95 s"),
        [
            (
                name,
                percent(each.local.found),
                percent(each.vote.found),
                percent(each.precision),
                percent(each.negatives),
                seconds(each.every.p95),
            )
            for name, each in own.items()
        ],
    )


def _problems(report: Report) -> str:
    failed = sorted(
        f"- {each.task.text}: {each.problem}" for each in report.done if each.problem
    )
    return "\n".join(("Runs that could not be made:", *failed)) if failed else ""


def _plots(report: Report, judges: dict[str, Summary], folder: Path) -> Sequence[str]:
    import matplotlib as mpl  # noqa: PLC0415 - needed for plots only

    mpl.use("svg")
    mpl.rcParams |= {"svg.hashsalt": NAME, "svg.fonttype": "none", "font.size": 8}
    folder.mkdir(parents=True, exist_ok=True)
    recall = {name: _recalls(judges[name]) for name in _BARS_OF}
    _bars(folder / "detect-recall.svg", recall, "recall by class")
    scales = {
        MAGNITUDES[each]: _recalls(summarize(scores))
        for each, scores in report.at_magnitudes.items()
        if scores
    }
    images = [f"![Recall by class]({folder.name}/detect-recall.svg)"]
    if len(scales) > 1:
        name = "detect-magnitudes.svg"
        _bars(folder / name, scales, "recall at other magnitudes")
        images.append(f"![Recall at half and double magnitudes]({folder.name}/{name})")
    return images


def _recalls(summary: Summary) -> dict[str, float]:
    return {
        fault: each.found.value
        for fault, each in summary.by_class.items()
        if each.found.value is not None
    }


def _bars(path: Path, series: dict[str, dict[str, float]], title: str) -> None:
    import matplotlib.pyplot as plt  # noqa: PLC0415 - needed for plots only

    classes = sorted({name for values in series.values() for name in values})
    figure, axes = plt.subplots(figsize=_PLOT_SIZE, layout="constrained")
    width = 0.8 / len(series)
    for number, (name, values) in enumerate(series.items()):
        places = [place + number * width for place in range(len(classes))]
        axes.bar(places, [values.get(each, 0) for each in classes], width, label=name)
    middle = 0.4 - width / 2
    axes.set_xticks([place + middle for place in range(len(classes))], classes)
    axes.tick_params(axis="x", rotation=90)
    axes.set_ylim(0, 1.02)
    axes.set_title(title, loc="left")
    axes.legend(
        loc="lower right", bbox_to_anchor=(1, 1), ncols=len(series), frameon=False
    )
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


def _machine() -> str:
    processors = len(os.sched_getaffinity(0))
    version = platform.python_version()
    return f"{processors} processors ({_processor()}), CPython {version}"


def _processor() -> str:
    info = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    found = re.search(r"^model name\s*:\s*(.+)$", info, re.MULTILINE)
    return found[1] if found else platform.machine()
