"""What the metrics about the node itself measure: its clock, addresses and place."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from fabricmon.sinks.measures import Sample, Scene
from fabricmon.topology import addresses_of

MOST_ADDRESSES = 32
"""Values of the label ``address``; one for all others would name nobody."""


def clock_error(scene: Scene) -> Iterable[Sample]:
    """Seconds by which the wall clock may be off; absent where nobody knows."""
    clock = scene.snapshot.host_side.clock
    if clock is None or clock.error_seconds is None:
        return ()
    return (Sample((), clock.error_seconds),)


def clock_synchronized(scene: Scene) -> Iterable[Sample]:
    """1 if something keeps the clock; absent where that cannot be asked."""
    clock = scene.snapshot.host_side.clock
    if clock is None or clock.is_synchronized is None:
        return ()
    return (Sample((), int(clock.is_synchronized)),)


def addresses(scene: Scene) -> Iterator[Sample]:
    """Each address by which other nodes may name this one, always 1."""
    for address in addresses_of(scene.snapshot)[:MOST_ADDRESSES]:
        yield Sample((address,), 1)


def place(scene: Scene) -> Iterable[Sample]:
    """Where the node stands, always 1; absent where nothing of it is known.

    The scraper's label ``cluster`` must not be overridden by what a topology says.
    """
    topology = scene.snapshot.topology
    where = (topology.rack, topology.nvlink_domain, topology.cluster)
    return (Sample(tuple(each or "" for each in where), 1),) if any(where) else ()
