"""What a trace has to say of logs and processes, so that its reader follows them too.

A trace holds of a log what was read of it, from the first byte that anyone asked for:
its offsets in the trace are other ones, its lines are the same. Of a process it holds
what the host let out, in the files that a reader would ask for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fabricmon.host.process_sights import environment_of
from fabricmon.host.protocol import LogFile, ProcessListing, ProcessSight, ReadError
from fabricmon.host.trace import TraceRecord
from fabricmon.host.transcript import Transcript

MOST_LOGS = 4096
"""Files that are told apart; beyond that, the oldest is taken as a new one."""

LAST_BYTES = 256
"""Kept of each file; a follower looks at 64 bytes to know a content again."""


@dataclass(slots=True)
class _Told:
    """A file in the trace: its path there, and up to where it was told.

    ``last`` are the last bytes before that, by which other contents are known.
    """

    path: str
    end: int
    last: bytes = b""

    def is_rewritten(self, offset: int, data: bytes) -> bool:
        """Tell whether what was read now is not what was told of the same place."""
        overlap = self.end - offset
        if overlap <= 0 or not data:
            return False
        if len(data) < overlap:
            return offset == 0
        return not data[:overlap].endswith(self.last[-overlap:])


class LogTranscript:
    """Turns what the host says of logs and processes into records of a trace.

    Args:
        transcript: What the rest of the node is noted by.
    """

    def __init__(self, transcript: Transcript) -> None:
        self._transcript = transcript
        self._logs: dict[str, _Told] = {}  # by serial
        self._processes: dict[int, ProcessSight] = {}

    def files(
        self, paths: Sequence[str], answers: Sequence[LogFile | ReadError], at: float
    ) -> None:
        """Note which files were cut, renamed or deleted."""
        now = {each.serial: each for each in answers if isinstance(each, LogFile)}
        for path, answer in zip(paths, answers, strict=True):
            serial = answer.serial if isinstance(answer, LogFile) else None
            self._clear(path, serial, now, at)
        for file in now.values():
            told = self._logs.get(file.serial)
            if told is not None and file.size < told.end:
                self._cut(told, at)

    def content(
        self, path: str, serial: str, offset: int, data: bytes, at: float
    ) -> None:
        """Note what was read of a file, each byte once."""
        told = self._logs.get(serial)
        if told is None:
            while len(self._logs) >= MOST_LOGS:
                del self._logs[next(iter(self._logs))]
            self._clear(path, serial, {}, at)
            told = self._logs[serial] = _Told(path, offset)
            self._append(told, b"", at)
        if told.is_rewritten(offset, data):
            self._cut(told, at)
            offset = 0
        new = data[max(told.end - offset, 0) :]
        if new:
            told.end = offset + len(data)
            told.last = (told.last + new)[-LAST_BYTES:]
            self._append(told, new, at)

    def processes(self, listing: ProcessListing, at: float) -> None:
        """Note the processes that came, changed and went."""
        now = {sight.pid: sight for sight in listing.processes}
        gone = [f"/proc/{pid}" for pid in self._processes if pid not in now]
        if gone:
            self._transcript.put(TraceRecord(t=at, deleted=gone))
        for pid, sight in now.items():
            if self._processes.get(pid) != sight:
                self._transcript.put(_record(sight, at))
        self._processes = now

    def _clear(
        self, path: str, serial: str | None, now: dict[str, LogFile], at: float
    ) -> None:
        """Let a path be free of the file that it was, if it is another one now."""
        for known, told in tuple(self._logs.items()):
            if told.path != path or known == serial:
                continue
            moved = now.get(known)
            if moved is not None and moved.path != path:
                new = moved.path
            else:
                new = f"{path}.{known.replace(':', '-')}"  # it can be read on there
            self._transcript.put(TraceRecord(t=at, rotate={path: new}))
            told.path = new

    def _cut(self, told: _Told, at: float) -> None:
        told.end, told.last = 0, b""
        self._transcript.put(TraceRecord(t=at, truncate=[told.path]))

    def _append(self, told: _Told, data: bytes, at: float) -> None:
        text = data.decode("utf-8", "surrogateescape")
        self._transcript.put(TraceRecord(t=at, append={told.path: text}))


def _record(sight: ProcessSight, at: float) -> TraceRecord:
    folder = f"/proc/{sight.pid}"
    maps = "".join(f"0-1 r-xp 0 00:00 0 {path}\n" for path in sight.libraries)
    links = {f"{folder}/fd/{n}": path for n, path in enumerate(sight.logs, start=1)}
    texts = {
        f"{folder}/environ": environment_of(sight.variables),
        f"{folder}/maps": maps,
        f"{folder}/cgroup": sight.cgroup,
        f"{folder}/status": f"NSpid:\t{sight.pid}\t{sight.inner_pid}\n",
    }
    return TraceRecord(t=at, link=links, set=texts)
