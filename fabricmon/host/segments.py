"""Traces in a folder, one after the other: what is too old or too much is removed.

A thread of their own encodes, compresses and writes: a slow or hung disk delays no
read, and what it does not take ends the history, nothing else.
"""

from __future__ import annotations

import os
import re
import time
from collections import deque
from errno import EAGAIN, ELOOP, ETIMEDOUT
from pathlib import Path
from threading import Condition, Thread

from fabricmon.host.store import holds
from fabricmon.host.trace import Header, TraceRecord
from fabricmon.host.trace_write import PART, TraceWriter
from fabricmon.value import Value

FOLDER = "history"
"""Within the state folder."""

FLUSH_SECONDS = 5.0
"""At most so much is lost when the agent is killed."""

MOST_WAITING = 50_000
"""Records that wait for the disk; a busy minute of eight ports has some thousands."""

MOST_SECONDS_WAITING = 60.0
"""So long records may come while the disk takes none: a hung one is given up before
they fill the memory."""

LAST_SECONDS = 0.5
"""How long the end of the agent waits for the disk."""

_FULL_SHARE = 0.2  # of the room, before another segment begins
_LEVEL = 1  # of compression: a third of the time of gzip's own choice
_FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NAME = re.compile(r"(\d{6,12})-(\d{6,12})\.trace\.jsonl\.gz")


class Segment(Value, frozen=True):
    """A trace of a history; those of one ``life`` of the agent follow at once."""

    path: Path
    life: int
    number: int


class _Kept(Value, frozen=True):
    path: Path
    ended: float  # monotonic seconds
    size: int


class _Begin(Value, frozen=True):
    path: str
    header: Header


class _End(Value, frozen=True):
    pass


class _Tape:
    """One segment as its host sees it."""

    def __init__(self, segments: Segments) -> None:
        self.write = segments.write
        self._segments = segments

    def flush(self) -> None:
        """Nothing: the thread flushes by its own clock."""

    def close(self) -> None:
        """Complete it, once the disk has taken the rest."""
        self._segments.end()

    def abandon(self) -> None:
        """Leave it as it is."""
        self._segments.end()


def segments_in(folder: Path) -> list[Segment]:
    """Return the segments of a folder in order, also one that is being written.

    Raises `OSError` for a folder that cannot be listed.
    """
    found = []
    for path in folder.iterdir():
        match = _NAME.fullmatch(path.name.removesuffix(PART))
        if match is not None:
            found.append(Segment(path, int(match[1]), int(match[2])))
    return sorted(found, key=lambda each: (each.life, each.number))


