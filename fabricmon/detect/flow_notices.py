"""Congestion control that is off on a rail: notifications ignored, or none sent.

A port that ignores notifications keeps its rate and lets the fabric pause; one that is
marked and notifies nobody lets its senders keep theirs. Where the node's other rails
do it right, that is a mistake; where none does, it may be meant so.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import field

from fabricmon.catalogue import Signal
from fabricmon.config import Congestion
from fabricmon.detect.evidence import source_of, unit_of
from fabricmon.detect.flow_drops import KIND
from fabricmon.detect.flow_levels import Level, Levels, Measure
from fabricmon.detect.wording import clock, subject_of
from fabricmon.model import Evidence, Finding, PortId, PortView, Severity, Subject, View
from fabricmon.summaries import one_line
from fabricmon.value import State, Value


class _Aspect(Value, frozen=True):
    """What comes in ``asked``, and is answered in ``heeded`` where control is on.

    At ``most`` so much of the one may be answered by a port whose control is off.
    """

    asked: Measure
    heeded: Measure
    answer: Signal
    most: float
    text: str


_ASPECTS = (
    _Aspect(
        Measure.IGNORED,
        Measure.SLOWED,
        Signal.CNP_HANDLED,
        1.0,  # it obeys on one priority, perhaps, and ignores most
        "notifications of congestion slow nothing down",
    ),
    _Aspect(
        Measure.MARKED,
        Measure.NOTIFIED,
        Signal.CNP_SENT,
        0.0,
        "packets are marked and no sender is notified",
    ),
)


class _Unheeded(State):
    """Since when a port leaves something unanswered, and what shows it; monotonic."""

    since: float
    seen: float
    evidence: tuple[Evidence, ...]


class Notices(State):
    """Watches whether rails answer to congestion, each aspect on its own."""

    limits: Congestion
    _unheeded: dict[tuple[Measure, PortId], _Unheeded] = field(default_factory=dict)
    _heeded: dict[tuple[Measure, PortId], float] = field(default_factory=dict)

    def look(
        self, rails: Iterable[PortView], levels: Mapping[PortId, Levels], view: View
    ) -> None:
        """Take new levels of the rails."""
        for port in rails:
            own = levels.get(port.info.id)
            if own:
                for aspect in _ASPECTS:
                    self._look_at(port, aspect, own, view)

    def judge(self, view: View) -> Iterator[Finding]:
        """Yield the rails whose congestion control is off."""
        if not self._unheeded:
            return
        ports = {port.info.id: port for port in view.ports}
        held: defaultdict[Measure, list[tuple[PortView, _Unheeded]]] = defaultdict(list)
        for (asked, where), known in tuple(self._unheeded.items()):
            if (
                where not in ports
                or view.now - known.seen > self.limits.unheeded_seconds
            ):
                del self._unheeded[asked, where]
            elif view.now - known.since >= self.limits.unheeded_seconds:
                held[asked].append((ports[where], known))
        for aspect in _ASPECTS:
            if aspect.asked in held:
                yield from self._tell(aspect, held[aspect.asked], view)

    def _look_at(
        self, port: PortView, aspect: _Aspect, own: Levels, view: View
    ) -> None:
        """Note whether a rail answers; without anything to answer it says nothing."""
        key = aspect.asked, port.info.id
        asked, heeded = own.get(aspect.asked), own.get(aspect.heeded)
        much = 0.0 if asked is None else asked.value
        if heeded is not None and heeded.value > aspect.most * much:
            self._heeded[key] = view.now
            self._unheeded.pop(key, None)
            return
        rests = view.counters.by_signal(port.info.id, aspect.answer)
        if asked is None or much < self.limits.unheeded_per_second or not rests:
            return
        items = [asked.evidence(port, self._least(asked))]
        for spec in rests:
            moved = heeded.increase if heeded and heeded.spec == spec else 0
            source = source_of(port.info, spec)
            window = round(asked.seconds, 1)
            items.append(
                Evidence(spec.file, moved, unit_of(spec), source, None, window)
            )
        known = self._unheeded.setdefault(key, _Unheeded(view.now, view.now, ()))
        known.seen, known.evidence = view.now, tuple(items)

    def _least(self, level: Level) -> int:
        return round(self.limits.unheeded_per_second * level.seconds)

    def _tell(
        self, aspect: _Aspect, held: Sequence[tuple[PortView, _Unheeded]], view: View
    ) -> Iterator[Finding]:
        """Yield each rail that is unlike another, or all of them as the node's way."""
        oldest = view.now - self.limits.unheeded_seconds
        unlike = any(
            asked is aspect.asked and at >= oldest
            for (asked, _), at in self._heeded.items()
        )
        if not unlike and len(held) > 1:
            port, known = min(held, key=lambda each: (each[1].since, each[0].info.id))
            name = f"{port.info.id} and {len(held) - 1} more"
            onset = known.since + view.onset_offset
            yield _finding(aspect, known, name, onset, subject=Subject(), unlike=False)
            return
        for port, known in held:
            name, subject = str(port.info.id), subject_of(port.info)
            onset = known.since + view.onset_offset
            yield _finding(aspect, known, name, onset, subject=subject, unlike=unlike)


def _finding(
    aspect: _Aspect,
    known: _Unheeded,
    name: str,
    onset: float,
    *,
    subject: Subject,
    unlike: bool,
) -> Finding:
    others = "other rails answer" if unlike else "no rail answers, maybe on purpose"
    return Finding(
        kind=KIND,
        subject=subject,
        onset=onset,
        evidence=known.evidence,
        summary=one_line(
            f"{name}: {aspect.text} since {clock(onset)}; {others}: a setting"
        ),
        severity=Severity.WARNING if unlike else Severity.INFO,
        confidence=0.8,
    )
