"""The rules of the fleet on a real Prometheus, over what was scraped in a replay.

Samples are backfilled as OpenMetrics. Recording rules are evaluated level by level by
range query and backfilled as well, because a backfilled rule sees none of the same
pass. Each group is evaluated at its own interval, and what it records is held until
its next evaluation, as a live Prometheus looks back to it; at an instant at which
several groups are evaluated, rules see what all recorded of the same instant. Then
alert expressions are evaluated, and `alert_life` applies ``for`` and
``keep_firing_for``. Fleets that share an engine are told apart by the cluster label.

Backfilled samples have no staleness markers: OpenMetrics cannot write one. The
engine's look-back is therefore a millisecond less than the interval of scrapes, so
that a series ends where the next scrape did not bring it, as it does live.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain
from math import ceil, floor
from pathlib import Path

from fabricmon.errors import ConfigError, HostError
from fabricmon.fleet.alert_life import Timing, lives
from fabricmon.fleet.alert_series import HEAD as ALERT_HEAD
from fabricmon.fleet.alert_series import alert_series, escaped
from fabricmon.fleet.annotations import console_text, said
from fabricmon.fleet.firing import Firing
from fabricmon.fleet.programs import Programs, create_blocks, prometheus
from fabricmon.fleet.queries import Client, Sampled, Span
from fabricmon.fleet.rule import Alert, Group, Label, Recording

NAME = "__name__"

_RANGE = re.compile(r"\b([a-zA-Z_:][\w:]*)(?:\{[^{}]*\})?\[[^\[\]:]+\]")
"""A series and a range of its samples; a subquery looks at instants."""
CONFIGURATION = """\
# Made by `fabricmon replay`: nothing is scraped, all that is here was backfilled.
global: {{scrape_interval: {scrape}s, evaluation_interval: {evaluation}s}}
"""


@dataclass(frozen=True, slots=True)
class Fleet:
    """What was scraped of one fleet; begin and end in Unix seconds.

    ``samples`` is a file in OpenMetrics, or a folder with blocks made of one. Nothing
    of its ``cluster`` is evaluated beyond its begin and end.
    """

    cluster: str
    samples: Path
    begin: float
    end: float


@dataclass(frozen=True, slots=True)
class Rhythm:
    """How the fleets were scraped, and how rules are evaluated; whole seconds."""

    scrape_seconds: int = 15
    evaluation_seconds: int = 15
    cluster_label: str = "cluster"

    @property
    def lookback_seconds(self) -> float:
        """How long a sample stands."""
        return self.scrape_seconds - 0.001

    def of(self, group: Group) -> int:
        """Return how often a group is evaluated; one that says nothing: as others."""
        return max(1, round(group.interval_seconds or self.evaluation_seconds))


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What fired in one fleet, in order of time."""

    fleet: Fleet
    firings: tuple[Firing, ...]


@dataclass(frozen=True, slots=True)
class Run:
    """All evaluations of an engine; ``stray`` are alerts that name no fleet."""

    evaluations: tuple[Evaluation, ...]
    stray: tuple[str, ...]


def evaluate(
    fleets: Sequence[Fleet],
    groups: Sequence[Group],
    rhythm: Rhythm,
    programs: Programs,
    keep_data: Path | None = None,
) -> Run:
    """Evaluate rules over fleets; ``keep_data`` is an empty folder to be filled.

    It is for a Prometheus and a Grafana, so it gets ``ALERTS`` too.

    Raises `HostError` where a program fails or a rule cannot be evaluated, `OSError`.
    """
    with tempfile.TemporaryDirectory(prefix="fabricmon-fleet-") as folder:
        engine = _Engine(Path(folder), keep_data, rhythm, programs)
        for fleet in fleets:
            engine.load(fleet.samples)
        spans = spans_of(fleets, rhythm.evaluation_seconds)
        engine.record(groups, spans)
        run = engine.alert(groups, spans, fleets)
        if keep_data is not None:
            engine.keep(run)
        return run


