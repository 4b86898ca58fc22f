"""What the metrics about the host's side measure; what never happened is absent."""

from __future__ import annotations

from collections.abc import Iterator

from fabricmon.sinks.measures import Sample, Scene


def kernel_events(scene: Scene) -> Iterator[Sample]:
    """Events of the kernel's log by kind: the kinds are those of its rules, no more."""
    for tally in scene.snapshot.host_side.tallies:
        yield Sample((tally.kind,), tally.events)


def lost_lines(scene: Scene) -> Iterator[Sample]:
    """Lines that were overwritten before they were read, if any."""
    lost = scene.snapshot.host_side.kernel_lost
    if lost:
        yield Sample((), lost)
