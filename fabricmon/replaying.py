"""One recorded node through the same pipeline as a live one, as fast as it goes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import starmap
from pathlib import Path

import msgspec

from fabricmon.assembly import make_pipeline, make_poll, moment
from fabricmon.config_load import Loaded, build
from fabricmon.errors import ConfigError, TraceError
from fabricmon.host.inline import InlineReader
from fabricmon.host.replay import ReplayHost, Wake
from fabricmon.host.trace import Header, TraceProblem
from fabricmon.host.trace_read import TraceReader
from fabricmon.model import Incident, PeerAddress, PortPlace, Topology
from fabricmon.pipeline import Pipeline
from fabricmon.registry import SOURCES


@dataclass(frozen=True, slots=True)
class Change:
    """A finding that opened, changed or resolved, ``t`` seconds into the trace.

    ``at`` is the Unix time of that by the trace's start, which no clock step moves.
    """

    t: float
    at: float
    incident: Incident


class Replay:
    """Plays one trace; `changes` does the work, the rest tells how it went.

    A configuration that is given wins over the one in the trace's header. Raises
    `TraceError` where the header cannot be used.
    """

    def __init__(self, trace: Path | ReplayHost, loaded: Loaded | None = None) -> None:
        """Open the trace and read its header; a host is one that just begins."""
        name = str(trace) if isinstance(trace, Path) else trace.header.node
        if isinstance(trace, Path):
            trace = ReplayHost(TraceReader(trace))
        self.host = trace
        self._loaded = loaded or _from_header(self.host, name)
        self._restart(None)

    @property
    def pipeline(self) -> Pipeline:
        """The node as it stands."""
        return self._pipeline

    @property
    def problems(self) -> tuple[TraceProblem, ...]:
        """Lines that could not be used, so far."""
        return self.host.problems

    def changes(self) -> Iterator[Change]:
        """Play to the last record; yield what changes, in order of time."""
        yield from self._step(None)
        for wake in self.host.moments(self._next_due, self._next_event):
            yield from self._step(wake)
        self.host.close()

    def _step(self, wake: Wake | None) -> Iterator[Change]:
        if wake is not None and wake.restarted:
            self._restart(self._pipeline)
        self._pipeline.hasten("link_events")
        for incident in self._pipeline.step(moment(self.host)):
            t = self.host.monotonic()
            yield Change(t, self.host.header.start + t, incident)

    def _next_due(self) -> float:
        return self._pipeline.next_due

    def _next_event(self) -> float | None:
        return self._reader.next_event()

    def _restart(self, previous: Pipeline | None) -> None:
        """Start the agent, with the state that an earlier one has saved."""
        host, config = self.host, self._loaded.config
        self._reader = InlineReader(host, make_poll(host, config, SOURCES))
        node = config.node or host.header.node
        pipeline = make_pipeline(host, self._reader, self._loaded, node)
        if previous is not None:
            pipeline.restore(previous.save())
        pipeline.set_topology(topology(host.header))
        self._pipeline = pipeline


def topology(header: Header) -> Topology:
    """Return the topology of a trace's header; what does not fit is left out."""
    document = header.topology or {}
    ports = document.get("ports")
    places = ports.items() if isinstance(ports, Mapping) else ()
    kept = []
    for port, place in places:
        with suppress(msgspec.ValidationError, TypeError):
            kept.append(msgspec.convert({"port": port, **place}, PortPlace))
    rack = document.get("rack")
    peers = tuple(starmap(PeerAddress, sorted(header.peers.items())))
    return Topology(rack if isinstance(rack, str) else None, tuple(kept), peers)


def _from_header(host: ReplayHost, path: str) -> Loaded:
    try:
        return build(dict(host.header.config or {}), (), ())
    except ConfigError as error:
        host.close()
        raise TraceError(f"header: config: {error}", path=path, line=1) from None
