"""What counts once now and then on healthy ports: loners, and clusters by chance."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import inf
from random import Random

from fabricmon.sim.draw import poisson
from fabricmon.sim.effects import Effect, SimPort, Step
from fabricmon.sim.healthy import ADAPTIVE_PER_DAY, AER_PER_DAY, DAY
from fabricmon.sim.meters import Meter
from fabricmon.sim.profiles import Profile
from fabricmon.sim.thinning import Thinning

APART = 1000.0
"""Seconds between single events of a port, beyond any window in which they add up."""
CLUSTER = 3
"""So many within `APART` of each other are a cluster."""
CLUSTER_AFTER = 300.0
ACK_TIMEOUTS_PER_DAY = 1.0
"""Of a node: "one ack timeout per day" (N25)."""


@dataclass(frozen=True, slots=True)
class Singles:
    """What counts once now and then on a port, in seconds of life.

    ``background``: a port that plays in full counts it by itself.
    """

    port: SimPort
    meter: Meter
    loners: int
    clusters: tuple[tuple[float, ...], ...]
    background: bool


def draw_singles(
    profile: Profile, node: int, days: float, *, first: float, random: Random
) -> Iterable[Singles]:
    """Draw what counts on a node in so many days, at all ports that have a cable."""
    ports = [(slot.device, port) for slot in profile.slots for port in slot.used]
    meters = (
        (Meter.ACK_TIMEOUTS, 2 * ACK_TIMEOUTS_PER_DAY / len(ports), False),
        (Meter.ADAPTIVE_RETRANSMITS, ADAPTIVE_PER_DAY, True),
        (Meter.AER_CORRECTABLE, AER_PER_DAY, True),
    )
    for device, number in ports:
        for meter, most, background in meters:
            count = poisson(random, random.uniform(0, most) * days)
            times = sorted(random.uniform(first, days * DAY) for _ in range(count))
            together = tuple(clusters(times))
            loners = count - sum(map(len, together))
            port = SimPort(node, device, number)
            yield Singles(port, meter, loners, together, background)


def steps(
    singles: Iterable[Singles], time: Thinning, first: float, random: Random
) -> Iterable[Effect]:
    """Yield single events in thinned time."""
    for each in singles:
        together = [time(at) for cluster in each.clusters for at in cluster]
        alone = [
            at
            for at in _apart(random, each.loners, first, time.kept)
            if all(abs(at - other) >= APART for other in together)
        ]
        for at in (*together, *alone):
            yield Step(each.port, each.meter, at, 1)


def clusters(times: Sequence[float]) -> Iterable[tuple[float, ...]]:
    """Yield runs of at least `CLUSTER` moments, each within `APART` of the next."""
    run: list[float] = []
    for at in (*times, inf):
        if run and at - run[-1] > APART:
            if len(run) >= CLUSTER:
                yield tuple(run)
            run = []
        run.append(at)


def _apart(
    random: Random, count: int, first: float, duration: float
) -> Iterable[float]:
    """Yield so many moments, `APART` from each other, or as many as there is room."""
    count = min(count, max(int((duration - first) / APART), 0))
    room = duration - first - count * APART
    free = sorted(random.uniform(0.0, room) for _ in range(count))
    for number, at in enumerate(free):
        yield first + at + number * APART
