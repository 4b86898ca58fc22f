"""The spool, asked from the loop: SQLite runs on a thread of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TypeVar

from fabricmon.sinks.mqtt_spool import Spool, Waiting
from fabricmon.sinks.mqtt_tally import Tally
from fabricmon.sinks.mqtt_threads import Worker

_T = TypeVar("_T")


class Store:
    """Runs each call on the spool's thread, in order, and keeps the counts."""

    def __init__(self, spool: Spool, broker: str, tally: Tally) -> None:
        """Start the thread; ``broker`` is whose retained topics are remembered."""
        self._spool = spool
        self._broker = broker
        self._tally = tally
        self._worker = Worker("mqtt-spool")
        self._dropped_before = tally.dropped

    @property
    def problem(self) -> str | None:
        """What the disk does not do."""
        return self._spool.problem

    async def open(self) -> tuple[str, ...]:
        """Open it; return the topics that the broker was given by an earlier run."""

        def start() -> tuple[str, ...]:
            self._spool.open()
            return self._spool.topics(self._broker)

        return await self._call(start)

    async def append(self, found: Sequence[bytes]) -> None:
        """Keep findings."""
        await self._call(lambda: self._spool.append(found))

    async def oldest(self, most: int) -> tuple[Waiting, ...]:
        """Return the oldest findings that wait."""
        if not self._tally.waiting:
            return ()
        return await self._call(lambda: self._spool.oldest(most))

    async def delivered(self, through: int) -> None:
        """Forget findings up to this number."""
        await self._call(lambda: self._spool.delivered(through))

    async def retain(self, topics: Sequence[str]) -> None:
        """Remember topics before they are published."""
        if topics:
            await self._call(lambda: self._spool.retain(self._broker, topics))

    async def release(self, topics: Sequence[str]) -> None:
        """Forget topics that the broker has forgotten."""
        await self._call(lambda: self._spool.release(self._broker, topics))

    async def close(self) -> None:
        """Close the data base, then end the thread."""
        try:
            await self._call(self._spool.close)
        finally:
            self._worker.end()

    async def _call(self, call: Callable[[], _T]) -> _T:
        def counted() -> _T:
            try:
                return call()
            finally:
                self._tally.waiting = self._spool.waiting
                self._tally.dropped = self._dropped_before + self._spool.dropped

        return await asyncio.wrap_future(self._worker.submit(counted))
