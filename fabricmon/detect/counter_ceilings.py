"""Error counters that stand at their ceiling: blind spots, one finding a port."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from fabricmon.catalogue import CounterSpec, FaultClass, Signal
from fabricmon.detect.evidence import source_of, unit_of
from fabricmon.detect.wording import subject_of
from fabricmon.model import (
    Evidence,
    Finding,
    Part,
    PortId,
    PortInfo,
    Severity,
    View,
)
from fabricmon.summaries import one_line
from fabricmon.value import State

IGNORED = frozenset({Signal.TRANSMIT_WAIT})
"""Full within a second of stall at 400 Gb/s, so always full somewhere: no blind spot."""

_SAME_STORY = {
    Signal.LINK_DOWN: (Signal.LINK_DOWN, Signal.CARRIER_DOWN),
    Signal.CARRIER_DOWN: (Signal.CARRIER_DOWN, Signal.LINK_DOWN),
    Signal.SYMBOL_ERROR: (Signal.SYMBOL_ERROR, Signal.RECEIVE_ERROR),
}


class SavedCeiling(Struct, frozen=True):
    """Since when a port has full counters, Unix seconds."""

    device: str
    port: int
    since: float


class _Full(State):
    """The full counters of a port and the finding that lists them."""

    specs: tuple[CounterSpec, ...]
    since: float
    finding: Finding | None


class CounterCeilings:
    """Lists what can show nothing any more, and what stands in for it."""

    def __init__(self) -> None:
        """Start knowing nothing."""
        self._full: dict[PortId, _Full] = {}
        self._since: dict[PortId, float] = {}

    def judge(self, view: View) -> Iterator[Finding]:
        """Yield one finding for each port that has full error counters."""
        for port in view.ports:
            specs = view.counters.saturated(port.info.id)
            if not specs:
                if self._full:
                    self._full.pop(port.info.id, None)
                continue
            full = self._full.get(port.info.id)
            if full is None or full.specs is not specs:
                full = self._look(view, port.info, specs, full)
            if full.finding is not None:
                yield full.finding

    def save(self) -> tuple[SavedCeiling, ...]:
        """Return since when each port has full counters."""
        return tuple(
            SavedCeiling(port.device, port.port, full.since)
            for port, full in self._full.items()
        )

    def restore(self, saved: tuple[SavedCeiling, ...]) -> None:
        """Take back what `save` returned."""
        for item in saved:
            self._since[PortId(item.device, item.port)] = item.since

    def _look(
        self,
        view: View,
        port: PortInfo,
        specs: tuple[CounterSpec, ...],
        before: _Full | None,
    ) -> _Full:
        since = before.since if before else self._since.pop(port.id, view.wall)
        errors = [spec for spec in specs if _is_error_counter(spec)]
        finding = _finding(view, port, errors, since) if errors else None
        if port.is_vf:
            finding = None
        self._full[port.id] = found = _Full(specs, since, finding)
        return found


def _is_error_counter(spec: CounterSpec) -> bool:
    return spec.fault_class is not FaultClass.TRAFFIC and spec.signal not in IGNORED


def _finding(
    view: View, port: PortInfo, specs: list[CounterSpec], since: float
) -> Finding:
    names = ", ".join(spec.file for spec in specs)
    instead = _substitutes(view, port.id, specs)
    told = f"; instead: {', '.join(instead)}" if instead else "; nothing stands in"
    return Finding(
        kind="counter_saturated",
        subject=subject_of(port),
        onset=since,
        evidence=tuple(
            Evidence(
                signal=spec.file,
                value=view.counters.value(port.id, spec),
                unit=unit_of(spec),
                source=source_of(port, spec),
                threshold=view.counters.value(port.id, spec),
            )
            for spec in specs
        ),
        summary=one_line(f"Full, shows nothing more: {names}{told}"),
        severity=Severity.INFO,
        part=Part.OBSERVER,
    )


def _substitutes(view: View, port: PortId, specs: list[CounterSpec]) -> tuple[str, ...]:
    """Return the counters that can still tell what the full ones cannot."""
    found: dict[str, None] = {}
    saturated = view.counters.saturated(port)
    for spec in specs:
        if spec.signal is None:
            continue
        for signal in _SAME_STORY.get(spec.signal, (spec.signal,)):
            for other in view.counters.by_signal(port, signal):
                live = view.counters.value(port, other) is not None
                if live and other not in saturated:
                    found[other.file] = None
    return tuple(found)
