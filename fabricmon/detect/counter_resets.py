"""Counters that fell, or rose by more than can be: cleared, started anew, garbage."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from fabricmon.config import Config
from fabricmon.detect.counter_sense import is_impossible
from fabricmon.detect.evidence import source_of, unit_of
from fabricmon.detect.grace import Grace
from fabricmon.detect.wording import subject_of
from fabricmon.model import (
    Evidence,
    Finding,
    Mark,
    Move,
    Part,
    PortId,
    PortInfo,
    Severity,
    Subject,
    View,
)
from fabricmon.summaries import one_line
from fabricmon.value import State

MOST_EVIDENCE = 8
"""Counters named in one finding; the rest is counted."""

MOST_NAMES = 3
"""Counters named in a summary."""

MOST_MOVES = 64
"""Falls of one port that are kept until they are told."""


class SavedReset(Struct, frozen=True):
    """When a port's reset was last told, Unix seconds."""

    device: str
    port: int
    told: float


class _Fallen(State):
    """The counters of one port that fell, until they are told."""

    info: PortInfo
    first: float
    moves: list[Move]


class CounterResets:
    """Tells a reset once, when all groups of counters had time to show it.

    Ports that reset together are one finding; a port that is cleared again and again
    is told once an hour.
    """

    def __init__(self, config: Config) -> None:
        """Take the limits."""
        self._limits = config.telemetry
        self._least_seconds = config.link_state.flap_least_seconds
        self._grace = Grace()
        self._fallen: dict[PortId, _Fallen] = {}
        self._told: dict[PortId, float] = {}

    def judge(self, view: View) -> Iterator[Finding]:
        """Yield the resets that are complete, once."""
        self._grace.observe(view)
        for move in view.moves:
            if move.mark is Mark.RESET or is_impossible(move, self._least_seconds):
                self._take(view, move)
        if not self._fallen:
            return
        first = min(fallen.first for fallen in self._fallen.values())
        if view.now - first >= self._limits.reset_settle_seconds:
            yield from self._tell(view)

    def save(self, offset: float) -> tuple[SavedReset, ...]:
        """Return when each port was told; ``offset`` is wall minus monotonic."""
        return tuple(
            SavedReset(port.device, port.port, at + offset)
            for port, at in self._told.items()
        )

    def restore(self, saved: tuple[SavedReset, ...], offset: float) -> None:
        """Take back what `save` returned."""
        for item in saved:
            self._told[PortId(item.device, item.port)] = item.told - offset

    def _take(self, view: View, move: Move) -> None:
        fallen = self._fallen.get(move.port)
        if fallen is None:
            info = next((p.info for p in view.ports if p.info.id == move.port), None)
            if info is None or info.is_vf:
                return
            fallen = self._fallen[move.port] = _Fallen(info, move.at, [])
        if len(fallen.moves) < MOST_MOVES:
            fallen.moves.append(move)

    def _tell(self, view: View) -> Iterator[Finding]:
        repeat = self._limits.reset_repeat_seconds
        self._told = {p: at for p, at in self._told.items() if view.now - at < repeat}
        new = [f for port, f in self._fallen.items() if port not in self._told]
        self._told.update((fallen.info.id, view.now) for fallen in new)
        together = len(self._fallen) > self._limits.reset_ports
        self._fallen.clear()
        if together and new:
            yield self._of_node(view, new)
        elif not together:
            for fallen in new:
                yield self._of_port(view, fallen)

    def _of_port(self, view: View, fallen: _Fallen) -> Finding:
        moves = fallen.moves
        files = tuple(dict.fromkeys(move.spec.file for move in moves))
        names = ", ".join(files[:MOST_NAMES])
        more = f" and {len(files) - MOST_NAMES} more" if files[MOST_NAMES:] else ""
        why, verb = self._why(fallen), "fell"
        if all(move.mark is not Mark.RESET for move in moves):
            why, verb = "more than can be, not counted as flaps", "jumped"
        return _finding(
            view, subject_of(fallen.info), [fallen], f"{names}{more} {verb}: {why}"
        )

    def _of_node(self, view: View, fallen: list[_Fallen]) -> Finding:
        why = self._why(fallen[0])
        summary = f"Counters of {len(fallen)} ports fell together: {why}"
        return _finding(view, Subject(), fallen, summary)

    def _why(self, fallen: _Fallen) -> str:
        """Say what it was, as far as the node tells."""
        limit = self._limits.reset_settle_seconds + max(
            (move.seconds for move in fallen.moves), default=0.0
        )
        if self._grace.since_boot(fallen.first) <= limit:
            return "the node booted"
        if self._grace.since_load(fallen.info.id.device, fallen.first) <= limit:
            return "the driver was loaded again"
        return "cleared by someone, or the device was reset; rates start anew"


def _finding(
    view: View, subject: Subject, fallen: list[_Fallen], summary: str
) -> Finding:
    moves = [(each.info, move) for each in fallen for move in each.moves]
    return Finding(
        kind="counter_reset",
        subject=subject,
        onset=min(each.first for each in fallen) + view.onset_offset,
        evidence=tuple(
            Evidence(
                signal=move.spec.file,
                value=f"{move.previous} -> {move.value}",
                unit=unit_of(move.spec),
                source=source_of(info, move.spec),
            )
            for info, move in moves[:MOST_EVIDENCE]
        ),
        summary=one_line(summary),
        severity=Severity.INFO,
        part=Part.OBSERVER,
    )
