"""What healthy lives gave, as Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from healthy_runs import LifeResult, Loudness, Totals, Way, add_up

from fabricmon.sim.score_tables import rate, table

MOST = 40
"""Single alarms that are listed; of more only the kinds are counted."""
_UNIT = "Per 1,000 node-days, in brackets the one-sided upper bound at 95 % (Poisson)."
_WAYS = {
    Way.BURSTS: "in full, with bursts",
    Way.PLAIN: "in full, without bursts",
    Way.THINNED: "thinned to events",
}


def report(results: Sequence[LifeResult], head: str) -> str:
    """Return tables of rates, by kind, and every false alarm."""
    lives = {way: [each for each in results if each.way is way] for way in Way}
    totals = {way: add_up(found) for way, found in lives.items() if found}
    parts = [
        f"{head} {_UNIT}",
        table(
            ("life", "node-days", "of them played", "pages", "tickets", "warnings"),
            [_row(way, each) for way, each in totals.items()],
        ),
    ]
    kinds = list(_kinds(totals))
    if kinds:
        parts.append(table(("life", "told", "kind", "count", "rate"), kinds))
    happened = add_up(results).happened
    events = sorted(happened.items(), key=lambda each: -each[1])
    if events:
        parts.append(
            "What happened: " + ", ".join(f"{n:,} {what}" for what, n in events) + "."
        )
    parts += _told(results)
    return "\n\n".join(parts)


def _row(way: Way, each: Totals) -> tuple[str, ...]:
    rates = [rate(each.rate(what)) for what in Loudness]
    return (
        _WAYS[way], f"{each.node_days:,.1f}", f"{each.played_node_days:,.2f}", *rates,
    )  # fmt: skip


def _kinds(totals: dict[Way, Totals]) -> Iterator[tuple[str, ...]]:
    for way, each in totals.items():
        for what in Loudness:
            for kind, number in sorted(each.told.get(what, {}).items()):
                of_kind = rate(each.rate(what, kind))
                yield _WAYS[way], what, kind, str(number), of_kind


def _told(results: Sequence[LifeResult]) -> Iterator[str]:
    """Yield what was told wrongly and when: somebody will want to mend it."""
    lines = [
        f"- {alarm.what} `{alarm.kind}` ({each.profile}, {each.way}, seed {each.seed}, "
        f"{alarm.place}, {alarm.t:.0f} s): {alarm.summary} [{'; '.join(alarm.evidence)}]"
        f" amid {', '.join(alarm.amid) or 'nothing'}"
        for each in results
        for alarm in each.alarms
    ]
    if lines:
        more = len(lines) - MOST
        tail = [f"- and {more} more"] if more > 0 else []
        yield "\n".join((*lines[:MOST], *tail))
    problems = [f"- seed {r.seed}: {r.problem}" for r in results if r.problem]
    if problems:
        yield "\n".join(("Could not be lived:", *problems))
