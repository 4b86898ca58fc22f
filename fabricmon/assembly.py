"""Puts a pipeline together: the same way live, in replay and in the demo."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fabricmon.config import Config
from fabricmon.config_load import Loaded
from fabricmon.host.protocol import Host
from fabricmon.lanes import Reader
from fabricmon.model import Job, Record
from fabricmon.pipeline import Moment, Parts, Pipeline
from fabricmon.registry import DETECTORS, SOURCES
from fabricmon.sources.protocol import Source

Poll = Callable[[Job], tuple[Record, ...]]


def make_poll(host: Host, config: Config, sources: Sequence[Source]) -> Poll:
    """Return what runs a job: its source, on its target, through this host."""
    polls = {source.name: source.poll for source in sources}

    def poll(job: Job) -> tuple[Record, ...]:
        return polls[job.source](host, job.target, config)

    return poll


def moment(host: Host) -> Moment:
    """Return the host's clocks and counts now."""
    return Moment(host.monotonic(), host.wall(), host.firmware_reads)


def make_pipeline(
    host: Host,
    reader: Reader,
    loaded: Loaded,
    node: str,
    sources: Sequence[Source] = SOURCES,
    *,
    phase: float = 0.0,
) -> Pipeline:
    """Return a pipeline that starts now, with every registered detector.

    ``phase`` is where, in seconds, its grid of polls lies; see `phase_of`.
    """
    config = loaded.config
    parts = Parts(
        config=config,
        node=node,
        config_hash=loaded.hash,
        sources=sources,
        detectors=tuple(detector(config) for detector in DETECTORS),
        reader=reader,
        phase=phase,
    )
    return Pipeline(parts, moment(host))
