"""Packets that a port drops on their way out, for minutes, while its link is up.

The network takes them too slowly, so that they wait for longer than they may; or it
has no use for their size or lane. Either way this port is the one that suffers. An
outage of the link drops what is queued, and a job that is killed does so once or twice.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from msgspec import field

from fabricmon.catalogue import CounterSpec, Signal
from fabricmon.config import Congestion
from fabricmon.detect.evidence import source_of, unit_of
from fabricmon.detect.wording import clock, subject_of
from fabricmon.model import (
    Delta,
    Evidence,
    Finding,
    Mark,
    Move,
    Part,
    PortId,
    PortView,
    Role,
    Severity,
    View,
)
from fabricmon.summaries import one_line
from fabricmon.value import State

REST_SECONDS = 60.0
"""Without a drop for so long it is over, whatever the window still holds."""

MAX_READS = 64  # of one port that are remembered; what is judged are a few


class Discards(State):
    """Remembers when ports dropped packets on their way out."""

    limits: Congestion
    _reads: dict[PortId, deque[float]] = field(default_factory=dict)

    def note(self, move: Move) -> None:
        """Take in that the counter of a port grew."""
        reads = self._reads.setdefault(move.port, deque(maxlen=MAX_READS))
        if not reads or move.at > reads[-1]:
            reads.append(move.at)

    def judge(self, view: View) -> Iterator[Finding]:
        """Yield the ports that drop too much for too long."""
        if not self._reads:
            return
        oldest = view.now - self.limits.outbound_discard_seconds
        for port in view.ports:
            reads = self._reads.get(port.info.id)
            if reads is None or port.info.role is not Role.COMPUTE or port.info.is_vf:
                continue
            while reads and reads[0] < oldest:
                reads.popleft()
            if reads and view.now - reads[-1] <= REST_SECONDS:
                yield from self._of_port(port, reads, view)

    def _of_port(
        self, port: PortView, reads: deque[float], view: View
    ) -> Iterator[Finding]:
        limits, where = self.limits, port.info.id
        window = limits.outbound_discard_seconds
        least = limits.outbound_discards_per_second * window
        for spec in view.counters.by_signal(where, Signal.DISCARD):
            delta = view.counters.delta(where, spec, window)
            if delta is None or delta.increase < least:
                continue
            if len(reads) < limits.outbound_discard_reads and not _fills(delta, spec):
                continue
            if _was_down(port, window, view):
                return
            onset = reads[0] + view.onset_offset
            yield _tell(port, spec, delta, least=round(least), onset=onset)
            return


def _fills(delta: Delta, spec: CounterSpec) -> bool:
    """Tell whether the counter ran into its ceiling, through most of its field."""
    return delta.mark is Mark.SATURATED and 2 * delta.increase >= 1 << spec.width


def _was_down(port: PortView, seconds: float, view: View) -> bool:
    for spec in view.counters.by_signal(port.info.id, Signal.LINK_DOWN):
        delta = view.counters.delta(port.info.id, spec, seconds)
        if delta is not None and delta.increase > 0:
            return True
    return False


def _tell(
    port: PortView, spec: CounterSpec, delta: Delta, *, least: int, onset: float
) -> Finding:
    source, seconds = source_of(port.info, spec), round(delta.seconds, 1)
    bound = "at least " if delta.mark is Mark.SATURATED else ""
    return Finding(
        kind="congestion",
        subject=subject_of(port.info),
        onset=onset,
        evidence=(
            Evidence(spec.file, delta.increase, unit_of(spec), source, least, seconds),
        ),
        summary=one_line(
            f"{port.info.id} dropped {bound}{delta.increase} packets on their way out "
            f"since {clock(onset)}, its link is up: the network takes them too slowly "
            f"or not at all, no fault here"
        ),
        severity=Severity.WARNING,
        part=Part.VICTIM,
        confidence=0.7,
    )