def spans_of(fleets: Iterable[Fleet], step: int) -> tuple[Span, ...]:
    """Return what is to be evaluated: times of fleets, joined where they overlap."""
    found: list[Span] = []
    for fleet in sorted(fleets, key=lambda each: each.begin):
        begin, end = ceil(fleet.begin / step) * step, floor(fleet.end / step) * step
        if found and begin <= found[-1].end + step:
            found[-1] = Span(found[-1].begin, max(found[-1].end, end))
        elif begin <= end:
            found.append(Span(begin, end))
    return tuple(found)


class _Engine:
    """A data folder, and a Prometheus on it when there is something to ask."""

    def __init__(
        self, folder: Path, keep: Path | None, rhythm: Rhythm, programs: Programs
    ) -> None:
        self._folder = folder
        self._rhythm = rhythm
        self._programs = programs
        self.data = folder / "data" if keep is None else keep
        self.data.mkdir(parents=True, exist_ok=True)
        self._consoles = folder / "consoles"
        self._consoles.mkdir()
        self._config = folder / "prometheus.yml"
        text = CONFIGURATION.format(
            scrape=rhythm.scrape_seconds, evaluation=rhythm.evaluation_seconds
        )
        self._config.write_text(text, encoding="utf-8")

    def load(self, samples: Path) -> None:
        """Take in what was scraped."""
        if samples.is_dir():
            shutil.copytree(samples, self.data, dirs_exist_ok=True)
        else:
            create_blocks(self._programs, samples, self.data)

    def record(self, groups: Sequence[Group], spans: Sequence[Span]) -> None:
        """Evaluate and backfill recordings, one level after the other.

        What is held would be counted twice by who reads a range of samples: of those
        series only what was evaluated is written.
        """
        recordings = [(group, each) for group in groups for each in group.recordings]
        counted, step = _read_as_ranges(groups), self._rhythm.evaluation_seconds
        for level in sorted({each.level for _, each in recordings}):
            text = self._folder / f"level{level}.om"
            due = [pair for pair in recordings if pair[1].level == level]
            with self._asking() as client, text.open("wb") as out:
                for group, each in due:
                    every = self._rhythm.of(group)
                    found = self._query(client, each.record, each.expr, spans, every)
                    if each.record not in counted:
                        found = [_held(one, every, step) for one in found]
                    out.writelines(_recorded(each, found))
                out.write(b"# EOF\n")
                is_empty = out.tell() == len(b"# EOF\n")
            if not is_empty:
                create_blocks(self._programs, text, self.data)
            text.unlink()

    def alert(
        self, groups: Sequence[Group], spans: Sequence[Span], fleets: Sequence[Fleet]
    ) -> Run:
        """Evaluate alerts over what is there now."""
        alerts = [(group, each) for group in groups for each in group.alerts]
        for number, (_, each) in enumerate(alerts):
            path = self._consoles / f"{number}.html"
            path.write_text(console_text(each), encoding="utf-8")
        found: dict[str, list[Firing]] = {fleet.cluster: [] for fleet in fleets}
        by_cluster = {fleet.cluster: fleet for fleet in fleets}
        stray: list[str] = []
        with self._asking() as client:
            for number, (group, each) in enumerate(alerts):
                every = self._rhythm.of(group)
                for series in self._query(client, each.name, each.expr, spans, every):
                    fleet = self._fleet_of(series, by_cluster)
                    if fleet is None:
                        stray.append(each.name)
                        continue
                    found[fleet.cluster] += [
                        replace(one, summary=said(client, number, one))
                        for one in _fired(each, series, _times(fleet, every))
                    ]
        evaluations = tuple(
            Evaluation(fleet, tuple(sorted(found[fleet.cluster], key=_fired_at)))
            for fleet in fleets
        )
        return Run(evaluations, tuple(dict.fromkeys(stray)))

    def keep(self, run: Run) -> None:
        """Backfill what fired, as a live Prometheus shows its alerts."""
        text = self._folder / "alerts.om"
        with text.open("wb") as out:
            out.write(ALERT_HEAD)
            for each in run.evaluations:
                times = _times(each.fleet, self._rhythm.evaluation_seconds)
                out.writelines(alert_series(each.firings, times))
            out.write(b"# EOF\n")
        if any(each.firings for each in run.evaluations):
            create_blocks(self._programs, text, self.data)

    @contextmanager
    def _asking(self) -> Iterator[Client]:
        lookback = self._rhythm.lookback_seconds
        running = prometheus(
            self._programs, self.data, self._config, lookback, self._consoles
        )
        with running as port, Client(port) as client:
            yield client

    def _query(
        self, client: Client, rule: str, expr: str, spans: Sequence[Span], every: int
    ) -> list[Sampled]:
        begun = (Span(_at_or_after(span.begin, every), span.end) for span in spans)
        series = chain.from_iterable(
            client.query_range(expr, span, every)
            for span in begun
            if span.begin <= span.end
        )
        merged: dict[tuple[tuple[str, str], ...], Sampled] = {}
        for each in series:
            each.metric.pop(NAME, None)
            key = tuple(sorted(each.metric.items()))
            before = merged.setdefault(key, each)
            if before is not each:
                _join(before, each, rule)
        return list(merged.values())

    def _fleet_of(self, series: Sampled, fleets: dict[str, Fleet]) -> Fleet | None:
        cluster = series.metric.get(self._rhythm.cluster_label)
        if cluster is None and len(fleets) == 1:
            return next(iter(fleets.values()))
        return fleets.get(cluster or "")


