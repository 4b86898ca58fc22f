"""One look at a node without an agent: every file once, or twice some seconds apart."""

from __future__ import annotations

from dataclasses import replace
from threading import Event

import msgspec

from fabricmon.assembly import make_pipeline, make_poll, moment
from fabricmon.catalogue import FaultClass
from fabricmon.config_load import Loaded
from fabricmon.driving import live_host
from fabricmon.model import Delta, PortId, Record, Target
from fabricmon.pipeline import Pipeline
from fabricmon.registry import SOURCES
from fabricmon.runtime.reader import ThreadReader
from fabricmon.sources.protocol import Lane, Poll

_SOURCES = tuple(
    source for source in SOURCES if source.lane in {Lane.NODE, Lane.DEVICE}
)

LONGEST_WAIT = 0.1
"""Seconds after which it is seen that a read hangs."""

_ERRORS = frozenset({FaultClass.LINK, FaultClass.RETRY})
"""Classes whose growth speaks against a port; congestion and traffic do not."""


class Sampler:
    """Reads a node through the pipeline of the agent, for as long as it is asked to.

    A read that hangs costs its own device: it is given up at the read deadline.
    """

    def __init__(self, loaded: Loaded, node: str, root: str | None = None) -> None:
        """Open nothing yet; ``root`` is where a copy of another node lies."""
        loaded = _with_virtual_functions(loaded)
        # Identity may take the whole deadline, and then what is read by it.
        self._patience = 2 * loaded.config.deadlines.read_seconds
        self._news = Event()
        self._host = live_host(loaded.config, root)
        poll = make_poll(self._host, loaded.config, _SOURCES)
        self._reader = ThreadReader(self._host, poll, self._news.set)
        self.pipeline: Pipeline = make_pipeline(
            self._host, self._reader, loaded, node, _SOURCES
        )

    def look(self, interval_seconds: float | None = None) -> None:
        """Read everything once; with an interval, go on and read it all again."""
        self._run(self._host.monotonic() + self._patience, until_seen=True)
        if interval_seconds is not None:
            self._run(self._host.monotonic() + interval_seconds, until_seen=False)
            self.pipeline.read_again()
            self._run(self._host.monotonic() + self._patience, until_seen=True)
        self.pipeline.step(moment(self._host), judge=True)  # what hangs, hangs by now

    def ask(self, poll: Poll) -> tuple[Record, ...]:
        """Run a poll of the whole node here and now: what is asked once, if at all."""
        return poll(self._host, Target(), self.pipeline.config)

    def read(self, path: str) -> bytes:
        """Read a file of the node; nothing where it cannot be read."""
        raw = self._host.read(path)
        return raw if isinstance(raw, bytes) else b""

    def growth(self, port: PortId, seconds: float) -> tuple[Delta, ...]:
        """Return the error counters of a port that grew in the newest ``seconds``."""
        window = self.pipeline.intake.window
        deltas = (
            window.delta(port, spec, seconds)
            for spec in window.specs(port)
            if spec.fault_class in _ERRORS
        )
        return tuple(delta for delta in deltas if delta is not None and delta.increase)

    def close(self) -> None:
        """Give up what still hangs."""
        self._reader.close(0)
        self._host.close()

    def _run(self, until: float, *, until_seen: bool) -> None:
        while (now := self._host.monotonic()) < until:
            self.pipeline.step(moment(self._host))
            if until_seen and self.pipeline.has_seen_all():
                return
            due = min(self.pipeline.next_due, until)
            longest = min(self._reader.look_seconds, LONGEST_WAIT)
            self._news.wait(max(min(due - now, longest), 0.001))
            self._news.clear()


def _with_virtual_functions(loaded: Loaded) -> Loaded:
    """Let one look read virtual functions whole; they are folded only in metrics."""
    devices = loaded.config.devices
    if devices.virtual_functions != "fold":
        return loaded
    devices = msgspec.structs.replace(devices, virtual_functions="export")
    config = msgspec.structs.replace(loaded.config, devices=devices)
    return replace(loaded, config=config)
