"""What wrappers and heads tell of one line, while they come off it."""

from __future__ import annotations

from fabricmon.parse.log_event import LogLine
from fabricmon.parse.log_stamp import Stamp
from fabricmon.value import State


class Told(State):
    """Filled in layer by layer, then left alone; ``None`` where no layer says.

    ``line_number`` and ``offset`` are those of the line, or of the first piece of it.
    ``zone_seconds`` is the zone of stamps without one, None if nobody knows it.
    """

    line_number: int = 0
    offset: int = 0
    zone_seconds: int | None = None
    time: float | None = None
    local_time: float | None = None
    host: str | None = None
    pid: int | None = None
    rank: int | None = None
    source: str | None = None
    source_line: int | None = None
    pod: str | None = None
    namespace: str | None = None
    job: str | None = None
    repeats: int = 1

    def stamped(self, stamp: Stamp) -> None:
        """Take a stamp; the outermost counts, one with a zone before one without."""
        if stamp.time is None:
            return
        if not stamp.local:
            if self.time is None:
                self.time = stamp.time
        elif self.local_time is None and self.zone_seconds is not None:
            self.local_time = stamp.time - self.zone_seconds

    def at(self, seconds: float | None) -> None:
        """Take a time that is known for sure."""
        if self.time is None:
            self.time = seconds

    def line(self, text: str) -> LogLine:
        """Return a line without a head."""
        return LogLine(
            text,
            self.line_number,
            self.offset,
            host=self.host,
            pid=self.pid,
            source=self.source,
            source_line=self.source_line,
            time=self.when,
            rank=self.rank,
            job=self.job,
            pod=self.pod,
            namespace=self.namespace,
            repeats=self.repeats,
        )

    @property
    def when(self) -> float | None:
        """The time of the line."""
        return self.local_time if self.time is None else self.time
