"""Findings that wait for the broker: on disk, in memory where the disk takes none.

For one thread at a time. The order is that of `append`; what is in memory is newer than
all that is on disk. What the disk does not do is said in `problem` and never raised.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from sqlite3 import DatabaseError, OperationalError

from fabricmon.sinks.mqtt_disk import Bounds, Disk, DiskError
from fabricmon.value import Value

FILE = "mqtt-spool.sqlite"
"""Name of the data base in the state folder."""

ASIDE = ".broken"
"""Added to the name of a data base that cannot be read; the newest such is kept."""

_PARTS = ("", "-wal", "-shm", "-journal")


class Waiting(Value, frozen=True):
    """A finding that waits, and its number by which it is told to be delivered."""

    number: int
    payload: bytes


class Spool:
    """Keeps findings in order, bounded, the oldest dropped first and counted."""

    def __init__(self, folder: str, bounds: Bounds, in_memory: int) -> None:
        """Touch nothing yet; ``in_memory`` bounds what waits where no disk is."""
        self.path = Path(folder) / FILE
        self.problem: str | None = None
        """What the disk does not do, in one line; None while it does its work."""
        self._bounds = bounds
        self._in_memory = in_memory
        self._memory: deque[Waiting] = deque()
        self._memory_bytes = 0
        self._disk: Disk | None = None
        self._dropped = 0
        self._next = 1
        self._topics: set[str] = set()

    def open(self) -> None:
        """Take up what an earlier run left."""
        try:
            self._disk = Disk(self.path, self._bounds)
        except OperationalError as error:  # locked, not writable, no space
            self._refuse(error)
        except DatabaseError as error:
            self._set_aside(error)
        except OSError as error:
            self._refuse(error)
        if self._disk is not None:
            self._next = max(self._next, self._disk.last + 1)

    @property
    def dropped(self) -> int:
        """How many were dropped since the start."""
        return self._dropped + (self._disk.dropped if self._disk else 0)

    @property
    def waiting(self) -> int:
        """How many wait."""
        return len(self._memory) + (self._disk.rows if self._disk else 0)

    def append(self, payloads: Iterable[bytes]) -> None:
        """Keep these findings, the newest last."""
        news = [Waiting(self._next + n, each) for n, each in enumerate(payloads)]
        if not news:
            return
        self._next = news[-1].number + 1
        if not self._memory and self._write(news):
            return
        for each in news:
            self._memory.append(each)
            self._memory_bytes += len(each.payload)
        while (
            len(self._memory) > self._in_memory
            or self._memory_bytes > self._bounds.size
        ) and self._memory:
            self._memory_bytes -= len(self._memory.popleft().payload)
            self._dropped += 1

    def oldest(self, most: int) -> tuple[Waiting, ...]:
        """Return the oldest, ``most`` at most."""
        if self._disk is not None and self._disk.rows:
            try:
                found = self._disk.oldest(most)
            except DiskError as error:
                self._lose(error)
            else:
                if found:
                    return tuple(Waiting(*row) for row in found)
        return tuple(self._memory)[:most]

    def delivered(self, through: int) -> None:
        """Forget all findings up to this number."""
        while self._memory and self._memory[0].number <= through:
            self._memory_bytes -= len(self._memory.popleft().payload)
        if self._disk is None:
            if not self._memory:
                self._try_again()
            return
        try:
            self._disk.remove(through)
        except DiskError as error:
            self._refuse(error)
        else:
            if not self._memory:
                self.problem = None

    # Which topics the broker retains

    def topics(self, broker: str) -> tuple[str, ...]:
        """Return the retained topics that a broker was given, as far as is known."""
        if self._disk is not None:
            with suppress(DiskError):
                self._topics.update(self._disk.topics(broker))
        return tuple(self._topics)

    def retain(self, broker: str, topics: Sequence[str]) -> None:
        """Remember topics; to be called before they are published."""
        self._topics.update(topics)
        if self._disk is not None:
            try:
                self._disk.retain(broker, topics)
            except DiskError as error:
                self._refuse(error)

    def release(self, broker: str, topics: Sequence[str]) -> None:
        """Forget topics that the broker has forgotten."""
        self._topics.difference_update(topics)
        if self._disk is not None:
            try:
                self._disk.release(broker, topics)
            except DiskError as error:
                self._refuse(error)

    def close(self) -> None:
        """Close the data base; what is in memory is lost then, and was counted."""
        self._dropped += len(self._memory)
        self._memory.clear()
        if self._disk is not None:
            self._disk.close()
            self._disk = None

    def _write(self, news: Sequence[Waiting]) -> bool:
        if self._disk is None:
            return False
        try:
            self._disk.append([(each.number, each.payload) for each in news])
        except DiskError as error:
            self._refuse(error)
            return False
        self.problem = None
        return True

    def _set_aside(self, error: Exception) -> None:
        """Put a broken data base away and begin a new one."""
        try:
            for part in _PARTS:
                old = Path(f"{self.path}{part}")
                if old.exists():
                    old.replace(f"{self.path}{ASIDE}{part}")
            self._disk = Disk(self.path, self._bounds)
        except (OSError, DatabaseError) as again:
            self._refuse(again)
        else:
            self.problem = f"{self.path}: {error}; put aside, what waited in it is lost"

    def _lose(self, error: Exception) -> None:
        """Give up a data base that cannot be read any more."""
        if self._disk is not None:
            self._dropped += self._disk.rows + self._disk.dropped
            self._disk.close()
            self._disk = None
        self._refuse(error)

    def _try_again(self) -> None:
        """Take the disk back once nothing waits in memory."""
        self.open()
        if self._disk is not None:
            self.problem = None

    def _refuse(self, error: Exception) -> None:
        what = "findings wait in memory only"
        self.problem = f"{self.path}: {error}; {what}, {self._in_memory} at most"
