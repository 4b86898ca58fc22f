"""One recorded node through the same pipeline as a live one, as fast as it goes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import inf, nextafter
from pathlib import Path
from typing import Protocol

from fabricmon.assembly import make_pipeline, make_poll, moment
from fabricmon.config_load import Loaded, build
from fabricmon.errors import ConfigError, TraceError
from fabricmon.host.inline import InlineReader
from fabricmon.host.replay import ReplayHost, Wake
from fabricmon.host.trace import Header, TraceProblem
from fabricmon.host.trace_read import TraceReader
from fabricmon.model import Incident, PortPlace, Topology
from fabricmon.pipeline import Pipeline
from fabricmon.registry import SOURCES
from fabricmon.topology import of_node


@dataclass(frozen=True, slots=True)
class Change:
    """A finding that opened, changed or resolved, ``t`` seconds into the trace.

    ``at`` is the Unix time of that by the trace's start, which no clock step moves.
    """

    t: float
    at: float
    incident: Incident


class Watcher(Protocol):
    """Looks at a node that is replayed, between the steps of its agent."""

    def runs(self, pipeline: Pipeline, until: float) -> None:
        """The agent stays as it is until then (exclusive), seconds of the trace."""

    def silent(self, until: float) -> None:
        """The agent does not run until then (exclusive)."""


class Replay:
    """Plays one trace; `changes` does the work, the rest tells how it went.

    A configuration that is given wins over the one in the trace's header; ``places``
    are of use where the header has no topology. Raises `TraceError` where the header
    cannot be used.
    """

    def __init__(
        self,
        trace: Path | ReplayHost,
        loaded: Loaded | None = None,
        places: Sequence[PortPlace] = (),
        watcher: Watcher | None = None,
    ) -> None:
        """Open the trace and read its header; a host is one that just begins."""
        self._places = tuple(places)
        self._watcher = watcher
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
            if self._watcher is not None:
                self._look_on(self._watcher, wake)
            yield from self._step(wake)
        if self._watcher is not None:
            self._look_at_the_end(self._watcher)
        self.host.close()

    def _look_on(self, watcher: Watcher, wake: Wake) -> None:
        """Let somebody see the time that has passed before a step."""
        if wake.gap is not None:
            watcher.runs(self._pipeline, wake.gap.start)
            watcher.silent(wake.gap.end)
        watcher.runs(self._pipeline, wake.now)

    def _look_at_the_end(self, watcher: Watcher) -> None:
        end, since = self.host.monotonic(), self.host.silent_since
        watcher.runs(self._pipeline, nextafter(end, inf) if since is None else since)
        watcher.silent(nextafter(end, inf))

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
        known = topology(host.header)
        if not known.ports:
            known = replace(known, ports=self._places)
        pipeline.set_topology(known)
        self._pipeline = pipeline


def topology(header: Header) -> Topology:
    """Return the topology of a trace's header; what does not fit is left out."""
    return of_node(header.topology or {}, header.peers, header.node)


def _from_header(host: ReplayHost, path: str) -> Loaded:
    try:
        return build(dict(host.header.config or {}), (), ())
    except ConfigError as error:
        host.close()
        raise TraceError(f"header: config: {error}", path=path, line=1) from None
