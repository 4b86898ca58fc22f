"""``fabricmon score FOLDER FINDINGS...``: how right the findings of a fleet are."""

from __future__ import annotations

import argparse
from itertools import chain
from pathlib import Path

import msgspec

from fabricmon.sim.score import Mistake, RunScore, score
from fabricmon.sim.score_files import read_findings, read_fleet, read_truth
from fabricmon.sim.score_summary import Summary, summarize
from fabricmon.sim.score_tables import percent, seconds, table

SCHEMA = "fabricmon.score/1"


class ScoreDocument(msgspec.Struct, frozen=True, kw_only=True):
    """``--format json``: the score of the run, and its measures."""

    schema: str = SCHEMA
    passed: bool
    run: RunScore
    summary: Summary


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.epilog = "exit status: 0 whatever the score; JSON has it as `passed`"
    parser.add_argument(
        "folder", type=Path, metavar="FOLDER", help="simulated fleet with its truth"
    )
    parser.add_argument(
        "findings",
        type=Path,
        nargs="+",
        metavar="FINDINGS",
        help="what `fabricmon replay --fleet FOLDER --findings` wrote",
    )
    parser.add_argument(
        "--format",
        choices=("text", "json"),
        default="text",
        help="for people or for programs (default text)",
    )
    parser.add_argument(
        "--with-shadow",
        action="store_true",
        help="count kinds in shadow as if they were on",
    )


def run(options: argparse.Namespace) -> int:
    """Print the score of one run; the exit status says nothing of it."""
    truth, fleet = read_truth(options.folder), read_fleet(options.folder)
    records = chain.from_iterable(map(read_findings, options.findings))
    result = score(truth, fleet, records, with_shadow=options.with_shadow)
    summary = summarize([result])
    if options.format == "json":
        document = ScoreDocument(passed=result.passed, run=result, summary=summary)
        print(msgspec.json.encode(document).decode())
    else:
        print(_text(result, summary))
    return 0


def _text(result: RunScore, summary: Summary) -> str:
    parts = [
        f"{result.scenario}, seed {result.seed}: {result.node_days:.3g} node-days",
        _faults(result) if result.answers else _negative(result),
        *(f"{name}: {value}" for name, value in _measures(result, summary)),
        *map(_mistake, (*result.false, *result.blames, *result.breaches, *result.loud)),
    ]
    return "\n".join(parts)


def _faults(result: RunScore) -> str:
    head = ("fault", "place", "onset s", "outcome", "after s", "kind", "evidence")
    named = {True: "named", False: "other", None: "-"}
    return table(
        head,
        [
            (
                answer.fault,
                answer.place,
                seconds(answer.onset),
                answer.outcome.value,
                seconds(answer.seconds),
                answer.kind or "-",
                named[answer.evidence],
            )
            for answer in result.answers
        ],
    )


def _negative(result: RunScore) -> str:
    if not result.negative:
        return "no fault"
    return f"negative: {'passed' if result.passed else 'NOT passed'}"


def _measures(result: RunScore, summary: Summary) -> tuple[tuple[str, str], ...]:
    economy = "-" if summary.economy is None else f"{summary.economy:.1f}"
    return (
        ("recall, local evidence", percent(summary.local.found)),
        ("recall, by vote", percent(summary.vote.found)),
        ("not to be seen", str(summary.every.hidden)),
        ("actionable precision", percent(summary.precision)),
        ("victims blamed", str(len(result.blames)) if result.has_victims else "-"),
        ("false pages, tickets", f"{result.false_pages}, {result.false_tickets}"),
        ("findings per incident", economy),
    )


def _mistake(each: Mistake) -> str:
    return f"{each.what}: {each.kind} on {each.place} at {each.t:.0f} s"
