"""A Host whose last minutes lie on disk, as traces that each stand alone.

Each segment but the first of an agent begins with all that was known when the one
before it ended: what is read once an hour is in every one of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from fabricmon.host.protocol import Host, LogFile, ProcessListing, ReadError
from fabricmon.host.record import RecordingHost
from fabricmon.host.segments import Segments
from fabricmon.host.trace import TraceRecord
from fabricmon.host.transcript import Transcript

SEGMENT_SHARE = 0.25
"""Of the time that is kept: so much more than that lies on disk at most."""

LEAST_SECONDS = 0.5
"""Of a segment, however little is kept: each begins with all that is known."""


class HistoryHost(RecordingHost):
    """Answers as ``inner`` does, and keeps what it answered in the last seconds.

    What jobs log, and what their processes tell, is not kept: their logs lie on disk
    already, and a storm of lines would fill the memory.

    Args:
        inner: The node.
        node: Its name, for the headers.
        config: Configuration for the headers, without secrets.
        segments: Where the traces go.
        seconds: How far back they are to reach.
    """

    def __init__(
        self,
        inner: Host,
        node: str,
        config: Mapping[str, Any],
        segments: Segments,
        seconds: float,
    ) -> None:
        self._segments = segments
        self._seconds = max(seconds * SEGMENT_SHARE, LEAST_SECONDS)
        path = segments.next_path()
        super().__init__(inner, path, node, config, open_tape=segments.open)
        self._transcript: _Continued = self._new_transcript()

    @property
    def error(self) -> str | None:
        """Why the history has ended, None while it is kept."""
        return self._error or self._segments.error

    def close(self) -> None:
        """Complete the last segment; a disk that does not take it is not waited for."""
        super().close()
        self._segments.finish()

    # Not kept

    def log_files(self, paths: Sequence[str]) -> list[LogFile | ReadError]:
        """What these log files are now."""
        return self._inner.log_files(paths)

    def read_log(
        self, path: str, serial: str, offset: int, size: int
    ) -> bytes | ReadError:
        """Read at most ``size`` bytes of a log file from ``offset`` on."""
        return self._inner.read_log(path, serial, offset, size)

    def processes(self, *, fresh: bool = True) -> ProcessListing | ReadError:
        """Processes that use a collective library, as far as the host lets out."""
        return self._inner.processes(fresh=fresh)

    def _flush(self) -> None:
        """Begin another segment when it is time; the segments flush by themselves."""
        if self._segments.error is not None:
            self._is_over = True
        elif not self._is_over and (
            self._at >= self._seconds or self._segments.is_full
        ):
            self._rotate()

    def _rotate(self) -> None:
        """End the segment at the moment of its last record, and begin the next there."""
        before = self._transcript
        opening = before.whole(self._at)
        self._writer.write(TraceRecord(t=self._at))
        self._writer.close()
        self._start += self._at
        self._wall = self._inner.wall() - (self._inner.monotonic() - self._start)
        self._at = 0.0
        self._path = self._segments.next_path()
        self._writer = self._segments.open(self._path, self._header())
        self._transcript = self._new_transcript()
        self._transcript.go_on(opening, before)

    def _new_transcript(self) -> _Continued:
        target, write = self._inner.target, self._writer.write
        return _Continued(self._inner.boot_id(), target, write)

    def _stop(self, reason: str) -> None:
        super()._stop(reason)
        self._error = f"{self._path}: the history has ended: {reason}"


class _Continued(Transcript):
    """A transcript that another one can go on from.

    Where a name leads that was only listed it does not ask: the agent has not opened
    that, and may have been told not to.
    """

    def __init__(
        self,
        boot_id: str,
        target: Callable[[str], str | None],
        write: Callable[[TraceRecord], None],
    ) -> None:
        super().__init__(boot_id, target, write)
        self._leads = self._unasked

    def whole(self, at: float) -> TraceRecord:
        """Return all that was told by then, as the first record of another trace."""
        return self._node.whole(at, 0.0)

    def go_on(self, opening: TraceRecord, before: _Continued) -> None:
        """Begin with what another one has told."""
        self.put(opening)
        folders = filter(self._tree.is_folder, before._listed)
        self._listed = set(folders)  # but for those that are gone

    def _unasked(self, path: str) -> str:
        folder, _, name = path.rpartition("/")
        return f"{self._tree.place(folder)}/{name}"
