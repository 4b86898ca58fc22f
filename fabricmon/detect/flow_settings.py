"""Flow control that is not set as the traffic needs it: ``config_mismatch``.

Four ways to see it from one node: its settings do not agree (`flow_comparison`);
packets are dropped here with no pause at all, on a priority that is not lossless; one
rail is paused and never marked while the others are (``faults``, F36 and F37); a rail
does not answer to congestion (`flow_notices`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from fabricmon.catalogue import Signal
from fabricmon.config import Congestion
from fabricmon.detect.evidence import source_of, unit_of
from fabricmon.detect.flow_comparison import Comparison
from fabricmon.detect.flow_discards import Discards
from fabricmon.detect.flow_drops import (
    KIND,
    LOSS_SECONDS,
    dropped,
    is_rail,
    setting_of,
)
from fabricmon.detect.flow_levels import Levels, Measure
from fabricmon.detect.flow_notices import Notices
from fabricmon.detect.wording import clock, subject_of
from fabricmon.model import (
    Evidence,
    Finding,
    Move,
    Part,
    PortId,
    PortView,
    Severity,
    View,
)
from fabricmon.summaries import one_line
from fabricmon.value import State

LEAST_NOTIFIED = 1.0
"""Notifications a second that show that a rail's switch marks."""

_NOTICES = (Measure.NOTIFIED, Measure.SLOWED, Measure.MARKED)


class _Port(State):
    """What speaks against a port's settings, and since when (monotonic)."""

    lossy: int = 0
    lossy_since: float = 0.0
    unmarked_since: float | None = None
    paused_at: float = 0.0
    evidence: tuple[Evidence, ...] = ()
    paused: tuple[Evidence, ...] = ()

    def unmarked(self, now: float, least: float) -> float | None:
        """Return since when it is never marked, if for long; without pause forget it."""
        if now - self.paused_at > least:
            self.unmarked_since = None
        since = self.unmarked_since
        return None if since is None or now - since < least else since


class FlowSettings:
    """Holds settings and drops against each other."""

    def __init__(self, limits: Congestion) -> None:
        """Take the limits of drops, marks and notifications."""
        self._limits = limits
        self._ports: dict[PortId, _Port] = {}
        self._comparison = Comparison()
        self._notices = Notices(limits)
        self._discards = Discards(limits)

    def judge(self, view: View) -> Iterator[Finding]:
        """Yield what holds now."""
        yield from self._comparison.judge(view)
        yield from self._notices.judge(view)
        yield from self._discards.judge(view)
        if not self._ports:
            return
        lossy: list[tuple[PortView, _Port]] = []
        for port in view.ports:
            known = self._ports.get(port.info.id)
            if known is None:
                continue
            if known.lossy >= self._limits.windows:
                lossy.append((port, known))
            since = known.unmarked(view.now, self._limits.unmarked_seconds)
            if since is not None:
                yield _tell_unmarked(port, known.paused, since, view)
        if lossy:
            yield self._tell_lossy(lossy, view)

    def note(self, move: Move) -> None:
        """Take in packets that were dropped on their way out."""
        self._discards.note(move)

    def look(self, levels: Mapping[PortId, Levels], view: View) -> None:
        """Take new levels: drops without pause, pause and marks without answer."""
        rails = [port for port in view.ports if is_rail(port)]
        self._notices.look(rails, levels, view)
        marked = {
            port.info.id: _is_notified(levels.get(port.info.id, {})) for port in rails
        }
        for port in rails:
            own = levels.get(port.info.id, {})
            others = [m for other, m in marked.items() if other != port.info.id]
            most = bool(others) and 2 * sum(others) >= len(others)
            self._look_at_marks(port, own, view, most=most)
            self._look_at_drops(port, view)

    def _look_at_marks(
        self, port: PortView, own: Levels, view: View, *, most: bool
    ) -> None:
        """Note since when a rail is paused and hears of no congestion."""
        known = self._ports.get(port.info.id)
        if _is_notified(own) or not most:
            if known is not None and _is_notified(own):
                known.unmarked_since = None
            return
        held = own.get(Measure.PAUSE_RECEIVED)
        silent = list(_silent(port, view))
        if held is None or held.value < self._limits.unmarked_pause_ratio or not silent:
            return
        known = self._ports.setdefault(port.info.id, _Port())
        limit = self._limits.unmarked_pause_ratio
        shown = Evidence(
            "pause_received_ratio", round(held.value, 4), "1", "fabricmon", limit
        )
        known.paused_at = view.now
        known.paused = (held.evidence(port), shown, *silent)
        if known.unmarked_since is None:
            known.unmarked_since = view.now

    def _look_at_drops(self, port: PortView, view: View) -> None:
        """Note in how many looks packets were dropped that pause should have saved."""
        evidence = tuple(dropped(port, self._limits, view))
        known = self._ports.get(port.info.id)
        if not evidence:
            if known is not None:
                known.lossy = 0
            return
        known = self._ports.setdefault(port.info.id, _Port())
        if not known.lossy:
            known.lossy_since = view.now - LOSS_SECONDS
        known.lossy += 1
        known.evidence = (*evidence, *setting_of(port, view.job.host_path))

    def _tell_lossy(self, lossy: list[tuple[PortView, _Port]], view: View) -> Finding:
        """Return the one finding of all rails that drop."""
        port, known = min(
            lossy, key=lambda each: (each[1].lossy_since, each[0].info.id)
        )
        onset = max(known.lossy_since, 0.0) + view.onset_offset
        more = f" and {len(lossy) - 1} more" if len(lossy) > 1 else ""
        return Finding(
            kind=KIND,
            subject=subject_of(port.info),
            onset=onset,
            evidence=known.evidence,
            summary=one_line(
                f"{port.info.id}{more} drop packets without any pause since "
                f"{clock(onset)}: flow control is off for this priority here"
            ),
            severity=Severity.WARNING,
            confidence=0.9,
        )


def _silent(port: PortView, view: View) -> Iterator[Evidence]:
    """Yield the counters of notifications that this port has, and that rest."""
    for signal in (Signal.CNP_SENT, Signal.CNP_HANDLED, Signal.ECN_MARKED):
        for spec in view.counters.by_signal(port.info.id, signal):
            source = source_of(port.info, spec)
            yield Evidence(spec.file, 0, unit_of(spec), source, None, LOSS_SECONDS)


def _is_notified(levels: Levels) -> bool:
    found = (levels.get(measure) for measure in _NOTICES)
    return any(each is not None and each.value >= LEAST_NOTIFIED for each in found)


def _tell_unmarked(
    port: PortView, evidence: tuple[Evidence, ...], since: float, view: View
) -> Finding:
    onset = since + view.onset_offset
    return Finding(
        kind=KIND,
        subject=subject_of(port.info),
        onset=onset,
        evidence=evidence,
        summary=one_line(
            f"{port.info.id} is paused and never marked since {clock(onset)}, its "
            f"rails are: ECN of its switch, not this node"
        ),
        severity=Severity.INFO,
        part=Part.OBSERVER,
        confidence=0.7,
    )
