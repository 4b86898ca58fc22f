"""What the gate shows of itself: written by its loop, read by the listener's threads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from prometheus_client import Metric

from fabricmon import __version__
from fabricmon.gate.decision import HOLDS, Outcome, Reason, Verdict

SOURCES = ("alertmanager", "mqtt")


@dataclass(frozen=True, slots=True)
class Shown:
    """The gate at one moment."""

    dry_run: bool = True
    budget: int = 0
    out: int = 0
    unsure: int = 0
    window: int = 0
    open: int = 0
    verdicts: Mapping[tuple[Verdict, Reason], int] = field(default_factory=dict)
    lost: frozenset[str] = frozenset()
    sources: tuple[str, ...] = ()
    journal_fails: bool = False


@dataclass(slots=True)
class Tally:
    """What is counted; each key is written by one thread only."""

    actions: Counter[str] = field(default_factory=Counter)
    reports: Counter[str] = field(default_factory=Counter)
    unusable: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    lost_entries: int = 0
    heard_at: dict[str, float] = field(default_factory=dict)


class Gauges:
    """The metrics, for `prometheus_client`."""

    def __init__(
        self, tally: Tally, clock: Callable[[], float], started: float
    ) -> None:
        """Show nothing yet; ``clock`` tells Unix seconds."""
        self.shown = Shown()
        self._tally = tally
        self._clock = clock
        self._started = started

    def collect(self) -> Iterable[Metric]:
        """Yield the metrics as they stand."""
        shown, tally = self.shown, self._tally
        yield _one("build_info", "The version that runs; always 1", 1, __version__)
        yield _gauge("dry_run", "1 while nothing is really done", shown.dry_run)
        yield _gauge("budget_nodes", "Nodes that may be out at a time", shown.budget)
        yield _gauge(
            "out_nodes", "Nodes that were acted on and are not back", shown.out
        )
        yield _gauge(
            "unsure_nodes",
            "Nodes among them of which nobody knows how the action ended",
            shown.unsure,
        )
        yield _gauge(
            "window_nodes", "Nodes acted on within the budget's window", shown.window
        )
        yield _gauge("open_findings", "Findings that are open", shown.open)
        yield _by(
            "held_findings",
            "Open findings that wait, by what speaks against acting on them",
            "reason",
            {each.value: shown.verdicts.get((Verdict.HOLD, each), 0) for each in HOLDS},
        )
        yield _gauge(
            "refused_findings",
            "Open findings that are never acted on",
            sum(n for (what, _), n in shown.verdicts.items() if what is Verdict.REFUSE),
        )
        yield from self._inputs()
        yield _total(
            "actions", "Actions by how they ended", "outcome",
            {each.value: tally.actions[each.value] for each in Outcome},
        )  # fmt: skip
        lost = Metric(
            "fabricmon_gate_lost_entries",
            "Lines of the journal that were lost while it could not be written",
            "counter",
        )
        lost.add_sample("fabricmon_gate_lost_entries_total", {}, tally.lost_entries)
        yield lost
        yield _gauge(
            "journal_failing",
            "1 while the journal cannot be written: nothing is done then",
            shown.journal_fails,
        )

    def _inputs(self) -> Iterator[Metric]:
        shown, tally, now = self.shown, self._tally, self._clock()
        ages = {
            each: max(now - tally.heard_at.get(each, self._started), 0.0)
            for each in shown.sources
        }
        yield _by(
            "input_age_seconds",
            "Since a source said anything, or since the start if it never did",
            "source",
            ages,
        )
        yield _by(
            "input_connected",
            "0 while a source is known to be away",
            "source",
            {each: each not in shown.lost for each in shown.sources},
        )
        for name, text, counter in (
            ("reports", "Findings that came in, repeated ones too", tally.reports),
            ("unusable_reports", "What came in and was no finding", tally.unusable),
        ):
            values = {each: counter[each] for each in shown.sources}
            yield _total(name, text, "source", values)
        yield _total(
            "refused_requests",
            "Notifications that were sent away",
            "reason",
            {each: tally.refused[each] for each in ("token", "form", "busy")},
        )


def _gauge(name: str, text: str, value: float) -> Metric:
    metric = Metric(f"fabricmon_gate_{name}", text, "gauge")
    metric.add_sample(f"fabricmon_gate_{name}", {}, float(value))
    return metric


def _one(name: str, text: str, value: float, version: str) -> Metric:
    metric = Metric(f"fabricmon_gate_{name}", text, "gauge")
    metric.add_sample(f"fabricmon_gate_{name}", {"version": version}, value)
    return metric


def _by(name: str, text: str, label: str, values: Mapping[str, float]) -> Metric:
    metric = Metric(f"fabricmon_gate_{name}", text, "gauge")
    for key, value in values.items():
        metric.add_sample(f"fabricmon_gate_{name}", {label: key}, float(value))
    return metric


def _total(name: str, text: str, label: str, values: Mapping[str, int]) -> Metric:
    metric = Metric(f"fabricmon_gate_{name}", text, "counter")
    for key, value in values.items():
        metric.add_sample(f"fabricmon_gate_{name}_total", {label: key}, value)
    return metric
