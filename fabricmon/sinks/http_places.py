"""So many clients are served at a time; who keeps others waiting makes room for them.

Nobody can tell a slow client from one that attacks. Both are let be while there are
places; when all are taken, a client that had its time to do its part is cut off.
"""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import IntEnum
from math import inf

SHORTEST_SECONDS = 0.1
"""How long a place is waited for at least: one that was cut off needs a moment."""


class Part(IntEnum):
    """What a client has to do; whoever has the least to lose is cut off first."""

    LEAVING = 0  # it has its answer, and is to hang up
    ASKING = 1
    TAKING = 2


class _Client:
    """What is waited for from a client, since when, and whether it was cut off."""

    __slots__ = ("connection", "is_cut", "part", "since")

    def __init__(self, connection: socket.socket, part: Part, since: float) -> None:
        self.connection = connection
        self.part = part
        self.since = since
        self.is_cut = False


class Places:
    """Gives places to connections, from any thread."""

    def __init__(self, many: int, patience_seconds: float) -> None:
        """``patience_seconds``: nobody is cut off who has had less for its part."""
        self._free = threading.BoundedSemaphore(many)
        self._patience = patience_seconds
        self._lock = threading.Lock()
        self._clients: dict[int, _Client] = {}

    def take(self, is_stopping: Callable[[], bool]) -> bool:
        """Take a place, at need that of a client; False if none is to be had soon.

        "Soon" is as long as a client may be waited for; who waits meanwhile waits in
        the kernel's queue.
        """
        end = time.monotonic() + self._patience + SHORTEST_SECONDS
        while not self._free.acquire(blocking=False):
            left = end - time.monotonic()
            if left <= 0 or is_stopping():
                return False
            pause = min(self._make_room(), left, SHORTEST_SECONDS)
            if self._free.acquire(timeout=pause):
                break
        return True

    def leave(self) -> None:
        """Give a place back."""
        self._free.release()

    @contextmanager
    def waits(self, connection: socket.socket, part: Part) -> Iterator[None]:
        """Note what is waited for within the block; it may end with an error."""
        client = _Client(connection, part, time.monotonic())
        with self._lock:
            self._clients[id(client)] = client
        try:
            yield
        finally:
            with self._lock:
                del self._clients[id(client)]

    def _make_room(self) -> float:
        """Cut off one client; return how many seconds later there may be another."""
        now = time.monotonic()
        with self._lock:
            waited = [each for each in self._clients.values() if not each.is_cut]
            ripe = [each for each in waited if self._ripe_at(each) <= now]
            if not ripe:
                return min(map(self._ripe_at, waited), default=inf) - now
            first = min(ripe, key=lambda each: (each.part, each.since))
            first.is_cut = True
            with contextlib.suppress(OSError):  # TLS would say goodbye first
                socket.socket.shutdown(first.connection, socket.SHUT_RDWR)
        return inf

    def _ripe_at(self, client: _Client) -> float:
        return client.since + (self._patience if client.part else 0.0)
