"""Bit errors and retrains of a link: Poisson bounds scaled by the line rate.

A count is held against what a sound link of this rate may show (``health-systems``,
algorithm A1): in a minute, in 12 minutes and in 2 hours. Two windows must agree, so
that one burst is no error ratio; errors of a link that trains do not count. Damaged
packets that follow the load are congestion, not damage (A2).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import isfinite

from fabricmon.catalogue import CounterSpec, Signal
from fabricmon.config import Config
from fabricmon.detect.error_bounds import Excess
from fabricmon.detect.error_counting import GIGA, ErrorCounting, lacking
from fabricmon.detect.error_watch import Recovery, SavedWatches, Watch, watches
from fabricmon.detect.evidence import source_of, unit_of
from fabricmon.detect.packing import pack, unpack
from fabricmon.detect.training import Training
from fabricmon.detect.wording import subject_of
from fabricmon.history import History
from fabricmon.model import (
    Action,
    Blindness,
    Evidence,
    Finding,
    Move,
    Part,
    PortId,
    PortInfo,
    Severity,
    View,
)
from fabricmon.summaries import one_line, span

MINUTE_SECONDS, HOUR_SECONDS = 60.0, 3600.0

DAMAGE = (Signal.SYMBOL_ERROR, Signal.RECEIVE_ERROR, Signal.INTEGRITY)
"""Errors that this end of the link sees in what it receives."""

WATCHED = frozenset({*DAMAGE, Signal.CORRUPTION, Signal.LINK_RECOVERY})
"""All that is counted here. Packets that an upstream hop marked as bad are not among
them: they say that the fault is elsewhere."""


class LinkErrors:
    """Finds links that damage what they carry, and links that retrain."""

    name = "link_errors"
    kinds: tuple[str, ...] = ("link_errors", "link_unstable")

    def __init__(self, config: Config) -> None:
        """Take the thresholds from ``config.link_errors``."""
        self._limits = config.link_errors
        self._counting = ErrorCounting(config)
        self._training = Training(config.link_errors)
        self._watched: dict[PortId, Watch] = {}
        self._offset = 0.0

    def judge(self, view: View) -> Iterator[Finding]:
        """Yield the ports whose errors are above their bound, or that retrain."""
        self._offset = view.onset_offset
        self._training.note(view)
        self._counting.note(view)
        for move in view.moves:
            if move.increase and move.spec.signal in WATCHED:
                self._watched.setdefault(move.port, Watch()).pending.append(move)
        if not self._watched:
            return
        infos = {port.info.id: port.info for port in view.ports}
        for port, watch in list(self._watched.items()):
            info = infos.get(port)
            if info is not None:
                yield from self._judge_port(view, info, watch)
            if self._is_over(watch, view.now, gone=info is None):
                del self._watched[port]

    def blind(self, view: View) -> Iterator[Blindness]:
        """Yield the kinds for which no port has a counter that can still tell."""
        ports = [port.info for port in view.ports if not port.info.is_vf]
        if not ports:
            return
        for kind, signals in zip(
            self.kinds, (DAMAGE, (Signal.LINK_RECOVERY,)), strict=True
        ):
            reasons = [lacking(view, port, signals) for port in ports]
            if None not in reasons:
                yield Blindness(kind, min(filter(None, reasons)))
            elif signals is DAMAGE and not self._is_rate_known(view, ports):
                yield Blindness(kind, "the line rate of no port is known")

    def save(self) -> bytes:
        """Return the ports that are watched, without the course of their errors."""
        watched = self._watched.items()
        ports = tuple(watch.saved(port, self._offset) for port, watch in watched)
        return pack(SavedWatches(ports))

    def restore(self, saved: bytes, view_offset: float) -> None:
        """Go on watching; ``view_offset`` is wall minus monotonic seconds.

        Raises ValueError for what it cannot read.
        """
        saved_ports = unpack(saved, SavedWatches).ports
        self._watched.update(watches(saved_ports, view_offset))

    def _judge_port(
        self, view: View, port: PortInfo, watch: Watch
    ) -> Iterator[Finding]:
        """Count what has settled, then say what holds."""
        for move in watch.settled(view.now - self._limits.settle_seconds):
            begin = move.at - move.seconds
            if not port.is_vf and not self._training.explains(port.id, begin, move.at):
                self._count(view, port, watch, move)
        if watch.recoveries or watch.unstable is not None:
            yield from self._unstable(view, port, watch)
        if watch.windows >= self._limits.windows:
            yield from self._damaged(view, port, watch)

    def _is_rate_known(self, view: View, ports: list[PortInfo]) -> bool:
        return any(self._counting.rate(view, port) for port in ports)

    def _is_over(self, watch: Watch, now: float, *, gone: bool) -> bool:
        """Tell whether nothing about a port is worth remembering."""
        if now - watch.last <= self._limits.slow_window_seconds:
            if gone:  # for a while, but what was not judged then never is
                watch.pending.clear()
            return False
        idle = not watch.pending and not watch.recoveries and watch.unstable is None
        return gone or (idle and watch.windows < self._limits.windows)

    def _count(self, view: View, port: PortInfo, watch: Watch, move: Move) -> None:
        """Count one step of a counter and see which window it completes."""
        if move.spec.signal is Signal.LINK_RECOVERY:
            recovery = Recovery(move.at, move.increase, move.spec.file)
            watch.recoveries.append(recovery)
            return
        errors = watch.count(move, self._limits.slow_window_seconds)
        excess = self._counting.critical(view, port, move, errors)
        if excess is not None:
            watch.critical_at = move.at
            watch.windows = max(watch.windows, self._limits.windows)
        elif move.at > watch.next_from:
            excess = self._counting.excess(view, port, move, errors, watch.next_from)
            watch.windows += excess is not None
        if excess is not None:
            watch.agree(move.at)
            watch.next_from = move.at + excess.separation_seconds
            watch.local = watch.local or move.spec.signal in DAMAGE
            self._explain(view, port, watch, errors, excess)

    def _explain(
        self, view: View, port: PortInfo, watch: Watch, errors: History, excess: Excess
    ) -> None:
        """Put into words what speaks against the link."""
        at, seconds = errors.newest, excess.seconds
        evidence = [
            _evidence(port, excess.spec, excess.increase, seconds, excess.bound)
        ]
        for spec, other in watch.counted.items():
            increase = other.over(at, seconds).increase if other is not errors else 0
            if increase:
                evidence.append(_evidence(port, spec, increase, seconds))
        follows = self._counting.correlation(view, port, errors)
        if follows is not None:
            evidence.append(
                Evidence(
                    "load_correlation",
                    round(follows, 2),
                    "ratio",
                    "rank correlation of errors and bytes received",
                    self._limits.independence_correlation,
                )
            )
        watch.evidence = tuple(evidence)
        watch.summary = self._summary(view, port, watch, excess, follows)
        watch.finding = None

    def _summary(
        self,
        view: View,
        port: PortInfo,
        watch: Watch,
        excess: Excess,
        follows: float | None,
    ) -> str:
        count = f"{excess.spec.file} +{excess.increase} in {span(excess.seconds)}"
        if not watch.local:
            return one_line(
                f"{port.id} receives corrupt packets: {count}; not damaged on this link"
            )
        rate = self._counting.rate(view, port)
        at = f" at {rate / GIGA:g} Gb/s" if rate else ""
        lasting = span(watch.agreed_at - watch.began)
        load = ""
        if follows is not None and abs(follows) < self._limits.independence_correlation:
            load = ", not load"
        elif follows is not None and follows > self._limits.congestion_correlation:
            load = ", follows load"
        return one_line(
            f"{port.id} inbound: {count} (bound {excess.bound}{at}), for {lasting}{load}"
        )

    def _damaged(self, view: View, port: PortInfo, watch: Watch) -> Iterator[Finding]:
        """Yield the finding while windows agree, or the counter is stuck at its end."""
        names = {item.signal for item in watch.evidence}
        stuck = _is_stuck(view, port.id, names)
        if view.now - watch.agreed_at > self._hold_seconds(watch) and not stuck:
            watch.forget_damage()
            return
        lasting = view.now - watch.critical_at <= self._limits.warning_window_seconds
        critical = lasting or (stuck and isfinite(watch.critical_at))
        severity = Severity.CRITICAL if critical else Severity.WARNING
        quiet = 0 if stuck else int((view.now - watch.last) // MINUTE_SECONDS)
        if quiet != watch.quiet_minutes:
            watch.quiet_minutes, watch.finding = quiet, None
        if watch.finding is None or watch.finding.severity is not severity:
            watch.finding = _finding(
                "link_errors",
                port,
                severity,
                onset=watch.began + view.onset_offset,
                evidence=watch.evidence,
                summary=_so_far(watch.summary, quiet),
            )
            if not watch.local:
                watch.finding = replace(
                    watch.finding,
                    part=Part.OBSERVER,
                    action=Action.NONE,
                    confidence=0.5,
                )
        yield watch.finding

    def _hold_seconds(self, watch: Watch) -> float:
        """Return how long a link must be clean before it counts as sound again.

        Errors that come in bursts (``faults``, F04) hold on over the pauses between
        them: twice the longest one so far.
        """
        limits = self._limits
        pauses = max(limits.warning_window_seconds, 2 * watch.longest_gap)
        return min(pauses, limits.slow_window_seconds)

    def _unstable(self, view: View, port: PortInfo, watch: Watch) -> Iterator[Finding]:
        """Yield the finding while there are too many recoveries in an hour."""
        limits = self._limits
        begin = watch.recoveries[0].at if watch.recoveries else view.now
        file, count = watch.recovered(view.now, HOUR_SECONDS)
        known = watch.unstable
        if count < limits.recovery_warning_per_hour:
            files = {item.signal for item in known.evidence} if known else set()
            if not _is_stuck(view, port.id, files):
                watch.unstable = None
        elif known is None or known.evidence[0].value != count:
            onset = known.onset if known else begin + view.onset_offset
            watch.unstable = self._retrains(view, port, file, count, onset)
        if watch.unstable is not None:
            yield watch.unstable

    def _retrains(
        self, view: View, port: PortInfo, file: str, count: int, onset: float
    ) -> Finding | None:
        limits = self._limits
        specs = view.counters.by_signal(port.id, Signal.LINK_RECOVERY)
        spec = next((spec for spec in specs if spec.file == file), None)
        if spec is None:  # the file is not there any more
            return None
        critical = count >= limits.recovery_critical_per_hour
        bound = limits.recovery_warning_per_hour
        if critical:
            bound = limits.recovery_critical_per_hour
        return _finding(
            "link_unstable",
            port,
            Severity.CRITICAL if critical else Severity.WARNING,
            onset=onset,
            evidence=(_evidence(port, spec, count, HOUR_SECONDS, bound),),
            summary=f"{port.id} retrained {count} times in an hour without going "
            f"down (limit {bound}): cable or module, not an outage",
        )


def _so_far(summary: str, quiet_minutes: int) -> str:
    """Say for how long there were none, before what was counted until then."""
    if not quiet_minutes:
        return summary
    subject, _, counted = summary.partition(": ")
    quiet = span(quiet_minutes * MINUTE_SECONDS)
    return one_line(f"{subject}, none for {quiet}, before: {counted}")


def _is_stuck(view: View, port: PortId, files: set[str]) -> bool:
    """Tell whether one of these counters stands at its ceiling: silent, not healed."""
    return any(spec.file in files for spec in view.counters.saturated(port))


def _evidence(
    port: PortInfo,
    spec: CounterSpec,
    increase: int,
    seconds: float,
    bound: int | None = None,
) -> Evidence:
    source = source_of(port, spec)
    return Evidence(
        spec.file, increase, unit_of(spec), source, bound, round(seconds, 1)
    )


def _finding(
    kind: str,
    port: PortInfo,
    severity: Severity,
    *,
    onset: float,
    evidence: tuple[Evidence, ...],
    summary: str,
) -> Finding:
    """Blame this end: what it counts is local evidence (algorithm A11)."""
    critical = severity is Severity.CRITICAL
    return Finding(
        kind=kind,
        subject=subject_of(port),
        onset=onset,
        evidence=evidence,
        summary=summary,
        severity=severity,
        part=Part.CULPRIT,
        action=Action.DRAIN_AFTER_JOB if critical else Action.INSPECT,
    )
