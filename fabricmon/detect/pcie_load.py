"""What a device does now: bytes on its ports, seconds in which the host held it up."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence

from fabricmon.catalogue import CounterSpec, Signal
from fabricmon.detect.evidence import source_of
from fabricmon.model import Evidence, Move, PortId, PortView, View
from fabricmon.value import Value

LOAD_SECONDS = 30.0
"""Traffic of so long says whether a device is at work."""

_BYTES = (Signal.BYTES_RECEIVED, Signal.BYTES_TRANSMITTED)
_BITS, _GIGA = 8, 1e9
_MOST = 64  # steps kept of one counter
_OLD_CODE_GTS = 5.0  # up to here 8 of 10 bits are data, then 128 of 130 (PCIe 3.0)
_FLIT_GTS = 64.0  # from here the code costs nothing (as the kernel reckons, pci.h)


def raw_gbps(width: int, speed_gts: float) -> float:
    """Return what a link carries, its code taken off (``PCIE_SPEED2MBS_ENC``)."""
    if speed_gts <= _OLD_CODE_GTS:
        return width * speed_gts * 8 / 10
    return width * speed_gts * (1.0 if speed_gts >= _FLIT_GTS else 128 / 130)


def line_rate(ports: Sequence[PortView]) -> float:
    """Return the sum of the line rates of a device's ports in Gb/s, 0 if unknown."""
    rates = [port.status.rate.gbps for port in ports if port.status is not None]
    return sum(rate for rate in rates if rate is not None)


def full_rate(ports: Sequence[PortView], best: Mapping[PortId, float]) -> float:
    """Return the sum of what a device's ports run at when well in Gb/s, 0 if unknown.

    A port that is down or slow tells a rate of now: the most of that, of what it had
    and of what it is expected to have counts. What its peers have is nothing that a
    port owes that was never ACTIVE.
    """
    total = 0.0
    for port in ports:
        info = port.info
        owes = port.ever_active or info.is_rate_configured
        expected = info.expected_rate_gbps if owes else None
        total += max(expected or 0.0, best.get(info.id, 0.0), line_rate((port,)))
    return total


def load_of(ports: Sequence[PortView], view: View) -> float | None:
    """Return the busier direction as a share of the line rate; None if unknown."""
    gbps = line_rate(ports)
    if not gbps:
        return None
    totals: list[float] = []
    for signal in _BYTES:
        rates = [_rate(port.info.id, signal, view) for port in ports]
        totals.append(sum(rate for rate in rates if rate is not None))
        if all(rate is None for rate in rates):
            return None
    return max(totals) * _BITS / _GIGA / gbps


def _rate(port: PortId, signal: Signal, view: View) -> float | None:
    specs = view.counters.by_signal(port, signal)
    for spec in specs[:1]:  # the first folder that counts them
        delta = view.counters.delta(port, spec, LOAD_SECONDS)
        if delta is not None and delta.seconds > 0:
            return delta.increase * spec.factor / delta.seconds
    return None


class _Step(Value, frozen=True):
    at: float
    seconds: int
    spec: CounterSpec
    port: PortId


class Stalls:
    """Seconds in which the host held a device up, by device, for a while."""

    def __init__(self, seconds: float) -> None:
        """Remember for so long."""
        self._seconds = seconds
        self._steps: dict[str, deque[_Step]] = {}

    def note(self, moves: Sequence[Move]) -> None:
        """Take in the steps of counters of stalls."""
        for move in moves:
            if move.spec.signal is Signal.PCI_STALL and move.previous is not None:
                kept = self._steps.setdefault(move.port.device, deque(maxlen=_MOST))
                kept.append(_Step(move.at, move.increase, move.spec, move.port))

    @property
    def devices(self) -> tuple[str, ...]:
        """The devices that were ever held up."""
        return tuple(self._steps)

    def share(self, device: str, now: float) -> float:
        """Return the share of the window in which the host held a device up.

        Where reads and writes are counted apart, the worse of them.
        """
        sums: dict[str, int] = {}
        for step in self._recent(device, now):
            sums[step.spec.file] = sums.get(step.spec.file, 0) + step.seconds
        return min(max(sums.values(), default=0) / self._seconds, 1.0)

    def evidence(
        self, device: str, ports: Sequence[PortView], now: float
    ) -> Iterator[Evidence]:
        """Yield the seconds of each counter in the window."""
        infos = {port.info.id: port.info for port in ports}
        steps = self._recent(device, now)
        for spec in dict.fromkeys(step.spec for step in steps):
            mine = [step for step in steps if step.spec is spec]
            info = infos.get(mine[0].port)
            if info is not None:
                total = sum(step.seconds for step in mine)
                source = source_of(info, spec)
                window = self._seconds
                yield Evidence(spec.file, total, "s", source, window_seconds=window)

    def _recent(self, device: str, now: float) -> list[_Step]:
        kept = self._steps.get(device)
        if kept is None:
            return []
        while kept and now - kept[0].at > self._seconds:
            kept.popleft()
        return list(kept)
