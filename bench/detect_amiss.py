"""Tables of what was missed or late, and of what is lost at other magnitudes."""

from __future__ import annotations

from collections.abc import Sequence

from detect_scores import MAGNITUDES, Report

from fabricmon.fleet.trial import JUDGE
from fabricmon.sim.score import Outcome
from fabricmon.sim.score_summary import summarize
from fabricmon.sim.score_tables import percent, seconds, table
from fabricmon.trial import OWN

_AMISS = frozenset({Outcome.MISSED, Outcome.LATE})


def missed(report: Report) -> str:
    """Return what the agents alone missed."""
    rows = sorted(
        {
            (
                run.scenario,
                answer.fault,
                answer.outcome.value,
                seconds(answer.seconds),
                seconds(answer.deadline),
                answer.said,
            )
            for run in report.scores(OWN)
            for answer in run.answers
            if answer.outcome in _AMISS
        }
    )
    head = ("scenario", "class", "outcome", "after s", "deadline s", "said")
    return table(head, rows) if rows else "None."


def unheard(report: Report) -> Sequence[str]:
    """Return what people did not hear in time, with what the agents alone found."""
    if report.allowance is None:
        return ()
    own = {(run.scenario, run.seed): run.answers for run in report.scores(OWN)}
    rows = {
        (
            run.scenario,
            answer.fault,
            "vote" if answer.by_vote else "local",
            answer.outcome.value,
            seconds(answer.seconds),
            seconds(answer.deadline),
            answer.kind or answer.said,
            alone.outcome.value,
            seconds(alone.seconds),
            alone.kind or alone.said,
        )
        for run in report.scores(JUDGE)
        for answer, alone in zip(run.answers, own[run.scenario, run.seed], strict=True)
        if answer.outcome in _AMISS
    }
    head = (
        "scenario", "class", "by", "outcome", "after s", "deadline s", "said",
        "agents alone", "after s", "said",
    )  # fmt: skip
    return (
        "### Missed and late, as people hear it",
        table(head, sorted(rows)) if rows else "None.",
    )


def sensitivity(report: Report) -> str:
    """Return recall of the agents alone at half and double magnitudes."""
    scores = report.at_magnitudes
    runs = scores[1.0]
    if not runs:
        return "Not run."
    summaries = [summarize(scores[each]) for each in MAGNITUDES]
    faults = sorted({name for each in summaries for name in each.by_class})
    rows = [
        ("all, local evidence", *(percent(each.local.found) for each in summaries)),
        ("all, by vote", *(percent(each.vote.found) for each in summaries)),
    ]
    for fault in faults:
        cells = [each.by_class.get(fault) for each in summaries]
        rows.append((fault, *(percent(cell and cell.found) for cell in cells)))
    seeds = sorted({run.seed for run in runs})
    return (
        f"The agents alone, {len(runs)} runs at each magnitude, seeds {seeds[0]} to "
        f"{seeds[-1]}.\n\n{table(('class', *MAGNITUDES.values()), rows)}"
    )