class Segments:
    """Writes one segment at a time and keeps those of the last seconds.

    Args:
        folder: Where they lie; it is made, for its owner alone.
        seconds: Segments that ended longer ago are removed.
        most_bytes: All of them together; the oldest go first.
    """

    def __init__(self, folder: Path, seconds: float, most_bytes: int) -> None:
        self._folder = folder
        self._seconds = seconds
        self._most_bytes = most_bytes
        self.error: str | None = None
        """Why nothing is written any more."""
        self.is_full = False
        """Whether the segment that is written has had its share of the room."""
        self._life, self._number = 1, 0
        self._news = Condition()
        self._waiting: deque[TraceRecord | _Begin | _End] = deque()
        self._gave_at = time.monotonic()
        self._unanswered = 0.0  # seconds in which records came and the disk took none
        self._ended = False
        self._kept: deque[_Kept] = deque()
        self._writer: TraceWriter | None = None
        self._part = folder
        self._lock: int | None = None
        self._thread = Thread(target=self._serve, name="history", daemon=True)
        try:
            self._find(segments_in(folder))
        except FileNotFoundError:
            pass
        except OSError as error:
            self._fail(error)
        try:
            self._thread.start()
        except RuntimeError as error:  # out of threads
            self._fail(error)

    def next_path(self) -> str:
        """Return where the next segment lies."""
        self._number += 1
        name = f"{self._life:06d}-{self._number:06d}.trace.jsonl.gz"
        return str(self._folder / name)

    def open(self, path: str, header: Header) -> _Tape:
        """Begin a segment, after all that was given before."""
        self.is_full = False
        self._give(_Begin(path, header))
        return _Tape(self)

    def write(self, record: TraceRecord) -> None:
        """Give a record of the segment; `OSError` if the disk does not follow."""
        self._give(record)

    def end(self) -> None:
        """Complete the segment."""
        self._waiting.append(_End())

    def finish(self) -> None:
        """Write what waits, for at most `LAST_SECONDS`."""
        with self._news:
            self._ended = True
            self._news.notify()
        if self._thread.ident is not None:
            self._thread.join(LAST_SECONDS)

    def _give(self, item: TraceRecord | _Begin | _End) -> None:
        if self.error is not None:
            return
        # A process that was stopped for long has not waited for so long.
        now = time.monotonic()
        self._unanswered += min(now - self._gave_at, FLUSH_SECONDS)
        self._gave_at = now
        is_hung = self._unanswered > MOST_SECONDS_WAITING
        if is_hung or len(self._waiting) >= MOST_WAITING:
            raise OSError(ETIMEDOUT, "the disk does not answer")
        self._waiting.append(item)

    # In the thread

    def _serve(self) -> None:
        try:
            if self.error is None:
                self._make_folder()
                self._hold_folder()
            while self.error is None and self._turn():
                pass
        except OSError as error:
            self._fail(error)
        except Exception as error:  # noqa: BLE001 -- a flaw here must not end the agent
            self._fail(error)
        if self._writer is not None:
            self._writer.abandon()
        self._waiting.clear()
        if self._lock is not None:
            os.close(self._lock)

    def _turn(self) -> bool:
        """Write what has come in; False once that was the last."""
        with self._news:
            if not self._ended:
                self._news.wait(FLUSH_SECONDS)
            goes_on = not self._ended
        for _ in range(len(self._waiting)):
            self._take(self._waiting.popleft())
            self._unanswered = 0.0
        if self._writer is not None:
            self._writer.flush()
        self._make_room()
        self._unanswered = 0.0
        return goes_on

    def _take(self, item: TraceRecord | _Begin | _End) -> None:
        if isinstance(item, _Begin):
            path = Path(item.path)
            self._part = path.with_name(path.name + PART)
            self._writer = TraceWriter(path, item.header, private=True, level=_LEVEL)
        elif self._writer is None:
            return
        elif isinstance(item, TraceRecord):
            self._writer.write(item)
        else:
            self._writer.close()
            self._writer = None
            whole = self._part.with_name(self._part.name.removesuffix(PART))
            size = whole.stat().st_size
            self._kept.append(_Kept(whole, time.monotonic(), size))

    def _make_folder(self) -> None:
        if self._folder.is_symlink():
            raise OSError(ELOOP, "is a link")
        for folder in (self._folder.parent, self._folder):  # parents have no mode
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def _hold_folder(self) -> None:
        """Keep other agents out: each would remove what the other one writes."""
        self._lock = os.open(self._folder, _FOLDER_FLAGS)
        if not holds(self._lock):
            why = "another agent keeps its own here; give each its own state_folder"
            raise OSError(EAGAIN, why)

    def _find(self, found: list[Segment]) -> None:
        """Take over what earlier agents left, by when it was last written."""
        self._life += max((each.life for each in found), default=0)
        now, wall = time.monotonic(), time.time()
        for each in found:
            status = each.path.lstat()
            age = max(wall - status.st_mtime, 0.0)
            self._kept.append(_Kept(each.path, now - age, status.st_size))

    def _make_room(self) -> None:
        """Remove what is too old, then the oldest until the rest has room."""
        size = self._part.stat().st_size if self._writer is not None else 0
        self.is_full = size >= self._most_bytes * _FULL_SHARE
        size += sum(each.size for each in self._kept)
        since = time.monotonic() - self._seconds
        while self._kept and (self._kept[0].ended < since or size > self._most_bytes):
            oldest = self._kept.popleft()
            oldest.path.unlink(missing_ok=True)
            size -= oldest.size

    def _fail(self, error: Exception) -> None:
        why = getattr(error, "strerror", None) or f"{type(error).__name__}: {error}"
        self.error = f"{self._folder}: the history has ended: {why}"
