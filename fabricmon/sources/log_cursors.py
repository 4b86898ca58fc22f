"""How far each log file was read: what one poll hands to the next, and what is saved."""

from __future__ import annotations

from dataclasses import replace

import msgspec

from fabricmon.model import LogCounts
from fabricmon.model.logs import NO_LOG_COUNTS
from fabricmon.parse.cgroup import CgroupOwner
from fabricmon.parse.log_lines import Carry
from fabricmon.parse.nccl_log import NEW_LOG, LogState
from fabricmon.sources.log_discovery import LogPlace
from fabricmon.sources.node_jobs import Pod
from fabricmon.value import Value

CHECK_BYTES = 64
"""What stands before the offset must stand there again: else it is another content."""

MOST_PARKED = 2048
"""Files remembered that are not followed now, so that none is read twice."""

MOST_OWNERS = 512
"""Processes whose job is remembered: when a line says why one died, it is gone."""

VERSION = 1


class Cursor(Value, frozen=True):
    """A file that is followed: bytes before ``offset`` were read.

    ``check`` are the last bytes before the offset. ``torn`` says that a line is cut at
    the offset, whose rest is no line. ``gone_since`` is when the path ceased to be
    this file; it is read on through its descriptor. ``touched`` says that it was written
    to at another time (``modified``) than when it was last read: a content of the same
    length may be another one. ``current_at`` is when nothing was
    left to read, ``grew_at`` when there was something.
    """

    path: str
    serial: str
    place: LogPlace
    offset: int
    size: int
    state: LogState
    check: bytes
    current_at: float
    grew_at: float
    modified: float
    torn: bool = False
    touched: bool = False
    gone_since: float | None = None

    @property
    def unread(self) -> int:
        """Bytes that are known to be there and were not read."""
        return max(self.size - self.offset, 0)

    @property
    def is_gone(self) -> bool:
        """Whether no path leads to the file any more."""
        return self.gone_since is not None

    def ended(self) -> Parked:
        """Return what to remember when its last line was taken as whole."""
        return Parked(self.path, self.serial, self.offset, self._lines + 1, self.check)

    @property
    def _lines(self) -> int:
        return self.state.carry.lines

    def parked(self) -> Parked:
        """Return what to remember when it is not followed any more.

        The line that has not ended is read again.
        """
        begun = self.state.carry.line_start
        held = self.offset - begun
        check = self.check[:-held] if held else self.check
        return Parked(self.path, self.serial, begun, self._lines, check)


class Parked(msgspec.Struct, frozen=True, array_like=True):
    """How far a file was read, to the end of a line; ``lines`` have ended so far.

    A content that was cut away has no serial: only its copy can continue it.
    """

    path: str
    serial: str
    offset: int
    lines: int
    check: bytes


class PidOwner(Value, frozen=True):
    """Whose process it was that wrote to a file."""

    serial: str
    pid: int
    owner: CgroupOwner


class Cursors(Value, frozen=True):
    """All that a poll goes on from.

    ``began`` is False until files were searched for once; ``since`` is the Unix time
    at which an earlier agent saved its offsets, if one did.
    """

    files: tuple[Cursor, ...] = ()
    parked: tuple[Parked, ...] = ()
    owners: tuple[PidOwner, ...] = ()
    counts: LogCounts = NO_LOG_COUNTS
    searched_at: float | None = None
    began: bool = False
    since: float | None = None
    host: str | None = None
    pods: tuple[Pod, ...] = ()
    problems: tuple[str, ...] = ()


class _Saved(msgspec.Struct, frozen=True, array_like=True):
    version: int
    wall: float
    files: tuple[Parked, ...]


def resume(carried: object) -> Cursors:
    """Return what to go on from: the last poll's, or what an earlier agent saved."""
    if isinstance(carried, Cursors):
        return carried
    if not isinstance(carried, bytes) or not carried:
        return Cursors()
    try:
        saved = msgspec.msgpack.decode(carried, type=_Saved)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return Cursors(problems=("the saved offsets of logs are damaged, not used",))
    if saved.version != VERSION:
        return Cursors()
    return Cursors(parked=saved.files, since=saved.wall)


def save(cursors: Cursors, wall: float) -> bytes:
    """Return the offsets as bytes; names that are no text are left out."""
    marks = (*cursors.parked, *(cursor.parked() for cursor in cursors.files))
    try:
        return msgspec.msgpack.encode(_Saved(VERSION, wall, marks))
    except UnicodeEncodeError:
        sound = tuple(mark for mark in marks if mark.path.isprintable())
        return msgspec.msgpack.encode(_Saved(VERSION, wall, sound))


def state_at(offset: int, lines: int = 0, state: LogState = NEW_LOG) -> LogState:
    """Return the state that reads on at an offset, in the context of ``state``."""
    return replace(state, carry=Carry(offset, lines))
