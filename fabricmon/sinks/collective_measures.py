"""How local ranks fare in collectives and transfers, as NCCL's Inspector wrote it.

The number of series is bounded where the rates are made (``inspector.series``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from fabricmon.model import CollectiveRate
from fabricmon.sinks.measures import Sample, Samples, Scene

MOST_COMMUNICATORS = 32
"""Values of the label; those beyond share one."""

OTHER = "other"

Value = Callable[[CollectiveRate], float | None]


def collectives(value: Value) -> Samples:
    """Return a function for the collectives: ``comm, rank, collective, size``."""

    def samples(scene: Scene) -> Iterator[Sample]:
        rates = [rate for rate in scene.snapshot.job.rates if rate.peer is None]
        return _lowest(rates, value, lambda _: ())

    return samples


def transfers(value: Value) -> Samples:
    """Return a function for transfers between two ranks: the same, and ``peer``."""

    def samples(scene: Scene) -> Iterator[Sample]:
        rates = [rate for rate in scene.snapshot.job.rates if rate.peer is not None]
        return _lowest(rates, value, lambda rate: (rate.peer,))

    return samples


def _lowest(
    rates: list[CollectiveRate],
    value: Value,
    more: Callable[[CollectiveRate], tuple[object, ...]],
) -> Iterator[Sample]:
    """Yield one sample a series; of several that share a label the lowest."""
    names = sorted({rate.comm for rate in rates})[:MOST_COMMUNICATORS]
    found: dict[tuple[object, ...], float] = {}
    for rate in rates:
        measured = value(rate)
        if measured is not None:
            comm = rate.comm if rate.comm in names else OTHER
            key = (comm, rate.rank, rate.collective, rate.size_class, *more(rate))
            found[key] = min(measured, found.get(key, measured))
    return (Sample(key, number) for key, number in found.items())
