"""The gate's journal on disk: what came in, what was decided, what was done.

One SQLite file, for one thread. Every call is one transaction that is on the disk when
it returns. An action is written before it begins; one without an outcome at the next
start is one that nobody saw end.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from fabricmon.errors import HostError
from fabricmon.gate.decision import Attempt, Known, Out, Outcome
from fabricmon.gate.report import Report, word

FILE = "journal.sqlite"
VERSION = 1
"""Of the layout; a newer one is not touched."""

BUSY_SECONDS = 5.0
"""How long a command and the gate wait for each other's transaction."""

_DAMAGE = (msgspec.MsgspecError, ValueError, TypeError, RecursionError)  # of a row

_FOLDER_MODE, _MODE = 0o750, 0o640  # the group may look; whoever writes decides

_TABLES = """
CREATE TABLE entries (
  number INTEGER PRIMARY KEY AUTOINCREMENT, time REAL NOT NULL, what TEXT NOT NULL,
  finding TEXT, node TEXT, kind TEXT, verdict TEXT, reason TEXT, detail TEXT
);
CREATE INDEX entries_time ON entries (time);
CREATE TABLE findings (
  id TEXT PRIMARY KEY, first REAL NOT NULL, changed REAL NOT NULL, told REAL NOT NULL,
  resolved REAL, report BLOB NOT NULL
);
CREATE TABLE actions (
  number INTEGER PRIMARY KEY AUTOINCREMENT, time REAL NOT NULL, node TEXT NOT NULL,
  finding TEXT NOT NULL, report BLOB NOT NULL, outcome TEXT, ended REAL,
  status INTEGER, output TEXT
);
CREATE TABLE outs (
  node TEXT PRIMARY KEY, since REAL NOT NULL, outcome TEXT NOT NULL,
  against TEXT NOT NULL, well REAL
);
CREATE TABLE rested (node TEXT PRIMARY KEY, at REAL NOT NULL);
CREATE TABLE releases (
  number INTEGER PRIMARY KEY AUTOINCREMENT, time REAL NOT NULL, node TEXT NOT NULL,
  who TEXT NOT NULL, taken INTEGER NOT NULL DEFAULT 0
);
"""


