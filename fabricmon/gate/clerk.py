"""The gate's decisions between its rules and its journal: what is news is written.

Lines and findings wait here until the journal took them; nothing is acted on before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from fabricmon.gate.deciding import Gate
from fabricmon.gate.decision import (
    UNSURE,
    Decision,
    Known,
    Reason,
    Sight,
    Verdict,
)
from fabricmon.gate.journal import Entry, Nodes
from fabricmon.gate.messages import Presence, Standing, Told
from fabricmon.gate.report import Batch, Report, word
from fabricmon.gate.state import Shown, Tally

MOST_ENTRIES = 100_000
"""Lines that wait while the journal cannot be written; more are lost, and counted."""


class Clerk:
    """Feeds the gate and remembers what has to be written."""

    def __init__(self, gate: Gate, tally: Tally) -> None:
        """Begin with nothing to write."""
        self.gate = gate
        self.entries: list[Entry] = []
        self._tally = tally
        self._changed: dict[str, Known] = {}
        self._gone: set[str] = set()
        self._told: dict[str, tuple[Verdict, Reason]] = {}
        self._verdicts: Counter[tuple[Verdict, Reason]] = Counter()

    def take(self, content: Batch | Told, now: float) -> None:
        """Take in a message."""
        if isinstance(content, Report):
            self._take_report(content, now)
        elif isinstance(content, Standing):
            for key in self.gate.take_standing(content, now):
                self._note_state(self.gate.known[key], now)
        elif isinstance(content, Presence):
            self.gate.take_presence(content)
        else:
            self._take_batch(content, now)

    def judge(self, now: float, sight: Sight) -> Report | None:
        """Let time pass and decide; return what is to be acted on, if anything."""
        back, gone = self.gate.age(now)
        for node in back:
            self.write(Entry(time=now, what="back", node=node))
        for key in gone:
            self._changed.pop(key, None)
            self._gone.add(key)
            self._told.pop(key, None)
        decisions = self.gate.judge(now, sight)
        self._verdicts = Counter((each.verdict, each.reason) for each in decisions)
        for each in decisions:
            self._note_decision(each, now)
        chosen = (each.report for each in decisions if each.verdict is Verdict.ACT)
        return next(chosen, None)

    def write(self, entry: Entry) -> None:
        """Have a line written with the next ones."""
        if len(self.entries) < MOST_ENTRIES:
            self.entries.append(entry)
        else:
            self._tally.lost_entries += 1

    def pending(self) -> tuple[tuple[Entry, ...], tuple[Known, ...], tuple[str, ...]]:
        """Return lines, findings and ids that are to be written."""
        known = tuple(self._changed.values())
        return tuple(self.entries), known, tuple(self._gone)

    def written(
        self, entries: Iterable[Entry], known: Iterable[Known], gone: Iterable[str]
    ) -> None:
        """Note that these are on the disk."""
        del self.entries[: len(tuple(entries))]
        for each in known:
            self._changed.pop(each.report.id, None)
        self._gone.difference_update(gone)

    def nodes(self) -> Nodes:
        """Return how nodes stand, for the journal."""
        return Nodes(tuple(self.gate.outs.values()), self.gate.rested)

    def shown(self, now: float, *, lost: frozenset[str], fails: bool) -> Shown:
        """Return what the gate shows of itself."""
        gate, config = self.gate, self.gate.config
        inputs = (
            ("alertmanager", config.listen.address is not None),
            ("mqtt", config.mqtt.host is not None),
        )
        outs = gate.outs.values()
        return Shown(
            dry_run=not config.act,
            budget=gate.budget,
            out=len(gate.outs),
            unsure=sum(each.outcome in UNSURE for each in outs),
            window=gate.window_nodes(now),
            open=sum(each.resolved is None for each in gate.known.values()),
            verdicts=dict(self._verdicts),
            lost=lost,
            sources=tuple(name for name, used in inputs if used),
            journal_fails=fails,
        )

    def _take_batch(self, batch: Batch, now: float) -> None:
        self._tally.heard_at["alertmanager"] = now
        self._tally.unusable["alertmanager"] += batch.unusable
        if batch.cut:
            self.gate.note_cut(now)
        for report in batch.reports:
            self._take_report(report, now)

    def _take_report(self, report: Report, now: float) -> None:
        self._tally.reports[report.source] += 1
        is_news = self.gate.take(report, now)
        known = self.gate.known.get(report.id)
        if known is None:
            return
        if is_news:
            self._note_state(known, now)
        elif report.is_open:
            self._changed[report.id] = known  # it was told again: that keeps it alive

    def _note_state(self, known: Known, now: float) -> None:
        report = known.report
        finding = report.finding
        self._changed[report.id] = known
        self._gone.discard(report.id)
        what = "taken" if known.resolved is None else "resolved"
        if known.resolved is not None:
            self._told.pop(report.id, None)
        words = (finding.severity, finding.role, finding.action, finding.summary)
        detail = " ".join(word(each) for each in words)
        self.write(_entry(report, now, what, detail=detail))

    def _note_decision(self, decision: Decision, now: float) -> None:
        report = decision.report
        said = (decision.verdict, decision.reason)
        if self._told.get(report.id) == said:
            return
        self._told[report.id] = said
        entry = _entry(
            report,
            now,
            "decided",
            verdict=decision.verdict.value,
            reason=decision.reason.value,
            detail=word(decision.detail) or None,
        )
        self.write(entry)


def _entry(
    report: Report,
    now: float,
    what: str,
    *,
    verdict: str | None = None,
    reason: str | None = None,
    detail: str | None = None,
) -> Entry:
    return Entry(
        time=now,
        what=what,
        finding=word(report.id),
        node=None if report.node is None else word(report.node),
        kind=word(report.finding.kind),
        verdict=verdict,
        reason=reason,
        detail=detail,
    )
