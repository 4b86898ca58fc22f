"""Wake at fixed times without drift, or sooner when there is news.

Times are those of the event loop, which are the host's monotonic seconds. `asyncio`
alone would drift, and would not say when the process was kept from running.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Self

from fabricmon.value import Value


class Tick(Value, frozen=True):
    """One waking: when it was due, when it came, and how many were missed since."""

    due: float
    at: float
    missed: int

    @property
    def late_seconds(self) -> float:
        """How long the process was kept from running, or was busy."""
        return self.at - self.due


class Ticker(AsyncIterator[Tick]):
    """Ticks at ``phase + n x period`` seconds from its first use until ``stop`` is set.

    A tick that comes late does not move the next ones; those that were missed are
    counted, not made up for.
    """

    def __init__(
        self, period: float, stop: asyncio.Event, *, phase: float = 0.0
    ) -> None:
        self._period = period
        self._stop = stop
        self._phase = phase
        self._origin: float | None = None
        self._count = 0

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Tick:
        """Wait for the next tick; the end of the iteration is the end of the agent."""
        now = asyncio.get_running_loop().time
        if self._origin is None:
            self._origin = now() + self._phase
        due = self._origin + self._count * self._period
        with suppress(TimeoutError):
            async with asyncio.timeout_at(due):
                await self._stop.wait()
        if self._stop.is_set():
            raise StopAsyncIteration
        at = now()
        missed = max(int((at - due) // self._period), 0)
        self._count += 1 + missed
        return Tick(due, at, missed)


class Alarm:
    """Lets one task sleep until a time that it names, or until somebody rings.

    Belongs to the event loop that runs when it is made.
    """

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._rung = asyncio.Event()

    def ring(self) -> None:
        """Wake the sleeper, or the next one at once; from the loop's own thread."""
        self._rung.set()

    def ring_from_thread(self) -> None:
        """Do the same from any other thread; RuntimeError once the loop is closed."""
        self._loop.call_soon_threadsafe(self._rung.set)

    async def sleep_until(self, due: float) -> float:
        """Sleep; return by how many seconds it took longer than until ``due``.

        That is negative when somebody rang.
        """
        timer = self._loop.call_at(due, self._rung.set)
        try:
            await self._rung.wait()
        finally:
            timer.cancel()
        self._rung.clear()
        return self._loop.time() - due
