"""What came in and waits for the loop: bounded, from any thread."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from concurrent.futures import Future
from dataclasses import dataclass, field

from fabricmon.gate.messages import Told
from fabricmon.gate.report import Batch

MOST_WAITING = 1000
"""Messages that wait; a sender is asked to come again with more."""


@dataclass(frozen=True, slots=True)
class Letter:
    """A message; ``written`` is done once the journal has it."""

    content: Batch | Told
    written: Future[None] = field(default_factory=Future)


class Inbox:
    """A bounded queue into one loop, with a bell."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        """Start empty."""
        self._loop = loop
        self._bell = asyncio.Event()
        self._room = asyncio.Event()
        self._lock = threading.Lock()
        self._letters: deque[Letter] = deque()

    def offer(self, content: Batch | Told) -> Letter | None:
        """Take a message from any thread; None if there are too many already."""
        letter = Letter(content)
        with self._lock:
            if len(self._letters) >= MOST_WAITING:
                return None
            self._letters.append(letter)
        self.ring()
        return letter

    async def put(self, content: Batch | Told) -> None:
        """Take a message from the loop's own thread, as soon as there is room."""
        while self.offer(content) is None:
            self._room.clear()
            await self._room.wait()

    def ring(self) -> None:
        """Wake the loop, from any thread."""
        try:
            self._loop.call_soon_threadsafe(self._bell.set)
        except RuntimeError:  # the loop is closed: nobody is there to be woken
            return

    def take(self) -> list[Letter]:
        """Return all that waits, in the order in which it came."""
        with self._lock:
            letters = list(self._letters)
            self._letters.clear()
        self._room.set()
        return letters

    async def wait(self, seconds: float) -> None:
        """Wait until somebody rings, or so long."""
        try:
            async with asyncio.timeout(seconds):
                await self._bell.wait()
        except TimeoutError:
            return
        finally:
            self._bell.clear()
