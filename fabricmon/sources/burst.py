"""One sample of a burst: the bytes of every port of a device, as they are now."""

from __future__ import annotations

from collections.abc import Sequence

from fabricmon.catalogue import Group, Signal
from fabricmon.config import Config
from fabricmon.host.protocol import Host
from fabricmon.model import BurstSample, Reading, Target
from fabricmon.sources.counters import read


def poll(host: Host, target: Target, _config: Config) -> tuple[BurstSample, ...]:
    """Read the byte counters of each port; a port without them gives no sample."""
    plans = target.hca.plans if target.hca else ()
    burst = [each.plan for each in plans if each.group is Group.BURST]
    return tuple([_sample(read(host, plan)) for plan in burst])


def _sample(reading: Reading) -> BurstSample:
    return BurstSample(
        port=reading.port,
        at=reading.at,
        received=_bytes(reading, Signal.BYTES_RECEIVED),
        transmitted=_bytes(reading, Signal.BYTES_TRANSMITTED),
    )


def _bytes(reading: Reading, signal: Signal) -> int | None:
    """Return the bytes of one direction, None where a counter of it is absent."""
    found: Sequence[int | None] = [
        None if value is None else int(value * spec.factor)
        for spec, value in zip(reading.specs, reading.values, strict=True)
        if spec.signal is signal
    ]
    known = [value for value in found if value is not None]
    return sum(known) if known and len(known) == len(found) else None