def _at_or_after(time: float, step: int) -> int:
    return ceil(time / step) * step


def _times(fleet: Fleet, step: int) -> range:
    """Return when a fleet is evaluated."""
    return range(_at_or_after(fleet.begin, step), floor(fleet.end) + 1, step)


def _read_as_ranges(groups: Iterable[Group]) -> set[str]:
    """Return the series of which a rule reads a range of samples."""
    exprs = (rule.expr for group in groups for rule in group.rules)
    return {name for expr in exprs for name in _RANGE.findall(expr)}


def _join(before: Sampled, more: Sampled, rule: str) -> None:
    """Add samples of a series; two at a time are an error in a live Prometheus too."""
    known = {time for time, _ in before.values}
    if not known.isdisjoint(time for time, _ in more.values):
        raise ConfigError(
            f"gives several values for {before.metric}",
            key=rule,
            remedy="keep a label that tells them apart, or aggregate",
        )
    before.values.extend(more.values)
    before.values.sort()


def _held(series: Sampled, every: int, step: int) -> Sampled:
    """Return a series with each value also at evaluations until the group's next."""
    values = [
        (float(at), value)
        for time, value in series.values
        for at in (
            time,
            *range((int(time) // step + 1) * step, int(time) + every, step),
        )
    ]
    return Sampled(series.metric, values)


def _recorded(rule: Recording, found: Iterable[Sampled]) -> Iterator[bytes]:
    """Yield recorded series as OpenMetrics."""
    yield f"# TYPE {rule.record} gauge\n".encode()
    for series in found:
        labels = ",".join(
            f'{name}="{escaped(value)}"'
            for name, value in sorted(series.metric.items())
        )
        prefix = f"{rule.record}{{{labels}}} "
        yield from (
            f"{prefix}{value} {time:.3f}\n".encode() for time, value in series.values
        )


def _fired(alert: Alert, series: Sampled, times: range) -> Iterator[Firing]:
    labels = {
        **series.metric,
        **{each.name: each.value for each in alert.own_labels},
        "alertname": alert.name,
    }
    kept = tuple(Label(*each) for each in sorted(labels.items()) if each[1])
    try:
        values = {time: float(value) for time, value in series.values}
    except ValueError as error:
        raise HostError(f"this is no answer of prometheus: {error}") from None
    timing = Timing(alert.for_seconds, alert.keep_seconds)
    return (Firing(alert, kept, life) for life in lives(times, values, timing))


def _fired_at(firing: Firing) -> float:
    return firing.life.fired
