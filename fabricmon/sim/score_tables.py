"""Scores as tables: Markdown for the documentation, which is also plain to read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from fabricmon.sim.score_groups import GROUPS, NOTHING, UNKNOWN_GROUP
from fabricmon.sim.score_summary import Rate, Recall, Share, Summary

Row = Sequence[str]

EMPTY = "-"


def table(head: Row, rows: Iterable[Row]) -> str:
    """Return a Markdown table, its columns as wide as their widest cell."""
    cells = [[_cell(each) for each in row] for row in (head, *rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = ["| " + " | ".join(map(str.ljust, row, widths)) + " |" for row in cells]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(lines)


def judges_table(summaries: Mapping[str, Summary]) -> str:
    """Return one row for each judge, the measures of the catalogue as columns."""
    head = (
        "judge", "recall, local evidence", "recall, by vote", "actionable precision",
        "victim blame", "negatives passed", "false pages", "findings per incident",
        "evidence named", "median s", "p95 s",
    )  # fmt: skip
    return table(head, [_judge_row(*item) for item in summaries.items()])


def classes_table(summaries: Mapping[str, Summary], first: str) -> str:
    """Return one row for each class: the first judge in full, of others the recall."""
    others = [name for name in summaries if name != first]
    mine = summaries[first].by_class
    head = (
        "class", "visible", "found", "late", "median s", "p95 s", "evidence", "hidden",
        *others,
    )  # fmt: skip
    return table(
        head,
        [
            (
                fault,
                *_recall_cells(each),
                *(_class_share(summaries[name], fault) for name in others),
            )
            for fault, each in mine.items()
        ],
    )


def confusion_table(summary: Summary) -> str:
    """Return true groups as rows and what was said of them as columns."""
    rows = summary.confusion
    order = (*GROUPS, UNKNOWN_GROUP, NOTHING)
    columns = [name for name in order if any(name in row for row in rows.values())]
    return table(
        ("is, said", *columns),
        [
            (name, *(str(rows[name].get(each, "") or "") for each in columns))
            for name in order
            if name in rows
        ],
    )


def blame_table(summaries: Mapping[str, Summary]) -> str:
    """Return by class how many runs with victims blamed one, where any judge did."""
    names = sorted(
        {
            name
            for each in summaries.values()
            for name, share in each.blame_by_class.items()
            if share.hits
        }
    )
    return table(
        ("class", *summaries),
        [
            (name, *(_of(each.blame_by_class.get(name)) for each in summaries.values()))
            for name in names
        ],
    )


def percent(share: Share | None) -> str:
    """Return a share as ``95 % (19/20)``."""
    if share is None or share.value is None:
        return EMPTY
    return f"{share.value:.0%} ({share.hits}/{share.total})".replace("%", " %")


def rate(each: Rate) -> str:
    """Return a rate per 1,000 node-days with its bound."""
    if each.value is None or each.upper is None:
        return EMPTY
    return f"{each.value:.3g} (below {each.upper:.3g})"


def seconds(value: float | None) -> str:
    """Return seconds, short."""
    return EMPTY if value is None else f"{value:.0f}"


def _judge_row(name: str, each: Summary) -> Row:
    economy = EMPTY if each.economy is None else f"{each.economy:.1f}"
    return (
        name,
        percent(each.local.found),
        percent(each.vote.found),
        percent(each.precision),
        percent(each.blame),
        percent(each.negatives),
        str(each.pages.count),
        economy,
        percent(each.every.explained),
        seconds(each.every.median),
        seconds(each.every.p95),
    )


def _recall_cells(each: Recall) -> Row:
    return (
        str(each.found.total),
        str(each.found.hits),
        str(each.late or ""),
        seconds(each.median),
        seconds(each.p95),
        _of(each.explained),
        str(each.hidden or ""),
    )


def _class_share(summary: Summary, fault: str) -> str:
    found = summary.by_class.get(fault)
    return EMPTY if found is None else _of(found.found)


def _of(share: Share | None) -> str:
    return EMPTY if share is None or not share.total else f"{share.hits}/{share.total}"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
