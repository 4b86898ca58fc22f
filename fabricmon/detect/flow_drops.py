"""Packets that a port drops although flow control should have saved them.

Drops on receipt with no pause sent, losses that follow, and data on a priority that is
not lossless: together they are a setting, not congestion (``faults``, F36).
"""

from __future__ import annotations

from collections.abc import Iterator

from fabricmon.catalogue import Signal
from fabricmon.config import Congestion
from fabricmon.detect.evidence import source_of, unit_of
from fabricmon.detect.flow_levels import SIGNALS, Measure
from fabricmon.model import Evidence, HostPath, PortView, Role, View
from fabricmon.parse.words import LinkLayer

KIND = "config_mismatch"

LOSS_SECONDS = 60.0
"""Window of drops."""

_LOST = (Signal.OUT_OF_SEQUENCE, Signal.SEQUENCE_ERROR)


def is_rail(port: PortView) -> bool:
    """Tell whether priorities and notifications of Ethernet matter to a port."""
    info = port.info
    return (
        info.role is Role.COMPUTE
        and info.link_layer is LinkLayer.ETHERNET
        and not info.is_vf
    )


def listed(values: tuple[int, ...] | None) -> str | None:
    """Return priorities as text, None where they cannot be read."""
    if values is None:
        return None
    return ",".join(str(value) for value in values) or "none"


def dropped(port: PortView, limits: Congestion, view: View) -> Iterator[Evidence]:
    """Yield drops, losses and the priority used, if together they are a mismatch."""
    drops = list(_moved(port, (Signal.RECEIVE_DISCARD,), view))
    if not drops or max(rate for rate, _ in drops) < limits.discards_per_second:
        return
    pauses = SIGNALS[Measure.PAUSE_SENT]
    if not any(view.counters.by_signal(port.info.id, s) for s in pauses):
        return
    if any(_moved(port, pauses, view)):
        return
    lost = list(_moved(port, _LOST, view))
    carrying = _priority(port, view)
    if not lost or not _is_lossy(port, carrying[0] if carrying else None, view):
        return
    yield max(drops, key=lambda each: each[0])[1]
    yield max(lost, key=lambda each: each[0])[1]
    if carrying is not None:
        yield carrying[1]


def _is_lossy(port: PortView, carrying: str | None, view: View) -> bool:
    """Tell whether the data goes by a priority without flow control.

    Where the settings cannot be read, priority 0 is taken for one: it is the default
    of traffic that nobody marked.
    """
    path = view.job.host_path
    use = None if path is None else path.use_of(port.info)
    lossless = None if use is None else use.pfc_enabled
    if lossless is None:
        return carrying == "0"
    return not lossless or (
        carrying is not None and carrying not in {str(each) for each in lossless}
    )


def _moved(
    port: PortView, signals: tuple[Signal, ...], view: View
) -> Iterator[tuple[float, Evidence]]:
    """Yield the rate and the increase of each counter that moved in the window."""
    for signal in signals:
        for spec in view.counters.by_signal(port.info.id, signal):
            delta = view.counters.delta(port.info.id, spec, LOSS_SECONDS)
            if delta is not None and delta.increase > 0 and delta.seconds > 0:
                source = source_of(port.info, spec)
                seconds = round(delta.seconds, 1)
                yield (
                    delta.increase / delta.seconds,
                    Evidence(
                        spec.file, delta.increase, unit_of(spec), source, None, seconds
                    ),
                )


def _priority(port: PortView, view: View) -> tuple[str, Evidence] | None:
    """Return the priority that carries most of what arrives."""
    found: list[tuple[int, str, Evidence]] = []
    for spec in view.counters.by_signal(port.info.id, Signal.PRIORITY_BYTES_RECEIVED):
        delta = view.counters.delta(port.info.id, spec, LOSS_SECONDS)
        if delta is not None and delta.increase > 0:
            source = source_of(port.info, spec)
            seconds = round(delta.seconds, 1)
            item = Evidence(spec.file, delta.increase, "bytes", source, None, seconds)
            found.append((delta.increase, spec.label_value, item))
    if not found:
        return None
    _, priority, item = max(found, key=lambda each: each[0])
    return priority, item


def setting_of(port: PortView, path: HostPath | None) -> Iterator[Evidence]:
    """Yield the priorities with flow control, where they can be read."""
    use = None if path is None else path.use_of(port.info)
    if use is not None and use.pfc_enabled is not None:
        shown = listed(use.pfc_enabled)
        yield Evidence("pfc_enabled", shown, "priorities", f"dcb:{use.netdev}")