class Entry(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One line of the journal; ``time`` is Unix seconds."""

    time: float
    what: str
    finding: str | None = None
    node: str | None = None
    kind: str | None = None
    verdict: str | None = None
    reason: str | None = None
    detail: str | None = None


@dataclass(frozen=True, slots=True)
class Restored:
    """All that must survive a restart."""

    known: tuple[Known, ...]
    attempts: tuple[Attempt, ...]
    nodes: Nodes


@dataclass(frozen=True, slots=True)
class Release:
    """Somebody gives a node back."""

    number: int
    node: str
    who: str


@dataclass(frozen=True, slots=True)
class Unfinished:
    """An action whose end nobody saw."""

    number: int
    at: float
    report: Report


@dataclass(frozen=True, slots=True)
class Ended:
    """How an action ended; ``status`` is the script's, where it had one."""

    outcome: Outcome
    status: int | None = None
    output: str = ""


@dataclass(frozen=True, slots=True)
class Nodes:
    """How nodes stand: which are out, and since when others cool down."""

    outs: tuple[Out, ...] = ()
    rested: tuple[tuple[str, float], ...] = ()


class Journal:
    """The file, open for writing."""

    def __init__(self, folder: str) -> None:
        """Open it, or make it; raises `HostError`."""
        self._path = Path(folder, FILE)
        try:
            Path(folder).mkdir(mode=_FOLDER_MODE, parents=True, exist_ok=True)
            flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
            os.close(os.open(self._path, flags, _MODE))  # its log has the same mode
            self._base = sqlite3.connect(
                self._path,
                timeout=BUSY_SECONDS,
                isolation_level=None,
                check_same_thread=False,
            )
            self._prepare()
        except (OSError, sqlite3.Error, UnicodeDecodeError) as error:
            raise self._failure(error) from error

    def close(self) -> None:
        """Close the file."""
        self._base.close()

    def restored(self) -> Restored:
        """Return what was known when the gate ended; raises `HostError`."""
        with self._transaction("DEFERRED") as base:
            return Restored(
                known=tuple(_known(row) for row in base.execute(_FINDINGS)),
                attempts=tuple(_attempt(row) for row in base.execute(_ATTEMPTS)),
                nodes=Nodes(
                    tuple(_out(row) for row in base.execute(_OUTS)),
                    tuple(base.execute("SELECT node, at FROM rested")),
                ),
            )

    def unfinished(self) -> tuple[Unfinished, ...]:
        """Return actions without an outcome; raises `HostError`."""
        with self._transaction() as base:
            rows = base.execute(
                "SELECT number, time, report FROM actions WHERE outcome IS NULL"
            )
            return tuple(Unfinished(n, at, _report(blob)) for n, at, blob in rows)

    def note(
        self,
        entries: Sequence[Entry] = (),
        known: Iterable[Known] = (),
        gone: Iterable[str] = (),
        nodes: Nodes | None = None,
    ) -> None:
        """Write lines, findings and nodes as they stand; raises `HostError`."""
        with self._transaction() as base:
            _write(base, entries)
            if nodes is not None:
                _write_nodes(base, nodes)
            base.executemany(
                "REPLACE INTO findings VALUES (?, ?, ?, ?, ?, ?)",
                [_row(each) for each in known],
            )
            base.executemany(
                "DELETE FROM findings WHERE id = ?", [(key,) for key in gone]
            )

    def begin(self, report: Report, now: float, nodes: Nodes) -> int:
        """Write that an action begins; return its number. Raises `HostError`."""
        with self._transaction() as base:
            _write(base, (_line(report, now, "begun"),))
            _write_nodes(base, nodes)
            cursor = base.execute(
                "INSERT INTO actions (time, node, finding, report) VALUES (?, ?, ?, ?)",
                (now, report.node, report.id, _encoded(report)),
            )
            return int(cursor.lastrowid or 0)

    def rehearse(self, report: Report, now: float, nodes: Nodes) -> None:
        """Write what would have been done; raises `HostError`."""
        outcome = Outcome.DRY_RUN.value
        with self._transaction() as base:
            _write(base, (_line(report, now, "withheld", outcome),))
            _write_nodes(base, nodes)
            base.execute(
                "INSERT INTO actions (time, node, finding, report, outcome, ended)"
                " VALUES (?, ?, ?, ?, ?, ?)",
                (now, report.node, report.id, _encoded(report), outcome, now),
            )

    def end(
        self, number: int, report: Report, ended: Ended, now: float, nodes: Nodes
    ) -> None:
        """Write how an action ended; raises `HostError`."""
        status = "" if ended.status is None else f"status {ended.status}"
        told = ": ".join(filter(None, (status, " ".join(ended.output.split()))))
        entry = _line(report, now, "acted", ended.outcome.value, told)
        with self._transaction() as base:
            _write(base, (entry,))
            _write_nodes(base, nodes)
            base.execute(
                "UPDATE actions SET outcome = ?, ended = ?, status = ?, output = ?"
                " WHERE number = ?",
                (ended.outcome.value, now, ended.status, ended.output, number),
            )

    def forget_rehearsal(self) -> None:
        """Let actions of a dry-run count no more; raises `HostError`."""
        with self._transaction() as base:
            base.execute(
                "DELETE FROM actions WHERE outcome = ?", (Outcome.DRY_RUN.value,)
            )

    def releases(self) -> tuple[Release, ...]:
        """Return what commands asked for and was not done yet; raises `HostError`."""
        with self._transaction("DEFERRED") as base:
            rows = base.execute(
                "SELECT number, node, who FROM releases WHERE taken = 0"
            )
            return tuple(Release(*row) for row in rows)

    def taken(self, release: Release, nodes: Nodes) -> None:
        """Write that a release was done; raises `HostError`."""
        with self._transaction() as base:
            _write_nodes(base, nodes)
            base.execute(
                "UPDATE releases SET taken = 1 WHERE number = ?", (release.number,)
            )

    def ask_release(self, node: str, who: str, now: float) -> None:
        """Ask the gate to take a node for back; raises `HostError`."""
        with self._transaction() as base:
            base.execute(
                "INSERT INTO releases (time, node, who) VALUES (?, ?, ?)",
                (now, node, who),
            )

    def prune(self, before: float, most: int) -> None:
        """Forget what is older, and what is more than so many lines; `HostError`."""
        with self._transaction() as base:
            base.execute("DELETE FROM entries WHERE time < ?", (before,))
            base.execute(
                "DELETE FROM entries WHERE number <="
                " (SELECT max(number) FROM entries) - ?",
                (most,),
            )
            base.execute(
                "DELETE FROM actions WHERE time < ? AND outcome IS NOT NULL", (before,)
            )
            base.execute("DELETE FROM releases WHERE time < ? AND taken", (before,))

    def _prepare(self) -> None:
        # A journal that is deleted with each transaction: readers need no right to
        # write, and FULL has the disk confirm before an action begins.
        self._base.execute("PRAGMA synchronous = FULL")
        (version,) = self._base.execute("PRAGMA user_version").fetchone()
        if version > VERSION:
            raise HostError(
                f"made by a newer version ({version}); name another folder",
                path=str(self._path),
            )
        if version == 0:
            self._base.executescript(
                f"BEGIN; {_TABLES} PRAGMA user_version = {VERSION}; COMMIT;"
            )

    @contextmanager
    def _transaction(self, how: str = "IMMEDIATE") -> Iterator[sqlite3.Connection]:
        try:
            self._base.execute(f"BEGIN {how}")
            try:
                yield self._base
            except BaseException:
                self._base.execute("ROLLBACK")
                raise
            self._base.execute("COMMIT")
        except sqlite3.Error as error:
            raise self._failure(error) from error

    def _failure(self, error: Exception) -> HostError:
        return HostError(f"the journal cannot be used: {error}", path=str(self._path))


def read_entries(folder: str, last: int | None = None) -> Iterator[Entry]:
    """Yield the lines of a journal, the oldest first; raises `HostError`.

    Nothing is written; the gate may run meanwhile.
    """
    path = Path(folder, FILE)
    names = ", ".join(Entry.__struct_fields__)
    wanted = f"SELECT {names}, number FROM entries ORDER BY number DESC LIMIT ?"  # noqa: S608 - names of the struct
    try:
        base = sqlite3.connect(
            f"{path.absolute().as_uri()}?mode=ro", timeout=BUSY_SECONDS, uri=True
        )
        with closing(base):
            limit = -1 if last is None else last
            rows = base.execute(
                f"SELECT * FROM ({wanted}) ORDER BY number",  # noqa: S608 - see above
                (limit,),
            )
            for row in rows:
                yield Entry(**dict(zip(Entry.__struct_fields__, row, strict=False)))
    except (sqlite3.Error, UnicodeDecodeError) as error:
        message = f"the journal cannot be read: {error}"
        raise HostError(message, path=str(path)) from None


_FINDINGS = "SELECT report, first, changed, told, resolved FROM findings"
_OUTS = "SELECT node, since, outcome, against, well FROM outs"
_ATTEMPTS = "SELECT node, time, outcome FROM actions"


def _write(base: sqlite3.Connection, entries: Iterable[Entry]) -> None:
    names = Entry.__struct_fields__
    marks = ", ".join("?" * len(names))
    base.executemany(
        f"INSERT INTO entries ({', '.join(names)}) VALUES ({marks})",  # noqa: S608 - names of the struct
        [tuple(getattr(each, name) for name in names) for each in entries],
    )


def _write_nodes(base: sqlite3.Connection, nodes: Nodes) -> None:
    base.execute("DELETE FROM outs")
    rows = [_out_row(each) for each in nodes.outs]
    base.executemany("INSERT INTO outs VALUES (?, ?, ?, ?, ?)", rows)
    base.execute("DELETE FROM rested")
    base.executemany("INSERT INTO rested VALUES (?, ?)", nodes.rested)


def _line(
    report: Report, now: float, what: str, verdict: str | None = None, detail: str = ""
) -> Entry:
    finding = report.finding
    return Entry(
        time=now,
        what=what,
        finding=word(report.id),
        node=word(report.node),
        kind=word(finding.kind),
        verdict=verdict,
        detail=word(detail or finding.summary),
    )


def _encoded(report: Report) -> bytes:
    return msgspec.json.encode(report)


def _report(blob: bytes) -> Report:
    try:
        return msgspec.json.decode(blob, type=Report)
    except _DAMAGE as error:
        raise sqlite3.DatabaseError(f"a finding is damaged: {error}") from None


def _known(row: Sequence[Any]) -> Known:
    blob, *times = row
    return Known(_report(blob), *times)


def _row(known: Known) -> tuple[Any, ...]:
    report = known.report
    times = (known.first, known.changed, known.told, known.resolved)
    return report.id, *times, _encoded(report)


def _out(row: Sequence[Any]) -> Out:
    node, since, outcome, against, well = row
    try:
        ids = set(msgspec.json.decode(against, type=list[str]))
        return Out(node, since, Outcome(outcome), ids, well)
    except _DAMAGE as error:
        raise sqlite3.DatabaseError(f"a node is damaged: {error}") from None


def _out_row(out: Out) -> tuple[Any, ...]:
    against = msgspec.json.encode(sorted(out.against)).decode()
    return out.node, out.since, out.outcome.value, against, out.well


def _attempt(row: Sequence[Any]) -> Attempt:
    node, at, outcome = row
    return Attempt(node, at, is_dry=outcome == Outcome.DRY_RUN.value)
