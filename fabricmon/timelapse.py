"""A recorded node as an agent's drive: the trace plays at a multiple of real time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from math import inf
from pathlib import Path

from fabricmon.assembly import Poll
from fabricmon.driving import Crash
from fabricmon.host.inline import InlineReader
from fabricmon.host.replay import ReplayHost
from fabricmon.host.trace_read import TraceReader
from fabricmon.lanes import InFlight, Reader

STEP_SECONDS = 0.2
"""Longest sleep of real time: the page and the heartbeat stay alive."""


class TimelapseDrive:
    """Plays a trace ``speed`` times faster than it happened.

    The clock of the host is the trace's; `wait` sleeps real time. What the trace calls
    a gap is played as if the agent ran. At the end of the trace ``ended`` is called,
    again and again, and the node stands still.
    """

    def __init__(self, trace: Path | ReplayHost, speed: float) -> None:
        """Open the trace; raises `TraceError` where its header cannot be used."""
        if not isinstance(trace, ReplayHost):
            trace = ReplayHost(TraceReader(trace))
        self._host = trace
        self._speed = speed
        self.ended: Callable[[], None] = lambda: None
        self._reader: InlineReader | None = None
        self._news: Callable[[], None] = lambda: None
        self._started = 0.0

    @property
    def host(self) -> ReplayHost:
        """The node of the trace."""
        return self._host

    @property
    def has_history(self) -> bool:
        """Nothing is kept of a node that is played."""
        return False

    @property
    def history_error(self) -> str | None:
        """Nothing can fail."""
        return None

    def make_reader(self, poll: Poll, crashed: Crash) -> Reader:
        """Return a reader that runs polls at once."""
        del crashed  # the outcome of a job tells its error
        self._reader = InlineReader(self._host, poll)
        return self._reader

    async def open(self, link_news: Callable[[], None]) -> None:
        """Start the clock."""
        self._news = link_news
        self._started = asyncio.get_running_loop().time()

    async def wait(self, due: float) -> None:
        """Let the trace go on to ``due``, to its next event, or for a moment."""
        event = self._reader.next_event() if self._reader is not None else None
        target = min(due, self._host.next_record, inf if event is None else event)
        loop = asyncio.get_running_loop()
        left = self._started + target / self._speed - loop.time()
        # Also when it is behind: the others have their turn.
        await asyncio.sleep(min(max(left, 0), STEP_SECONDS))
        if left > STEP_SECONDS:
            now = (loop.time() - self._started) * self._speed
            target = min(target, max(now, self._host.monotonic()))
        self._host.advance(target)
        self._news()
        if self._host.monotonic() >= self._host.end:
            self.ended()

    def ring(self) -> None:
        """Nothing sleeps for long here."""

    def close(self, seconds: float) -> tuple[InFlight, ...]:
        """Close the trace; no read of it can hang."""
        del seconds
        self._host.close()
        return ()
