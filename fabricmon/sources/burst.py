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
    received: list[int | None] = []
    transmitted: list[int | None] = []
    for spec, value in zip(reading.specs, reading.values, strict=True):
        ours = received if spec.signal is Signal.BYTES_RECEIVED else transmitted
        ours.append(None if value is None else int(value * spec.factor))
    return BurstSample(reading.port, reading.at, _total(received), _total(transmitted))


def _total(values: Sequence[int | None]) -> int | None:
    """Return the bytes of one direction, None where a counter of it is absent."""
    known = [value for value in values if value is not None]
    return sum(known) if known and len(known) == len(values) else None
