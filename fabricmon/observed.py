"""What is known of each port now: the newest of every record, merged."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from fabricmon.catalogue import CounterSpec, FaultClass, Group, Signal
from fabricmon.model import (
    Counters,
    GroupedPlan,
    Hca,
    LinkStatus,
    NetdevStatus,
    PciStatus,
    PortId,
    Reading,
    ReadPlan,
)
from fabricmon.parse.words import PortState
from fabricmon.value import Value

TRAFFIC_POINTS = 60
"""Points of the traffic line on the page: a quarter of an hour at 15 s."""

HOUR_SECONDS = 3600.0

_OUTAGES = frozenset({Signal.LINK_DOWN, Signal.CARRIER_DOWN})  # told as flaps


class _Bytes(Value, frozen=True):
    """Where in a burst the counters of bytes stand; no group if there are none."""

    specs: tuple[CounterSpec, ...]
    group: Group | None
    received: tuple[int, ...]
    transmitted: tuple[int, ...]


@dataclass(slots=True)
class Observed:
    """One port as it was last seen."""

    id: PortId
    status: LinkStatus | None = None
    since: float = 0.0  # when the state that it is in was first seen
    complete: LinkStatus | None = None
    netdev: NetdevStatus | None = None
    readings: dict[Group, Reading] = field(default_factory=dict)
    was_active: bool = False
    last_down: float | None = None
    errors_per_hour: float | None = None
    errors_counted_at: float = -HOUR_SECONDS
    link_moved: bool = False
    bytes: _Bytes | None = None
    received: deque[float] = field(default_factory=lambda: deque(maxlen=TRAFFIC_POINTS))
    transmitted: deque[float] = field(
        default_factory=lambda: deque(maxlen=TRAFFIC_POINTS)
    )

    def take_status(self, new: LinkStatus) -> LinkStatus:
        """Merge a sample: one of ``state`` alone keeps the other fields' last values.

        Physical state and rate of another state are history, not knowledge: they are
        dropped until they are read again.
        """
        known = self.complete
        if not new.complete and known is not None and known.state == new.state:
            new = LinkStatus(
                port=new.port,
                at=new.at,
                state=new.state,
                phys_state=known.phys_state,
                rate=known.rate,
                lid=known.lid,
                sm_lid=known.sm_lid,
                absent=known.absent,
                complete=False,
            )
        if self.status is None or self.status.state is not new.state:
            self.since = new.at
        if new.complete:
            self.complete = new
        if new.state is PortState.ACTIVE:
            self.was_active = True
        self.status = new
        return new

    def take_traffic(self, reading: Reading, before: Reading | None) -> None:
        """Add a point to the traffic lines, in bytes per second.

        Where two groups count bytes (bnxt_re), the one for traffic is taken.
        """
        group = reading.specs[0].group
        if self.bytes is None or self.bytes.specs is not reading.specs:
            if self.bytes is not None and self.bytes.group not in {group, None}:
                return
            self.bytes = _find_bytes(reading.specs, group)
        elif before is not None and before.specs is reading.specs:
            seconds = reading.at - before.at
            _add(self.received, self.bytes.received, reading, before, seconds)
            _add(self.transmitted, self.bytes.transmitted, reading, before, seconds)

    def count_errors(self, counters: Counters, now: float) -> None:
        """Work out the link errors of the last hour; dear, so not at every step."""
        total, seen = 0, False
        for spec in counters.specs(self.id):
            if spec.fault_class is FaultClass.LINK and spec.signal not in _OUTAGES:
                delta = counters.delta(self.id, spec, HOUR_SECONDS)
                if delta is not None and delta.value is not None:
                    total, seen = total + delta.increase, True
        self.errors_per_hour = float(total) if seen else None
        self.errors_counted_at = now
        self.link_moved = False


def _find_bytes(specs: tuple[CounterSpec, ...], group: Group) -> _Bytes:
    """Find the counters of bytes in a burst; those of one folder add up."""
    found = [
        tuple(n for n, spec in enumerate(specs) if spec.signal is signal)
        for signal in (Signal.BYTES_RECEIVED, Signal.BYTES_TRANSMITTED)
    ]
    received, transmitted = (
        tuple(n for n in places if specs[n].directory is specs[places[0]].directory)
        for places in found
    )
    return _Bytes(specs, group if received else None, received, transmitted)


def _add(
    line: deque[float],
    places: tuple[int, ...],
    reading: Reading,
    before: Reading,
    seconds: float,
) -> None:
    """Add one point; a counter that fell or cannot be read adds none."""
    total = 0.0
    for place in places:
        new, old = reading.values[place], before.values[place]
        if new is None or old is None or new < old:
            return
        total += (new - old) * reading.specs[place].factor
    if places and seconds > 0:
        line.append(total / seconds)


def _plans_gone(before: Hca | None, hca: Hca) -> Iterator[GroupedPlan]:
    """Yield the plans of a device of whose files it has none any more."""
    files = {
        (each.plan.port, spec.directory, spec.file)
        for each in hca.plans
        for spec in each.plan.specs
    }
    for each in before.plans if before is not None else ():
        port, specs = each.plan.port, each.plan.specs
        if all((port, spec.directory, spec.file) not in files for spec in specs):
            yield each


class ObservedPorts:
    """Every port of the node as it was last seen, and the PCIe links."""

    def __init__(self) -> None:
        """Start without any port."""
        self._ports: dict[PortId, Observed] = {}
        self.pci: dict[str, PciStatus] = {}

    def __iter__(self) -> Iterator[Observed]:
        """Go through the ports in the order in which they were first seen."""
        return iter(self._ports.values())

    def port(self, port: PortId) -> Observed:
        """Return the port, new if it was never seen."""
        found = self._ports.get(port)
        if found is None:
            found = self._ports[port] = Observed(port)
        return found

    def keep_only(self, hca: Hca, before: Hca | None) -> tuple[ReadPlan, ...]:
        """Forget ports that a device no longer has, and values that nothing reads.

        Returns the plans whose files the device had ``before`` and has not any more.
        """
        have = {port.id for port in hca.ports} | {PortId(hca.name, 0)}
        for port in [p for p in self._ports if p.device == hca.name and p not in have]:
            del self._ports[port]
        gone = tuple(_plans_gone(before, hca))
        for each in gone:
            known = self._ports.get(each.plan.port)
            if known is not None:
                known.readings.pop(each.group, None)
        return tuple(each.plan for each in gone)

    def keep_answers(
        self, device: str, answers: Sequence[Reading]
    ) -> tuple[Reading, ...]:
        """Forget driver statistics of ports that gave none now; return what they were.

        The network device has left the namespace, or does not let itself be asked.
        """
        told = {reading.port for reading in answers}
        silent = (p for p in self if p.id.device == device and p.id not in told)
        found = (seen.readings.pop(Group.DRIVER, None) for seen in silent)
        return tuple(reading for reading in found if reading is not None)

    def forget(self, device: str) -> None:
        """Forget a device that is gone: its last values must not be shown."""
        self.pci.pop(device, None)
        for port in [port for port in self._ports if port.device == device]:
            del self._ports[port]
