"""What the newest burst windows measure; a port that was never sampled has none."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from fabricmon.model import Burst
from fabricmon.sinks.measures import Sample, Samples, Scene

P99 = "0.99"
"""The quantile of the rate that is exported."""


def each_burst(value: Callable[[Burst], float], *labels: str) -> Samples:
    """Return a function for one sample a port and direction."""

    def samples(scene: Scene) -> Iterator[Sample]:
        for burst in scene.snapshot.bursts:
            place = (burst.port.device, burst.port.port, burst.direction)
            yield Sample((*place, *labels), value(burst))

    return samples
