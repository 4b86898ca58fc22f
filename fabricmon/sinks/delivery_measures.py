"""What the metrics about sinks that send measure; nothing while none is on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from fabricmon.model import Delivery
from fabricmon.sinks.measures import Sample, Samples, Scene


def each(value: Callable[[Delivery], float]) -> Samples:
    """Return a function for one number of each sink."""

    def samples(scene: Scene) -> Iterable[Sample]:
        return [Sample((d.sink,), value(d)) for d in scene.snapshot.deliveries]

    return samples


def success_age(scene: Scene) -> Iterator[Sample]:
    """Seconds since the server last took something; absent is never."""
    for delivery in scene.snapshot.deliveries:
        if delivery.last_success is not None:
            age = max(scene.now - delivery.last_success, 0.0)
            yield Sample((delivery.sink,), age)
