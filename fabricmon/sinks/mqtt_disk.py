"""The data base of the spool: SQLite, written so that kill -9 loses nothing committed.

Write-ahead logging with ``synchronous=NORMAL``: a killed process loses nothing, a power
cut the last moments, and neither damages the file. The lock is exclusive: one agent
has one spool, and no shared memory is needed, which some file systems cannot do.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from fabricmon.value import Value

DiskError = sqlite3.Error
"""What every method may raise; also errors of the disk itself."""

LOCK_SECONDS = 0.5
"""How long another agent's lock is waited for: one that is just ending lets go."""

CACHE_KIB = 256
"""Pages in memory; the default of 2 MiB is much for an agent."""

MOST_TOPICS = 20_000
"""Retained topics remembered of all brokers; the oldest are forgotten first."""

_MODE = 0o600
_PAGE = 4096
_ROOM = 4  # times the payloads: indexes, free pages and topics need room, too
_FLOOR = 1 << 20
_SETUP = f"""
PRAGMA locking_mode=EXCLUSIVE;
PRAGMA journal_mode=WAL;
PRAGMA synchronous=NORMAL;
PRAGMA cache_size=-{CACHE_KIB};
PRAGMA journal_size_limit={_FLOOR};
PRAGMA wal_autocheckpoint=64;
CREATE TABLE IF NOT EXISTS finding(number INTEGER PRIMARY KEY, payload BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS retained(
  broker TEXT NOT NULL, topic TEXT NOT NULL, PRIMARY KEY(broker, topic));
"""


class Bounds(Value, frozen=True):
    """How many findings wait at most, and how many bytes they may have."""

    rows: int
    size: int


class Disk:
    """One open data base; every method commits before it returns."""

    def __init__(self, path: Path, bounds: Bounds) -> None:
        """Open or make it; raises `OSError` and `sqlite3.DatabaseError`."""
        self._bounds = bounds
        self.dropped = 0
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        os.close(os.open(path, flags, _MODE))
        self._base = sqlite3.connect(
            path, timeout=LOCK_SECONDS, isolation_level=None, check_same_thread=False
        )
        try:
            self._base.executescript(_SETUP)
            most = max(bounds.size * _ROOM, _FLOOR) // _PAGE
            self._base.execute(f"PRAGMA max_page_count={most}")
            self.rows, self._size, self.last = self._measure()
        except sqlite3.Error:
            self._base.close()
            raise
        except UnicodeDecodeError as error:  # of the names in a damaged file
            self._base.close()
            raise sqlite3.DatabaseError(str(error)) from None
        self._gone = 0  # numbers up to here are delivered, though they may be there
        self._drop_excess()

    def append(self, rows: Sequence[tuple[int, bytes]]) -> None:
        """Add rows of growing numbers; drop the oldest beyond the bounds."""
        sql = "INSERT INTO finding VALUES(?, ?)"
        with self._transaction():
            self._base.executemany(sql, rows)
        self.rows += len(rows)
        self._size += sum(len(payload) for _, payload in rows)
        self.last = rows[-1][0]
        self._drop_excess()

    def oldest(self, most: int) -> list[tuple[int, bytes]]:
        """Return the oldest rows that are not delivered."""
        sql = "SELECT number, payload FROM finding WHERE number > ? ORDER BY 1 LIMIT ?"
        return self._base.execute(sql, (self._gone, most)).fetchall()

    def remove(self, through: int) -> None:
        """Delete rows up to a number; they are not returned again in any case."""
        self._gone = max(self._gone, through)
        sql = "SELECT count(*), coalesce(sum(length(payload)), 0) FROM finding"
        condition = " WHERE number <= ?"
        with self._transaction():
            rows, size = self._base.execute(sql + condition, (through,)).fetchone()
            self._base.execute(f"DELETE FROM finding{condition}", (through,))  # noqa: S608 - fixed text
        self.rows -= rows
        self._size -= size

    def topics(self, broker: str) -> list[str]:
        """Return the retained topics of a broker."""
        sql = "SELECT topic FROM retained WHERE broker = ?"
        return [topic for (topic,) in self._base.execute(sql, (broker,))]

    def retain(self, broker: str, topics: Sequence[str]) -> None:
        """Remember topics of a broker."""
        sql = "INSERT OR IGNORE INTO retained VALUES(?, ?)"
        trim = (
            "DELETE FROM retained WHERE rowid <= (SELECT max(rowid) FROM retained) - ?"
        )
        with self._transaction():
            self._base.executemany(sql, [(broker, topic) for topic in topics])
            self._base.execute(trim, (MOST_TOPICS,))

    def release(self, broker: str, topics: Sequence[str]) -> None:
        """Forget topics of a broker."""
        sql = "DELETE FROM retained WHERE broker = ? AND topic = ?"
        with self._transaction():
            self._base.executemany(sql, [(broker, topic) for topic in topics])

    def close(self) -> None:
        """Close it; the log is folded into the file."""
        with suppress(sqlite3.Error):
            self._base.close()

    def _measure(self) -> tuple[int, int, int]:
        sql = (
            "SELECT count(*), coalesce(sum(length(payload)), 0), "
            "coalesce(max(number), 0) FROM finding"
        )
        rows, size, last = self._base.execute(sql).fetchone()
        return rows, size, last

    def _drop_excess(self) -> None:
        """Drop the oldest rows that are too many, in one step."""
        excess, size = self.rows - self._bounds.rows, self._size - self._bounds.size
        if excess <= 0 and size <= 0:
            return
        through, found = 0, 0
        sql = "SELECT number, length(payload) FROM finding ORDER BY 1"
        for number, length in self._base.execute(sql):
            if excess <= found and size <= 0:
                break
            through, found, size = number, found + 1, size - length
        self.remove(through)
        self.dropped += found

    def _transaction(self) -> Any:
        return _Transaction(self._base)


class _Transaction:
    """Begins at once and commits, or takes everything back."""

    def __init__(self, base: sqlite3.Connection) -> None:
        self._base = base

    def __enter__(self) -> None:
        self._base.execute("BEGIN IMMEDIATE")

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            try:
                self._base.execute("COMMIT")
            except sqlite3.Error:
                self._undo()
                raise
        else:
            self._undo()

    def _undo(self) -> None:
        with suppress(sqlite3.Error):
            self._base.execute("ROLLBACK")
